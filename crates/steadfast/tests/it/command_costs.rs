//! What agents that are plain commands use: reported it is counted, unreported it is unknown, and never zero.

use serde_json::{Value, json};

use crate::runs::World;

/// Writes a result file with this usage, and works a little.
fn reports(usage: &str) -> String {
    format!("cat > /dev/null; echo '{{\"summary\":\"x\",\"usage\":{usage}}}' > $STEADFAST_RESULT; date +%N")
}

fn world() -> World {
    let world = World::new();
    world.loop_type("open", "completion: {promise: DONE}\nmax: 3\nlimits: {idle: 0}");
    world
}

/// Status, list, state file and usage of a run, each as `[tokens, cost_usd]`.
fn everywhere(world: &World, name: &str) -> Vec<Value> {
    let pair = |entry: &Value| json!([entry["tokens"], entry["cost_usd"]]);
    let status = world.status("loop", name);
    let list = world.run(&["loop", "list", "--json"]).succeeds().json();
    let listed = list["runs"].as_array().unwrap().iter().find(|run| run["name"] == name).unwrap().clone();
    let state = world.json(&format!("loop-state-{name}.json"));
    let usage = world.run(&["usage", "runs", "--json"]).succeeds().json();
    let row = usage["rows"].as_array().unwrap().iter().find(|row| row["run"] == name).unwrap().clone();
    vec![
        pair(&status),
        pair(&status["history"][0]),
        pair(&listed),
        pair(&state),
        pair(&state["history"][0]),
        json!([row["total_tokens"], row["cost_usd"]]),
    ]
}

