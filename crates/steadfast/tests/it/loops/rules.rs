//! Every completion rule and every limit, with its exit code.

use serde_json::json;

use crate::runs::{COUNTING, World};

#[test]
fn every_rule_of_completion_ends_its_loop() {
    let vote = "echo x >> tries; v=false; [ $STEADFAST_ITERATION -ge 2 ] && v=true; echo \"PLATEAU: $v\"";
    let promise = "echo x >> tries; [ $STEADFAST_ITERATION -ge 2 ] && echo '<promise>ALL DONE</promise>' || echo no";
    let tick =
        "echo x >> tries; [ $STEADFAST_ITERATION -ge 2 ] && echo '- [x] a' > list.md || echo '- [ ] a' > list.md";
    let beads = "echo x >> tries; [ $STEADFAST_ITERATION -ge 2 ] && echo '[]' > beads || echo '[{\"id\":1}]' > beads";
    for (yaml, script, reason, iterations) in [
        ("completion: fixed-n\nruns: 2", COUNTING, "fixed-n", 2),
        ("completion: all-items\nitems: [a, b, c]", COUNTING, "all-items", 3),
        ("completion: plateau", vote, "plateau", 3),
        ("completion: {command: 'test $(wc -l < tries) -ge 2'}", COUNTING, "command", 2),
        ("completion: {verify: ['true', 'test $(wc -l < tries) -ge 2']}", COUNTING, "verify", 2),
        ("completion: {promise: ALL DONE}", promise, "promise", 2),
        ("completion: {checklist: list.md}", tick, "checklist", 2),
        ("completion: beads-empty", beads, "beads-empty", 2),
        ("completion: {any: [{promise: NEVER}, {command: 'test -s tries'}]}", COUNTING, "command", 1),
        ("completion: {all: [{promise: ALL DONE}, {command: 'test -s tries'}]}", promise, "promise+command", 2),
    ] {
        let world = World::new();
        world.loop_type("rule", yaml);
        // A `bd` that lists the open beads.
        world.write(&world.env.path("bin/bd"), "#!/bin/sh\ncat beads\n");
        let path = format!("{}:{}", world.env.path("bin").display(), std::env::var("PATH").unwrap());
        std::process::Command::new("chmod").args(["+x", world.env.path("bin/bd").to_str().unwrap()]).status().unwrap();
        world.write(&world.in_project("list.md"), "- [ ] a\n");
        let agent = world.agent(script);
        let mut command = world.env.command(&["loop", "run", "rule", "--agent", &agent, "--json"]);
        let output = crate::env::finish(command.env("PATH", path), b"");
        let status = output.succeeds().json();
        let told = (&status["status"], &status["reason"], &status["iteration"]);
        assert_eq!(told, (&json!("completed"), &json!(reason), &json!(iterations)), "{yaml}: {output:?}");
        assert_eq!(world.lines("tries").len(), iterations, "{yaml}");
        let state = world.json("loop-state-rule.json");
        assert_eq!((&state["status"], &state["reason"]), (&json!("completed"), &json!(reason)), "{yaml}");
        assert_eq!(state["history"].as_array().unwrap().len(), iterations, "{yaml}");
        assert_eq!(world.entry("loop-rule")["status"], json!("completed"), "{yaml}");
        assert_eq!(world.json("loop-completions.json")[0]["reason"], json!(reason), "{yaml}");
    }
}

#[test]
fn limits_end_a_loop_with_exit_5_and_larger_ones_continue_it() {
    let world = World::new();
    world.loop_type("open", "completion: {promise: NEVER}\nlimits: {idle: 0}");
    let script = "echo x >> tries; echo \"$STEADFAST_ITERATION\"";
    let output = world.loop_run(&["open", "a"], script, &["--max", "2"]);
    assert_eq!(output.code, 5, "{output:?}");
    assert_eq!(world.status("loop", "a")["reason"], "max_iterations");
    assert_eq!(world.entry("loop-a")["status"], "completed");
    assert_eq!(world.json("loop-state-a.json")["reason"], "max_iterations");

    // Without a larger maximum there is nothing left to run.
    world.run(&["loop", "resume", "a"]).fails_with(3, "its maximum is 2");
    world.run(&["loop", "resume", "a", "--max", "2"]).fails_with(3, "its maximum is 2");
    let output = world.run(&["loop", "resume", "a", "--max", "3"]);
    assert_eq!((output.code, world.lines("tries").len()), (5, 3), "{output:?}");
    let status = world.status("loop", "a");
    assert_eq!((&status["iteration"], &status["max_iterations"]), (&json!(3), &json!(3)));
    assert_eq!(world.entry("loop-a")["max_iterations"], json!(3));
    let numbers: Vec<i64> = history(&world.json("loop-state-a.json"));
    assert_eq!(numbers, [1, 2, 3]);
}

