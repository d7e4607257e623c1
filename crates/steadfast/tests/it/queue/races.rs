//! Real processes at once, and processes killed at any moment: no queued goal is lost or started twice.

use std::process::{Child, Stdio};
use std::time::Instant;

use crate::env::Env;

fn spawn(env: &Env, arguments: &[&str]) -> Child {
    let mut command = env.command(&[&["goal"], arguments, &["--session", "s1"]].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn code(child: Child) -> i32 {
    let output = child.wait_with_output().unwrap();
    let code = output.status.code().unwrap();
    assert!([0, 2, 3, 4].contains(&code), "{output:?}");
    code
}

#[test]
fn a_goal_is_started_or_dropped_and_never_both() {
    for _ in 0..10 {
        let env = Env::new();
        env.start(&["First"]);
        env.queue("Second").succeeds();
        let (completing, dropping) = (spawn(&env, &["complete"]), spawn(&env, &["queue", "drop", "1"]));
        assert_eq!(code(completing), 0);
        let dropped = code(dropping) == 0;
        let started = env.status()["objective"] == "Second";
        assert!(started != dropped, "started: {started}, dropped: {dropped}");
        assert!(env.queued().is_empty());
    }
}

#[test]
fn concurrent_ends_start_each_goal_once_and_in_order() {
    let env = Env::new();
    env.start(&["0"]);
    for number in 1..=20 {
        env.queue(&number.to_string()).succeeds();
    }
    for _ in 0..5 {
        let ends: Vec<_> = (0..4).map(|_| spawn(&env, &["abandon"])).collect();
        assert!(ends.into_iter().map(code).filter(|code| *code == 0).count() >= 1);
    }
    let live: usize = env.status()["objective"].as_str().unwrap().parse().unwrap();
    let waiting: Vec<String> = (live + 1..=20).map(|number| number.to_string()).collect();
    assert_eq!(env.queued(), waiting);
    let started =
        env.sql("SELECT json_extract(payload, '$.objective') FROM goal_events WHERE kind = 'goal_created' ORDER BY id");
    let expected: Vec<Vec<String>> = (0..=live).map(|number| vec![number.to_string()]).collect();
    assert_eq!(started, expected);
}

#[test]
fn a_process_killed_between_end_and_start_loses_no_goal() {
    let env = Env::new();
    env.start(&["0"]);
    for number in 1..=40 {
        env.queue(&number.to_string()).succeeds();
    }
    let begun = Instant::now();
    env.goal(&["abandon"]).succeeds();
    let whole = begun.elapsed();
    for part in 0..38_u32 {
        let mut child = spawn(&env, &["abandon"]);
        std::thread::sleep(whole * part / 32);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let created = "SELECT count(*), count(DISTINCT json_extract(payload, '$.objective')) FROM goal_events
        WHERE kind = 'goal_created'";
    let counts = env.sql(created);
    assert_eq!(counts[0][0], counts[0][1], "no goal was started twice");
    let waiting = env.queued().len();
    assert_eq!(counts[0][0].parse::<usize>().unwrap() + waiting, 41, "none was lost");
    // Whatever the last process left undone, the next command does once.
    let was_over = env.status()["status"] == "abandoned" && waiting > 0;
    env.queue("41").succeeds();
    let after = env.queued().len();
    assert_eq!(after, if was_over { waiting } else { waiting + 1 });
    assert_eq!(env.status()["status"], "active");
    assert_eq!(env.run(&["db", "check"]).succeeds().stdout, "ok\n");
}
