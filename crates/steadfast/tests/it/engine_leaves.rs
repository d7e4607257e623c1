//! An engine that must leave stops its agents or names them, and no agent outlives its time limit without an engine.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;

use crate::attempts::eventually;
use crate::runs::World;

/// Writes its process id, and works for long.
const LONG: &str = "cat > /dev/null; echo $$ >> pids; sleep 600";

fn agent_of(world: &World) -> Pid {
    let pid = eventually(|| world.lines("pids").first().and_then(|pid| pid.parse().ok()));
    Pid::from_raw(pid).unwrap()
}

fn ends(agent: Pid) {
    eventually(|| test_kill_process(agent).is_err().then_some(()));
}

#[test]
fn an_error_of_the_store_stops_the_agents_and_says_so() {
    let world = World::new();
    world.loop_type("work", "completion: fixed-n\nmax: 2");
    let agent = world.agent(LONG);
    let engine = world.spawn(&["loop", "run", "work", "a", "--agent", &agent]);
    let pid = agent_of(&world);
    world.env.execute("ALTER TABLE runs RENAME TO gone");
    let output = engine.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("the engine leaves: 1 agent stopped"), "{said}");
    assert!(test_kill_process(pid).is_err(), "the agent still runs: {said}");
    // Nothing is lost: the next engine repeats what was stopped.
    world.env.execute("ALTER TABLE gone RENAME TO runs");
    std::fs::write(world.env.path("agent-0.sh"), "echo x >> tries; echo done").unwrap();
    world.run(&["loop", "resume", "a"]).succeeds();
    let iterations = world.env.sql("SELECT iteration, attempt FROM run_iterations ORDER BY iteration");
    assert_eq!(
        (iterations, world.lines("tries").len()),
        (vec![vec!["1".into(), "2".into()], vec!["2".into(), "1".into()]], 2)
    );
}

/// Whether the first attempt of the only run was marked, so that its supervisor starts nothing.
fn is_abandoned(world: &World) -> bool {
    let run = std::fs::read_dir(world.env.home().join("runs")).unwrap().flatten().next().unwrap();
    run.path().join("1-1-1/abandoned").exists()
}

/// The supervisor of the first attempt of the only run.
fn supervisor_of(world: &World) -> Pid {
    let pid = eventually(|| {
        let run = std::fs::read_dir(world.env.home().join("runs")).ok()?.flatten().next()?;
        let text = std::fs::read_to_string(run.path().join("1-1-1/pid")).ok()?;
        let record: serde_json::Value = serde_json::from_str(&text).ok()?;
        i32::try_from(record["identity"]["pid"].as_i64()?).ok()
    });
    Pid::from_raw(pid).unwrap()
}

#[test]
fn what_cannot_be_stopped_is_named() {
    let world = World::new();
    world.loop_type("work", "completion: fixed-n\nmax: 1");
    let agent = world.agent("cat > /dev/null; echo $$ >> pids; exec sleep 600");
    let engine = world.spawn(&["loop", "run", "work", "a", "--agent", &agent]);
    let pid = agent_of(&world);
    // The agent has ended, and its supervisor cannot record that.
    let supervisor = supervisor_of(&world);
    kill_process(supervisor, Signal::STOP).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    world.env.execute("ALTER TABLE runs RENAME TO gone");
    let output = engine.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let left = format!("still there: the supervisor of stage 1, iteration 1 (pid {})", supervisor.as_raw_nonzero());
    assert!(!output.status.success() && said.contains(&left), "{said}");
    assert!(said.contains("the engine leaves: 0 agents stopped; "), "{said}");
    assert!(test_kill_process(supervisor).is_ok(), "it lives: {said}");
    // It records the end once it can, and the next engine goes on from there.
    kill_process(supervisor, Signal::CONT).unwrap();
    ends(supervisor);
    world.env.execute("ALTER TABLE gone RENAME TO runs");
    std::fs::write(world.env.path("agent-0.sh"), "echo x >> tries; echo done").unwrap();
    world.run(&["loop", "resume", "a"]).succeeds();
    assert_eq!(world.lines("tries").len(), 1);
}

