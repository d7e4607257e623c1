//! Due goals are woken once, whatever is killed or locked meanwhile, and a goal that nothing moves is told once.

use rustix::process::{Signal, kill_process};
use steadfast_model::clock;

use super::{World, until};

#[test]
fn a_due_goal_is_woken_in_its_client_once() {
    let world = World::new();
    world.goal_in("codex", "t1", clock::now() + 3_600_000);
    world.watch(&["--once"]).succeeds();
    assert_eq!(world.calls(), Vec::<String>::new(), "it is not due");
    world.due("t1", 1);
    for _ in 0..2 {
        world.watch(&["--once"]).succeeds();
    }
    assert_eq!(world.calls(), ["codex queue --thread t1 --message ◎ goal continues"]);
    assert_eq!(world.events("goal_woken"), 1);
    assert_eq!(world.goal("wake_at_ms, woken_at_ms IS NOT NULL"), ["NULL", "1"]);
}

#[test]
fn a_living_waker_of_the_client_comes_first() {
    let world = World::new();
    world.goal_in("codex", "t1", clock::now());
    let sql = "UPDATE sessions SET waker_pid = host_pid, waker_pid_started = host_pid_started";
    world.env.execute(sql);
    world.watch(&["--once"]).succeeds();
    assert_eq!(world.calls(), Vec::<String>::new());
    // It had its chance.
    world.due("t1", clock::now() - 60_000);
    world.watch(&["--once"]).succeeds();
    assert_eq!(world.calls().len(), 1);
}

#[test]
fn a_message_that_fails_is_repeated_later() {
    let world = World::new();
    world.agents("echo 'no such thread' >&2; exit 1");
    world.goal_in("codex", "t1", 1);
    let output = world.watch(&["--once"]);
    assert!(output.succeeds().stdout.contains("no such thread"), "{output:?}");
    assert_eq!(world.events("turn_failed"), 1);
    let now = clock::now();
    assert_eq!(world.goal(&format!("woken_at_ms, wake_at_ms > {now}, failures_in_row")), ["NULL", "1", "1"]);
    world.agents("exit 0");
    world.due("t1", 1);
    world.watch(&["--once"]).succeeds();
    assert_eq!((world.calls().len(), world.events("goal_woken")), (2, 2));
}

#[test]
fn a_killed_one_is_replaced_and_the_goal_is_woken_once() {
    let world = World::new();
    world.goal_in("codex", "t1", clock::now() + 1_500);
    kill_process(world.pid(), Signal::KILL).unwrap();
    until(|| !world.is_held());
    kill_process(world.pid(), Signal::KILL).unwrap();
    until(|| !world.is_held());
    world.pid();
    until(|| !world.calls().is_empty());
    world.watch(&["--stop"]).succeeds();
    world.watch(&["--once"]).succeeds();
    assert_eq!((world.calls().len(), world.events("goal_woken")), (1, 1));
}

#[test]
fn fifty_goals_due_at_once_with_four_watching_are_woken_fifty_times() {
    let world = World::new();
    let threads: Vec<String> = (0..50).map(|number| format!("thread-{number}")).collect();
    for thread in &threads {
        world.goal_in("codex", thread, i64::MAX / 2);
    }
    let homes = [1, 2, 3, 4].map(|number| world.env.path(&format!("home-{number}")));
    let mut all: Vec<_> = homes
        .iter()
        .map(|home| {
            std::fs::create_dir_all(home).unwrap();
            std::fs::copy(world.env.home().join("config.toml"), home.join("config.toml")).unwrap();
            let mut command = world.command(&[]);
            super::Watching(command.env("STEADFAST_HOME", home).spawn().unwrap())
        })
        .collect();
    for home in &homes {
        until(|| steadfast_system::watch_lock::is_held(home));
    }
    world.env.execute(&format!("UPDATE goals SET wake_at_ms = {}", clock::now() + 1_000));
    until(|| world.calls().len() >= 50);
    for watching in &mut all {
        watching.signal(Signal::TERM);
        assert_eq!(watching.code(), Some(0));
    }
    world.watch(&["--once"]).succeeds();
    let mut calls = world.calls();
    calls.sort();
    calls.dedup();
    assert_eq!((calls.len(), world.calls().len(), world.events("goal_woken")), (50, 50, 50));
}