#[test]
fn what_a_command_does_not_report_is_unknown_in_every_view() {
    let world = world();
    let output = world.loop_run(&["open", "silent"], "date +%N", &["--max", "1"]);
    assert!(output.stderr.contains("done (tokens unknown, cost unknown)"), "{output:?}");
    assert_eq!(everywhere(&world, "silent"), vec![json!([null, null]); 6]);
    let shown = world.run(&["loop", "status", "silent"]).succeeds().stdout.clone();
    assert!(shown.contains("tokens unknown · cost unknown"), "{shown}");
    for page in [&["loop", "list"][..], &["usage", "runs"]] {
        let shown = world.run(page).succeeds().stdout.clone();
        assert!(shown.contains("unknown") && !shown.contains("$0"), "{shown}");
    }
    world.loop_run(
        &["open", "told"],
        &reports(r#"{"input_tokens":10,"output_tokens":5,"cost_usd":0.5}"#),
        &["--max", "1"],
    );
    assert_eq!(everywhere(&world, "told"), vec![json!([15, 0.5]); 6]);
}

#[test]
fn a_claim_that_cannot_be_right_is_unknown() {
    let world = world();
    let claims = [
        ("a", r#"{"input_tokens":-10,"output_tokens":5,"cost_usd":0.5}"#, json!([null, 0.5])),
        ("b", r#"{"input_tokens":"10","output_tokens":5,"cost_usd":-1}"#, json!([null, null])),
        ("c", r#"{"input_tokens":1e300,"output_tokens":5,"cost_usd":1e300}"#, json!([null, null])),
        ("d", r#""a lot""#, json!([null, null])),
        ("e", r#"{"input_tokens":10,"output_tokens":5}"#, json!([15, null])),
        ("f", r#"{"cost_usd":0.25}"#, json!([null, 0.25])),
    ];
    for (name, claim, known) in claims {
        world.loop_run(&["open", name], &reports(claim), &["--max", "1"]);
        assert_eq!(everywhere(&world, name), vec![known; 6], "{claim}");
    }
}

#[test]
fn tokens_of_a_priced_model_have_a_cost() {
    let world = world();
    let claim = r#"{"input_tokens":1100000,"output_tokens":0,"model":"claude-opus-4-5"}"#;
    world.loop_run(&["open", "priced"], &reports(claim), &["--max", "1"]);
    assert_eq!(everywhere(&world, "priced"), vec![json!([1_100_000, 5.5]); 6]);
    // Two clients whose output the script passes on.
    let event =
        r#"{"type":"result","result":"done","total_cost_usd":0.25,"usage":{"input_tokens":7,"output_tokens":3}}"#;
    let script = format!("cat > /dev/null; echo '{event}'; echo '{event}'");
    world.loop_run(&["open", "wrapped"], &script, &["--max", "1"]);
    assert_eq!(everywhere(&world, "wrapped"), vec![json!([20, 0.5]); 6]);
}

#[test]
fn a_budget_that_cannot_hold_is_said_in_advance_and_ends_the_run_after_one_attempt() {
    let world = world();
    let note = "the limit holds only if the agent reports `usage` in its result file";
    for (name, flag, reason) in [("m", "--usd", "budget_usd: "), ("t", "--budget", "budget_tokens: ")] {
        let dry = world.loop_run(&["open", name], "date +%N", &[flag, "1000", "--dry-run"]);
        dry.succeeds();
        assert!(dry.stdout.contains(note), "{dry:?}");
        let output = world.loop_run(&["open", name], "date +%N; echo x >> tries", &[flag, "1000"]);
        assert!(output.code == 5 && output.stderr.contains(note), "{output:?}");
        let status = world.status("loop", name);
        let told = status["reason"].as_str().unwrap();
        assert!(told.starts_with(reason) && status["iteration"] == 1, "{status:#}");
    }
    assert_eq!(world.lines("tries").len(), 2);
    let free = world.loop_run(&["open", "free"], "date +%N", &["--max", "1"]);
    assert!(!free.stderr.contains(note), "{free:?}");
    let known = reports(r#"{"input_tokens":400,"output_tokens":200}"#);
    let output = world.loop_run(&["open", "known"], &known, &["--budget", "1000", "--json"]);
    let status = output.json();
    let told = (&status["reason"], &status["iteration"], &status["tokens"]);
    assert_eq!(told, (&json!("budget_tokens"), &json!(2), &json!(1200)), "{output:?}");
}

#[test]
fn the_judge_is_paid_by_the_run_and_asked_once_more_if_it_talks_nonsense() {
    let world = World::new();
    let spends =
        |more: &str| format!("{{{more}\"usage\":{{\"input_tokens\":100,\"output_tokens\":0,\"cost_usd\":0.1}}}}");
    let verdict = spends("\"plateau\":false,\"reasoning\":\"not yet\",");
    let judge = world.agent(&format!(
        "cat > /dev/null; echo x >> judged\nif [ $(wc -l < judged) = 2 ]; then echo '{verdict}' > $STEADFAST_RESULT; \
         else echo '{}' > $STEADFAST_RESULT; echo bla; fi",
        spends("")
    ));
    world.loop_type("judged", &format!("completion: plateau\njudge: {judge}\nmax: 2\nlimits: {{idle: 0}}"));
    let worker = format!("cat > /dev/null; echo '{}' > $STEADFAST_RESULT; date +%N", spends("\"summary\":\"x\","));
    let output = world.loop_run(&["judged", "j"], &worker, &["--json"]);
    let status = output.json();
    assert_eq!(output.code, 5, "{output:?}");
    // The first judge talks nonsense once, the second one twice, and decides nothing.
    assert_eq!(world.lines("judged").len(), 4);
    let verdicts: Vec<Value> =
        status["history"].as_array().unwrap().iter().map(|row| row["checks"][0]["holds"].clone()).collect();
    assert_eq!(verdicts, [json!(false), Value::Null], "{status:#}");
    assert_eq!((&status["tokens"], &status["cost_usd"]), (&json!(600), &json!(0.6)), "{status:#}");
    let usage = world.run(&["usage", "runs", "--json"]).succeeds().json();
    assert_eq!((&usage["totals"]["total_tokens"], &usage["totals"]["cost_usd"]), (&json!(600), &json!(0.6)));
    let output = world.loop_run(&["judged", "capped"], &worker, &["--usd", "0.3", "--json"]);
    assert_eq!(
        (&output.json()["reason"], &output.json()["iteration"]),
        (&json!("budget_usd"), &json!(1)),
        "{output:?}"
    );
}

/// Eight agents of $0.2 and a cap of $0.3: the first wave is as wide as `parallel` allows, and nothing follows it.
#[test]
fn agents_side_by_side_pass_a_cap_by_one_wave_at_most() {
    let world = World::new();
    world.repository();
    let agent = world.agent(&reports(r#"{"input_tokens":10,"output_tokens":5,"cost_usd":0.2}"#));
    let side_by_side = "stages:\n  - {name: side, prompt: go, runs: 8, parallel: true}\n";
    world.write(&world.in_project("p.yaml"), &format!("name: p\n{side_by_side}"));
    let run = |file: &str, name: &str, usd: &str| {
        world.run(&["pipeline", "run", file, name, "--trust", "--agent", &agent, "--usd", usd, "--json"])
    };
    let output = run("p.yaml", "first", "0.3");
    let status = output.json();
    assert_eq!((output.code, &status["reason"]), (5, &json!("budget_usd")), "{output:?}");
    assert!(status["cost_usd"].as_f64().unwrap() < 0.3 + 4.0 * 0.2 - 0.2, "{status:#}");
    // Once the run knows what an attempt costs, it passes its cap by less than one.
    let known = side_by_side.replace("stages:\n", "stages:\n  - {name: one, prompt: go}\n");
    world.write(&world.in_project("q.yaml"), &format!("name: q\n{known}"));
    let output = run("q.yaml", "second", "0.7");
    let status = output.json();
    assert_eq!((output.code, &status["reason"]), (5, &json!("budget_usd")), "{output:?}");
    assert!(status["cost_usd"].as_f64().unwrap() < 0.7 + 0.2, "{status:#}");
}
