//! Engines wait while the store is busy or the disk is full, and continue with what they hold in memory.

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use serde_json::json;

use super::{Lock, with_mounts};
use crate::attempts::eventually;
use crate::runs::{COUNTING, World};

/// Longer than SQLite waits for a lock.
const LONG: Duration = Duration::from_secs(7);

/// The log of the only run of a world.
fn engine_log(world: &World) -> String {
    let runs = std::fs::read_dir(world.env.home().join("runs")).into_iter().flatten().flatten();
    let logs: Vec<PathBuf> = runs.map(|run| run.path().join("engine.log")).collect();
    logs.iter().map(|log| std::fs::read_to_string(log).unwrap_or_default()).collect()
}

fn wait_for_note(world: &World, note: &str) {
    eventually(|| engine_log(world).contains(note).then_some(()));
}

#[test]
fn a_detached_engine_outlives_a_store_that_is_busy_for_long() {
    let world = World::new();
    world.loop_type("work", "completion: fixed-n\nmax: 3");
    let held = world.env.path("held");
    let script = format!("{COUNTING}; while [ -e {} ]; do sleep 0.05; done", held.display());
    std::fs::write(&held, "").unwrap();
    world.loop_run(&["work", "a"], &script, &["--detach"]).succeeds();
    eventually(|| (world.lines("tries").len() == 1).then_some(()));
    let lock = Lock::of(&world.env.store());
    std::fs::remove_file(&held).unwrap();
    wait_for_note(&world, "the store is busy; the run continues when it is free");
    std::thread::sleep(LONG);
    assert_eq!(world.lines("tries").len(), 1, "no step is carried out before it is saved");
    drop(lock);
    let status = world.ends("loop", "a");
    assert_eq!((&status["status"], world.lines("tries").len()), (&json!("completed"), 3), "{status}");
    let iterations = world.env.sql("SELECT iteration, attempt FROM run_iterations ORDER BY iteration");
    assert_eq!(iterations, [["1", "1"], ["2", "1"], ["3", "1"]]);
    assert_eq!(engine_log(&world).matches("Z the store is busy").count(), 1, "{}", engine_log(&world));
}

#[test]
fn the_goal_of_a_run_is_updated_once_the_store_is_free() {
    let world = World::new();
    let held = world.env.path("held");
    std::fs::write(&held, "").unwrap();
    let script = format!("touch begun done; while [ -e {} ]; do sleep 0.05; done", held.display());
    let agent = world.agent(&script);
    world.run(&["run", "Make a file", "--verify", "test -f done", "--agent", &agent, "--detach"]).succeeds();
    eventually(|| world.in_project("begun").exists().then_some(()));
    let lock = Lock::of(&world.env.store());
    std::fs::remove_file(&held).unwrap();
    wait_for_note(&world, "the store is busy");
    drop(lock);
    let goals = || world.env.sql("SELECT status FROM goals");
    eventually(|| (goals() == [["complete"]]).then_some(()));
}

#[test]
fn a_signal_ends_an_engine_that_waits_for_the_store() {
    let world = World::new();
    world.loop_type("work", "completion: fixed-n\nmax: 2");
    let held = world.env.path("held");
    std::fs::write(&held, "").unwrap();
    let agent = world.agent(&format!("{COUNTING}; while [ -e {} ]; do sleep 0.05; done", held.display()));
    let engine = world.spawn(&["loop", "run", "work", "a", "--agent", &agent]);
    eventually(|| (world.lines("tries").len() == 1).then_some(()));
    let pid = world.engine("loop", "a");
    let lock = Lock::of(&world.env.store());
    std::fs::remove_file(&held).unwrap();
    wait_for_note(&world, "the store is busy");
    kill_process(pid, Signal::INT).unwrap();
    let output = engine.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(4) && said.contains("locked by another process"), "{said}");
    drop(lock);
    world.run(&["loop", "resume", "a"]).succeeds();
    assert_eq!(world.lines("tries").len(), 2, "the first iteration is not repeated");
}

#[test]
fn a_run_outlives_a_full_disk() {
    let world = World::new();
    world.loop_type("work", "completion: fixed-n\nmax: 6");
    // It prints nothing: an agent that cannot write its output fails by itself.
    let agent = world.agent("cat > prompt; echo x >> tries");
    // The disk of the home fills up while the run works, and has room again later.
    let script = r#""$1" loop run work a --agent "$3" 2> said & engine=$!
        while [ ! -s tries ]; do sleep 0.01; done
        cat /dev/zero > "$2/ballast" 2> /dev/null || true
        sleep 4
        cp tries tries-then; rm "$2/ballast"
        wait $engine || code=$?"#;
    let Some(output) = with_mounts(&world.env, script, &[&agent]) else { return };
    let said = std::fs::read_to_string(world.in_project("said")).unwrap();
    assert_eq!(output.code, 0, "{output:?}\n{said}");
    assert!(world.lines("tries-then").len() < 6, "the disk was full before the run was over");
    assert_eq!(world.lines("tries").len(), 6, "no agent is started twice: {said}");
    assert_eq!(world.env.sql("SELECT count(*) FROM run_iterations"), [["6"]]);
}

/// The store has a disk of its own, so that nothing but its writes fails.
#[test]
fn a_run_outlives_a_full_disk_of_its_store() {
    let world = World::new();
    world.loop_type("work", "completion: fixed-n\nmax: 6");
    let agent = world.agent("cat > prompt; echo x >> tries");
    let script = r#"mkdir "$2/db"; mount -t tmpfs -o size=4m tmpfs "$2/db"; export STEADFAST_DB="$2/db/goals.db"
        "$1" loop run work a --agent "$3" 2> said & engine=$!
        while [ ! -s tries ]; do sleep 0.01; done
        cat /dev/zero > "$2/db/ballast" 2> /dev/null || true
        until grep -qs 'the disk is full' "$2"/runs/*/engine.log; do kill -0 $engine; sleep 0.05; done
        sleep 2; cp tries tries-then; rm "$2/db/ballast"
        wait $engine || code=$?
        "$1" loop status a --json > status; umount "$2/db""#;
    let Some(output) = with_mounts(&world.env, script, &[&agent]) else { return };
    let said = std::fs::read_to_string(world.in_project("said")).unwrap();
    assert_eq!(output.code, 0, "{output:?}\n{said}");
    assert!(world.lines("tries-then").len() < 6, "the disk was full before the run was over");
    assert_eq!(world.lines("tries").len(), 6, "no agent is started twice: {said}");
    let status: serde_json::Value = serde_json::from_str(&world.lines("status").join("\n")).unwrap();
    assert_eq!((&status["status"], &status["iteration"]), (&json!("completed"), &json!(6)), "{status}");
}
