//! Runs of older tools, in three generations of their files, imported and resumed.

use serde_json::{Value, json};

use crate::runs::World;
use crate::schemas::check;

/// Prints what it was asked, and keeps it for the test.
const ASKING: &str =
    "cat > asked-$STEADFAST_STAGE-$STEADFAST_ITERATION; echo \"new $STEADFAST_STAGE $STEADFAST_ITERATION\"";

#[expect(clippy::needless_pass_by_value, reason = "tests pass texts and JSON alike")]
fn write(world: &World, path: &str, content: impl ToString) {
    world.write(&world.claude(path), &content.to_string());
}

fn asked(world: &World, which: &str) -> String {
    std::fs::read_to_string(world.in_project(&format!("asked-{which}"))).unwrap()
}

/// All files under `.claude` with their contents.
fn files(world: &World) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut rest = vec![world.claude("")];
    while let Some(path) = rest.pop() {
        if path.is_dir() {
            rest.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            found.push((path.display().to_string(), std::fs::read(path).unwrap()));
        }
    }
    found.sort();
    found
}

/// A stage definition of the newest tool in the project.
fn stage_type(world: &World, name: &str, yaml: &str) {
    let folder = world.in_project("scripts/stages").join(name);
    world.write(&folder.join("stage.yaml"), &format!("name: {name}\ndelay: 0\n{yaml}\n"));
    world.write(&folder.join("prompt.md"), "Do ${ITERATION} of ${SESSION} with [${INPUTS}]\n");
}

fn resume(world: &World, kind: &str, name: &str, more: &[&str]) -> Value {
    let agent = world.agent(ASKING);
    let output = world.run(&[&[kind, "resume", name, "--agent", &agent, "--json"], more].concat());
    output.succeeds().json()
}

#[test]
fn a_loop_of_the_documented_form_is_resumed_where_it_was() {
    let world = World::new();
    world.loop_type("mine", "completion: fixed-n\nruns: 25");
    let history = json!([{"iteration": 1, "timestamp": "2025-01-10T10:30:00Z", "plateau": "false"},
        {"iteration": 2, "timestamp": "2025-01-10T10:40:00Z", "plateau": "true", "reasoning": "fine"}]);
    let state = json!({"session": "old", "loop_type": "mine", "started_at": "2025-01-10T10:00:00Z",
        "status": "running", "iteration": 2, "history": history});
    write(&world, "loop-state-old.json", state);
    let entry = json!({"type": "loop", "loop_type": "mine", "status": "killed", "max_iterations": 4});
    write(&world, "loop-sessions.json", json!({"sessions": {"loop-old": entry}}));
    write(&world, "progress-old.md", "what we learned\n");
    let before = files(&world);
    let dry = world.run(&["loop", "import", "--dry-run"]);
    assert!(dry.succeeds().stdout.contains("loop old (killed, 2 iterations): would be imported"), "{dry:?}");
    let told = world.run(&["loop", "import"]);
    assert!(told.succeeds().stdout.contains("loop old (killed, 2 iterations): imported"), "{told:?}");
    let status = world.status("loop", "old");
    let facts = [&status["status"], &status["iteration"], &status["max_iterations"], &status["cost_usd"]];
    assert_eq!(facts, [&json!("killed"), &json!(2), &json!(4), &Value::Null]);
    assert_eq!(status["history"][1]["reasoning"], json!("fine"));
    let again = world.run(&["pipeline", "import"]);
    check("run-import.schema.json", &world.run(&["loop", "import", "--json"]).succeeds().json());
    assert!(again.succeeds().stdout.contains("is here already"), "{again:?}");
    assert!(before.iter().all(|file| files(&world).contains(file)), "an original was changed");
    let progress = std::fs::read_to_string(world.claude("loop-progress/progress-old.txt")).unwrap();
    assert_eq!(progress, "what we learned\n");

    let ended = resume(&world, "loop", "old", &[]);
    assert_eq!((&ended["status"], &ended["iteration"]), (&json!("completed"), &json!(4)));
    assert!(asked(&world, "mine-3").starts_with("old 3 "), "{}", asked(&world, "mine-3"));
    assert!(!world.in_project("asked-mine-2").exists());
}

