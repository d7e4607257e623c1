//! What an agent's shell may not do, and that the attempt is logged.

use serde_json::json;

use crate::env::{Env, Output, finish};
use crate::runs::World;

const PRIVILEGED: [&[&str]; 5] = [
    &["extend", "--add-tokens", "1M"],
    &["resume"],
    &["complete"],
    &["reconcile", "--accept-reset"],
    &["cleanup", "--delete"],
];

fn in_agent(env: &Env, arguments: &[&str]) -> Output {
    in_agents_shell(env, &[&["goal"], arguments].concat())
}

fn in_agents_shell(env: &Env, arguments: &[&str]) -> Output {
    finish(env.command(arguments).env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s1"), b"")
}

#[test]
fn privileged_verbs_are_refused_in_an_agents_shell_and_logged() {
    let env = Env::new();
    env.start(&["x", "--budget", "1000"]);
    env.goal(&["pause"]).succeeds();
    for verb in PRIVILEGED {
        in_agent(&env, verb).fails_with(3, "is for the user");
    }
    assert_eq!(
        env.sql("SELECT json_extract(payload, '$.verb'), actor FROM goal_events WHERE kind = 'privileged_verb_refused' ORDER BY id"),
        [["extend", "worker"], ["resume", "worker"], ["complete", "worker"], ["reconcile", "worker"], ["cleanup --delete", "worker"]]
    );
    let goal = env.status();
    assert_eq!((goal["status"].as_str(), goal["token_budget"].as_i64()), (Some("paused"), Some(1000)));
}

#[test]
fn an_agent_may_not_choose_checks_or_change_another_session() {
    let env = Env::new();
    env.start(&["x", "--budget", "1000"]);
    env.run(&["goal", "start", "other's", "--session", "s2"]).succeeds();
    in_agent(&env, &["abandon", "--session", "s2"]).fails_with(3, "another session");
    in_agent(&env, &["adopt", "x", "--session", "s2"]).fails_with(3, "another session");
    env.goal(&["abandon"]).succeeds();
    in_agent(&env, &["start", "y", "--verify", "true"]).fails_with(3, "verification commands");
    // Without a prompt of the user in between, the next goal has what was left.
    in_agent(&env, &["start", "y", "--budget", "1B"]).succeeds();
    assert_eq!(env.status()["token_budget"], 1000);
}

/// The environment can be cleared, the parent processes cannot.
#[cfg(target_os = "linux")]
#[test]
fn an_agent_is_recognised_by_its_ancestry_too() {
    let env = Env::new();
    env.start(&["x", "--budget", "1000"]);
    let agent = env.path("claude");
    std::fs::copy("/bin/sh", &agent).unwrap();
    let script = format!(
        "sh -c '\"{}\" goal extend --add-tokens 1M --session s1; exit $?'; exit $?",
        env!("CARGO_BIN_EXE_steadfast")
    );
    let output = std::process::Command::new(&agent)
        .args(["-c", &script])
        .env_clear()
        .env("STEADFAST_HOME", env.home())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert_eq!(env.status()["token_budget"], 1000);
    env.goal(&["extend", "--add-tokens", "1M"]).succeeds();
}

const COUNT_TRIES: &str = "echo x >> tries; wc -l < tries";

/// A goal whose second iteration passes its check; its engine dies after it commits the first.
fn crashed_goal(world: &World) -> String {
    let agent = world.agent(COUNT_TRIES);
    let arguments = ["run", "Count", "--agent", &agent, "--verify", "test $(wc -l < tries) -ge 2"];
    finish(world.env.command(&arguments).env("STEADFAST_CRASH_AT", "engine.shown:3"), b"");
    world.run(&["loop", "list", "--json"]).json()["runs"][0]["name"].as_str().unwrap().to_owned()
}

fn goal_state(world: &World, session: &str) -> (String, String) {
    let goal = world.run(&["goal", "status", "--session", session, "--json"]).json()["goal"].clone();
    (goal["status"].as_str().unwrap().to_owned(), goal["paused_reason"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn an_agent_may_not_raise_the_limits_of_runs() {
    let world = World::new();
    let agent = world.agent(COUNT_TRIES);
    let limited = world.run(&["run", "Count", "--agent", &agent, "--max", "1", "--budget", "1M", "--json"]);
    let name = limited.json()["name"].as_str().unwrap().to_owned();
    world.loop_type("three", "completion: fixed-n\nmax: 3");
    world.loop_run(&["three", "plain"], COUNT_TRIES, &["--max-hours", "5"]).succeeds();
    let before = world.env.sql("SELECT plan_json, state_json FROM runs ORDER BY name");
    for more in [["--max", "9"], ["--budget", "1B"], ["--usd", "50"], ["--max-hours", "9"]] {
        for run in [name.as_str(), "plain"] {
            in_agents_shell(&world.env, &["loop", "resume", run, more[0], more[1]]).fails_with(3, "is for the user");
        }
    }
    assert_eq!(world.env.sql("SELECT plan_json, state_json FROM runs ORDER BY name"), before);
    let refused =
        "SELECT json_extract(payload, '$.verb'), actor FROM goal_events WHERE kind = 'privileged_verb_refused'";
    assert_eq!(world.env.sql(refused), [["resume with other limits", "worker"]; 4]);
    assert_eq!(goal_state(&world, &name), ("paused".into(), "continuation_cap".into()));
    // The user may, and an agent may start its own loops.
    assert_eq!(world.run(&["loop", "resume", "plain", "--max", "4"]).code, 0);
    world.env.start(&["x"]);
    in_agents_shell(&world.env, &["loop", "run", "three", "own", "--agent", &agent, "--max", "2"]).succeeds();
}

#[test]
fn an_agent_may_not_resume_a_goal_stopped_by_the_user() {
    let world = World::new();
    let name = crashed_goal(&world);
    world.run(&["goal", "pause", "--session", &name]).succeeds();
    in_agents_shell(&world.env, &["loop", "resume", &name]).fails_with(3, "`resume` is for the user");
    assert_eq!(goal_state(&world, &name), ("paused".into(), "user".into()));
    // Nor by starting the engine directly.
    let run_id = &world.env.sql("SELECT run_id FROM runs")[0][0];
    let (home, store) = (world.env.home().display().to_string(), world.env.store().display().to_string());
    in_agents_shell(&world.env, &["__engine", &home, &store, run_id]).fails_with(3, "`resume` is for the user");
    assert_eq!(goal_state(&world, &name), ("paused".into(), "user".into()));
    assert_eq!(world.lines("tries").len(), 1);
    world.run(&["loop", "kill", &name]).succeeds();
    in_agents_shell(&world.env, &["loop", "resume", &name]).fails_with(3, "`resume` is for the user");
    world.run(&["loop", "resume", &name]).succeeds();
    assert_eq!(goal_state(&world, &name).0, "complete");
}

#[test]
fn an_agent_may_not_undo_a_pending_kill() {
    let world = World::new();
    let name = crashed_goal(&world);
    world.jq(&format!(".sessions[\"loop-{name}\"].status = \"killed\""));
    let output = in_agents_shell(&world.env, &["loop", "resume", &name]);
    assert!(output.code == 3 && output.stderr.contains("`resume` is for the user"), "{output:?}");
    assert_eq!(world.status("loop", &name)["reason"], json!("killed_in_registry"));
    assert_eq!(goal_state(&world, &name), ("paused".into(), "user".into()));
}

/// A run without a goal has no status that says who stopped it.
#[test]
fn an_agent_may_not_resume_a_loop_that_the_user_killed() {
    let world = World::new();
    world.loop_type("open", "completion: {promise: NEVER}");
    world.loop_run(&["open"], "while :; do sleep 0.05; done", &["--detach"]).succeeds();
    world.run(&["loop", "kill", "open"]).succeeds();
    in_agents_shell(&world.env, &["loop", "resume", "open", "--detach"]).fails_with(3, "`resume` is for the user");
    assert_eq!(world.status("loop", "open")["status"], json!("killed"));
}

#[test]
fn an_agent_may_resume_a_crashed_run() {
    for is_marked in [false, true] {
        let world = World::new();
        let name = crashed_goal(&world);
        if is_marked {
            world.run(&["loop", "cleanup"]).succeeds();
            assert_eq!(world.status("loop", &name)["status"], json!("unknown_termination"));
            assert_eq!(goal_state(&world, &name), ("paused".into(), "degraded".into()));
        }
        world.env.start(&["x"]);
        in_agents_shell(&world.env, &["loop", "resume", &name]).succeeds();
        assert_eq!(goal_state(&world, &name).0, "complete");
    }
}

#[test]
fn an_agent_may_not_choose_the_checks_of_a_headless_goal() {
    let world = World::new();
    in_agents_shell(&world.env, &["run", "x", "--agent", "true", "--verify", "true"])
        .fails_with(3, "verification commands");
    assert!(!world.env.store().exists());
}

/// The agents of runs are no known clients, but the supervisor of their attempt is among their ancestors.
#[cfg(target_os = "linux")]
#[test]
fn the_agent_of_a_run_is_recognised_without_its_environment() {
    let world = World::new();
    world.loop_type("three", "completion: fixed-n\nmax: 3");
    world.loop_run(&["three", "plain"], COUNT_TRIES, &[]).succeeds();
    let program = env!("CARGO_BIN_EXE_steadfast");
    let script = format!("env -u STEADFAST_ATTEMPT {program} loop resume plain --max 9; echo $? > code");
    world.loop_run(&["three", "outer"], &script, &["--max", "1"]);
    assert_eq!(world.lines("code"), ["3"]);
    assert_eq!(world.status("loop", "plain")["iteration"], json!(3));
}
