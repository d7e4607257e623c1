//! One per home, in the foreground and in the background, stopped, killed, and ended by itself.

use rustix::process::{Signal, kill_process};
use serde_json::json;
use steadfast_model::clock;

use super::{World, until};

#[test]
fn one_works_for_each_home_and_others_say_so() {
    let world = World::new();
    let mut first = world.spawn(&[]);
    let holder = world.holder();
    world.watch(&[]).fails_with(3, "already running (pid ");
    let output = world.watch(&["--detach"]);
    assert!(output.succeeds().stdout.starts_with("already running (pid "), "{output:?}");
    world.watch(&["--once"]).succeeds();
    assert_eq!(holder, first.0.id());
    first.signal(Signal::INT);
    assert_eq!(first.code(), Some(130));
    assert!(!world.is_held());
}

#[test]
fn of_many_that_start_at_once_one_stays() {
    let world = World::new();
    let mut all: Vec<_> = (0..6).map(|_| world.spawn(&[])).collect();
    let holder = world.holder();
    for watching in &mut all {
        if watching.0.id() != holder {
            assert_eq!(watching.code(), Some(3));
        }
    }
    assert!(world.is_held());
    let stays = all.iter_mut().find(|watching| watching.0.id() == holder).unwrap();
    stays.signal(Signal::TERM);
    assert_eq!(stays.code(), Some(0));
}

#[test]
fn it_works_in_the_background_until_it_is_stopped() {
    let world = World::new();
    world.watch(&["--stop"]).fails_with(3, "not running");
    let output = world.watch(&["--detach"]);
    assert!(output.succeeds().stdout.starts_with("watching in the background (pid "), "{output:?}");
    let pid = world.pid();
    let session = rustix::process::getsid(Some(pid)).unwrap();
    assert_eq!(session, pid, "it has a session of its own");
    let output = world.watch(&["--stop", "--json"]);
    assert_eq!(output.succeeds().json(), json!({"pid": pid.as_raw_nonzero().get()}));
    assert!(!world.is_held());
}

#[test]
fn it_ends_by_itself_when_nothing_is_left_to_wait_for() {
    let world = World::new();
    world.config("idle_seconds = 0");
    assert_eq!(world.spawn(&["--background"]).code(), Some(0));
    // A goal that is due later keeps it.
    world.goal_in("codex", "t1", i64::MAX / 2);
    world.pid();
    assert!(world.is_held());
    world.env.run(&["goal", "abandon", "--session", "t1"]).succeeds();
    until(|| !world.is_held());
}

#[test]
fn it_ends_when_its_home_is_removed() {
    let world = World::new();
    let mut watching = world.spawn(&[]);
    until(|| world.is_held());
    std::fs::remove_dir_all(world.env.home()).unwrap();
    assert_eq!(watching.code(), Some(0));
}

#[test]
fn a_killed_one_leaves_nothing_that_keeps_the_next_one_away() {
    let world = World::new();
    world.goal_in("codex", "t1", i64::MAX / 2);
    let first = world.pid();
    kill_process(first, Signal::KILL).unwrap();
    until(|| !world.is_held());
    assert_ne!(world.pid(), first);
}

#[test]
fn it_reports_what_it_does_as_json_lines() {
    let world = World::new();
    world.goal_in("codex", "t1", 1);
    let output = world.watch(&["--once", "--json"]);
    let line = output.succeeds().json();
    assert_eq!((&line["did"], &line["subject"]), (&json!("woke"), &json!("goal")), "{line}");
    assert_eq!(line["id"], json!(world.goal("goal_id")[0]));
}

#[test]
fn one_in_the_background_ends_when_an_upgrade_replaced_its_program() {
    let world = World::new();
    world.goal_in("codex", "t1", clock::now() + 3_600_000);
    let program = world.env.path("old");
    std::fs::copy(env!("CARGO_BIN_EXE_steadfast"), &program).unwrap();
    let mut command = std::process::Command::new(&program);
    command.args(["watch", "--detach"]).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.env("STEADFAST_HOME", world.env.home()).env("STEADFAST_DB", world.env.store());
    assert!(command.status().unwrap().success());
    until(|| world.is_held());
    std::fs::remove_file(&program).unwrap();
    until(|| !world.is_held());
}
