//! A panic in a hook pauses the goal and says so, and only the client can cause that.

use serde_json::{Value, json};

use crate::env::{Env, finish};

#[test]
fn a_panic_in_a_hook_pauses_the_goal_and_reports_it() {
    let env = Env::new();
    env.start(&["ship it"]);
    let stop = json!({"hook_event_name": "Stop", "session_id": "s1", "cwd": env.project(), "stop_hook_active": false,
                      "transcript_path": env.transcript("s1"), "last_assistant_message": "done"});
    let mut hook = env.command(&["hook", "claude"]);
    let output = finish(hook.env("STEADFAST_CRASH_AT", "hook"), stop.to_string().as_bytes());
    let message = output.succeeds().json()["systemMessage"].as_str().unwrap().to_owned();
    assert!(message.contains("internal error at") && message.contains("/goal-resume"), "{output:?}");
    assert_eq!(output.json()["decision"], Value::Null, "{output:?}");
    assert_eq!(env.status()["paused_reason"], "degraded");

    // Without a goal nothing is paused, and the client is not disturbed.
    env.goal(&["abandon"]).succeeds();
    let mut hook = env.command(&["hook", "claude"]);
    finish(hook.env("STEADFAST_CRASH_AT", "hook"), stop.to_string().as_bytes()).succeeds();
}

/// The words of a process that a panic started anew, from a process that is not the client.
#[test]
fn only_the_client_pauses_a_goal_by_a_panic() {
    let env = Env::new();
    env.start(&["ship it"]);
    let words = ["hook", "claude", "--panicked", "s1", "Stop", "src/x.rs:1"];
    let shell = words.iter().fold(env!("CARGO_BIN_EXE_steadfast").to_owned(), |line, word| format!("{line} {word}"));
    let mut foreign = std::process::Command::new("setsid");
    foreign.args(["sh", "-c", &format!("sleep 0.1; {shell} </dev/null; true")]).env("STEADFAST_HOME", env.home());
    finish(&mut foreign, b"");
    assert_eq!(env.status()["status"], "active");
}

/// Two replies in one output would be none.
#[test]
fn a_panic_behind_the_reply_leaves_the_reply_and_the_goal_alone() {
    let env = Env::new();
    env.start(&["ship it"]);
    let stop = json!({"hook_event_name": "Stop", "session_id": "s1", "cwd": env.project(), "stop_hook_active": false,
                      "transcript_path": env.transcript("s1"), "last_assistant_message": "half"});
    let mut hook = env.command(&["hook", "claude"]);
    let output = finish(hook.env("STEADFAST_CRASH_AT", "hook.answered"), stop.to_string().as_bytes());
    assert_eq!(output.succeeds().json()["decision"], "block", "{output:?}");
    assert_eq!(env.status()["status"], "active");
    let log = std::fs::read_to_string(env.home().join("log/hooks.log")).unwrap();
    assert!(log.contains("internal error"), "{log}");
}
