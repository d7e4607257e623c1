//! From creating a run to the first step of its engine, and what prevents its creation.

use std::os::unix::fs::PermissionsExt as _;

use rustix::process::{Signal, kill_process};
use serde_json::json;

use crate::attempts::{eventually, is_alive};
use crate::runs::{COUNTING, World};

const ENDLESS: &str = "echo $$ > agent; while :; do sleep 0.05; done";

/// A run with a dead engine and a living agent.
fn orphaned(world: &World) -> String {
    world.loop_type("open", "completion: {promise: NEVER}");
    world.loop_run(&["open", "it"], ENDLESS, &["-d"]).succeeds();
    let agent = eventually(|| world.lines("agent").pop());
    kill_process(world.engine("loop", "it"), Signal::KILL).unwrap();
    eventually(|| Some(()).filter(|()| world.status("loop", "it")["live"] == json!(false)));
    agent
}

#[test]
fn a_run_that_is_starting_is_left_alone_for_a_while() {
    let world = World::new();
    let agent = orphaned(&world);
    world.loop_run(&["open", "it"], ENDLESS, &[]).fails_with(3, "its engine is gone");
    // As before the first step of the engine.
    let now = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";
    world.env.execute(&format!("UPDATE runs SET engine_pid = NULL, updated_at_ms = {now}"));
    let refused = world.loop_run(&["open", "it"], ENDLESS, &[]);
    refused.fails_with(3, "loop it is starting");
    assert!(refused.stderr.contains("attach it"), "{refused:?}");
    assert_eq!(world.run(&["loop", "cleanup"]).succeeds().stdout, "nothing to clean up\n");
    assert_eq!((world.status("loop", "it")["status"].as_str(), is_alive(&agent)), (Some("running"), true));
    // An engine that has not started by then is dead.
    world.env.execute("UPDATE runs SET updated_at_ms = updated_at_ms - 11000");
    assert_eq!(world.run(&["loop", "cleanup", "--json"]).succeeds().json()["zombies"], json!(["loop-it"]));
    assert!(!is_alive(&agent));
}

#[test]
fn missing_requirements_are_reported_before_the_start() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    world.loop_type("tasks", "completion: {checklist: TODO.md}");
    world.loop_type("beads", "completion: beads-empty");
    let bin = world.env.path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    for (arguments, about) in [
        (&["once"][..], "no `claude` on PATH"),
        (&["once", "--agent", "codex"], "no `codex` on PATH"),
        (&["once", "--agent", "steadfast-none x"], "no `steadfast-none` on PATH"),
        (&["once", "--agent", "./none.sh"], "`./none.sh` does not exist"),
        (&["once", "--agent", "/bin/sh", "--worktree"], "not in a git repository"),
        (&["tasks", "--agent", "/bin/sh"], "checklist `TODO.md` does not exist"),
        (&["beads", "--agent", "/bin/sh"], "no `bd` on PATH"),
    ] {
        let mut command = world.env.command(&[&["loop", "run"], arguments].concat());
        let git = std::env::var_os("PATH").filter(|_| arguments.contains(&"--worktree"));
        command.env("PATH", git.unwrap_or_else(|| bin.clone().into()));
        crate::env::finish(&mut command, b"").fails_with(4, about);
    }
    assert!(!world.env.store().exists());
    assert!(!world.claude("loop-sessions.json").exists());
}

#[test]
fn a_script_that_is_in_no_commit_works_in_worktrees() {
    let world = World::new();
    world.repository();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    let script = world.in_project("ag.sh");
    world.write(&script, &format!("#!/bin/sh\n{COUNTING}\n"));
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = world.run(&["loop", "run", "once", "--agent", "./ag.sh", "--worktree", "--json"]);
    assert_eq!(output.succeeds().json()["iteration"], json!(1));
}

#[test]
fn failing_checks_are_reported() {
    let world = World::new();
    world.loop_type("tasks", "completion: {checklist: TODO.md}");
    world.write(&world.in_project("TODO.md"), "- [x] a\n- [ ] b\n");
    let script = "[ $STEADFAST_ITERATION -gt 1 ] && rm TODO.md; echo $STEADFAST_ITERATION";
    let output = world.loop_run(&["tasks", "t"], script, &["--max", "2"]);
    assert_eq!(output.code, 5, "{output:?}");
    for shown in [&output.stderr, &world.run(&["loop", "status", "t"]).stdout] {
        assert!(shown.contains("; not yet: 1 of 2 boxes are ticked"), "{shown}");
        assert!(shown.contains("; unknown: cannot read the checklist"), "{shown}");
    }
}

