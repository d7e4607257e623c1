//! `steadfast pipeline` from end to end.

use rustix::process::{Signal, kill_process};
use serde_json::json;

use crate::attempts::eventually;
use crate::env::finish;
use crate::runs::World;

fn pipeline(world: &World, yaml: &str) {
    world.write(&world.in_project("p.yaml"), yaml);
}

#[test]
fn stages_pass_on_their_outputs_and_the_files_show_them() {
    let world = World::new();
    pipeline(
        &world,
        "name: relay
defaults: {delay: 0}
stages:
  - name: ideas
    runs: 2
    perspectives: [user, maker]
    prompt: 'as ${PERSPECTIVE}'
  - name: plan
    prompt: 'all: ${INPUTS} / one: ${INPUTS.ideas} -> ${OUTPUT}'
  - name: sum
    inputs: [plan]
    prompt: 'sum of ${INPUTS}'
",
    );
    let script = "cat > asked-$STEADFAST_STAGE-$STEADFAST_ITERATION
        case $STEADFAST_STAGE in plan) echo 'the R&D ${INPUTS} plan' > .claude/pipeline-runs/r/stage-2-plan/output.md;; esac
        echo \"said $STEADFAST_STAGE $STEADFAST_ITERATION\"";
    let agent = world.agent(script);
    let output = world.run(&["pipeline", "run", "p.yaml", "r", "--agent", &agent, "--json"]);
    let status = output.succeeds().json();
    assert_eq!((&status["status"], &status["reason"]), (&json!("completed"), &json!("completed")));
    let stages: Vec<_> =
        status["stages"].as_array().unwrap().iter().map(|s| (&s["status"], &s["iterations_run"])).collect();
    assert_eq!(
        stages,
        [(&json!("completed"), &json!(2)), (&json!("completed"), &json!(1)), (&json!("completed"), &json!(1))]
    );
    let asked = |name: &str| std::fs::read_to_string(world.in_project(name)).unwrap();
    assert_eq!(asked("asked-ideas-2"), "as maker");
    let ideas = "## ideas 1\n\nsaid ideas 1\n\n## ideas 2\n\nsaid ideas 2";
    assert!(
        asked("asked-plan-1").starts_with(&format!("all: {ideas} / one: {ideas} -> /")),
        "{}",
        asked("asked-plan-1")
    );
    // The agent's own output file takes precedence over its answer.
    assert_eq!(asked("asked-sum-1"), "sum of the R&D ${INPUTS} plan");
    let folder = world.claude("pipeline-runs/r");
    let read = |path: &str| std::fs::read_to_string(folder.join(path)).unwrap();
    assert_eq!(read("stage-1-ideas/run-1.md").trim(), "said ideas 1");
    assert_eq!(read("stage-1-ideas/output.md").trim(), "said ideas 2");
    assert_eq!(read("pipeline.yaml"), std::fs::read_to_string(world.in_project("p.yaml")).unwrap());
    let state = world.json("pipeline-runs/r/state.json");
    assert_eq!(
        (&state["pipeline"], &state["current_stage"], &state["status"]),
        (&json!("relay"), &json!(3), &json!("completed"))
    );
    assert_eq!(world.entry("pipeline-r")["pipeline_file"], json!("p.yaml"));
    assert_eq!(world.json("loop-completions.json")[0]["type"], json!("pipeline"));
    let page = world.run(&["pipeline", "status", "r"]).stdout;
    assert!(page.contains("  1. ideas: completed (fixed-n), 2/2") && page.contains("#2.1"), "{page}");
    let list = world.run(&["pipeline", "list"]).stdout;
    assert!(page.contains("\nstage 3/3 · ") && list.contains("  stage 3  "), "{page}{list}");
    let logs = world.run(&["pipeline", "logs", "r", "--stage", "1", "--iteration", "2"]);
    assert_eq!(logs.stdout, "said ideas 2\n");
}

#[test]
fn parallel_runs_work_on_branches_that_stay() {
    let world = World::new();
    world.repository();
    pipeline(&world, "defaults: {delay: 0}\nstages:\n  - {name: apart, runs: 3, parallel: true, prompt: 'go'}\n");
    let agent = world.agent("echo $STEADFAST_ITERATION > mine; echo \"wrote $STEADFAST_ITERATION\"");
    world.run(&["pipeline", "run", "p.yaml", "par", "--agent", &agent]).succeeds();
    for iteration in 1..=3 {
        assert_eq!(world.git(&["show", &format!("steadfast/par/1-{iteration}:mine")]), format!("{iteration}\n"));
        let output = world.claude(&format!("pipeline-runs/par/stage-1-apart/run-{iteration}.md"));
        assert_eq!(std::fs::read_to_string(output).unwrap().trim(), format!("wrote {iteration}"));
    }
    assert!(!world.in_project("mine").exists());
}

