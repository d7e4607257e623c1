//! The JSON of every command that has an answer of its own shape. Answers about goals, sessions and usage are checked
//! where their commands are tested, and so are those that need a long story: `demo`, `db recover`, `loop import`.

use std::io::BufRead as _;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::approvals::waiting;
use crate::env::{Env, finish};
use crate::receiver::Receiver;
use crate::runs::World;
use crate::schemas::check;

/// Checks the answer of a command that succeeds.
#[track_caller]
fn answers(env: &Env, schema: &str, arguments: &[&str]) -> Value {
    let output = env.run(&[arguments, &["--json"]].concat());
    assert_eq!(output.code, 0, "{arguments:?}: {output:?}");
    check(schema, &output.json());
    output.json()
}

/// A home, a store with a goal that works and one that is blocked, and a project that brings definitions.
fn world() -> World {
    let world = World::new();
    let env = &world.env;
    env.start(&["Make every test pass", "--budget", "10M", "--verify", "true", "--item", "no warnings"]);
    env.says("s1", "m1", "one", 100);
    env.stop("s1", "one", false);
    env.begin_turn();
    for session in ["s2", "s3"] {
        env.hook(session, &json!({"hook_event_name": "SessionStart", "source": "startup"}));
        env.run(&["goal", "start", "Fix the login", "--session", session]).succeeds();
    }
    env.run(&["goal", "block", "--reason", "a password", "--session", "s2"]).succeeds();
    env.run(&["goal", "complete", "--session", "s3"]).succeeds();
    world.loop_type_in(&world.claude("loops"), "own", "description: Ours\ncompletion: {command: 'true'}\nruns: 2");
    let stages = "  - {name: a, loop: own}
  - {name: b, prompt: 'B ${INPUTS}', when: 'a.status == \"completed\"', approve: Go on?, runs: 2, parallel: true}
  - {name: c, prompt: C, needs: [a], agent: sh agent.sh, judge: {agent: codex}, completion: {plateau: 2}}
  - {name: d, needs: [b, c], merge: b, prompt: D, limits: {tokens: 1M}, env: [HOME], artifacts: {plan: plan.md}}";
    world.write(&world.claude("pipelines/ship.yaml"), &format!("name: ship\nstages:\n{stages}\n"));
    world
}

#[test]
fn of_the_program_itself() {
    let world = world();
    let env = &world.env;
    answers(env, "version.schema.json", &["--version"]);
    answers(&Env::new(), "welcome.schema.json", &[]);
    assert_eq!(answers(env, "welcome.schema.json", &[])["goals_need_you"], 1);
    for shell in ["bash", "zsh", "fish"] {
        answers(env, "completions.schema.json", &["completions", shell]);
    }
    answers(env, "doctor.schema.json", &["doctor", "--full"]);
}

