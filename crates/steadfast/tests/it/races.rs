//! Many processes on one goal: no update is lost, repeated or rejected.

use std::process::Stdio;

use serde_json::json;

use crate::client;
use crate::env::Env;

#[test]
fn sixteen_concurrent_writers_lose_no_update_and_losers_write_no_event() {
    let env = Env::new();
    env.start(&["x", "--max-turns", "10"]);
    let began = env.sql("SELECT version FROM goals")[0][0].clone();
    for round in 1..=3 {
        let children: Vec<_> = (0..16)
            .map(|_| {
                env.command(&["goal", "extend", "--add-turns", "1", "--session", "s1"])
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let total = (16 * round).to_string();
        assert_eq!(
            env.sql(&format!("SELECT continuations_remaining - 10, version - {began} FROM goals")),
            [[total.clone(), total.clone()]]
        );
        assert_eq!(
            env.sql(&format!(
                "SELECT count(*), count(DISTINCT version_after), max(version_after) - {began} FROM goal_events
                 WHERE kind = 'goal_extended'"
            )),
            [[total.clone(), total.clone(), total]]
        );
    }
}

#[test]
fn concurrent_stops_and_a_completion_give_one_history() {
    let env = Env::new();
    env.start(&["x", "--budget", "1M"]);
    env.says("s1", "m1", "one", 100);
    let stop = json!({"hook_event_name": "Stop", "session_id": "s1", "transcript_path": env.transcript("s1"), "cwd": env.project()});
    let hooks: Vec<_> = (0..8)
        .map(|_| {
            let mut child = client::spawn(&env.command(&["hook", "claude"]));
            child.write(stop.to_string().as_bytes());
            child.close_stdin();
            child
        })
        .collect();
    env.goal(&["complete"]).succeeds();
    for hook in hooks {
        hook.finish().succeeds();
    }
    let goal = env.status();
    assert_eq!((&goal["status"], &goal["tokens_used"]), (&json!("complete"), &json!(100)));
    // Every version was reached once, and the tokens of all events add up to the goal's.
    let gaps = env.sql("SELECT count(*) FROM (SELECT version_before, version_after FROM goal_events WHERE version_before >= version_after)");
    assert_eq!(gaps, [["0"]]);
    assert_eq!(env.sql("SELECT sum(tokens_delta) FROM goal_events WHERE kind = 'tokens_accounted'"), [["100"]]);
}

#[test]
fn a_process_killed_at_any_moment_leaves_the_store_intact() {
    let env = Env::new();
    env.start(&["x", "--max-turns", "10"]);
    let began = env.sql("SELECT version FROM goals")[0][0].clone();
    for delay in 0..40_u64 {
        let mut child = env
            .command(&["goal", "extend", "--add-turns", "1", "--session", "s1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_micros(delay * 150));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(env.run(&["db", "check"]).succeeds().stdout, "ok\n");
    let rows = env.sql(&format!(
        "SELECT g.continuations_remaining - 10 - (SELECT count(*) FROM goal_events WHERE kind = 'goal_extended'),
                g.version - {began} - (SELECT count(*) FROM goal_events WHERE kind = 'goal_extended') FROM goals g"
    ));
    assert_eq!(rows, [["0", "0"]]);
}
