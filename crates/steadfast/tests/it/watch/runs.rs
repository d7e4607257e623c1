//! Engines of detached runs come back; runs in the foreground are left alone.

use rustix::process::{Pid, Signal, kill_process};

use super::until;
use crate::attempts::eventually;
use crate::env::finish;
use crate::runs::World;

/// Works until the test lets it end.
const HELD: &str = "cat > prompt; echo x >> tries; while [ ! -e go ]; do sleep 0.02; done; echo done";

fn world() -> World {
    let world = World::new();
    world.loop_type("three", "completion: fixed-n\nruns: 3");
    world
}

fn kill(pid: Pid) {
    kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn an_engine_that_was_killed_comes_back_and_the_run_completes() {
    let world = world();
    world.loop_run(&["three"], HELD, &["-d"]).succeeds();
    eventually(|| world.lines("tries").pop());
    kill(world.engine("loop", "three"));
    let watching = world.watch(&["watch"]);
    watching.says("resumed run");
    std::fs::write(world.in_project("go"), "").unwrap();
    let state = world.ends("loop", "three");
    assert_eq!((&state["status"], world.lines("tries").len()), (&"completed".into(), 3), "{state}");
    assert_eq!(state["iteration"], 3);
    crate::runs::signal(&watching.child, Signal::TERM);
    assert_eq!(watching.wait().code, 0);
}

#[test]
fn an_engine_that_dies_again_and_again_is_given_up() {
    let world = world();
    world.loop_run(&["three"], HELD, &["-d"]).succeeds();
    let run_id = world.status("loop", "three")["run_id"].as_str().unwrap().to_owned();
    let restarts = world.env.home().join("runs").join(run_id).join("restarts.json");
    for _ in 0..3 {
        kill(world.engine("loop", "three"));
        until(|| world.status("loop", "three")["live"] == false);
        world.run(&["watch", "--once"]).succeeds();
        assert_eq!(world.status("loop", "three")["live"], true);
        // The next one would have to wait.
        let text = std::fs::read_to_string(&restarts).unwrap();
        let mut parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        parsed["last_ms"] = 1.into();
        std::fs::write(&restarts, parsed.to_string()).unwrap();
    }
    kill(world.engine("loop", "three"));
    until(|| world.status("loop", "three")["live"] == false);
    let output = world.run(&["watch", "--once"]);
    assert!(output.succeeds().stdout.contains("again and again"), "{output:?}");
    assert_eq!(world.status("loop", "three")["status"], "unknown_termination");
    std::fs::write(world.in_project("go"), "").unwrap();
    world.run(&["loop", "resume", "three"]).succeeds();
    assert_eq!(world.status("loop", "three")["status"], "completed");
}

#[test]
fn a_run_of_the_foreground_or_with_a_request_to_stop_is_not_continued() {
    let world = world();
    let agent = world.agent(HELD);
    let mut foreground = world.spawn(&["loop", "run", "three", "here", "--agent", &agent]);
    eventually(|| world.lines("tries").pop());
    foreground.kill().unwrap();
    foreground.wait().unwrap();
    world.run(&["watch", "--once"]).succeeds();
    assert_eq!(world.status("loop", "here")["live"], false);
    world.run(&["loop", "kill", "here"]).succeeds();

    world.loop_run(&["three", "there"], HELD, &["-d"]).succeeds();
    kill(world.engine("loop", "there"));
    world.env.execute(
        "UPDATE runs SET stop_requested = '{\"status\":\"killed\",\"reason\":\"killed\"}' WHERE name = 'there'",
    );
    until(|| world.status("loop", "there")["live"] == false);
    world.run(&["watch", "--once"]).succeeds();
    let state = world.ends("loop", "there");
    assert_eq!(state["status"], "killed");
}

#[test]
fn a_detached_run_starts_it_and_it_ends_after_the_run() {
    let world = world();
    let config = world.env.home().join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap() + "[watch]\nidle_seconds = 1\n";
    std::fs::write(&config, text).unwrap();
    let agent = world.agent(HELD);
    world.run(&["goal", "start", "x", "--session", "t"]).succeeds();
    let mut command = world.env.command(&["loop", "run", "three", "--agent", &agent, "-d"]);
    command.env_remove("STEADFAST_NO_WATCH").env("CLAUDECODE", "1").env("CODEX_THREAD_ID", "t");
    finish(&mut command, b"").succeeds();
    let home = world.env.home();
    let is_held = || steadfast_system::watch_lock::is_held(&home);
    until(is_held);
    let pid = eventually(|| steadfast_system::watch_lock::holder(&home)).pid;
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    assert!(!environment.contains("CLAUDECODE") && !environment.contains("CODEX_THREAD_ID"), "{environment}");
    assert!(environment.contains("PATH=") && environment.contains("STEADFAST_HOME="), "{environment}");
    assert_eq!(std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), std::path::Path::new("/"));
    kill(world.engine("loop", "three"));
    std::fs::write(world.in_project("go"), "").unwrap();
    assert_eq!(world.ends("loop", "three")["status"], "completed");
    assert_eq!(world.lines("tries").len(), 3);
    world.run(&["goal", "abandon", "--session", "t"]).succeeds();
    until(|| !is_held());
}
