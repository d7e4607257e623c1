//! Limits inside one turn of Claude Code that goes on although its goal does not, and repeated tool calls.

use crate::model::ScriptedModel;
use crate::reply::{Reply, Usage};
use crate::request::{Kind, Request};
use crate::with_steadfast::{call, client, goal, steadfast, wait_for_goal, work};
use serde_json::json;
use std::time::Duration;

const PRINT: &[&str] = &["--allowedTools", "Bash"];
const BATCHES: usize = 20;

/// One of our tools first, then twenty batches of tool calls that cost ten times the budget each.
fn runs_on(tool: &'static str, input: serde_json::Value) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    move |request| {
        let usage = Usage::new(100_000, 0, 0, 0);
        if !request.has_tool_result("toolu_first") {
            // A worker may block a goal only after three turns.
            let turns = request.all_text().matches("Goal not finished").count();
            if tool == "update_goal" && turns < 2 {
                return Reply::text(format!("Step {turns}.")).usage(Usage::new(10, 0, 0, 0));
            }
            // The first answer costs little: a goal at its limit can neither wait nor block.
            return match request.tool_named(tool) {
                Some(_) => call(request, tool, "toolu_first", input.clone()).usage(Usage::new(10, 0, 0, 0)),
                None => work(&format!("toolu_{}", request.seq)).usage(Usage::new(10, 0, 0, 0)),
            };
        }
        match request.all_text().matches("ran on").count() {
            ran if ran > 2 * BATCHES => Reply::text("All done.").usage(usage),
            _ => {
                let input =
                    json!({"command": format!("echo ran on {} >>steps.txt", request.seq), "description": "Go on"});
                Reply::default().and_tool_with_id(&format!("toolu_{}", request.seq), "Bash", input).usage(usage)
            }
        }
    }
}

#[test]
fn a_turn_that_waits_or_is_blocked_is_ended() {
    let waits = ("wait_goal", json!({"seconds": 3600}));
    let blocked = ("update_goal", json!({"status": "blocked", "blocked_reason": "no key"}));
    for (tool, input) in [waits, blocked] {
        let model = ScriptedModel::start(runs_on(tool, input));
        let client = client(&model);
        let output = client.print(PRINT, "/steadfast:goal-start \"Cheat\" --budget 10k");
        model.check_script();
        let goal = goal(&client);
        let state = if tool == "wait_goal" { &goal["paused_reason"] } else { &goal["status"] };
        assert!(state == "waiting" || state == "blocked", "{output:?} {goal:#}");
        let steps = std::fs::read_to_string(client.project().join("steps.txt")).unwrap_or_default().lines().count();
        assert_eq!(steps, 1, "one more batch, and the next one is refused");
        let asked = model.requests_of(Kind::Main);
        let told = asked.last().expect("a request").all_text();
        assert_eq!(told.matches("End your turn now").count(), 1, "{told}");
        assert_eq!(goal["total_tokens"], model.handed_out_of(Kind::Main).total(), "all of it counts");
    }
}

#[test]
fn a_turn_whose_goal_is_paused_from_outside_is_ended() {
    let model = ScriptedModel::start(|request| {
        let input = json!({"command": format!("echo {} >>steps.txt", request.seq), "description": "Go on"});
        let reply = Reply::default().and_tool_with_id(&format!("toolu_{}", request.seq), "Bash", input);
        reply.delay(Duration::from_millis(300))
    });
    let client = client(&model);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| client.print(PRINT, "/steadfast:goal-start \"Pause me\""));
        wait_for_goal(&client, "some work", |_| model.requests_of(Kind::Main).len() > 3);
        let (code, said) = steadfast(&client, &["goal", "pause", "--all"]);
        assert_eq!(code, 0, "{said}");
        let before = model.requests_of(Kind::Main).len();
        running.join().expect("client");
        let after = model.requests_of(Kind::Main).len();
        assert!(after <= before + 3, "{} requests after the pause", after - before);
    });
    model.check_script();
    assert_eq!(goal(&client)["paused_reason"], "user");
    let told = model.requests_of(Kind::Main).pop().expect("a request").all_text();
    assert_eq!(told.matches("End your turn now: the user has paused the goal").count(), 1, "{told}");
}

/// Two calls in turn, so that no call equals the one before it.
#[test]
fn a_model_that_alternates_between_two_tool_calls_is_told_twice_and_then_paused() {
    let model = ScriptedModel::start(|request| {
        let command = if request.seq % 2 == 0 { "git status --short" } else { "git branch" };
        let input = json!({"command": command, "description": "Look"});
        Reply::default().and_tool_with_id(&format!("toolu_{}", request.seq), "Bash", input)
    });
    let client = client(&model);
    client.print(PRINT, "/steadfast:goal-start \"Look\"");
    model.check_script();
    let goal = goal(&client);
    assert_eq!(goal["paused_reason"], "no_progress", "{goal:#}");
    let asked = model.requests_of(Kind::Main);
    assert!(asked.len() <= 24, "{}", asked.len());
    let told = asked.last().expect("a request").all_text();
    assert_eq!(told.matches("Doing it again will not help").count(), 1);
    assert_eq!(told.matches("take another approach now").count(), 1);
}