fn history(state: &serde_json::Value) -> Vec<i64> {
    state["history"].as_array().unwrap().iter().map(|entry| entry["iteration"].as_i64().unwrap()).collect()
}

/// An agent that uses $0.75 and 750 tokens per iteration.
fn world_that_costs(config: &str) -> World {
    let world = World::new();
    world.loop_type("open", "completion: {promise: NEVER}\nlimits: {idle: 0}");
    // The final event of Claude Code.
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"done","total_cost_usd":0.75,"usage":{"input_tokens":700,"output_tokens":50}}"#;
    let agent = world.env.path("claude");
    world.write(&agent, &format!("#!/bin/sh\ncat > /dev/null\necho '{result}'\n"));
    std::process::Command::new("chmod").args(["+x", agent.to_str().unwrap()]).status().unwrap();
    add_to_config(&world, &format!("[agents.claude]\nprogram = \"{}\"\n{config}", agent.display()));
    world
}

fn add_to_config(world: &World, more: &str) {
    let path = world.env.home().join("config.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, format!("{config}{more}")).unwrap();
}

#[test]
fn a_spend_limit_ends_a_loop_and_a_larger_one_continues_it() {
    let world = world_that_costs("");
    let output = world.run(&["loop", "run", "open", "m", "--usd", "1.5", "--max", "9", "--json"]);
    assert_eq!(output.code, 5, "{output:?}");
    let status = output.json();
    let told = (&status["reason"], &status["iteration"], &status["tokens"], &status["cost_usd"]);
    assert_eq!(told, (&json!("budget_usd"), &json!(2), &json!(1500), &json!(1.5)));
    world.run(&["loop", "resume", "m"]).fails_with(3, "budget_usd");
    let output = world.run(&["loop", "resume", "m", "--usd", "2", "--json"]);
    assert_eq!((output.code, &output.json()["iteration"]), (5, &json!(3)), "{output:?}");
    let output = world.run(&["loop", "run", "open", "t", "--budget", "700", "--json"]);
    assert_eq!((output.code, &output.json()["reason"]), (5, &json!("budget_tokens")), "{output:?}");
}

/// A command may report its cost; a limit on money cannot hold over one that does not.
#[test]
fn a_spend_limit_counts_what_a_command_reports_and_ends_where_it_reports_nothing() {
    let world = World::new();
    world.loop_type("open", "completion: {promise: DONE}\nmax: 9");
    let reports = "echo '{\"summary\":\"x\",\"usage\":{\"input_tokens\":10,\"output_tokens\":5,\"cost_usd\":0.6}}' > $STEADFAST_RESULT; date +%N";
    let output = world.loop_run(&["open", "told"], reports, &["--usd", "1", "--json"]);
    assert_eq!(output.code, 5, "{output:?}");
    let status = output.json();
    let told = (&status["reason"], &status["iteration"], &status["tokens"], &status["cost_usd"]);
    assert_eq!(told, (&json!("budget_usd"), &json!(2), &json!(30), &json!(1.2)));

    let output = world.loop_run(&["open", "silent"], "date +%N", &["--usd", "1", "--json"]);
    assert_eq!(output.code, 5, "{output:?}");
    let status = output.json();
    assert_eq!((&status["iteration"], &status["cost_usd"]), (&json!(1), &serde_json::Value::Null));
    assert_eq!(status["reason"], "budget_usd: an attempt did not report what it used");
    let output = world.run(&["loop", "resume", "silent", "--usd", "2", "--json"]);
    assert_eq!((output.code, &output.json()["iteration"]), (5, &json!(2)), "{output:?}");

    let named = ["loop", "run", "open", "named", "--agent", "codex", "--model", "gpt-99-mystery", "--usd", "1"];
    world.run(&named).fails_with(1, "gpt-99-mystery");
}

#[test]
fn a_daily_cap_covers_all_loops_and_goals() {
    let world = world_that_costs("[limits]\ndaily_usd = 1.0\n");
    let output = world.run(&["loop", "run", "open", "m", "--max", "9", "--json"]);
    let status = output.json();
    assert_eq!(
        (output.code, &status["reason"], &status["iteration"]),
        (5, &json!("cost_cap"), &json!(2)),
        "{output:?}"
    );
    let output = world.run(&["run", "ship", "--json"]);
    assert_eq!((output.code, &output.json()["iteration"]), (5, &json!(0)), "nothing starts any more: {output:?}");
    let goal = world.run(&["goal", "history", "--all", "--format=json"]).succeeds().json()["goals"][0].clone();
    assert_eq!((&goal["status"], &goal["paused_reason"]), (&json!("paused"), &json!("cost_cap")));
    let output = world.run(&["loop", "resume", "m"]);
    assert_eq!(output.code, 5, "still: {output:?}");
    assert!(output.stdout.contains("once the daily or weekly cap"), "{output:?}");
    let path = world.env.home().join("config.toml");
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap().replace("= 1.0", "= 2.0")).unwrap();
    let output = world.run(&["loop", "resume", "m", "--json"]);
    assert_eq!((output.code, &output.json()["iteration"]), (5, &json!(3)), "{output:?}");
}