#[test]
fn a_pipeline_with_its_definition_beside_it_is_resumed_at_the_running_stage() {
    let world = World::new();
    let yaml = "name: ship-it\ndefaults: {model: sonnet}\nstages:\n  - {name: plan, runs: 2, prompt: 'Plan.'}\n  \
                - {name: build, runs: 2, prompt: 'Build ${INPUTS}.'}\n  - {name: check, prompt: 'Check ${INPUTS.plan} ${INPUTS.build}'}\n";
    let at = "pipeline-runs/ship";
    let stages = json!([{"index": 0, "name": "plan", "status": "complete", "timestamp": "2026-01-10T10:10:00Z"},
        {"index": 1, "name": "build", "status": "running", "timestamp": "2026-01-10T10:11:00Z"}]);
    let state = json!({"pipeline": "ship-it", "session": "ship", "started_at": "2026-01-10T10:00:00+00:00",
        "status": "running", "current_stage": 1, "stages": stages});
    write(&world, &format!("{at}/state.json"), &state);
    write(&world, &format!("{at}/pipeline.yaml"), yaml);
    for (file, text) in [("1-plan/run-0", "plan one"), ("1-plan/run-1", "plan two"), ("2-build/run-0", "half")] {
        write(&world, &format!("{at}/stage-{file}.md"), text);
    }
    write(&world, &format!("{at}/stage-1-plan/progress.md"), "known");
    let before = files(&world);
    // The first import has no definition that is trusted.
    for flags in [&[][..], &["--trust"], &[]] {
        world.run(&[&["pipeline", "import"], flags].concat()).succeeds();
    }
    assert_eq!(files(&world), before, "an original was changed");
    let status = world.status("pipeline", "ship");
    assert_eq!((&status["status"], &status["stage"]), (&json!("unknown_termination"), &json!(2)));
    let counts: Vec<&Value> = status["stages"].as_array().unwrap().iter().map(|s| &s["iterations_run"]).collect();
    assert_eq!(counts, [&json!(2), &json!(0), &json!(0)]);

    let ended = resume(&world, "pipeline", "ship", &[]);
    assert_eq!((&ended["status"], &ended["reason"]), (&json!("completed"), &json!("completed")));
    // The interrupted iteration is done again, with the outputs of the stage before it.
    assert_eq!(asked(&world, "build-1"), "Build ## plan 1\n\nplan one\n\n## plan 2\n\nplan two.");
    let check = asked(&world, "check-1");
    assert!(check.contains("plan two") && check.contains("new build 2"), "{check}");
    assert!(!world.in_project("asked-plan-1").exists());
    // The old files stay under another name, and the new ones begin with what was known.
    let kept = world.claude("pipeline-runs/ship.before-import-1");
    assert_eq!(std::fs::read_to_string(kept.join("state.json")).unwrap(), state.to_string());
    let progress = std::fs::read_to_string(world.claude(&format!("{at}/stage-1-plan/progress.md"))).unwrap();
    assert_eq!(progress, "known");
    assert!(world.run(&["pipeline", "import"]).succeeds().stdout.contains("is here already"));
}

