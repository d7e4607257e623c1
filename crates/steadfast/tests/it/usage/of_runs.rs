//! Usage of runs: one row per iteration from the store; worktrees count for their project.

use serde_json::{Value, json};

use crate::runs::World;
use crate::schemas::check;

/// A fake Claude Code that works for a second, reports its usage and writes a transcript.
fn world() -> World {
    let world = World::new();
    let tree = world.env.claude_config().join("projects/any");
    let usage = r#""usage":{"input_tokens":700,"output_tokens":50,"cache_creation_input_tokens":20,"cache_read_input_tokens":3}"#;
    let script = format!(
        r#"#!/bin/sh
cat > /dev/null; mkdir -p {tree}; sleep 1
id=$STEADFAST_RUN-$STEADFAST_STAGE-$STEADFAST_ITERATION
echo '{{"type":"assistant","uuid":"u-'$id'","timestamp":"'$(date -u +%Y-%m-%dT%H:%M:%S.000Z)'","cwd":"'$(pwd -P)'","sessionId":"'$id'","message":{{"id":"m-'$id'","role":"assistant","type":"message","model":"claude-opus-4-5-20251101","content":[],{usage}}}}}' >> {tree}/$id.jsonl
echo '{{"type":"result","subtype":"success","is_error":false,"result":"done","total_cost_usd":0.0425,{usage}}}'
"#,
        tree = tree.display()
    );
    let program = world.env.path("claude");
    world.write(&program, &script);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    let config = format!(
        "[runs]\nback_off_ms = 10\n[notify]\ndesktop = false\n[agents.claude]\nprogram = '{}'\n",
        program.display()
    );
    std::fs::write(world.env.home().join("config.toml"), config).unwrap();
    world.repository();
    world
}

fn usage(world: &World, arguments: &[&str]) -> Value {
    let report = world.run(&[&["usage", "--json"], arguments].concat()).succeeds().json();
    check("usage.schema.json", &report);
    report
}

#[test]
fn each_iteration_has_its_row_and_worktrees_count_for_the_project() {
    let world = world();
    world.write(
        &world.in_project("p.yaml"),
        "stages:\n  - {name: apart, runs: 2, parallel: true, prompt: go}\n  - {name: after, prompt: go}\n",
    );
    world.run(&["pipeline", "run", "p.yaml", "par"]).succeeds();
    let report = usage(&world, &["runs"]);
    let row = |row: &Value| {
        json!([row["run"], row["kind"], row["stage"], row["stage_name"], row["iteration"], row["committed"]])
    };
    let rows: Vec<Value> = report["rows"].as_array().unwrap().iter().map(row).collect();
    let expected = [
        json!(["par", "pipeline", 1, "apart", 1, true]),
        json!(["par", "pipeline", 1, "apart", 2, true]),
        json!(["par", "pipeline", 2, "after", 1, true]),
    ];
    assert_eq!(rows, expected);
    let project = std::fs::canonicalize(world.env.project()).unwrap().display().to_string();
    let state = world.json("pipeline-runs/par/state.json");
    for (row, shown) in report["rows"].as_array().unwrap().iter().zip(state["history"].as_array().unwrap()) {
        assert_eq!((&row["project"], &row["cost_usd"], &row["attempts"]), (&json!(project), &json!(0.0425), &json!(1)));
        let tokens =
            ["input_tokens", "output_tokens", "cache_creation_tokens", "cache_read_tokens"].map(|kind| &row[kind]);
        assert_eq!(tokens, [&json!(700), &json!(50), &json!(20), &json!(3)]);
        assert!(row["seconds"].as_i64().unwrap() >= 1, "{row}");
        assert_eq!(shown["cost_usd"], row["cost_usd"]);
    }
    let totals = &report["totals"];
    assert_eq!(
        (&totals["cost_usd"], &totals["input_tokens"], &totals["responses"]),
        (&json!(0.1275), &json!(2100), &Value::Null)
    );
    let page = world.run(&["usage", "runs"]).succeeds().stdout.clone();
    assert!(page.contains("par") && page.contains("1.2") && page.contains("$0.04"), "{page}");

    let of_project =
        |more: &[&str]| usage(&world, &[&["--project", &project], more].concat())["totals"]["input_tokens"].clone();
    assert_eq!(of_project(&["daily"]), json!(2100));
    assert_eq!(of_project(&["runs"]), json!(2100));
    assert_eq!(of_project(&["runs", "--since", "2999-01-01"]), json!(0));
    assert_eq!(usage(&world, &["runs", "--project", "elsewhere"])["rows"], json!([]));
    let projects = usage(&world, &["session"]);
    assert!(projects["rows"].as_array().unwrap().iter().all(|row| row["project"] == json!(project)), "{projects}");
}

#[test]
fn usage_runs_reads_only_an_existing_store() {
    let world = World::new();
    assert_eq!(usage(&world, &["runs"])["rows"], json!([]));
    assert!(!world.env.store().exists());
    // An agent without a transcript still has its duration.
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    world.loop_run(&["once", "a"], "cat > prompt; sleep 1; echo fine", &[]).succeeds();
    let report = usage(&world, &["runs"]);
    assert_eq!((&report["rows"][0]["run"], &report["rows"][0]["cost_usd"]), (&json!("a"), &Value::Null));
    assert!(report["rows"][0]["seconds"].as_i64().unwrap() >= 1, "{report}");
    world.run(&["usage", "runs", "--host", "claude"]).fails_with(1, "--host and --prices");
}
