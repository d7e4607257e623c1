//! Output of the commands: dry runs, types, scaffolds, faults, help, JSON.

use serde_json::{Value, json};

use crate::attempts::eventually;
use crate::runs::{COUNTING, World};
use crate::schemas::check;

#[test]
fn a_dry_run_shows_the_first_prompt_and_creates_nothing() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 4");
    let output = world.loop_run(&["once", "dry"], COUNTING, &["--dry-run"]);
    let text = &output.succeeds().stdout;
    for part in ["loop dry (once)", "4 iterations are done", ".claude/loop-progress/progress-dry.txt", "| dry 1 []"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    world.write(&world.in_project("f.txt"), "the input\n");
    let output = world.loop_run(&["once", "dry"], COUNTING, &["--dry-run", "--json", "--input", "f.txt"]);
    let prompt =
        json!({"stage": 1, "iteration": 1, "perspective": null, "prompt": "dry 1 [the input]\n", "unknown": []});
    assert_eq!(output.succeeds().json()["prompts"], json!([prompt]));
    assert!(!world.claude("").exists() && !world.env.store().exists());
}

#[test]
fn without_a_terminal_progress_is_one_line_per_event() {
    let world = World::new();
    world.loop_type("two", "completion: fixed-n\nruns: 2");
    let script = "echo '{\"summary\":\"did '$STEADFAST_ITERATION'\"}' > $STEADFAST_RESULT";
    let output = world.loop_run(&["two"], script, &[]);
    let expected = "iteration 1/2 started\niteration 1/2 done (tokens unknown, cost unknown): did 1\niteration 2/2 started\n\
                    iteration 2/2 done (tokens unknown, cost unknown): did 2\nloop two completed: fixed-n\n";
    let (note, events) = output.succeeds().stderr.split_once("that you may do\n").unwrap();
    assert!(note.starts_with("note: what agents may do in this project (printed once):\n"), "{note}");
    assert_eq!(events, expected);
    assert!(output.stdout.starts_with("loop two (two): completed (fixed-n)\niteration 2/2 · "), "{output:?}");
}

#[test]
fn new_types_run_unedited_and_are_never_overwritten() {
    let world = World::new();
    world.run(&["loop", "new", "mine"]).succeeds();
    world.run(&["loop", "new", "mine"]).fails_with(1, "already exists");
    world.run(&["loop", "validate", "mine"]).succeeds();
    world.run(&["loop", "new", "ours", "--user"]).succeeds();
    world.run(&["pipeline", "new", "ours", "--user"]).succeeds();
    let mode = |path: &str| {
        let metadata = std::fs::metadata(world.env.home().join(path)).unwrap();
        std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777
    };
    for path in ["loops", "loops/ours", "pipelines"] {
        assert_eq!(mode(path), 0o700, "{path}");
    }
    for path in ["loops/ours/loop.yaml", "loops/ours/prompt.md", "pipelines/ours.yaml"] {
        assert_eq!(mode(path), 0o600, "{path}");
    }
    world.run(&["pipeline", "new", "ship"]).succeeds();
    world.run(&["pipeline", "validate", "ship"]).succeeds();
    let types = world.run(&["loop", "types", "--json"]).succeeds().json();
    let names: Vec<&Value> = types["types"].as_array().unwrap().iter().map(|listed| &listed["name"]).collect();
    assert_eq!(names, ["mine", "ours", "work", "improve-plan", "refine-beads", "idea-wizard"]);
    world.loop_run(&["mine"], "echo 'PLATEAU: true'", &[]).succeeds();
    world.run(&["loop", "run", "wrok"]).fails_with(1, "no loop type `wrok`").fails_with(1, "");
}