#[test]
fn a_loop_of_the_newest_tool_is_resumed_with_the_stage_of_the_project() {
    let world = World::new();
    let at = "pipeline-runs/auth";
    let entry = |iteration: u32| {
        json!({"iteration": iteration, "timestamp": format!("2026-01-20T10:0{iteration}:00Z"), "stage": "tidy",
            "decision": "continue", "summary": format!("did {iteration}")})
    };
    let state = json!({"session": "auth", "type": "loop", "started_at": "2026-01-20T10:00:00Z", "status": "running",
        "current_stage": 0, "iteration": 3, "iteration_completed": 2, "stages": [],
        "history": [entry(1), entry(2)], "event_offset": 0});
    write(&world, &format!("{at}/state.json"), state);
    let events = "{\"type\":\"session_start\",\"session\":\"auth\",\"data\":{}}\n\
        {\"type\":\"node_start\",\"data\":{\"id\":\"tidy\",\"max_iterations\":5}}\n{\"type\":\"iterat";
    write(&world, &format!("{at}/events.jsonl"), events);
    write(&world, &format!("{at}/stage-00-tidy/iterations/001/output.md"), "out 1");
    let before = files(&world);
    let told = world.run(&["loop", "import"]);
    for part in ["with its history only", "there is no loop type `tidy` here", "scripts/stages/tidy"] {
        assert!(format!("{}{}", told.stdout, told.stderr).contains(part), "{part}: {told:?}");
    }
    world.run(&["loop", "resume", "auth"]).fails_with(3, "with its history only");
    let status = world.status("loop", "auth");
    assert_eq!((&status["type"], &status["max_iterations"]), (&json!("tidy"), &json!(5)));

    stage_type(&world, "tidy", "termination: {type: fixed}");
    let told = world.run(&["loop", "import"]);
    assert!(told.succeeds().stderr.contains("not trusted"), "{told:?}");
    let told = world.run(&["loop", "import", "--trust"]);
    assert!(told.succeeds().stdout.contains("has its definition now"), "{told:?}");
    assert_eq!(files(&world), before, "an original was changed");
    let status = world.status("loop", "auth");
    assert_eq!((&status["iteration"], &status["max_iterations"]), (&json!(2), &json!(5)));
    assert_eq!(status["history"][1]["summary"], json!("did 2"));
    let ended = resume(&world, "loop", "auth", &[]);
    assert_eq!((&ended["status"], &ended["iteration"]), (&json!("completed"), &json!(5)));
    assert!(asked(&world, "tidy-3").starts_with("Do 3 of auth"), "{}", asked(&world, "tidy-3"));
    assert!(!world.in_project("asked-tidy-2").exists());
}

#[test]
fn a_pipeline_of_the_newest_tool_is_resumed_from_its_compiled_plan() {
    let world = World::new();
    stage_type(&world, "think", "termination: {type: fixed}");
    let at = "pipeline-runs/big";
    let node = |id: &str, more: Value| {
        let mut node = json!({"path": "0", "id": id, "kind": "stage", "provider": {"type": "claude", "model": "opus"},
            "delay": 0, "termination": {"type": "fixed", "max": 2}, "context": null});
        node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        node
    };
    let plan = json!({"version": 1, "source": {"path": "scripts/pipelines/big.yaml"},
        "session": {"name": "big", "inputs": ["notes.md", "/etc/passwd"]}, "pipeline": {"name": "big-one"},
        "nodes": [node("first", json!({"ref": "think"})), node("second", json!({"prompt": "Use ${INPUTS}"}))]});
    world.write(&world.in_project("notes.md"), "note");
    let entry = |stage: &str, iteration: u32| json!({"iteration": iteration, "stage": stage, "summary": "s"});
    let state = json!({"session": "big", "type": "pipeline", "started_at": "2026-01-20T10:00:00Z", "status": "failed",
        "current_stage": 1, "iteration": 1, "iteration_completed": 1, "error": {"type": "x", "message": "it broke"},
        "stages": [{"index": 0, "name": "first", "status": "complete"}, {"index": 1, "name": "second", "status": "running"}],
        "history": [entry("first", 1), entry("first", 2), entry("second", 1)]});
    write(&world, &format!("{at}/state.json"), state);
    write(&world, &format!("{at}/plan.json"), plan);
    for (stage, iteration) in [("00-first", 1), ("00-first", 2), ("01-second", 1)] {
        let file = format!("{at}/stage-{stage}/iterations/00{iteration}/output.md");
        write(&world, &file, format!("{stage} {iteration}"));
    }
    let before = files(&world);
    let told = world.run(&["pipeline", "import", "--trust", "--json"]).succeeds().json();
    assert_eq!((&told["runs"][0]["resumable"], &told["runs"][0]["iterations"]), (&json!(true), &json!(3)), "{told}");
    assert_eq!(files(&world), before, "an original was changed");
    let status = world.status("pipeline", "big");
    assert_eq!(
        (&status["status"], &status["reason"], &status["stage"]),
        (&json!("failed"), &json!("it broke"), &json!(2))
    );
    let ended = resume(&world, "pipeline", "big", &[]);
    assert_eq!(ended["status"], json!("completed"), "{ended}");
    assert_eq!(asked(&world, "second-2"), "Use ## first 1\n\n00-first 1\n\n## first 2\n\n00-first 2");
    assert!(!world.in_project("asked-second-1").exists() && !world.in_project("asked-first-1").exists());
}
