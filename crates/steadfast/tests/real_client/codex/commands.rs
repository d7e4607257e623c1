//! `$goal-…` commands in the terminal interface: while the agent works, pending at Esc, and at an idle prompt; and the
//! message that wakes an idle session from outside.

use super::client::Codex;
use super::goals::{call_ours, goal, history, steadfast, trusted};
use super::model::ScriptedResponses;
use super::reply::Reply;
use super::request::Kind;
use super::tui::Tui;
use crate::process::kill_process;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

const LIMIT: Duration = Duration::from_mins(1);

/// A tool call that ends when the test says so. The client waits for it that long, instead of ten seconds.
fn until_go(id: &str) -> Reply {
    let command = "while [ ! -e go ]; do sleep 0.1; done; echo gone";
    Reply::tool(id, "exec_command", json!({"cmd": command, "yield_time_ms": 30_000}))
}

// While a name is typed the client offers skills, and Enter picks one; a word after the name closes that list.

fn go(codex: &Codex) {
    fs::write(codex.project().join("go"), "").expect("file");
}

/// Starts a goal whose first step is a tool call, and returns while it runs.
fn working(codex: &Codex, model: &ScriptedResponses) -> Tui {
    let tui = Tui::start(codex, &[]);
    tui.submit("$goal-start \"Stay on it\" --max-turns 5");
    model.wait_for_request("the first step", LIMIT, |r| r.all_text().contains("Stay on it"));
    tui.wait_for_text("Working");
    tui
}

fn wait_for(model: &ScriptedResponses, seq: usize) {
    model.wait_for_request(&format!("request {seq}"), LIMIT, |r| r.seq == seq);
}

fn events_of(codex: &Codex, kind: &str) -> usize {
    let history = history(codex);
    history["events"].as_array().expect("events").iter().filter(|event| event["kind"] == kind).count()
}

#[test]
fn commands_in_mid_turn_are_answered_and_the_turn_goes_on() {
    let model = ScriptedResponses::start(|r| match r.seq {
        1 => until_go("call_1"),
        2 => call_ours(r, "update_goal", "call_2", json!({"status": "complete"})),
        _ => Reply::text("THE END"),
    });
    let codex = trusted(Codex::new(&model));
    let tui = working(&codex, &model);
    tui.submit("$goal-status now");
    tui.submit("$goal-extend --add-trns 5");
    go(&codex);
    tui.wait_for_turn("THE END");
    let shown = tui.history();
    assert!(shown.contains("◎ Goal: Stay on it") && shown.contains("unknown flag `--add-trns`"), "{shown}");
    assert!(!shown.contains("Blocked by hook"), "{shown}");
    let seen = model.requests_of(Kind::Main)[1].all_text();
    assert!(seen.contains("Do not answer it"), "{seen}");
    tui.escape();
    tui.submit("$goal-status now");
    tui.wait_for_text("status: complete");
    tui.exit();
    model.check_script();
    assert_eq!(model.requests_of(Kind::Main).len(), 3, "nothing was sent again");
}

#[test]
fn a_command_in_mid_turn_is_applied_once_whatever_escape_sends_again() {
    // Once after the tool, with Esc later; once still pending at Esc, together with another one.
    for pending in [false, true] {
        let model = ScriptedResponses::start(|r| match r.seq {
            1 => until_go("call_1"),
            _ => Reply::text("late").delay(LIMIT),
        });
        let codex = trusted(Codex::new(&model));
        let tui = working(&codex, &model);
        tui.submit("$goal-extend --add-turns 5");
        if pending {
            tui.submit("$goal-status now");
        } else {
            go(&codex);
            wait_for(&model, 2);
            tui.wait_for_text("goal extended");
        }
        tui.escape();
        tui.wait_for_text("goal extended");
        tui.wait_for("the interruption", LIMIT, |screen| screen.contains("interrupted"));
        tui.submit("$goal-history --all");
        tui.wait_for_text("Stay on it");
        tui.exit();
        model.check_script();
        assert_eq!(events_of(&codex, "goal_extended"), 1, "{:#}", history(&codex));
        assert_eq!(goal(&codex)["continuations_remaining"], 10, "{:#}", goal(&codex));
        assert_eq!(model.requests_of(Kind::Main).len(), if pending { 1 } else { 2 });
    }
}

