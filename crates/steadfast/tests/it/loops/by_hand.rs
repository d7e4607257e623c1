//! Edits of the registry while engines run, runs of other stores, and entries of other tools.

use serde_json::{Value, json};

use crate::attempts::eventually;
use crate::env::{Output, finish};
use crate::runs::{COUNTING, World};

/// Runs until the file `go` exists.
const WAITING: &str = "echo x >> begun; while [ ! -e go ]; do sleep 0.05; done; echo done $STEADFAST_ITERATION";

fn keys(world: &World) -> Vec<String> {
    let text = std::fs::read_to_string(world.claude("loop-sessions.json")).unwrap_or_default();
    let registry: Value = serde_json::from_str(&text).unwrap_or_default();
    let mut keys: Vec<_> = registry["sessions"].as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
    keys.sort();
    keys
}

#[test]
fn a_lost_registry_is_restored_with_every_running_loop() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    for name in ["a", "b", "c"] {
        world.loop_run(&["once", name], WAITING, &["-d"]).succeeds();
    }
    eventually(|| Some(()).filter(|()| world.lines("begun").len() == 3));
    let registry = world.claude("loop-sessions.json");
    for empty in [true, false] {
        if empty {
            std::fs::write(&registry, "").unwrap();
        } else {
            std::fs::remove_file(&registry).unwrap();
        }
        eventually(|| Some(()).filter(|()| keys(&world) == ["loop-a", "loop-b", "loop-c"]));
    }
    std::fs::write(world.in_project("go"), "").unwrap();
    for name in ["a", "b", "c"] {
        world.ends("loop", name);
    }
    for name in ["a", "b", "c"] {
        eventually(|| Some(()).filter(|()| world.entry(&format!("loop-{name}"))["status"] == json!("completed")));
    }
}

/// The same command with another store, and with another home.
fn elsewhere(world: &World, arguments: &[&str]) -> [Output; 2] {
    let mut with_store = world.env.command(arguments);
    let mut with_home = world.env.command(arguments);
    [
        finish(with_store.env("STEADFAST_DB", world.env.path("other.db")), b""),
        finish(with_home.env("STEADFAST_HOME", world.env.path("other-home")), b""),
    ]
}

#[test]
fn a_name_has_one_engine_whatever_the_store() {
    let world = World::new();
    for home in ["home", "other-home"] {
        world.loop_type_in(&world.env.path(home).join("loops"), "once", "completion: fixed-n\nruns: 1");
    }
    world.loop_run(&["once", "one"], WAITING, &["-d"]).succeeds();
    let pid = world.engine("loop", "one").as_raw_nonzero().get();
    // The engine records itself first, then it writes the public files.
    let registry = world.claude("loop-sessions.json");
    let entry = || registry.exists().then(|| world.entry("loop-one")).filter(|entry| entry["pid"] == json!(pid));
    let before = eventually(entry);
    let agent = world.agent(COUNTING);
    for refused in elsewhere(&world, &["loop", "run", "once", "one", "--agent", &agent]) {
        let told = refused.fails_with(3, "loop one is already running, from another store").stderr.clone();
        assert!(told.contains(&format!("`kill {pid}`")), "{told}");
    }
    for cleaned in elsewhere(&world, &["loop", "cleanup"]) {
        assert_eq!(cleaned.succeeds().stdout.trim(), "nothing to clean up");
    }
    // The lock of a run is in the home, the run in the store.
    let mut command = world.env.command(&["loop", "cleanup"]);
    command.env("STEADFAST_HOME", world.env.path("other-home")).env("STEADFAST_DB", world.env.store());
    assert_eq!(finish(&mut command, b"").succeeds().stdout.trim(), "nothing to clean up");
    let mut command = world.env.command(&["loop", "resume", "one"]);
    command.env("STEADFAST_HOME", world.env.path("other-home")).env("STEADFAST_DB", world.env.store());
    finish(&mut command, b"").fails_with(3, &format!("driven by another process (pid {pid})"));
    assert_eq!((world.entry("loop-one"), world.lines("tries").len()), (before, 0));

    std::fs::write(world.in_project("go"), "").unwrap();
    assert_eq!(world.ends("loop", "one")["status"], json!("completed"));
    let lock = world.claude(".steadfast-loop-one.lock");
    eventually(|| Some(()).filter(|()| !lock.exists()));
    // The lock file of a killed engine is not locked.
    std::fs::write(&lock, "{\"pid\": 1}").unwrap();
    let [again, _] = elsewhere(&world, &["loop", "run", "once", "one", "--agent", &agent]);
    again.succeeds();
    assert!(!lock.exists());
}

#[test]
fn cleanup_marks_an_entry_of_another_tool_unless_its_process_lives() {
    let world = World::new();
    let registry = json!({"sessions": {
        "loop-gone": {"type": "loop", "status": "running", "max_iterations": 3},
        "loop-live": {"type": "loop", "status": "running", "pid": std::process::id()}}});
    world.write(&world.claude("loop-sessions.json"), &registry.to_string());
    let printed = world.run(&["loop", "cleanup"]).succeeds().stdout.clone();
    assert!(printed.contains("loop-gone: marked unknown_termination"), "{printed}");
    let status = |key: &str| world.entry(key)["status"].clone();
    assert_eq!((status("loop-gone"), status("loop-live")), (json!("unknown_termination"), json!("running")));
}

#[test]
fn a_deleted_progress_file_is_created_for_the_next_agent() {
    let world = World::new();
    world.loop_type("three", "completion: fixed-n\nruns: 3");
    let script = "ls .claude/loop-progress >> seen; rm -r .claude/loop-progress; echo did $STEADFAST_ITERATION";
    world.loop_run(&["three"], script, &[]).succeeds();
    assert_eq!(world.lines("seen"), ["progress-three.txt"; 3]);
}

#[test]
fn an_entry_made_by_hand_is_marked_as_such() {
    let world = World::new();
    let registry = json!({"sessions": {"loop-hand": {"type": "loop", "status": "running"}}});
    world.write(&world.claude("loop-sessions.json"), &registry.to_string());
    for verb in ["attach", "logs", "resume"] {
        world.run(&["loop", verb, "hand"]).fails_with(2, "loop hand was entered by hand (running) and has no run");
    }
    assert_eq!(world.status("loop", "hand")["history"], json!([]));
}
