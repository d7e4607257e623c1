//! Limits inside one long turn of Codex, whose hooks cannot end a turn: the next tool calls are refused.

use super::client::Codex;
use super::goals::{call_ours, counted, goal, steadfast, trusted};
use super::model::ScriptedResponses;
use super::reply::{Reply, Usage};
use super::request::{Kind, Request};
use super::tui::Tui;
use serde_json::json;
use std::fs;
use std::time::Duration;

const STEPS: u64 = 31;
const REFUSED: &str = "End your turn now: the goal's limit is reached";

/// A model that takes 31 steps in one turn, whatever it is told.
fn stubborn(request: &Request) -> Reply {
    let taken = request.input().iter().filter(|item| item["type"] == "function_call").count() as u64;
    if taken >= STEPS {
        return Reply::text("All done.").usage(Usage::new(990, 0, 10, 0));
    }
    let command = format!("echo {taken} >>steps.txt");
    Reply::shell(&format!("call_{taken}"), &command).usage(Usage::new(990, 0, 10, 0))
}

/// The same model, which ends its turn when a tool is refused.
fn obedient(request: &Request) -> Reply {
    let last = request.input().iter().rev().find(|item| item["type"] == "function_call_output");
    let is_refused = last.is_some_and(|output| output["output"].to_string().contains(REFUSED));
    if is_refused { Reply::text("I stop here.").usage(Usage::new(990, 0, 10, 0)) } else { stubborn(request) }
}

/// Ends the daemon that the client leaves behind, also when the test fails.
struct Daemon<'a>(&'a Codex);

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        let home = self.0.codex_home().to_string_lossy().into_owned();
        for entry in fs::read_dir("/proc").expect("processes").flatten() {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if command.starts_with(home.as_bytes()) {
                let _ = std::process::Command::new("kill").arg(entry.file_name()).status();
            }
        }
    }
}

fn steps_taken(codex: &Codex) -> usize {
    fs::read_to_string(codex.project().join("steps.txt")).unwrap_or_default().lines().count()
}

#[test]
fn a_spent_budget_ends_a_long_turn() {
    let model = ScriptedResponses::start(obedient);
    let codex = trusted(Codex::new(&model));
    codex.exec(&[], "$goal-start \"Too much\" --budget 10k");
    model.check_script();
    let goal = goal(&codex);
    assert_eq!(goal["status"], "budget_limited", "{goal:#}");
    // Told at the tenth step; three more, the one that was under way, a refused one and the answer.
    assert_eq!((steps_taken(&codex), model.requests_of(Kind::Main).len()), (14, 16));
    assert_eq!(goal["tokens_used"], counted(&model, Kind::Main), "what comes after the limit counts too");
    let told = model.requests().pop().expect("a request").all_text();
    assert_eq!((told.matches("This is the last turn it gets").count(), told.matches("was refused").count()), (1, 1));
}

#[test]
fn the_tools_of_a_model_that_ignores_its_limit_do_not_run_and_its_tokens_count() {
    let model = ScriptedResponses::start(stubborn);
    let codex = trusted(Codex::new(&model));
    codex.exec(&[], "$goal-start \"Too much\" --budget 10k");
    model.check_script();
    let goal = goal(&codex);
    assert_eq!((&goal["status"], steps_taken(&codex)), (&json!("budget_limited"), 14), "{goal:#}");
    assert_eq!(goal["tokens_used"], counted(&model, Kind::Main));
    let session = goal["session_id"].as_str().expect("session");
    let (_, status) = steadfast(&codex, &["goal", "status", "--session", session]);
    assert!(status.contains("32,000"), "{status}");
    codex.exec(&["resume", session], "Something else.");
    let after = super::goals::goal(&codex);
    assert_eq!(after["tokens_used"], goal["tokens_used"], "the user's next turn is not charged");
}

#[test]
fn a_spent_money_budget_ends_a_long_turn() {
    let model = ScriptedResponses::start(|r| obedient(r).usage(Usage::new(100_000, 0, 0, 0)));
    let codex = trusted(Codex::new(&model));
    codex.exec(&["-c", "model=\"gpt-5\""], "$goal-start \"Too much\" --usd 1");
    model.check_script();
    let goal = goal(&codex);
    assert_eq!(goal["status"], "budget_limited", "{goal:#}");
    // An eighth of a dollar each: told after one dollar, and at most six more requests.
    assert!(model.requests_of(Kind::Main).len() <= 14, "{}", model.requests_of(Kind::Main).len());
}