#[test]
fn a_goal_that_is_due_while_the_store_is_locked_is_woken_right_after() {
    let world = World::new();
    world.goal_in("codex", "t1", clock::now() + 500);
    let locker = rusqlite::Connection::open(world.env.store()).unwrap();
    locker.execute_batch("BEGIN IMMEDIATE").unwrap();
    world.pid();
    let log = world.env.home().join("log/watch.log");
    // Longer than SQLite waits for the lock, twice.
    std::thread::sleep(std::time::Duration::from_secs(12));
    assert_eq!(world.calls(), Vec::<String>::new());
    locker.execute_batch("ROLLBACK").unwrap();
    until(|| !world.calls().is_empty());
    until(|| std::fs::read_to_string(&log).unwrap().contains("the store can be used again"));
    let log = std::fs::read_to_string(&log).unwrap();
    assert_eq!(log.matches("waits store").count(), 1, "{log}");
    assert_eq!((world.calls().len(), world.events("goal_woken")), (1, 1));
}

#[test]
fn a_goal_of_a_closed_session_is_told_once() {
    let world = World::new();
    world.goal_in("claude", "s1", 1);
    world.close("s1");
    for _ in 0..2 {
        world.watch(&["--once"]).succeeds();
    }
    assert_eq!((world.calls(), world.events("goal_stalled")), (Vec::new(), 1));
    let messages = world.env.sql("SELECT kind, title FROM outbox");
    assert_eq!(messages, [["stalled", "Goal stalled: its session is closed"]]);
    assert_eq!(world.goal("stall_told, status"), ["1", "active"]);
}

#[test]
fn a_client_that_was_killed_is_noticed_and_costs_no_time() {
    let world = World::new();
    world.goal_in("claude", "s1", 1);
    let (began, last) = (clock::now() - 700_000, clock::now() - 600_000);
    world.env.execute(&format!(
        "UPDATE sessions SET host_pid = 4194304, host_pid_started = 1, last_seen_ms = {last};
         UPDATE goals SET wake_at_ms = NULL, resume_at_ms = {began}"
    ));
    world.watch(&["--once"]).succeeds();
    assert_eq!(world.goal("time_used_seconds, resume_at_ms, wake_at_ms IS NULL"), ["100", "NULL", "0"]);
    assert_eq!(world.events("session_ended"), 1);
}

#[test]
fn a_closed_session_is_continued_without_a_terminal_if_the_user_wants_that() {
    let world = World::new();
    world.config("closed_sessions = \"headless\"");
    for (host, session, call) in
        [("claude", "s1", "claude -p --resume s1 "), ("codex", "t1", "codex exec --skip-git-repo-check ")]
    {
        world.goal_in(host, session, 1);
        world.close(session);
        for _ in 0..2 {
            world.watch(&["--once"]).succeeds();
        }
        until(|| world.calls().last().is_some_and(|found| found.starts_with(call)));
    }
    assert_eq!((world.calls().len(), world.events("goal_woken"), world.events("goal_stalled")), (2, 2, 0));
}

#[test]
fn an_agent_without_our_hooks_is_not_started_again_and_again() {
    let world = World::new();
    world.config("closed_sessions = \"headless\"");
    world.goal_in("claude", "s1", 1);
    world.close("s1");
    let _watching = world.spawn(&[]);
    until(|| world.events("turn_failed") == 1);
    assert_eq!((world.calls().len(), world.events("goal_woken")), (1, 1));
    let now = clock::now();
    assert_eq!(world.goal(&format!("wake_at_ms > {now} - 5000, woken_at_ms")), ["1", "NULL"]);
}

#[test]
fn a_message_of_a_killed_process_is_delivered() {
    let world = World::new();
    world.goal_in("claude", "s1", i64::MAX / 2);
    world.env.execute(
        "INSERT INTO outbox (kind, subject_id, title, body, created_at_ms) VALUES ('goal_blocked', 'g', 't', 'b', 1)",
    );
    world.watch(&["--once"]).succeeds();
    assert_eq!(world.env.sql("SELECT count(taken_at_ms) FROM outbox"), [["1"]]);
}