#[test]
fn a_whole_run_in_a_worktree_leaves_the_project_alone() {
    let world = World::new();
    world.repository();
    pipeline(&world, "defaults: {delay: 0}\nstages:\n  - {name: one, prompt: go}\n  - {name: two, prompt: go}\n");
    let agent = world.agent("echo $STEADFAST_STAGE >> mine");
    world.run(&["pipeline", "run", "p.yaml", "w", "--agent", &agent, "--worktree", "-d"]).succeeds();
    assert_eq!(world.ends("pipeline", "w")["reason"], json!("completed"));
    assert_eq!(world.git(&["show", "steadfast/w/run:mine"]), "one\ntwo\n");
    assert!(!world.in_project("mine").exists());
}

#[test]
fn a_failed_stage_fails_the_pipeline_and_resume_continues_there() {
    let world = World::new();
    pipeline(
        &world,
        "defaults: {delay: 0}\nlimits: {errors: 1}\nstages:\n  - {name: one, prompt: go}\n  - {name: two, prompt: go}\n",
    );
    let agent = world.agent("echo $STEADFAST_STAGE >> tries; [ $STEADFAST_STAGE = one ] || [ -e go ]");
    let output = world.run(&["pipeline", "run", "p.yaml", "f", "--agent", &agent, "--json"]);
    assert_eq!((output.code, &output.json()["status"]), (1, &json!("failed")), "{output:?}");
    std::fs::write(world.in_project("go"), "").unwrap();
    world.run(&["pipeline", "resume", "f"]).succeeds();
    assert_eq!(world.lines("tries"), ["one", "two", "two"]);
    assert_eq!(world.json("pipeline-runs/f/state.json")["status"], json!("completed"));
}

#[test]
fn the_next_engine_writes_outputs_that_a_killed_one_did_not() {
    let world = World::new();
    pipeline(
        &world,
        "defaults: {delay: 0}\nstages:\n  - {name: one, prompt: go}\n  - {name: two, prompt: 'got ${INPUTS}'}\n",
    );
    let agent = world.agent("cat > asked-$STEADFAST_STAGE; echo \"from $STEADFAST_STAGE\"");
    // The engine dies after it saved the first iteration and before it published it.
    let mut command = world.env.command(&["pipeline", "run", "p.yaml", "c", "--agent", &agent]);
    finish(command.env("STEADFAST_CRASH_AT", "engine.saved:2"), b"");
    let output = world.claude("pipeline-runs/c/stage-1-one/output.md");
    assert!(!output.exists());
    world.run(&["pipeline", "resume", "c"]).succeeds();
    assert_eq!(std::fs::read_to_string(output).unwrap().trim(), "from one");
    assert_eq!(std::fs::read_to_string(world.in_project("asked-two")).unwrap(), "got from one");
}

#[test]
fn output_of_a_failed_attempt_is_not_passed_on() {
    let world = World::new();
    pipeline(
        &world,
        "defaults: {delay: 0}\nstages:\n  - {name: one, prompt: '${OUTPUT}'}\n  - {name: two, prompt: 'got ${INPUTS}'}\n",
    );
    let script = "asked=$(cat); echo \"$asked\" > asked-$STEADFAST_STAGE
        if [ $STEADFAST_STAGE = one ] && [ ! -e tried ]; then touch tried; echo PARTIAL > \"$asked\"; exit 1; fi
        echo \"whole $STEADFAST_STAGE\"";
    let agent = world.agent(script);
    world.run(&["pipeline", "run", "p.yaml", "f", "--agent", &agent]).succeeds();
    let output = world.claude("pipeline-runs/f/stage-1-one/output.md");
    assert_eq!(std::fs::read_to_string(output).unwrap(), "whole one\n");
    assert_eq!(world.lines("asked-two"), ["got whole one"]);
}