#[test]
fn a_pause_in_mid_turn_lets_the_model_wind_up() {
    let model = ScriptedResponses::start(|r| match r.seq {
        1 => until_go("call_1"),
        _ => Reply::text("WOUND UP"),
    });
    let codex = trusted(Codex::new(&model));
    let tui = working(&codex, &model);
    tui.submit("$goal-pause now");
    go(&codex);
    tui.wait_for_turn("WOUND UP");
    tui.exit();
    model.check_script();
    let requests = model.requests_of(Kind::Main);
    assert_eq!(requests.len(), 2, "a paused goal is not driven");
    assert!(requests[1].all_text().contains("End your turn now"), "{}", requests[1].all_text());
    assert_eq!(goal(&codex)["paused_reason"], "user");
}

#[test]
fn resume_and_extend_at_an_idle_prompt_go_on_now_and_status_calls_no_model() {
    let model = ScriptedResponses::start(|r| match r.seq {
        // One continuation, and the turn to wind down.
        1..=3 => Reply::text(format!("STEP {}.", r.seq)),
        4 => until_go("call_4"),
        5 => Reply::text("PAUSED STEP."),
        6 => call_ours(r, "update_goal", "call_6", json!({"status": "complete"})),
        _ => Reply::text("THE END"),
    });
    let codex = trusted(Codex::new(&model));
    let tui = Tui::start(&codex, &[]);
    tui.submit("$goal-start \"Stay on it\" --max-turns 1");
    tui.wait_for_turn("STEP 3.");
    wait_until(&codex, |goal| goal["paused_reason"] == "continuation_cap");
    tui.submit("$goal-status now");
    tui.wait_for_text("paused_reason: continuation_cap");
    assert_eq!(model.requests_of(Kind::Main).len(), 3, "status needs no model");

    tui.submit("$goal-extend --add-turns 5");
    wait_for(&model, 4);
    let seen = model.requests_of(Kind::Main)[3].all_text();
    assert!(seen.contains("The goal of this session is not finished"), "{seen}");
    let thread = goal(&codex)["session_id"].as_str().expect("session").to_owned();
    let (code, said) = steadfast(&codex, &["goal", "pause", "--session", &thread]);
    assert_eq!(code, 0, "{said}");
    go(&codex);
    tui.wait_for_turn("PAUSED STEP.");

    tui.submit("$goal-edit \"Stay on it and finish\"");
    tui.wait_for_text("objective changed");
    assert_eq!(model.requests_of(Kind::Main).len(), 5, "a paused goal needs no model for its new text");
    tui.submit("$goal-resume now");
    tui.wait_for_turn("THE END");
    tui.exit();
    model.check_script();
    assert_eq!(goal(&codex)["status"], "complete");
}