#[test]
fn of_setup_with_and_without_a_client_on_this_machine() {
    let env = Env::new();
    let plan = answers(&env, "setup.schema.json", &["setup", "claude", "--dry-run"]);
    assert!(plan["questions"].is_array() && plan["files"] == json!([]), "{plan}");
    answers(&env, "setup.schema.json", &["setup", "claude", "--yes"]);
    // Not installed: the uninstall would ask the system of this machine to stop it.
    answers(&env, "setup.schema.json", &["setup", "watch", "--dry-run"]);
    let removed = answers(&env, "setup.schema.json", &["setup", "--uninstall"]);
    assert!(!removed["files"].as_array().unwrap().is_empty(), "{removed}");
    let world = World::new();
    let claude = world.env.path("bin/claude");
    world.write(&claude, "#!/bin/sh\n");
    world.make_executable(&claude);
    let path = format!("{}:{}", claude.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = finish(world.env.command(&["setup", "--yes", "--json"]).env("PATH", path), b"");
    let done = output.succeeds().json();
    check("setup.schema.json", &done);
    let found = done["clients"].as_array().unwrap().iter().find(|client| client["host"] == "claude").unwrap();
    assert_eq!(found["before"], "absent");
}

#[test]
fn of_trust_and_of_definitions() {
    let world = world();
    let env = &world.env;
    world.write(&world.claude("settings.json"), r#"{"hooks": {"Stop": [{"hooks": [{"command": "true"}]}]}}"#);
    let open = answers(env, "trust.schema.json", &["trust"]);
    assert_eq!((&open["trusted"], &open["items"][0]["state"]), (&json!(false), &json!("new")));
    answers(env, "trust.schema.json", &["trust", "--list"]);
    assert_eq!(answers(env, "trust.schema.json", &["trust", "--yes"])["trusted"], true);
    assert!(answers(env, "trust-revoke.schema.json", &["trust", "--revoke"])["revoked"].as_i64() >= Some(4));
    for kind in ["loop", "pipeline"] {
        answers(env, "definition-list.schema.json", &[kind, "types"]);
        answers(env, "definition-new.schema.json", &[kind, "new", "fresh"]);
        let all = answers(env, "definition-check.schema.json", &[kind, "validate"]);
        assert!(all["definitions"].as_array().unwrap().len() >= 3, "{all}");
    }
    answers(env, "definition-check.schema.json", &["loop", "validate", "own"]);
    let graph = answers(env, "pipeline-graph.schema.json", &["pipeline", "graph", "ship"]);
    assert_eq!((&graph["stages"][1]["parallel"], &graph["stages"][3]["merge"]["from"]), (&json!(2), &json!("b")));
    world.write(&world.claude("loops/bad/loop.yaml"), "completion: nonsense\n");
    for name in [&["bad"][..], &[]] {
        let output = env.run(&[&["loop", "validate", "--json"], name].concat());
        assert_eq!((output.code, &output.json()["valid"]), (1, &json!(false)), "{output:?}");
        check("definition-check.schema.json", &output.json());
    }
}

#[test]
fn of_runs_before_they_start() {
    let world = world();
    let env = &world.env;
    let plan = answers(env, "run-plan.schema.json", &["pipeline", "run", "ship", "p", "--dry-run", "--usd", "5"]);
    assert_eq!(plan["plan"]["limits"]["cost_micros"], 5_000_000);
    assert_eq!(plan["plan"]["stages"][2]["agent"]["kind"]["command"], json!(["sh", "agent.sh"]));
    answers(env, "run-plan.schema.json", &["loop", "run", "own", "--dry-run", "--agent", "claude"]);
    for name in ["code-review", "ideate", "full-refine"] {
        answers(env, "run-plan.schema.json", &["pipeline", "run", name, "--dry-run"]);
    }
    let run = ["loop", "run", "own", "nightly", "--agent", "true", "--at", "in 2h", "--every", "1d"];
    let made = answers(env, "run-appointment.schema.json", &run);
    assert_eq!(made["appointment"]["every_seconds"], 86_400);
    assert_eq!(answers(env, "top.schema.json", &["top"])["waiting"][0]["subject"], "appointment");
    assert_eq!(answers(env, "run-cancel.schema.json", &["loop", "cancel", "nightly"])["cancelled"], "nightly");
}

#[test]
fn of_runs_that_have_started() {
    let world = world();
    let env = &world.env;
    let agent = world.agent("cat > /dev/null; echo said; echo odd >&2");
    let run = ["loop", "run", "own", "it", "--agent", &agent, "--trust"];
    answers(env, "run-status.schema.json", &run);
    answers(env, "run-status.schema.json", &["loop", "report", "it"]);
    answers(env, "run-status.schema.json", &["run", "report", "it"]);
    let logs = answers(env, "run-logs.schema.json", &["loop", "logs", "it"]);
    assert_eq!((&logs["lines"], &logs["stderr"]), (&json!(["said"]), &json!(["odd"])));
    answers(env, "run-logs.schema.json", &["loop", "logs", "it", "--engine"]);
    let followed = env.run(&["loop", "logs", "it", "--follow", "--json"]);
    let lines: Vec<&str> = followed.succeeds().stdout.lines().collect();
    assert!(!lines.is_empty(), "{followed:?}");
    for line in lines {
        check("run-logs-follow.schema.json", &serde_json::from_str(line).unwrap());
    }
    answers(env, "run-cleanup.schema.json", &["loop", "cleanup", "--dry-run", "--branches"]);
    answers(env, "run-cleanup.schema.json", &["pipeline", "cleanup"]);
    let entry = json!({"type": "loop", "loop_type": "work", "status": "running", "max_iterations": 7});
    world.write(&world.claude("loop-sessions.json"), &json!({"sessions": {"loop-hand": entry}}).to_string());
    answers(env, "run-entry.schema.json", &["loop", "status", "hand"]);
    answers(env, "run-entry.schema.json", &["loop", "kill", "hand"]);
}

#[test]
fn of_what_a_person_says_to_a_run() {
    let world = waiting(&[2]);
    let said = answers(&world.env, "run-say.schema.json", &["pipeline", "say", "ship", "Not on a Friday"]);
    assert_eq!(said["notes"][0]["iteration"], Value::Null);
    let needs = answers(&world.env, "top.schema.json", &["top"])["needs"].clone();
    assert!(needs.as_array().unwrap().iter().any(|need| need["subject"] == "run"), "{needs}");
    for verb in ["reject", "approve"] {
        let answer = answers(&world.env, "pipeline-answer.schema.json", &["pipeline", verb, "ship"]);
        assert_eq!((&answer["approved"], &answer["changed"]), (&json!(verb == "approve"), &json!(true)));
    }
}

#[test]
fn of_the_store() {
    let world = world();
    let env = &world.env;
    answers(&Env::new(), "db-path.schema.json", &["db", "path"]);
    answers(env, "db-path.schema.json", &["db", "path"]);
    answers(env, "db-backup.schema.json", &["db", "backup"]);
    let copy = env.path("copy.db").display().to_string();
    assert_eq!(answers(env, "db-backup.schema.json", &["db", "backup", &copy])["path"], json!(copy));
    assert_eq!(answers(env, "db-backups.schema.json", &["db", "backups"])["backups"][0]["kind"], "manual");
    assert_eq!(answers(env, "db-check.schema.json", &["db", "check"])["ok"], true);
    answers(env, "db-compact.schema.json", &["db", "compact", "--force"]);
    assert_eq!(answers(env, "db-recover.schema.json", &["db", "recover"])["outcome"], "not_needed");
    let other = Env::new();
    assert_eq!(answers(&other, "db-import.schema.json", &["db", "import", &copy])["goals"], 3);
}

#[test]
fn of_what_is_seen_of_everything() {
    let world = world();
    let env = &world.env;
    answers(&Env::new(), "top.schema.json", &["top"]);
    let config = std::fs::read_to_string(env.home().join("config.toml")).unwrap();
    std::fs::write(env.home().join("config.toml"), format!("{config}[limits]\ndaily_tokens = 200\n")).unwrap();
    let page = answers(env, "top.schema.json", &["top", "--once"]);
    assert_eq!((&page["needs"][0]["kind"], &page["ended"][0]["ending"]), (&json!("blocked"), &json!("completed")));
    assert_eq!(page["working"][0]["limits"][0]["axis"], "tokens");
    let metrics = answers(env, "metrics.schema.json", &["metrics"]);
    assert_eq!(metrics["metrics"][0]["samples"][0]["value"], 1.0);
    let collector = Receiver::new([]);
    answers(env, "metrics-sent.schema.json", &["metrics", "--otlp", &collector.url]);
    let verified = answers(env, "goal-status.schema.json", &["goal", "verify", "--session", "s1"]);
    assert_eq!(verified["evidence"][0]["exit_code"], 0);
    env.execute("UPDATE goals SET updated_at_ms = updated_at_ms - 100 * 3600 * 1000");
    env.execute("UPDATE sessions SET ended_at_ms = last_seen_ms WHERE session_id = 's2'");
    let orphans = answers(env, "goal-cleanup.schema.json", &["goal", "cleanup", "--limit", "0"]);
    let orphans = orphans["goals"].as_array().unwrap();
    assert_eq!(orphans.len(), 1, "{orphans:?}");
    check("goal-status.schema.json", &json!({"goal": orphans[0]}));
    assert_eq!(answers(env, "goal-cleanup.schema.json", &["goal", "cleanup", "--delete"])["deleted"], true);
}

#[test]
fn of_processes_that_stay() {
    let world = world();
    let env = &world.env;
    let run = ["loop", "run", "own", "nightly", "--agent", "true", "--at", "in 2h", "--trust"];
    answers(env, "run-appointment.schema.json", &run);
    env.execute("UPDATE appointments SET next_at_ms = next_at_ms - 7200000, first_at_ms = first_at_ms - 7200000");
    let once = env.run(&["watch", "--once", "--json"]);
    let lines: Vec<Value> = once.succeeds().stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["did"] == "started" && line["subject"] == "run"), "{lines:?}");
    for line in &lines {
        check("watch.schema.json", line);
    }
    world.ends("loop", "nightly");
    let started = answers(env, "watch-process.schema.json", &["watch", "--detach"]);
    assert_eq!(answers(env, "watch-process.schema.json", &["watch", "--stop"]), started);

    let mut ui = env.command(&["ui", "--json"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let printed = std::io::BufReader::new(ui.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut object = String::new();
    for line in printed {
        object.push_str(&line);
        if line == "}" {
            break;
        }
    }
    kill_process(Pid::from_child(&ui), Signal::TERM).unwrap();
    ui.wait().unwrap();
    check("ui.schema.json", &serde_json::from_str(&object).unwrap());
}