#[test]
fn a_stage_that_is_resumed_with_more_runs_has_an_output_of_each() {
    let world = World::new();
    pipeline(
        &world,
        "defaults: {delay: 0}\nlimits: {idle: 0}\nstages:\n  - {name: one, prompt: '${OUTPUT}', promise: NEVER}\n",
    );
    let agent = world.agent("echo \"own $STEADFAST_ITERATION\" > \"$(cat)\"; echo said");
    assert_eq!(world.run(&["pipeline", "run", "p.yaml", "g", "--agent", &agent]).code, 5);
    assert_eq!(world.run(&["pipeline", "resume", "g", "--max", "3"]).code, 5);
    let read = |name: &str| std::fs::read_to_string(world.claude("pipeline-runs/g/stage-1-one").join(name)).unwrap();
    let outputs = ["run-1.md", "run-2.md", "run-3.md", "output.md"].map(read);
    assert_eq!(outputs, ["own 1\n", "own 2\n", "own 3\n", "own 3\n"]);
}

#[test]
fn a_large_output_is_cut_and_reports_what_is_missing() {
    let world = World::new();
    pipeline(
        &world,
        "defaults: {delay: 0}\nstages:\n  - {name: fits, prompt: go}\n  - {name: large, prompt: '${INPUTS}'}\n",
    );
    let script = "cat > asked-$STEADFAST_STAGE
        case $STEADFAST_STAGE in fits) bytes=1000000;; *) bytes=3000000;; esac
        head -c $bytes /dev/zero | tr '\\0' 'x'; echo ' end'";
    let agent = world.agent(script);
    world.run(&["pipeline", "run", "p.yaml", "l", "--agent", &agent]).succeeds();
    let folder = world.claude("pipeline-runs/l");
    let read = |path: &str| std::fs::read_to_string(folder.join(path)).unwrap();
    assert_eq!(read("stage-1-fits/output.md"), format!("{} end\n", "x".repeat(1_000_000)));
    let asked = std::fs::read_to_string(world.in_project("asked-large")).unwrap();
    let file = folder.join("stage-1-fits/output.md").canonicalize().unwrap();
    let told = format!("x…\n\n[cut here: the whole output is in {} (1,000,005 bytes)]", file.display());
    assert!(asked.ends_with(&told), "{}", &asked[asked.len() - 200..]);
    let large = read("stage-2-large/output.md");
    let (told, rest) = large.split_once("\n\n").unwrap();
    // The rest of a word whose beginning is cut off may be the rest of a secret; of a word without an end, 4,096 bytes go.
    assert!(told.starts_with("[cut: the first 1,955,525 bytes are left out; the whole output is in /"), "{told}");
    let whole = told.rsplit_once(" in ").unwrap().1.trim_end_matches(']');
    assert!(whole.ends_with("/2-1-1/out.log"), "{told}");
    assert_eq!(std::fs::metadata(whole).unwrap().len(), 3_000_005);
    assert!(rest.len() == (1 << 20) - 4_096 && rest.ends_with("x end\n"));
}

#[test]
fn a_verification_for_a_parallel_last_stage_is_a_usage_error() {
    let world = World::new();
    pipeline(&world, "stages:\n  - {name: apart, runs: 2, parallel: true, prompt: go}\n");
    let output = world.run(&["pipeline", "run", "p.yaml", "v", "--agent", "true", "--verify", "false"]);
    let told = output.fails_with(1, "`apart` is parallel").stderr.clone();
    assert!(told.contains("hint: put verify on a stage of its own after it"), "{told}");
    assert!(!world.claude("").exists() && !world.env.store().exists());
}

#[test]
fn a_pipeline_without_a_name_gets_one_with_a_timestamp() {
    let world = World::new();
    pipeline(&world, "name: ship it\nstages:\n  - {name: one, prompt: go}\n");
    let agent = world.agent("echo $$ > agent; sleep 60");
    let started = world.run(&["pipeline", "run", "p.yaml", "--agent", &agent, "-d", "--json"]);
    let name = started.succeeds().json()["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("ship-it-20"), "{name}");
    eventually(|| world.lines("agent").pop());
    assert_eq!(world.run(&["pipeline", "list", "--json"]).json()["runs"][0]["name"], json!(name));
    kill_process(world.engine("pipeline", &name), Signal::KILL).unwrap();
    let killed = world.run(&["pipeline", "kill", &name, "--json"]).succeeds().json();
    assert_eq!(killed["status"], json!("killed"));
    assert_eq!(world.json(&format!("pipeline-runs/{name}/state.json"))["status"], json!("killed"));
}
