//! `goal pause --all` stops every goal and run of the store, and no agent can undo it.

use serde_json::{Value, json};

use crate::attempts::eventually;
use crate::env::{Env, Output, finish};
use crate::runs::World;
use crate::schemas::check;

const ENDLESS: &str = "echo $$ > agent; while :; do sleep 0.05; done";

fn in_agent(env: &Env, arguments: &[&str]) -> Output {
    finish(env.command(arguments).env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s1"), b"")
}

fn start(env: &Env, session: &str) {
    env.run(&["goal", "start", &format!("goal of {session}"), "--session", session]).succeeds();
}

fn states(env: &Env) -> Vec<Vec<String>> {
    env.sql("SELECT session_id, status, paused_reason, wake_at_ms, resume_at_ms FROM goals ORDER BY session_id")
}

fn names(list: &Value, key: &str) -> Vec<String> {
    let mut names: Vec<_> = list.as_array().unwrap().iter().map(|entry| entry[key].as_str().unwrap().into()).collect();
    names.sort();
    names
}

#[test]
fn nothing_to_stop_is_no_error() {
    let env = Env::new();
    assert_eq!(env.run(&["goal", "pause", "--all"]).succeeds().stdout, "nothing was running\n");
    assert!(!env.store().exists());
    start(&env, "s1");
    env.goal(&["complete"]).succeeds();
    let none = env.run(&["goal", "pause", "--all", "--json"]).succeeds().json();
    assert_eq!(none, json!({"paused": [], "stopped": []}));
}

#[test]
fn every_goal_that_moves_or_would_wake_is_paused_by_the_user() {
    let env = Env::new();
    for session in ["active", "blocked", "interrupted", "limited", "over", "paused", "spent", "waiting"] {
        start(&env, session);
    }
    let set = |session: &str, columns: &str| {
        env.execute(&format!(
            "UPDATE goals SET resume_at_ms = NULL, wake_at_ms = NULL, {columns} WHERE session_id = '{session}'"
        ));
    };
    // Of two values for a column, SQLite takes the last.
    set("blocked", "status = 'blocked'");
    set("interrupted", "status = 'paused', paused_reason = 'interrupted'");
    set("limited", "status = 'paused', paused_reason = 'usage_limit', wake_at_ms = 9000000000000");
    set("over", "status = 'complete'");
    set("paused", "status = 'paused', paused_reason = 'deadline'");
    set("spent", "status = 'budget_limited'");
    set("waiting", "status = 'paused', paused_reason = 'waiting', wake_at_ms = 9000000000000");
    env.execute("UPDATE goal_spans SET to_ms = 1 WHERE session_id = 'spent'");
    let stopped = env.run(&["goal", "pause", "--all", "--json"]).succeeds().json();
    check("goal-pause-all.schema.json", &stopped);
    assert_eq!(names(&stopped["paused"], "session_id"), ["active", "interrupted", "limited", "waiting"]);
    let paused = |session: &str| [session, "paused", "user", "NULL", "NULL"].map(str::to_owned).to_vec();
    let other = |session: &str, status: &str, reason: &str| {
        [session, status, reason, "NULL", "NULL"].map(str::to_owned).to_vec()
    };
    assert_eq!(
        states(&env),
        [
            paused("active"),
            other("blocked", "blocked", "NULL"),
            paused("interrupted"),
            paused("limited"),
            other("over", "complete", "NULL"),
            other("paused", "paused", "deadline"),
            other("spent", "budget_limited", "NULL"),
            paused("waiting"),
        ]
    );
    assert_eq!(
        env.sql(
            "SELECT count(*), count(DISTINCT created_at_ms), min(actor) FROM goal_events WHERE kind = 'goal_paused'"
        ),
        [["4", "1", "user"]]
    );
    assert_eq!(env.run(&["goal", "pause", "--all"]).succeeds().stdout, "nothing was running\n");
}

/// The goal is over and the next one would start at the end of the turn.
#[test]
fn a_queued_goal_that_is_about_to_start_is_stopped_too() {
    let env = Env::new();
    env.start(&["First"]);
    env.goal(&["start", "Second", "--queue"]).succeeds();
    env.goal(&["start", "Third", "--queue"]).succeeds();
    env.hook("s1", &json!({"hook_event_name": "UserPromptSubmit", "prompt": "Give it up."}));
    in_agent(&env, &["goal", "abandon"]).succeeds();
    let text = env.run(&["goal", "pause", "--all"]).succeeds().stdout.clone();
    assert!(text.starts_with("paused: Second"), "{text}");
    let goal = env.status();
    assert_eq!(
        (&goal["objective"], &goal["paused_reason"], &goal["queue"]),
        (&json!("Second"), &json!("user"), &json!(1))
    );
    assert!(goal["active_seconds"] == 0 && env.sql("SELECT wake_at_ms FROM goals") == [["NULL"]]);
    in_agent(&env, &["goal", "resume"]).fails_with(3, "is for the user");
    env.goal(&["resume"]).succeeds();
}

#[test]
fn loops_of_all_projects_are_stopped_and_agents_cannot_resume_them() {
    let world = World::new();
    world.loop_type("open", "completion: {promise: NEVER}");
    world.loop_run(&["open", "here"], ENDLESS, &["--detach"]).succeeds();
    let elsewhere = world.env.path("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let agent = world.agent(ENDLESS);
    let there = |arguments: &[&str]| finish(world.env.command(arguments).current_dir(&elsewhere), b"");
    there(&["loop", "run", "open", "there", "--agent", &agent, "--detach"]).succeeds();
    world.run(&["run", "Objective", "--agent", &agent, "--detach"]).succeeds();
    world.write(&world.in_project("p.yaml"), "name: relay\nstages:\n  - name: one\n    prompt: x\n");
    world.run(&["pipeline", "run", "p.yaml", "relay", "--agent", &agent, "--detach"]).succeeds();
    start(&world.env, "s1");
    // From a directory without a session.
    let stopped = finish(world.env.command(&["goal", "pause", "--all", "--json"]).current_dir("/"), b"").json();
    check("goal-pause-all.schema.json", &stopped);
    assert_eq!((stopped["paused"].as_array().unwrap().len(), stopped["stopped"].as_array().unwrap().len()), (2, 4));
    assert_eq!(world.ends("loop", "here")["status"], "killed");
    assert_eq!(world.ends("pipeline", "relay")["status"], "killed");
    let ended = || Some(there(&["loop", "status", "there", "--json"]).json()).filter(|run| run["status"] == "killed");
    eventually(ended);
    let name = world.run(&["loop", "list", "--json"]).json()["runs"][0]["name"].as_str().unwrap().to_owned();
    assert_eq!(world.ends("loop", &name)["status"], "killed");
    for name in ["here", &name] {
        in_agent(&world.env, &["loop", "resume", name]).fails_with(3, "`resume` is for the user");
    }
    assert_eq!(world.env.sql("SELECT count(*) FROM runs WHERE status = 'running'"), [["0"]]);
    assert_eq!(world.env.sql("SELECT DISTINCT status, paused_reason FROM goals"), [["paused", "user"]]);
    let again = world.run(&["loop", "resume", "here", "--detach"]);
    again.succeeds();
    assert!(world.run(&["goal", "pause", "--all"]).succeeds().stdout.contains("stopping: loop here in "));
    world.ends("loop", "here");
}

#[test]
fn a_stop_request_without_an_engine_holds_against_agents() {
    let world = World::new();
    world.loop_type("open", "completion: {promise: NEVER}");
    let agent = world.agent("true");
    let arguments = ["loop", "run", "open", "dead", "--agent", &agent];
    finish(world.env.command(&arguments).env("STEADFAST_CRASH_AT", "engine.shown:3"), b"");
    world.run(&["goal", "pause", "--all"]).succeeds();
    in_agent(&world.env, &["loop", "resume", "dead"]).fails_with(3, "`resume` is for the user");
}

#[test]
fn agents_can_neither_use_nor_undo_it() {
    let env = Env::new();
    env.start(&["First"]);
    env.goal(&["start", "Second", "--queue"]).succeeds();
    in_agent(&env, &["goal", "pause", "--all"]).fails_with(3, "`pause --all` is for the user");
    assert_eq!(env.status()["status"], "active");
    env.run(&["goal", "pause", "--all"]).succeeds();
    for verb in [["resume"].as_slice(), &["complete"], &["extend", "--add-turns", "1"]] {
        in_agent(&env, &[&["goal"], verb].concat()).fails_with(3, "is for the user");
    }
    in_agent(&env, &["goal", "abandon"]).fails_with(3, "the user paused the goal");
    in_agent(&env, &["goal", "start", "Other"]).fails_with(3, "status 'paused'");
    let refused = "SELECT json_extract(payload, '$.verb') FROM goal_events WHERE kind = 'privileged_verb_refused'";
    assert_eq!(env.sql(refused), [["pause --all"], ["resume"], ["complete"], ["extend"], ["abandon"]]);
    assert_eq!(env.stop("s1", "done", false), Value::Null, "no hook continues it");
    let goal = env.status();
    assert_eq!((&goal["paused_reason"], &goal["queue"]), (&json!("user"), &json!(1)));
}

#[test]
fn the_slash_command_needs_no_model() {
    let env = Env::new();
    env.start(&["First"]);
    start(&env, "s2");
    let event = json!({"hook_event_name": "UserPromptExpansion", "expansion_type": "slash_command",
        "command_name": "goal-pause", "command_args": "--all", "prompt": "/goal-pause --all"});
    let reply = env.hook("s1", &event);
    assert_eq!(reply["decision"], "block", "{reply}");
    assert_eq!(reply["reason"].as_str().unwrap().matches("paused: ").count(), 2, "{reply}");
    assert_eq!(env.sql("SELECT DISTINCT paused_reason FROM goals"), [["user"]]);
}
