//! Runs that agents start: they need a goal that moves, get what is left of it, and count to it.

use serde_json::{Value, json};

use crate::attempts::{eventually, is_alive};
use crate::env::{Output, finish};
use crate::runs::World;

/// A client that uses 400 tokens and 10 cents.
const WORK: &str = r#"cat > /dev/null; echo x >> tries
echo '{"type":"result","subtype":"success","is_error":false,"result":"did '$(wc -l < tries)'","total_cost_usd":0.1,
    "usage":{"input_tokens":300,"output_tokens":100}}' | tr -d '\n'; echo"#;

fn world() -> World {
    world_with_client(WORK)
}

fn world_with_client(script: &str) -> World {
    let world = World::new();
    world.loop_type("nine", "completion: fixed-n\nmax: 9");
    world.loop_type("one", "completion: fixed-n\nmax: 1");
    let program = world.env.path("claude");
    world.write(&program, &format!("#!/bin/sh\n{script}\n"));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    let config = world.env.home().join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}[agents.claude]\nprogram = '{}'\n", program.display())).unwrap();
    world
}

fn in_agent(world: &World, arguments: &[&str]) -> Output {
    finish(world.env.command(arguments).env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s1"), b"")
}

fn nested(world: &World, name: &str, more: &[&str]) -> Output {
    in_agent(world, &[&["loop", "run", "nine", name], more].concat())
}

fn goal(world: &World) -> (Value, Value, Value) {
    let goal = world.env.status();
    (goal["status"].clone(), goal["subagent_tokens"].clone(), goal["cost_usd"].clone())
}

#[test]
fn an_agent_without_a_goal_that_moves_may_not_start_or_resume_a_run() {
    let world = world();
    world.write(&world.in_project("p.yaml"), "stages:\n  - {name: a, prompt: go}\n");
    let crashing = ["loop", "run", "nine", "crashed"];
    finish(world.env.command(&crashing).env("STEADFAST_CRASH_AT", "engine.shown:4"), b"");
    let starts: [&[&str]; 5] = [
        &["run", "Count", "--budget", "1B"],
        &["loop", "run", "nine", "new"],
        &["loop", "run", "nine", "new", "--detach"],
        &["pipeline", "run", "p.yaml", "new"],
        &["loop", "resume", "crashed"],
    ];
    for start in starts {
        in_agent(&world, start).fails_with(3, "its session has no live goal");
    }
    world.env.start(&["x"]);
    world.env.goal(&["pause"]).succeeds();
    for start in starts {
        in_agent(&world, start).fails_with(3, "its goal is paused (user)");
    }
    world.env.goal(&["resume"]).succeeds();
    world.env.goal(&["block", "--reason", "key"]).succeeds();
    in_agent(&world, starts[1]).fails_with(3, "its goal is blocked");
    assert_eq!(world.env.sql("SELECT count(*) FROM runs"), [["1"]]);
    // Words in the environment are no run above.
    let home = world.env.home();
    let attempt = home.join("runs/x/1-1-1").display().to_string();
    let mut forged = world.env.command(starts[1]);
    finish(forged.env("STEADFAST_ATTEMPT", attempt), b"").fails_with(3, "may not start a run");
    world.run(starts[1]).succeeds();
}

#[test]
fn a_nested_run_gets_what_is_left_and_counts_to_its_goal() {
    let world = world();
    let id = world.env.start(&["x", "--budget", "1000", "--usd", "5", "--max-hours", "2", "--deadline", "in 3h"]);
    let output = nested(&world, "inner", &["--budget", "1B", "--usd", "2", "--max-hours", "9"]);
    assert_eq!(output.code, 5, "{output:?}");
    let status = world.status("loop", "inner");
    assert_eq!((&status["reason"], &status["iteration"]), (&json!("budget_tokens"), &json!(3)));
    let row = world.env.sql("SELECT charged_goal_id, nesting, plan_json FROM runs").remove(0);
    assert_eq!((row[0].as_str(), row[1].as_str()), (id["goal_id"].as_str().unwrap(), "1"));
    let limits = serde_json::from_str::<Value>(&row[2]).unwrap()["limits"].clone();
    assert_eq!((&limits["tokens"], &limits["cost_micros"]), (&json!(1000), &json!(2_000_000)), "{limits}");
    assert!(limits["wall_ms"].as_i64().unwrap() <= 2 * 3_600_000 && limits["deadline"].is_i64(), "{limits}");
    assert_eq!(goal(&world), (json!("budget_limited"), json!(1200), json!(0.3)));
    // Nothing is left for another one.
    nested(&world, "more", &[]).fails_with(3, "its goal is budget_limited");
}

#[test]
fn two_nested_runs_share_what_is_left() {
    let world = world();
    world.env.start(&["x", "--budget", "1000"]);
    assert_eq!(nested(&world, "first", &["--max", "1"]).code, 0);
    assert_eq!(goal(&world), (json!("active"), json!(400), json!(0.1)));
    assert_eq!(nested(&world, "second", &["--budget", "1B"]).code, 5);
    assert_eq!(world.status("loop", "second")["iteration"], json!(2), "600 were left");
    assert_eq!(goal(&world), (json!("budget_limited"), json!(1200), json!(0.3)));
}

#[test]
fn a_headless_goal_of_an_agent_has_the_limits_of_its_goal() {
    let world = world();
    world.env.start(&["x", "--budget", "1000"]);
    let output = in_agent(&world, &["run", "Count", "--budget", "1B", "--json"]);
    assert_eq!(output.code, 5, "{output:?}");
    let session = output.json()["name"].as_str().unwrap().to_owned();
    let inner = world.run(&["goal", "status", "--session", &session, "--json"]).json()["goal"].clone();
    assert_eq!((&inner["token_budget"], &inner["status"]), (&json!(1000), &json!("budget_limited")));
    assert_eq!(goal(&world), (json!("budget_limited"), json!(1200), json!(0.3)));
}

#[test]
fn what_a_nested_run_spends_is_counted_once_wherever_its_engine_dies() {
    for point in ["engine.attempt_ended:2", "engine.before_save:4", "engine.saved:4", "engine.shown:4"] {
        let world = world();
        world.env.start(&["x", "--budget", "1M"]);
        let start = ["loop", "run", "nine", "inner", "--max", "3"];
        let mut command = world.env.command(&start);
        command.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s1").env("STEADFAST_CRASH_AT", point);
        finish(&mut command, b"");
        in_agent(&world, &["loop", "resume", "inner"]).succeeds();
        let attempts = world.env.sql("SELECT sum(input_tokens + output_tokens), sum(cost_micros) FROM run_attempts");
        let (_, tokens, cost) = goal(&world);
        assert_eq!(attempts, [[tokens.to_string(), format!("{:.0}", cost.as_f64().unwrap() * 1e6)]], "{point}");
        assert!(tokens.as_i64().unwrap() >= 1200, "{point}: {tokens}");
    }
}

#[test]
fn a_nested_run_stops_when_the_user_pauses_its_goal() {
    let world = world();
    world.env.start(&["x"]);
    let agent = world.agent("echo $$ > agent; while :; do sleep 0.1; done");
    in_agent(&world, &["loop", "run", "nine", "inner", "--agent", &agent, "--detach"]).succeeds();
    let pid = eventually(|| world.lines("agent").pop());
    world.env.goal(&["pause"]).succeeds();
    let status = world.ends("loop", "inner");
    assert_eq!((&status["status"], &status["reason"]), (&json!("killed"), &json!("goal_paused")));
    assert!(!is_alive(&pid));
    in_agent(&world, &["loop", "resume", "inner"]).fails_with(3, "is for the user");
    // The user may, as a run of their own.
    eventually(|| world.status("loop", "inner")["pid"].is_null().then_some(()));
    // Its engine may still be about to leave.
    eventually(|| (world.run(&["loop", "resume", "inner", "--detach"]).code == 0).then_some(()));
    assert_eq!(world.env.sql("SELECT charged_goal_id IS NULL, nesting FROM runs"), [["1", "0"]]);
    assert_eq!(world.status("loop", "inner")["status"], json!("running"));
    world.run(&["loop", "kill", "inner"]).succeeds();
}

#[test]
fn a_nested_run_stops_when_its_goal_ends() {
    let world = world();
    world.env.start(&["x"]);
    let agent = world.agent("echo $$ > agent; while :; do sleep 0.1; done");
    in_agent(&world, &["loop", "run", "nine", "inner", "--agent", &agent, "--detach"]).succeeds();
    eventually(|| world.lines("agent").pop());
    world.env.goal(&["complete"]).succeeds();
    assert_eq!(world.ends("loop", "inner")["reason"], json!("goal_completed"));
}

/// Starts another run from inside an agent, with a cleared environment.
fn start_inside(world: &World, what: &str) -> String {
    let (home, program) = (world.env.home(), env!("CARGO_BIN_EXE_steadfast"));
    let clean = format!("env -i PATH=\"$PATH\" STEADFAST_NO_WATCH=1 STEADFAST_HOME='{}'", home.display());
    format!("{clean} {program} {what}")
}

#[test]
fn what_the_agents_of_a_run_start_counts_to_the_run() {
    let world = world();
    let start = start_inside(&world, "loop run one inner-$STEADFAST_ITERATION --budget 1B");
    // It used nothing itself.
    let agent = format!("{start}; echo '{{\"usage\":{{\"input_tokens\":0,\"output_tokens\":0}}}}' > $STEADFAST_RESULT");
    let output = world.loop_run(&["nine", "outer"], &agent, &["--budget", "1000"]);
    assert_eq!(output.code, 5, "{output:?}");
    let status = world.status("loop", "outer");
    assert_eq!((&status["reason"], &status["iteration"]), (&json!("budget_tokens"), &json!(3)));
    let rows = world.env.sql(
        "SELECT r.name, r.nesting, p.name, json_extract(r.plan_json, '$.limits.tokens') FROM runs r
         LEFT JOIN runs p ON p.run_id = r.parent_run_id WHERE r.name <> 'outer' ORDER BY r.name",
    );
    let expected = [("inner-1", "1000"), ("inner-2", "600"), ("inner-3", "200")];
    assert_eq!(rows, expected.map(|(name, left)| [name, "1", "outer", left]));
}

#[test]
fn runs_inside_runs_have_a_depth() {
    let world = world();
    let program = |name: &str, what: &str| {
        let path = world.in_project(name);
        world.write(&path, &format!("#!/bin/sh\n{what}\n"));
        format!("sh {}", path.display())
    };
    let third = program("third.sh", "echo third > third");
    let inside = |name: &str, agent: &str| {
        let start = start_inside(&world, &format!("loop run one {name} --agent '{agent}' 2> {name}.err"));
        format!("{start}; echo $? > {name}.code")
    };
    let second = program("second.sh", &inside("third", &third));
    let first = program("first.sh", &inside("second", &second));
    let outer = program("outer.sh", &inside("first", &first));
    world.run(&["loop", "run", "one", "outer", "--agent", &outer]).succeeds();
    assert_eq!(world.lines("first.code"), ["0"]);
    assert_eq!(world.lines("second.code"), ["0"]);
    assert_eq!(world.lines("third.code"), ["3"]);
    assert!(world.lines("third.err").join(" ").contains("at most 2 runs"), "{:?}", world.lines("third.err"));
    assert!(!world.in_project("third").exists());
}

/// A client that works on while its session file says that it used 770 tokens.
const BUSY: &str = r#"cat > /dev/null; tree="$HOME/.claude/projects/any"; mkdir -p "$tree"
id=$STEADFAST_RUN-$STEADFAST_STAGE-$STEADFAST_ITERATION
echo '{"type":"system","subtype":"init","session_id":"'$id'"}'
echo '{"type":"assistant","uuid":"u-'$id'","timestamp":"'$(date -u +%Y-%m-%dT%H:%M:%S.000Z)'","cwd":"'$(pwd -P)'",
    "sessionId":"'$id'","message":{"id":"m-'$id'","role":"assistant","type":"message",
    "model":"claude-opus-4-5-20251101","content":[],"usage":{"input_tokens":700,"output_tokens":50,
    "cache_creation_input_tokens":20,"cache_read_input_tokens":3}}}' | tr -d '\n' > "$tree/$id.jsonl"
echo >> "$tree/$id.jsonl"; sleep 300"#;

#[test]
fn branches_are_stopped_when_their_sum_passes_the_budget() {
    let world = world_with_client(BUSY);
    world.repository();
    world.write(
        &world.in_project("p.yaml"),
        "stages:\n  - {name: apart, runs: 4, parallel: true, prompt: go}\nlimits: {parallel: 2}\n",
    );
    // One branch alone stays below it.
    let output = world.run(&["pipeline", "run", "p.yaml", "par", "--budget", "1500"]);
    assert_eq!(output.code, 5, "{output:?}");
    assert_eq!(world.status("pipeline", "par")["reason"], json!("budget_tokens"));
    let attempts = world.env.sql("SELECT iteration, failure, input_tokens FROM run_attempts ORDER BY iteration");
    assert_eq!(attempts, [["1", "stopped", "700"], ["2", "stopped", "700"]], "two ran, and no other started");
}
