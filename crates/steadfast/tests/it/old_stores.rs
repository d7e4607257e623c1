//! Stores of the claude-goal plugin as hooks, the status line and commands meet them.

use std::fs::File;

use serde_json::{Value, json};

use crate::attempts::eventually;
use crate::env::{Env, finish};

const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

/// A store of version 5 with a goal of session `s1` that has a secret.
fn plugin_store() -> Env {
    let env = Env::new();
    std::fs::create_dir_all(env.home()).unwrap();
    let db = rusqlite::Connection::open(env.store()).unwrap();
    for part in [
        include_str!("../../../steadfast-store/migrations/0001.sql"),
        include_str!("../../../steadfast-store/migrations/0002.sql"),
        include_str!("../../../steadfast-store/migrations/0003.sql"),
        include_str!("../../../steadfast-store/migrations/0004.sql"),
        include_str!("../../../steadfast-store/migrations/0005.sql"),
    ] {
        db.execute_batch(part).unwrap();
    }
    db.execute_batch(&format!(
        "INSERT INTO goals (session_id, goal_id, objective, status, created_at_ms, updated_at_ms)
         VALUES ('s1', 'a-goal', 'push with {SECRET}', 'active', 1790000000000, 1790000000000);
         INSERT INTO goal_events (session_id, goal_id, event_type, payload_json, created_at_ms)
         VALUES ('s1', 'a-goal', 'goal_note', json_object('reason', 'used {SECRET}'), 1790000000000);"
    ))
    .unwrap();
    env
}

fn version(env: &Env) -> i64 {
    let db = rusqlite::Connection::open(env.store()).unwrap();
    db.query_row("SELECT max(version) FROM schema_version", [], |row| row.get(0)).unwrap()
}

#[test]
fn the_status_line_does_not_migrate_a_store() {
    let env = plugin_store();
    for arguments in [&["statusline"][..], &["statusline", "--segments", "goal,today"]] {
        let output = finish(&mut env.command(arguments), json!({"session_id": "s1"}).to_string().as_bytes());
        assert_eq!((output.code, output.stdout.trim(), version(&env)), (0, "", 5), "{output:?}");
    }
}

#[test]
fn commands_show_no_secret_of_an_old_store() {
    let env = plugin_store();
    let commands = [
        &["goal", "status", "--session", "s1"][..],
        &["goal", "history", "--all", "--events"],
        &["goal", "history", "--all", "--events", "--format=json"],
        &["goal", "report", "--session", "s1"],
    ];
    for command in commands {
        let output = env.run(command);
        assert!(!output.stdout.contains(SECRET) && output.stdout.contains("push with"), "{command:?}: {output:?}");
    }
}

/// Here another process keeps the backup from being made. For a hook, a store that is too large is the same.
#[test]
fn a_migration_that_does_not_fit_into_a_hook_is_done_in_the_background() {
    is_migrated_in_the_background_by(&json!({"hook_event_name": "SessionStart", "source": "startup"}));
}

/// No process would find the turn that could not be recorded.
#[test]
fn a_turn_that_ends_during_a_migration_starts_the_rest_of_it() {
    is_migrated_in_the_background_by(&json!({"hook_event_name": "Stop", "stop_hook_active": false}));
}

fn is_migrated_in_the_background_by(event: &Value) {
    let env = plugin_store();
    std::fs::write(env.home().join("config.toml"), "[retention]\nbackups = 0\n").unwrap();
    std::fs::create_dir_all(env.home().join("backups")).unwrap();
    let lock = File::create(env.home().join("backups/lock")).unwrap();
    lock.lock().unwrap();
    let mut input = json!({"session_id": "s1", "cwd": env.project(), "transcript_path": env.transcript("s1")});
    input.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
    let mut hook = env.command(&["hook", "claude"]);
    let output = finish(hook.env_remove("STEADFAST_NO_WATCH"), input.to_string().as_bytes());
    assert!(output.code == 0 && output.stdout.contains("is being migrated"), "{output:?}");
    assert_eq!(version(&env), 5);
    drop(lock);
    eventually(|| (version(&env) == 6).then_some(()));
}
