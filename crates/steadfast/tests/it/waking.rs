//! `steadfast hook claude --rewake`, the background hook that wakes the client by its exit code.

use std::time::Duration;

use serde_json::json;

use crate::env::{Env, finish};

/// Long enough for the waker to look at the store before the hook that records the start.
const HEAD_START: Duration = Duration::from_millis(500);

#[test]
fn a_waker_that_looks_before_the_session_is_recorded_as_open_waits_for_that() {
    let env = Env::new();
    env.start(&["Outlive the client"]);
    env.hook("s1", &json!({"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"}));
    let start = json!({
        "hook_event_name": "SessionStart", "source": "resume", "session_id": "s1",
        "transcript_path": env.transcript("s1"), "cwd": env.project(),
    });
    let woken = std::thread::scope(|scope| {
        let mut waker = env.command(&["hook", "claude", "--rewake"]);
        waker.env("CLAUDE_CODE_ENTRYPOINT", "cli");
        let input = start.to_string();
        let waker = scope.spawn(move || finish(&mut waker, input.as_bytes()));
        std::thread::sleep(HEAD_START);
        env.hook("s1", &start);
        waker.join().unwrap()
    });
    assert_eq!(woken.code, 2, "{woken:?}");
    assert!(woken.stderr.contains("Outlive the client"), "{woken:?}");
    let woken = env.event_kinds().iter().filter(|kind| *kind == "goal_woken").count();
    assert_eq!(woken, 1);
}