#[test]
fn a_passed_deadline_ends_a_long_turn() {
    let model = ScriptedResponses::start(|r| obedient(r).delay(Duration::from_millis(200)));
    let codex = trusted(Codex::new(&model));
    codex.exec(&[], "$goal-start \"Too late\" --deadline \"in 1s\"");
    model.check_script();
    let goal = goal(&codex);
    assert_eq!(goal["paused_reason"], "deadline", "{goal:#}");
    assert!(steps_taken(&codex) < 31 && model.requests_of(Kind::Main).len() < 32, "{}", steps_taken(&codex));
    assert_eq!(goal["tokens_used"], counted(&model, Kind::Main));
}

#[test]
fn a_turn_that_ignores_its_limit_is_interrupted_by_the_daemon() {
    let model = ScriptedResponses::start(stubborn);
    let codex = trusted(Codex::new(&model).feature("daemon_auto_start", true));
    let _daemon = Daemon(&codex);
    let tui = Tui::start(&codex, &[]);
    tui.submit("$goal-start \"Too much\" --budget 10k");
    tui.wait_for("the end of the turn", Duration::from_mins(1), |screen| screen.contains("interrupted"));
    tui.exit();
    model.check_script();
    let asked = model.requests_of(Kind::Main).len();
    assert!(asked <= 20, "{asked} requests");
    let goal = goal(&codex);
    assert_eq!(goal["status"], "budget_limited", "{goal:#}");
}

#[test]
fn a_turn_goes_no_further_after_it_waits_or_the_user_pauses_its_goal() {
    let model = ScriptedResponses::start(|r| {
        let is_waiting = r.has_tool_result("call_wait");
        if is_waiting { stubborn(r) } else { call_ours(r, "wait_goal", "call_wait", json!({"seconds": 3600})) }
    });
    let codex = trusted(Codex::new(&model));
    codex.exec(&[], "$goal-start \"Wait\" --budget 10k");
    model.check_script();
    let waiting = goal(&codex);
    assert_eq!((&waiting["paused_reason"], steps_taken(&codex)), (&json!("waiting"), 1), "{waiting:#}");
    assert_eq!(waiting["tokens_used"], counted(&model, Kind::Main));

    let model = ScriptedResponses::start(|r| {
        if r.has_tool_result("call_3") { stubborn(r) } else { stubborn(r).delay(Duration::from_millis(300)) }
    });
    let codex = trusted(Codex::new(&model));
    std::thread::scope(|scope| {
        scope.spawn(|| codex.exec(&[], "$goal-start \"Pause\""));
        let is_third = |r: &Request| r.has_tool_result("call_2");
        model.wait_for_request("the third step", Duration::from_mins(1), is_third);
        let (code, said) = steadfast(&codex, &["goal", "pause", "--all"]);
        assert_eq!(code, 0, "{said}");
    });
    model.check_script();
    assert_eq!(goal(&codex)["paused_reason"], "user");
    assert!(steps_taken(&codex) <= 6, "{}", steps_taken(&codex));
}

#[test]
fn a_model_that_repeats_its_tool_calls_is_told_twice_and_then_paused() {
    let model = ScriptedResponses::start(|r| {
        let last = r.input().last().map(|item| item["type"].clone()).unwrap_or_default();
        if last == "function_call_output" {
            Reply::text(format!("Still looking, for the {}th time.", r.seq))
        } else {
            Reply::shell(&format!("call_{}", r.seq), "git status --short")
        }
    });
    let codex = trusted(Codex::new(&model));
    codex.exec(&[], "$goal-start \"Look\"");
    model.check_script();
    let goal = goal(&codex);
    assert_eq!(goal["paused_reason"], "no_progress", "{goal:#}");
    let told = model.requests().pop().expect("a request").all_text();
    assert_eq!(told.matches("Doing it again will not help").count(), 1);
    assert_eq!(told.matches("take another approach now").count(), 1);
    assert!(model.requests_of(Kind::Main).len() <= 24);
}