#[test]
fn an_agent_ends_at_its_time_limit_without_an_engine() {
    let world = World::new();
    world.loop_type("work", "completion: fixed-n\nmax: 1\nlimits: {errors: 1}");
    let agent = world.agent(LONG);
    let mut engine = world.spawn(&["loop", "run", "work", "a", "--agent", &agent, "--timeout", "3s"]);
    let pid = agent_of(&world);
    kill_process(world.engine("loop", "a"), Signal::KILL).unwrap();
    engine.wait().unwrap();
    ends(pid);
    let output = world.run(&["loop", "resume", "a", "--json"]);
    let status = output.json();
    assert_eq!((output.code, &status["status"]), (1, &json!("failed")), "{output:?}");
    assert!(status["reason"].as_str().unwrap().contains("time limit reached"), "{status:#}");
    assert_eq!(world.lines("pids").len(), 1, "no second agent was started");
}

#[test]
fn a_panic_of_the_engine_stops_the_agents() {
    // While the agent works, and on another thread, before it does.
    for place in ["dispatcher.signal", "attempt.wait"] {
        let world = World::new();
        world.loop_type("work", "completion: fixed-n\nmax: 1");
        let agent = world.agent(LONG);
        let mut command = world.env.command(&["loop", "run", "work", "a", "--agent", &agent]);
        command.env("STEADFAST_CRASH_AT", place).stdout(Stdio::piped()).stderr(Stdio::piped());
        let engine = command.spawn().unwrap();
        if place == "dispatcher.signal" {
            agent_of(&world);
            kill_process(Pid::from_child(&engine), Signal::INT).unwrap();
        }
        let output = engine.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && said.contains("internal error at"), "{said}");
        for pid in world.lines("pids") {
            let agent = Pid::from_raw(pid.parse().unwrap()).unwrap();
            assert!(test_kill_process(agent).is_err(), "the agent still runs: {said}");
        }
        // It releases its lock shortly before it ends.
        if !is_abandoned(&world) {
            ends(supervisor_of(&world));
        }
        std::fs::write(world.env.path("agent-0.sh"), "echo x >> tries; echo done").unwrap();
        world.run(&["loop", "resume", "a"]).succeeds();
        assert_eq!(world.lines("tries").len(), 1, "{place}");
    }
}

/// Its other agents are stopped, and what they did until then is no failure of theirs.
#[test]
fn a_panic_beside_a_working_agent_changes_nothing_of_the_run() {
    let world = World::new();
    let agent = world.agent(LONG);
    let quick =
        world.agent("cat > /dev/null; for _ in $(seq 100); do [ -s pids ] && break; sleep 0.1; done; echo done");
    let stage = |name: &str, agent: &str, needs: &str| {
        format!(
            "  - {{name: {name}, prompt: go, agent: \"{agent}\", needs: [{needs}], completion: fixed-n, runs: 1,\
             retries: 0}}\n"
        )
    };
    let stages = [stage("long", &agent, ""), stage("quick", &quick, ""), stage("next", &quick, "quick")].concat();
    world.write(&world.in_project("p.yaml"), &format!("name: p\ndefaults: {{delay: 0}}\nstages:\n{stages}"));
    let mut command = world.env.command(&["pipeline", "run", "./p.yaml", "p"]);
    command.env("STEADFAST_CRASH_AT", "attempt.wait:3");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("internal error at"), "{said}");
    ends(agent_of(&world));
    assert_eq!(world.env.sql("SELECT status FROM runs"), [["running"]], "{said}");
    assert_eq!(world.env.sql("SELECT count(*) FROM run_iterations WHERE stage = 1"), [["0"]]);
    std::fs::write(world.env.path("agent-0.sh"), "cat > /dev/null; echo done").unwrap();
    world.run(&["pipeline", "resume", "p"]).succeeds();
}