#[test]
fn a_goal_that_waits_for_a_file_is_woken_when_it_is_there() {
    let world = World::new();
    world.goal_in("codex", "t1", i64::MAX / 2);
    world.env.run(&["goal", "wait", "--file", "ready", "--session", "t1"]).succeeds();
    world.watch(&["--once"]).succeeds();
    assert_eq!(world.goal("status, paused_reason"), ["paused", "waiting"]);
    world.pid();
    std::fs::write(world.env.project().join("ready"), "").unwrap();
    until(|| !world.calls().is_empty());
    world.watch(&["--stop"]).succeeds();
    world.watch(&["--once"]).succeeds();
    assert_eq!((world.calls().len(), world.events("goal_woken")), (1, 1));
    assert_eq!(world.goal("status"), ["active"]);
}

#[test]
fn a_goal_that_waits_for_a_command_is_woken_when_it_succeeds() {
    let world = World::new();
    world.goal_in("codex", "t1", i64::MAX / 2);
    world.env.run(&["goal", "wait", "--command", "echo x >> looks; test -e ready", "--session", "t1"]).succeeds();
    std::fs::write(world.env.project().join("ready"), "").unwrap();
    world.pid();
    until(|| !world.calls().is_empty());
    assert_eq!((world.calls().len(), world.events("goal_woken")), (1, 1));
    assert_eq!(std::fs::read_to_string(world.env.project().join("looks")).unwrap(), "x\n");
}

#[test]
fn the_next_goal_of_a_queue_is_started_and_woken() {
    let world = World::new();
    world.goal_in("codex", "t1", i64::MAX / 2);
    world.env.run(&["goal", "start", "the next one", "--queue", "--session", "t1"]).succeeds();
    // It ended, and the process that ended it was killed before it looked at the queue.
    world.env.execute("UPDATE goals SET status = 'complete', wake_at_ms = NULL");
    for _ in 0..3 {
        world.watch(&["--once"]).succeeds();
    }
    assert_eq!(world.goal("objective, status"), ["the next one", "active"]);
    assert_eq!((world.calls().len(), world.events("goal_woken")), (1, 1));
}

#[test]
fn at_a_usage_limit_the_other_agent_works_on_the_goal_if_the_user_wants_that() {
    let world = World::new();
    world.goal_in("claude", "s1", clock::now() + 3_600_000);
    world.env.execute("UPDATE goals SET status = 'paused', paused_reason = 'usage_limit'");
    world.watch(&["--once"]).succeeds();
    assert_eq!(world.events("goal_handed_over"), 0, "by default it waits");
    world.config("[goal]\non_usage_limit = \"other\"");
    for _ in 0..2 {
        world.watch(&["--once"]).succeeds();
    }
    assert_eq!(world.events("goal_handed_over"), 1);
    until(|| world.calls().iter().any(|call| call.starts_with("codex exec")));
    let runs = world.env.sql("SELECT name, json_extract(plan_json, '$.limits') FROM runs");
    assert_eq!(runs.len(), 1, "{runs:?}");
    world.env.run(&["loop", "kill", &runs[0][0]]);
    world.due("s1", 1);
    assert_eq!(world.goal("status"), ["paused"], "it continues in its own session at the reset");
}

/// The store was busy or full at the end of the turn, so no hook recorded it.
#[test]
fn a_turn_whose_end_no_hook_recorded_does_not_leave_the_goal_idle() {
    let world = World::new();
    world.goal_in("codex", "t1", 1);
    world.env.codex_says("t1", "resp_1", "done for now", 100);
    let rollout = world.env.rollout("t1");
    let line = |kind: &str| {
        serde_json::json!({"timestamp": crate::env::now(), "ordinal": 3, "type": "event_msg",
            "payload": {"type": kind, "turn_id": "t"}})
    };
    world.env.append(&rollout, &line("task_started"));
    let since = clock::now() - 60_000;
    world.env.execute(&format!(
        "UPDATE sessions SET turn_since_ms = {since}; UPDATE goals SET wake_at_ms = NULL, resume_at_ms = {since}"
    ));
    world.watch(&["--once"]).succeeds();
    assert_eq!(world.calls(), Vec::<String>::new(), "the turn runs");
    world.env.append(&rollout, &line("task_complete"));
    world.watch(&["--once"]).succeeds();
    assert_eq!(world.calls(), ["codex queue --thread t1 --message ◎ goal continues"]);
    assert_eq!(world.events("goal_woken"), 1);
}
