//! The weekly backup as users get it: a session start makes it in the background, once, and again when it is old.

use serde_json::{Value, json};
use steadfast_model::clock::DAY;

use crate::attempts::eventually;
use crate::env::{Env, finish};
use crate::runs::World;

/// A session starts where processes may be started in the background.
fn session_starts(env: &Env, session: &str) {
    let start = json!({"hook_event_name": "SessionStart", "source": "startup", "session_id": session,
        "cwd": env.project(), "transcript_path": env.transcript(session)});
    let mut hook = env.command(&["hook", "claude"]);
    assert_eq!(finish(hook.env_remove("STEADFAST_NO_WATCH"), start.to_string().as_bytes()).code, 0);
}

fn weekly(env: &Env) -> Vec<Value> {
    let all = env.run(&["db", "backups", "--json"]).succeeds().json()["backups"].as_array().unwrap().clone();
    all.into_iter().filter(|backup| backup["kind"] == "weekly").collect()
}

#[test]
fn a_goal_and_a_run_that_start_in_a_terminal_make_a_backup_too() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    let run = ["loop", "run", "once", "a", "--agent", "true"];
    for command in [&["goal", "start", "Ship it", "--session", "s1"][..], &run] {
        let env = &world.env;
        let _ = std::fs::remove_dir_all(env.home().join("backups"));
        std::fs::create_dir_all(env.home()).unwrap();
        std::fs::write(env.home().join("config.toml"), "[watch]\nstart = false\n").unwrap();
        assert_eq!(finish(env.command(command).env_remove("STEADFAST_NO_WATCH"), b"").code, 0);
        eventually(|| (weekly(env).len() == 1).then_some(()));
    }
}

/// Lets days pass on the clocks that every process of the test sees.
fn pass(env: &Env, days: i64) {
    std::fs::write(env.home().join("test-clock"), format!("{0} {0} 0 first-boot", days * DAY)).unwrap();
}

#[test]
fn a_session_start_makes_a_backup_once_and_again_when_it_is_old() {
    let env = Env::new();
    std::fs::create_dir_all(env.home()).unwrap();
    pass(&env, 0);
    env.start(&["Ship it"]);
    assert_eq!(weekly(&env), [] as [Value; 0], "tests start nothing in the background unless they ask for it");
    session_starts(&env, "s2");
    eventually(|| (weekly(&env).len() == 1).then_some(()));
    let path = weekly(&env)[0]["path"].as_str().unwrap().to_owned();
    env.run(&["--db", &path, "goal", "history", "--all"]).succeeds();

    let (home, store) = (env.home().display().to_string(), env.store().display().to_string());
    for days in [0, 6] {
        pass(&env, days);
        session_starts(&env, "s3");
        env.run(&["__backup", &home, &store]).succeeds();
        assert_eq!(weekly(&env).len(), 1, "it is {days} days old");
    }
    pass(&env, 8);
    session_starts(&env, "s4");
    eventually(|| (weekly(&env).len() == 2).then_some(()));
    session_starts(&env, "s5");
    env.run(&["__backup", &home, &store]).succeeds();
    assert_eq!(weekly(&env).len(), 2);
    let log = std::fs::read_to_string(env.home().join("log/hooks.log")).unwrap_or_default();
    assert!(!log.contains("__backup"), "{log}");
}
