//! Writes the files of a release, once, with the binary of that release:
//!
//! ```sh
//! STEADFAST_RELEASE=target/release/steadfast cargo nextest run -p steadfast --run-ignored only -E 'test(write_the_files)'
//! ```
//!
//! Then add its version to `RELEASES`.

use std::process::Command;

use serde_json::{Map, Value, json};

use super::moved::{ROOT, archive, move_paths};
use crate::attempts::eventually;
use crate::env::Env;
use crate::runs::World;

/// So that nothing is deleted, however old the files get.
const CONFIG: &str = "[retention]\ngoal_events_days = 36500\nledger_days = 36500\ngoals_days = 36500\nruns_days = 36500\n\
    output_days = 36500\n[memory]\nretention_days = 36500\n[runs]\nback_off_ms = 10\ngrace_ms = 300\n[notify]\ndesktop = false\n";

#[test]
#[ignore = "writes files of the repository; run it by hand at a release"]
fn write_the_files_of_a_release() {
    let binary = std::env::var_os("STEADFAST_RELEASE").expect("STEADFAST_RELEASE names the binary of the release");
    let mut world = World::new();
    let program = world.env.path("bin/steadfast");
    std::fs::create_dir_all(world.env.path("bin")).unwrap();
    std::fs::copy(binary, &program).unwrap();
    world.env.use_program(program);
    std::fs::write(world.env.home().join("config.toml"), CONFIG).unwrap();
    let version = world.run(&["--version"]).stdout.lines().next().unwrap().replace("steadfast ", "");

    set_up(&world.env);
    goals(&world.env);
    run(&world);
    let expected = json!({"history": history(&world.env), "rows": rows(&world.env)});
    std::fs::write(world.env.path("expected.json"), format!("{expected:#}\n")).unwrap();
    let root = world.env.path("");
    move_paths(&root, root.to_str().unwrap().trim_end_matches('/'), ROOT);
    let mut tar = Command::new("tar");
    tar.args([
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--exclude=*.db-shm",
        "--exclude=*.db-wal",
        "--exclude=bin",
    ]);
    tar.arg("-C").arg(&root).arg("-czf").arg(archive(&version)).arg(".");
    assert!(tar.status().unwrap().success());
}

/// Both clients, with files of the user that have to survive.
fn set_up(env: &Env) {
    let user = env.path("user");
    std::fs::create_dir_all(user.join(".claude/commands")).unwrap();
    std::fs::create_dir_all(user.join(".codex")).unwrap();
    std::fs::write(user.join(".claude/settings.json"), "{\n\t\"model\": \"opus\"\n}").unwrap();
    std::fs::write(user.join(".claude/commands/goal-pause.md"), "my own command").unwrap();
    std::fs::write(user.join(".codex/config.toml"), "# mine\nmodel = \"gpt-5.2-codex\"\n").unwrap();
    assert!(Command::new("cp").arg("-a").arg(&user).arg(env.path("user-before")).status().unwrap().success());
    env.run(&["setup", "claude", "--yes"]).succeeds();
    env.run(&["setup", "codex", "--yes"]).succeeds();
}

fn goals(env: &Env) {
    let hook = |session: &str, event: &Value| env.hook(session, event);
    for (session, limits) in [
        ("s-active", &["--budget", "1M", "--item", "the parser passes its tests", "--max-turns", "50"][..]),
        ("s-paused", &["--usd", "5"]),
        ("s-blocked", &["--max-hours", "8"]),
        ("s-limited", &["--budget", "100"]),
        ("s-complete", &["--verify", "true"]),
        ("s-abandoned", &[]),
    ] {
        hook(session, &json!({"hook_event_name": "SessionStart", "source": "startup"}));
        hook(session, &json!({"hook_event_name": "UserPromptSubmit", "prompt": "rule: tabs for indentation"}));
        let objective = format!("The goal of {session}");
        env.run(&[&["goal", "start", &objective, "--session", session], limits].concat()).succeeds();
        hook(session, &json!({"hook_event_name": "UserPromptSubmit", "prompt": "<task-notification>"}));
        env.says(session, &format!("{session}-1"), "Working on it.", 400);
        env.stop(session, "Working on it.", false);
        env.says(session, &format!("{session}-2"), "Still working.", 30);
        env.stop(session, "Still working.", true);
    }
    for (session, words) in [
        ("s-paused", &["pause"][..]),
        ("s-blocked", &["block", "--reason", "needs a key"]),
        ("s-complete", &["complete"]),
        ("s-abandoned", &["abandon"]),
    ] {
        env.run(&[&["goal"], words, &["--session", session]].concat()).succeeds();
    }
}

/// A loop of four iterations whose engine is killed in the third.
fn run(world: &World) {
    world.loop_type("four", "completion: fixed-n\nruns: 4");
    let script = "echo $STEADFAST_ITERATION >> tries
        if [ $STEADFAST_ITERATION = 3 ] && [ ! -e third ]; then echo $$ > third; while :; do sleep 0.05; done; fi
        echo \"done $STEADFAST_ITERATION\"";
    let agent = world.agent(script);
    let mut engine = world.spawn(&["loop", "run", "four", "--agent", &agent]);
    let third = eventually(|| world.lines("third").pop());
    engine.kill().unwrap();
    engine.wait().unwrap();
    assert!(Command::new("kill").args(["-9", &third]).status().unwrap().success());
    eventually(|| (!crate::attempts::is_alive(&third)).then_some(()));
    // Its supervisor writes down how it ended.
    std::thread::sleep(std::time::Duration::from_secs(1));
}

fn history(env: &Env) -> Value {
    env.run(&["goal", "history", "--all", "--limit", "0", "--format=json"]).succeeds().json()
}

fn rows(env: &Env) -> Value {
    let tables = env.sql(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'
         AND name NOT LIKE '%fts%'",
    );
    let count = |table: &String| {
        (table.clone(), json!(env.sql(&format!("SELECT count(*) FROM {table}"))[0][0].parse::<i64>().unwrap()))
    };
    Value::Object(tables.iter().flatten().map(count).collect::<Map<String, Value>>())
}
