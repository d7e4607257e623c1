//! The pipelines in `examples/`, run with scripted agents.

use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::attempts::eventually;
use crate::runs::World;

/// A project with an example and the files that it needs.
fn world(example: &str, files: &[(&str, &str)]) -> World {
    let world = World::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example);
    let yaml = std::fs::read_to_string(folder.join("pipeline.yaml")).unwrap();
    world.write(&world.in_project("pipeline.yaml"), &yaml);
    for (name, text) in files {
        world.write(&world.in_project(name), text);
    }
    world.make_executable(&world.in_project("check.sh"));
    world.commit_all();
    world.run(&["pipeline", "validate", "./pipeline.yaml"]).succeeds();
    world
}

/// The agent's script, with a report of what it used.
fn agent(world: &World, script: &str) -> String {
    let report = r#"usage='"usage": {"input_tokens": 9, "output_tokens": 1, "cost_usd": 0.01}'
[ -s "$STEADFAST_RESULT" ] || echo "{\"summary\": \"did $STEADFAST_STAGE\", $usage}" > "$STEADFAST_RESULT""#;
    world.agent(&format!("cat > /dev/null\n{script}\n{report}"))
}

fn stages(status: &Value) -> Vec<String> {
    let stages = status["stages"].as_array().unwrap().iter();
    stages.map(|stage| format!("{} {}", stage["name"].as_str().unwrap(), stage["status"].as_str().unwrap())).collect()
}

#[test]
fn the_checklist_is_worked_through_until_the_checks_pass() {
    let plan = "- [ ] first\n- [ ] second\n- [ ] third\n";
    let world = world("checklist", &[("PLAN.md", plan), ("check.sh", "test -f done-3\n")]);
    let script = "case $STEADFAST_STAGE in
        work) sed -i '0,/- \\[ \\]/s//- [x]/' PLAN.md; touch done-$STEADFAST_ITERATION ;;
        summary) echo 'three things' > CHANGES.md ;; esac";
    let arguments = ["pipeline", "run", "./pipeline.yaml", "c", "--trust", "--json", "--agent", &agent(&world, script)];
    let status = world.run(&arguments).succeeds().json();
    assert_eq!(stages(&status), ["work completed", "summary completed"]);
    assert_eq!(status["stages"][0]["iterations_run"], json!(3));
    let kept = world.claude("pipeline-runs/c/artifacts/changes");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "three things\n");
}

const THREE_WAYS: &str = "case $STEADFAST_STAGE in
    build) echo \"way $STEADFAST_ITERATION\" > feature; git add feature; git -c user.name=A -c user.email=a@example.org commit -qm feature ;;
    judge) echo '{\"summary\": \"the third\", \"branches\": [3],
        \"usage\": {\"input_tokens\": 1, \"output_tokens\": 1, \"cost_usd\": 0.01}}' > \"$STEADFAST_RESULT\" ;; esac";

#[test]
fn the_best_of_three_ways_is_merged_and_checked() {
    let world = world("three-ways", &[("TASK.md", "Build it.\n"), ("check.sh", "grep -q 'way 3' feature\n")]);
    let agent = agent(&world, THREE_WAYS);
    let status = world.run(&["pipeline", "run", "./pipeline.yaml", "t", "--trust", "--json", "--agent", &agent]);
    let status = status.succeeds().json();
    let expected = ["plan completed", "build completed", "judge completed", "merge completed", "check completed"];
    assert_eq!(stages(&status), expected);
    assert_eq!(std::fs::read_to_string(world.in_project("feature")).unwrap(), "way 3\n");
    assert_eq!(world.git(&["status", "--porcelain"]), "", "state files do not disturb git");
}

#[test]
fn the_nightly_pipeline_survives_a_kill_and_waits_for_a_yes() {
    let files = [("check.sh", "test -f updated\n"), ("publish.sh", "echo pushed > pushed\n")];
    let world = world("nightly", &files);
    let script = "case $STEADFAST_STAGE in
        deps) touch updated; echo x >> deps-runs; until [ -f go ]; do sleep 0.05; done ;;
        docs) echo x >> docs-runs ;;
        report) echo fine > nightly.md ;;
        publish) [ \"$GITHUB_TOKEN\" = secret-of-the-test ] && sh ./publish.sh ;; esac";
    let agent = agent(&world, script);
    let arguments = ["pipeline", "run", "./pipeline.yaml", "n", "--trust", "--agent", &agent];
    let mut command = world.env.command(&arguments);
    command.env("GITHUB_TOKEN", "secret-of-the-test").stdout(Stdio::null()).stderr(Stdio::null());
    let mut engine = command.spawn().unwrap();
    eventually(|| world.in_project("deps-runs").exists().then_some(()));
    let pid = rustix::process::Pid::from_child(&engine);
    kill_process(pid, Signal::KILL).unwrap();
    engine.wait().unwrap();
    world.write(&world.in_project("go"), "");
    let mut command = world.env.command(&["pipeline", "resume", "n"]);
    command.env("GITHUB_TOKEN", "secret-of-the-test").stdout(Stdio::null()).stderr(Stdio::null());
    let mut engine = command.spawn().unwrap();
    let waits = || world.status("pipeline", "n")["stages"][3]["status"] == "awaiting_approval";
    eventually(|| waits().then_some(()));
    assert!(!world.in_project("pushed").exists());
    world.run(&["pipeline", "approve", "n"]).succeeds();
    assert!(engine.wait().unwrap().success());
    let status = world.status("pipeline", "n");
    assert_eq!(stages(&status), ["deps completed", "docs completed", "report completed", "publish completed"]);
    assert_eq!(std::fs::read_to_string(world.in_project("pushed")).unwrap(), "pushed\n");
    assert_eq!((world.lines("deps-runs").len(), world.lines("docs-runs").len()), (1, 1), "nothing ran twice");
    let stored = Command::new("grep").args(["-rl", "secret-of-the-test"]).arg(world.env.home()).output();
    assert_eq!(String::from_utf8(stored.unwrap().stdout).unwrap(), "", "the value of a variable is never stored");
}