#[test]
fn a_mark_that_no_engine_saw_is_obeyed_by_the_next_command() {
    for arguments in [&["loop", "list"][..], &["loop", "status", "it"], &["loop", "cleanup"]] {
        let world = World::new();
        let agent = orphaned(&world);
        world.jq(".sessions[\"loop-it\"].status = \"killed\"");
        world.run(arguments).succeeds();
        let status = world.status("loop", "it");
        assert_eq!((&status["status"], &status["reason"]), (&json!("killed"), &json!("killed_in_registry")));
        assert_eq!((is_alive(&agent), &world.entry("loop-it")["status"]), (false, &json!("killed")));
    }
}

#[test]
fn an_entry_made_by_hand_is_shown_and_can_be_killed() {
    let world = World::new();
    let entry = json!({"type": "loop", "loop_type": "work", "status": "running", "max_iterations": 7, "mine": 1});
    let registry = json!({"sessions": {"loop-hand": entry}});
    world.write(&world.claude("loop-sessions.json"), &registry.to_string());
    for shown in [world.status("loop", "hand"), world.run(&["loop", "list", "--json"]).json()["runs"][0].clone()] {
        let facts = (&shown["type"], &shown["max_iterations"], &shown["status"], &shown["by_hand"]);
        assert_eq!(facts, (&json!("work"), &json!(7), &json!("running"), &json!(true)));
    }
    let killed = world.run(&["loop", "kill", "hand", "--json"]).succeeds().json();
    assert_eq!(killed["status"], json!("killed"));
    let entry = world.entry("loop-hand");
    assert_eq!((&entry["status"], &entry["mine"]), (&json!("killed"), &json!(1)));
    assert!(entry["killed_at"].is_string(), "{entry}");
    world.run(&["loop", "kill", "hand"]).fails_with(2, "entered by hand (killed)");
}

#[test]
fn following_begins_before_the_first_output_and_json_is_json() {
    let world = World::new();
    world.loop_type("two", "completion: fixed-n\nruns: 2");
    let script = "while [ ! -e go$STEADFAST_ITERATION ]; do sleep 0.02; done; echo \"said $STEADFAST_ITERATION\"";
    world.loop_run(&["two"], script, &["-d"]).succeeds();
    let logs = world.watch(&["loop", "logs", "two", "-f", "--json"]);
    let attached = world.watch(&["loop", "attach", "two", "--json"]);
    attached.listens();
    std::fs::write(world.in_project("go1"), "").unwrap();
    logs.says("said 1");
    std::fs::write(world.in_project("go2"), "").unwrap();
    let logs = logs.wait();
    let lines: Vec<serde_json::Value> =
        logs.succeeds().stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = |number: u32| json!({"stage": 1, "iteration": number, "attempt": 1, "line": format!("said {number}")});
    assert_eq!(lines, [line(1), line(2)]);
    assert_eq!(attached.wait().succeeds().json()["status"], json!("completed"));
}

#[test]
fn branches_are_named_and_clean_worktrees_go() {
    let world = World::new();
    world.repository();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    let output = world.loop_run(&["once", "w"], COUNTING, &["--worktree"]);
    assert!(output.succeeds().stdout.contains("branch steadfast/w/run (worktree "), "{output:?}");
    let place = |world: &World| world.status("loop", "w")["history"][0].clone();
    let worktree = place(&world)["worktree"].as_str().unwrap().to_owned();
    assert_eq!(place(&world)["branch"], json!("steadfast/w/run"));
    std::fs::write(std::path::Path::new(&worktree).join("new"), "").unwrap();
    assert_eq!(world.run(&["loop", "cleanup", "--json"]).json()["worktrees"], json!([]));
    std::fs::remove_file(std::path::Path::new(&worktree).join("new")).unwrap();
    assert_eq!(world.run(&["loop", "cleanup", "--json"]).json()["worktrees"], json!([worktree]));
    assert!(!std::path::Path::new(&worktree).exists());
    assert_eq!((&place(&world)["branch"], &place(&world)["worktree"]), (&json!("steadfast/w/run"), &json!(null)));
    assert!(world.git(&["branch", "--list", "steadfast/*"]).contains("steadfast/w/run"));
}