#[test]
fn a_queued_message_wakes_the_goal_and_a_stale_one_reaches_no_model() {
    let model = ScriptedResponses::start(|r| match r.seq {
        1 => Reply::usage_limit(4_102_444_800),
        2 => call_ours(r, "update_goal", "call_2", json!({"status": "complete"})),
        _ => Reply::text("THE END"),
    });
    let codex = trusted(Codex::new(&model)).env("STEADFAST_NO_WATCH", "1");
    let tui = Tui::start(&codex, &[]);
    tui.submit("$goal-start \"Stay on it\"");
    tui.wait_for_text("usage limit");
    let paused = wait_until(&codex, |goal| goal["paused_reason"] == "usage_limit");
    let thread = paused["session_id"].as_str().expect("session").to_owned();
    let wake = || codex.run(&["queue", "--thread", &thread, "--message", "◎ goal continues"]);

    // Before its moment: it is not due.
    assert!(wake().status.success());
    tui.wait_for_text("Blocked by hook");
    assert_eq!(goal(&codex)["paused_reason"], "usage_limit");
    let store = rusqlite::Connection::open(codex.root().join("steadfast/goals.db")).expect("store");
    store.execute("UPDATE goals SET wake_at_ms = 1, version = version + 1", []).expect("a due wake-up");
    assert!(wake().status.success());
    tui.wait_for_turn("THE END");
    let seen = model.requests_of(Kind::Main)[1].all_text();
    assert_eq!(seen.matches("</objective>").count(), 2, "{seen}");
    assert_eq!(goal(&codex)["status"], "complete");

    // Queued while no client ran: the next one gets it as a prompt.
    tui.wait_for_text("Approaching rate limits");
    tui.escape();
    tui.exit();
    assert!(wake().status.success());
    let tui = Tui::start(&codex, &["resume", &thread]);
    tui.wait_for_text("Blocked by hook");
    tui.exit();
    model.check_script();
    assert_eq!(model.requests_of(Kind::Main).len(), 3);
    let prompts =
        store.query_row("SELECT count(*) FROM session_events WHERE text LIKE '%goal continues%'", [], |row| {
            row.get::<_, i64>(0)
        });
    assert_eq!(prompts.expect("events"), 0, "it is no prompt of the user");
}

/// `steadfast watch`, started by the hook at the end of the turn, wakes the idle client, also if it is killed meanwhile.
#[test]
fn a_wait_of_the_agent_calls_no_model_and_ends_with_one_wake_up() {
    let model = ScriptedResponses::start(|r| match r.seq {
        1 => call_ours(r, "wait_goal", "call_1", json!({"seconds": 30})),
        2 => Reply::text("I wait."),
        3 => call_ours(r, "update_goal", "call_3", json!({"status": "complete"})),
        _ => Reply::text("THE END"),
    });
    let codex = trusted(Codex::new(&model));
    let program = format!("[agents.codex]\nprogram = {:?}\n", codex.program());
    fs::write(codex.root().join("steadfast/config.toml"), program).expect("configuration");
    let tui = Tui::start(&codex, &[]);
    tui.submit("$goal-start \"Stay on it\"");
    tui.wait_for_turn("I wait.");
    let waiting = wait_until(&codex, |goal| goal["paused_reason"] == "waiting");
    let lock = codex.root().join("steadfast/watch.lock");
    // The hook does not wait until it runs.
    let watcher = (0..300).find_map(|_| {
        let holder = fs::read_to_string(&lock).unwrap_or_default();
        let pid = holder.split(' ').next().and_then(|pid| pid.parse().ok());
        if pid.is_none() {
            std::thread::sleep(Duration::from_millis(100));
        }
        pid
    });
    kill_process(watcher.expect("a running `steadfast watch`"));
    assert_eq!(steadfast(&codex, &["watch", "--detach"]).0, 0);
    assert_eq!(model.requests_of(Kind::Main).len(), 2, "{waiting}");
    // Half a minute for the wait, and as much again until an idle client looks for messages, on a busy machine.
    model.wait_for_request("the wake-up", 3 * LIMIT, |r| r.seq == 3);
    tui.wait_for_turn("THE END");
    assert_eq!((events_of(&codex, "goal_woken"), goal(&codex)["status"].clone()), (1, json!("complete")));
    let (code, said) = steadfast(&codex, &["watch", "--stop"]);
    assert!(code == 0 || code == 3, "{said}");
    tui.exit();
    model.check_script();
}

fn wait_until(codex: &Codex, wanted: impl Fn(&Value) -> bool) -> Value {
    let end = std::time::Instant::now() + LIMIT;
    loop {
        let found = goal(codex);
        if wanted(&found) {
            return found;
        }
        assert!(std::time::Instant::now() < end, "{found:#}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