#[test]
fn every_fault_of_a_definition_is_reported_with_its_line() {
    let world = World::new();
    let yaml =
        "name: x\nstages:\n  - name: a\n    lop: work\n    prompt: hi\n    runs: many\n  - name: b\n    loop: wrok\n";
    world.write(&world.in_project("bad.yaml"), yaml);
    let output = world.run(&["pipeline", "validate", "bad.yaml"]);
    assert_eq!(output.code, 1, "{output:?}");
    for part in ["bad.yaml:4: error", "bad.yaml:6: error", "bad.yaml:8: error", "did you mean `work`?", "fix: "] {
        assert!(output.stdout.contains(part), "{part}: {output:?}");
    }
    let refused = world.run(&["pipeline", "run", "bad.yaml", "--json"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    let error = refused.json();
    check("error.schema.json", &error);
    let lines: Vec<&Value> = error["error"]["faults"].as_array().unwrap().iter().map(|fault| &fault["line"]).collect();
    assert_eq!(lines, [&json!(4), &json!(6), &json!(8)]);
    let hint = error["error"]["hint"].as_str().unwrap();
    assert!(hint.ends_with("`steadfast pipeline validate bad.yaml`"), "{hint}");
    let json = world.run(&["pipeline", "validate", "bad.yaml", "--json"]).json();
    assert_eq!((&json["valid"], &json["faults"][0]["line"]), (&json!(false), &json!(4)));
    let run = world.run(&["pipeline", "run", "bad.yaml"]);
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.contains("bad.yaml:6: error") && run.stderr.contains("cannot run bad.yaml: 3 errors"),
        "{run:?}"
    );
}

#[test]
fn flags_that_make_no_sense_are_usage_errors() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    for flags in [
        &["--max", "0"][..],
        &["--max", "x"],
        &["--budget", "much"],
        &["--usd", "-1"],
        &["--timeout", "soon"],
        &["--agent", "cluade"],
        &["--verify", ""],
        &["--input", "nowhere.txt"],
        &["--tmux", "--detach"],
    ] {
        let output = world.run(&[&["loop", "run", "once"], flags].concat());
        assert_eq!(output.code, 1, "{flags:?}: {output:?}");
        assert!(output.stderr.contains("error: ") && output.stderr.contains("hint: "), "{output:?}");
    }
    assert!(!world.env.store().exists());
}

#[test]
fn help_has_examples() {
    let world = World::new();
    for command in [
        &["loop"][..],
        &["loop", "run"],
        &["loop", "logs"],
        &["loop", "resume"],
        &["pipeline"],
        &["pipeline", "run"],
        &["run"],
    ] {
        let output = world.run(&[command, &["--help"]].concat());
        assert!(output.succeeds().stdout.contains("Example"), "{command:?}");
    }
}

#[test]
fn list_and_status_match_their_schemas() {
    let world = World::new();
    let listed = |kind: &str| check("run-list.schema.json", &world.run(&[kind, "list", "--json"]).succeeds().json());
    listed("loop");
    world.loop_type("two", "completion: {promise: DONE}\nlimits: {errors: 1}");
    let script = "echo '{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}' > $STEADFAST_RESULT
        [ $STEADFAST_ITERATION = 1 ] && echo fine || { sleep 0.2; exit 1; }";
    let output = world.loop_run(&["two"], script, &["--json", "--budget", "3M"]);
    assert_eq!(output.code, 1);
    check("run-status.schema.json", &output.json());
    check("run-status.schema.json", &world.loop_run(&["two", "bg"], "sleep 60", &["--json", "-d"]).json());
    check("run-status.schema.json", &world.status("loop", "bg"));
    world.jq(".sessions[\"loop-mine\"] = {type: \"loop\", status: \"running\"}");
    listed("loop");
    check("run-status.schema.json", &world.run(&["loop", "kill", "bg", "--json"]).json());
    listed("pipeline");
    check("error.schema.json", &world.run(&["loop", "status", "nobody", "--json"]).json());
}

#[test]
fn a_detached_or_long_run_notifies_the_desktop_at_its_end() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    let shown = world.env.path("shown");
    let program = world.env.path("bin/notify-send");
    world.write(&program, &format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >> '{}'\n", shown.display()));
    std::process::Command::new("chmod").arg("+x").arg(&program).status().unwrap();
    let path = format!("{}:{}", world.env.path("bin").display(), std::env::var("PATH").unwrap());
    let config = world.env.home().join("config.toml");
    let quiet = std::fs::read_to_string(&config).unwrap();
    let run = |name: &str, more: &[&str]| {
        let mut command = world.env.command(&[&["loop", "run", "once", name, "--agent", "true"], more].concat());
        crate::env::finish(command.env("PATH", &path), b"").succeeds();
        world.ends("loop", name);
    };
    run("quiet", &["-d"]);
    std::fs::write(&config, quiet.replace("[notify]\ndesktop = false\n", "")).unwrap();
    run("here", &[]);
    run("away", &["-d"]);
    let told = eventually(|| std::fs::read_to_string(&shown).ok().filter(|told| told.lines().count() == 5));
    assert_eq!(told, "--app-name=Steadfast\n--\nloop away completed\nfixed-n · project\nsteadfast loop status away\n");
}

#[test]
fn flags_about_the_agent_are_in_the_plan() {
    let world = World::new();
    let flags = ["--agent", "codex", "--model", "gpt-5", "--timeout", "90s", "--user-hooks", "--items", "a,b"];
    let output = world.run(&[&["loop", "run", "idea-wizard", "--dry-run", "--json"], &flags[..]].concat());
    let stage = output.succeeds().json()["plan"]["stages"][0].clone();
    let expected = json!({"kind": "codex", "model": "gpt-5", "effort": null, "user_hooks": true, "sandbox": false});
    assert_eq!(stage["agent"], expected);
    assert_eq!((&stage["timeout_ms"], &stage["items"]), (&json!(90_000), &json!(["a", "b"])));
}