#[test]
fn a_budget_profile_caps_the_iterations_unless_a_maximum_is_given() {
    let world = World::new();
    world.loop_type("open", "completion: {promise: NEVER}");
    let plan = |more: &[&str]| world.loop_run(&["open"], "true", &[more, &["--dry-run", "--json"]].concat()).json();
    let quick = plan(&["--budget", "quick"]);
    assert_eq!(quick["plan"]["stages"][0]["runs"], json!(50));
    assert_eq!(quick["plan"]["limits"]["tokens"], json!(2_000_000));
    assert_eq!(quick["plan"]["limits"]["wall_ms"], json!(7_200_000));
    let both = plan(&["--budget", "quick", "--max", "7", "--max-hours", "1"]);
    assert_eq!(both["plan"]["stages"][0]["runs"], json!(7));
    assert_eq!(both["plan"]["limits"]["wall_ms"], json!(3_600_000));
    assert_eq!(plan(&[])["plan"]["stages"][0]["runs"], json!(25));
}

#[test]
fn a_usage_limit_is_waited_out_and_the_iteration_retried() {
    let world = World::new();
    world.loop_type("two", "completion: fixed-n\nruns: 2");
    let script = "echo $STEADFAST_ITERATION >> tries
        if [ $(wc -l < tries) -eq 1 ]; then echo \"Claude AI usage limit reached|$(($(date +%s) + 2))\" >&2; exit 1; fi
        echo fine";
    let output = world.loop_run(&["two"], script, &[]);
    assert!(output.succeeds().stderr.contains("failed (usage_limit)"), "{output:?}");
    assert_eq!(world.lines("tries"), ["1", "1", "2"]);
    let history = world.status("loop", "two")["history"].clone();
    let attempts: Vec<&serde_json::Value> = history.as_array().unwrap().iter().map(|it| &it["attempts"]).collect();
    assert_eq!(attempts, [&json!(2), &json!(1)]);
}

#[test]
fn the_same_answer_three_times_is_no_progress() {
    let world = World::new();
    world.loop_type("open", "completion: {promise: NEVER}");
    let output = world.loop_run(&["open"], "echo the same", &["--json"]);
    assert_eq!((output.code, &output.json()["reason"]), (1, &json!("no_progress")), "{output:?}");
    assert_eq!(output.json()["iteration"], json!(3), "the first is compared with what was there before");
}
