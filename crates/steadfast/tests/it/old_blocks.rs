//! Runs of older tools with parallel blocks: what their lanes finished is imported, and `resume` does only the rest.

use serde_json::{Value, json};

use crate::runs::World;

const AT: &str = "pipeline-runs/duel";
/// Copies its context file to the project, and its prompt with it, whichever directory it works in.
const PROMPT: &str = "ctx=${CTX}\ncontext=${CONTEXT}\npath=${OUTPUT_PATH}\nblock=[${INPUTS}]\n";

#[expect(clippy::needless_pass_by_value, reason = "tests pass texts and JSON alike")]
fn write(world: &World, path: &str, content: impl ToString) {
    world.write(&world.claude(&format!("{AT}/{path}")), &content.to_string());
}

/// A node or a stage of a block, as the older tool compiles it.
#[expect(clippy::needless_pass_by_value, reason = "reads like the JSON that it makes")]
fn stage(path: &str, id: &str, more: Value) -> Value {
    let mut stage = json!({"path": path, "id": id, "kind": "stage", "ref": "think", "delay": 0,
        "prompt_path": "scripts/stages/think/prompt.md", "termination": {"type": "fixed", "max": 1}, "inputs": {}});
    stage.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    stage
}

fn compiled() -> Value {
    let block = json!({"path": "0", "id": "debate", "kind": "parallel", "providers": ["claude", {"name": "codex"}],
        "failure_mode": "fail_fast", "inputs": {}, "stages": [
            stage("0.0", "first", json!({"context": "be brief"})),
            stage("0.1", "second", json!({"inputs": {"from": "first"}, "termination": {"type": "fixed", "max": 2}}))]});
    let last = json!({"provider": {"type": "codex", "model": "gpt-5"}, "output_path": "docs/${SESSION}.md",
        "context": "sum it up", "inputs": {"from_parallel": {"stage": "second", "block": "debate"}}});
    json!({"version": 1, "source": {"path": "scripts/pipelines/duel.yaml"}, "session": {"name": "duel"},
        "pipeline": {"name": "duel", "commands": {"test": "make test"}, "inputs": ["notes.md"]},
        "nodes": [block, stage("1", "sum", last)]})
}

/// The same pipeline as its author wrote it.
const YAML: &str = "name: duel
commands: {test: make test}
inputs: [notes.md]
nodes:
  - id: debate
    parallel:
      providers: [claude, codex]
      stages:
        - {id: first, stage: think, context: be brief}
        - {id: second, stage: think, runs: 2, inputs: {from: first}}
  - {id: sum, stage: think, provider: codex, context: sum it up, output_path: 'docs/${SESSION}.md',
     inputs: {from_parallel: {stage: second, block: debate}}}
";

/// A run of that pipeline at a stage, counted from 0. `lanes` are the states of the two providers, with the number of
/// iterations that each of their stages left.
fn old_run(world: &World, definition: &str, current: u32, block: &str, lanes: [(Value, [u32; 2]); 2]) {
    world.repository();
    world.write(&world.in_project("scripts/stages/think/stage.yaml"), "name: think\ndelay: 0\n");
    world.write(&world.in_project("scripts/stages/think/prompt.md"), PROMPT);
    world.write(&world.in_project("notes.md"), "a note");
    let mut stages = vec![json!({"index": 0, "name": "debate", "status": block})];
    if current == 1 {
        stages.push(json!({"index": 1, "name": "sum", "status": "running"}));
    }
    let state = json!({"session": "duel", "type": "pipeline", "started_at": "2026-01-20T10:00:00Z",
        "status": "running", "current_stage": current, "iteration": 1, "iteration_completed": 0, "stages": stages,
        "history": [], "event_offset": 0});
    write(world, "state.json", state);
    match definition {
        "plan.json" => write(world, definition, compiled()),
        _ => write(world, definition, YAML),
    }
    for (provider, (state, done)) in ["claude", "codex"].into_iter().zip(lanes) {
        let at = format!("parallel-00-debate/providers/{provider}");
        write(world, &format!("{at}/state.json"), state);
        write(world, &format!("{at}/progress.md"), format!("learned by {provider}"));
        for (index, (name, done)) in ["first", "second"].into_iter().zip(done).enumerate() {
            for iteration in 1..=done {
                let folder = format!("{at}/stage-0{index}-{name}/iterations/00{iteration}");
                write(world, &format!("{folder}/output.md"), format!("{provider} {name} {iteration}"));
                write(world, &format!("{folder}/result.json"), json!({"summary": format!("did {name}")}));
            }
        }
    }
}

fn ended(stages: &[(&str, u32)]) -> Value {
    let stages: Vec<Value> = stages
        .iter()
        .map(|(name, done)| json!({"name": name, "iterations": done, "termination_reason": "fixed"}))
        .collect();
    json!({"status": "running", "stages": stages, "iteration": 0, "iteration_completed": 0})
}

fn complete() -> Value {
    let mut state = ended(&[("first", 1), ("second", 2)]);
    state["status"] = json!("complete");
    state
}

/// Imports the run and resumes it with an agent that notes each of its calls.
fn resume(world: &World) -> (Value, Value) {
    let told = world.run(&["pipeline", "import", "--trust", "--json"]);
    let told = told.succeeds().json();
    assert_eq!(told["runs"][0]["resumable"], json!(true), "{told}");
    let imported = world.status("pipeline", "duel");
    let project = world.in_project("");
    let project = project.display();
    let agent = world.agent(&format!(
        "cat > prompt.txt; ctx=$(sed -n 's/^ctx=//p' prompt.txt); me=$STEADFAST_STAGE-$STEADFAST_ITERATION
        cp \"$ctx\" \"{project}/ctx-$me.json\"; cp prompt.txt \"{project}/prompt-$me\"; rm prompt.txt
        echo \"$me\" >> \"{project}/calls\"; echo \"new $me\""
    ));
    let ended = world.run(&["pipeline", "resume", "duel", "--agent", &agent, "--json"]).succeeds().json();
    (imported, ended)
}

fn context(world: &World, which: &str) -> Value {
    serde_json::from_slice(&std::fs::read(world.in_project(&format!("ctx-{which}.json"))).unwrap()).unwrap()
}

fn contents(paths: &Value) -> Vec<String> {
    let paths = paths.as_array().unwrap_or_else(|| panic!("{paths}"));
    paths.iter().map(|path| std::fs::read_to_string(path.as_str().unwrap()).unwrap().trim().to_owned()).collect()
}

fn of_stages(status: &Value, field: &str) -> Vec<Value> {
    status["stages"].as_array().unwrap().iter().map(|stage| stage[field].clone()).collect()
}

#[test]
fn a_finished_block_is_not_repeated_and_the_next_stage_gets_its_outputs() {
    for definition in ["plan.json", "pipeline.yaml"] {
        let world = World::new();
        old_run(&world, definition, 1, "complete", [(complete(), [1, 2]), (complete(), [1, 2])]);
        let (imported, ended) = resume(&world);
        let names = ["debate-claude-first", "debate-claude-second", "debate-codex-first", "debate-codex-second", "sum"];
        assert_eq!(of_stages(&imported, "name"), names, "{definition}");
        assert_eq!(of_stages(&imported, "iterations_run"), [1, 2, 1, 2, 0], "{definition}");
        assert_eq!(imported["stage"], json!(5));
        assert_eq!((&ended["status"], &ended["reason"]), (&json!("completed"), &json!("completed")), "{ended}");
        assert_eq!(world.lines("calls"), ["sum-1"], "{definition}");
        let sum = context(&world, "sum-1");
        assert_eq!(contents(&sum["inputs"]["from_parallel"]["claude"]), ["claude second 2"]);
        assert_eq!(contents(&sum["inputs"]["from_parallel"]["codex"]), ["codex second 2"]);
        assert_eq!(contents(&sum["inputs"]["from_initial"]), ["a note"], "{definition}");
        assert_eq!(sum["commands"], json!({"test": "make test"}));
        let prompt = world.lines("prompt-sum-1").join("\n");
        assert!(prompt.contains("context=sum it up\npath=docs/duel.md"), "{prompt}");
        // Its history has what the agents of the lanes reported.
        assert_eq!(imported["history"][0]["summary"], json!("did first"), "{imported}");
    }
}

#[test]
fn of_a_half_finished_block_only_the_rest_is_done() {
    for definition in ["plan.json", "pipeline.yaml"] {
        let world = World::new();
        let mut half = ended(&[("first", 1)]);
        half["current_stage_name"] = json!("second");
        half["iteration"] = json!(2);
        half["iteration_completed"] = json!(1);
        // The second iteration was cut off, and the state of the run says nothing of the lanes.
        old_run(&world, definition, 0, "running", [(complete(), [1, 2]), (half, [1, 1])]);
        let (imported, ended) = resume(&world);
        let statuses = of_stages(&imported, "status");
        assert_eq!(statuses[..3], ["completed", "completed", "completed"], "{definition}");
        assert_eq!(of_stages(&imported, "iterations_run")[..4], [1, 2, 1, 1], "{definition}");
        assert_eq!(ended["status"], json!("completed"), "{ended}");
        assert_eq!(world.lines("calls"), ["debate-codex-second-2", "sum-1"], "{definition}");
        let second = context(&world, "debate-codex-second-2");
        assert_eq!(contents(&second["inputs"]["from_stage"]["first"]), ["codex first 1"]);
        assert_eq!(contents(&second["inputs"]["from_previous_iterations"]), ["codex second 1"]);
        let sum = context(&world, "sum-1");
        assert_eq!(contents(&sum["inputs"]["from_parallel"]["claude"]), ["claude second 2"]);
        assert_eq!(contents(&sum["inputs"]["from_parallel"]["codex"]), ["new debate-codex-second-2"]);
        let progress = world.claude(&format!("{AT}/stage-4-debate-codex-second/progress.md"));
        assert_eq!(std::fs::read_to_string(progress).unwrap(), "learned by codex");
    }
}

#[test]
fn a_failed_lane_is_continued_and_a_stage_after_the_block_waits_for_it() {
    let world = World::new();
    let mut failed = ended(&[]);
    failed["status"] = json!("failed");
    failed["current_stage_name"] = json!("first");
    old_run(&world, "plan.json", 0, "failed", [(complete(), [1, 2]), (failed, [0, 0])]);
    // A state that was edited by hand claims that the next stage runs.
    let path = world.claude(&format!("{AT}/state.json"));
    let mut state: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let running = json!({"index": 1, "name": "sum", "status": "running"});
    state["stages"].as_array_mut().unwrap().push(running);
    state["current_stage"] = json!(0);
    world.write(&path, &state.to_string());
    let (imported, ended) = resume(&world);
    assert_eq!(of_stages(&imported, "status")[4], json!("pending"), "{imported}");
    assert_eq!(ended["status"], json!("completed"), "{ended}");
    let calls = ["debate-codex-first-1", "debate-codex-second-1", "debate-codex-second-2", "sum-1"];
    assert_eq!(world.lines("calls"), calls);
}

#[test]
fn a_history_that_was_imported_alone_gets_its_numbers_from_the_definition() {
    let world = World::new();
    old_run(&world, "plan.json", 1, "complete", [(complete(), [1, 2]), (complete(), [1, 2])]);
    let path = world.claude(&format!("{AT}/plan.json"));
    let plan = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let told = world.run(&["pipeline", "import", "--trust"]);
    assert!(told.succeeds().stdout.contains("with its history only"), "{told:?}");
    world.write(&path, &plan);
    let (imported, ended) = resume(&world);
    assert_eq!(of_stages(&imported, "iterations_run"), [1, 2, 1, 2, 0]);
    assert_eq!(imported["history"].as_array().unwrap().len(), 6);
    assert_eq!(ended["status"], json!("completed"), "{ended}");
    assert_eq!(world.lines("calls"), ["sum-1"]);
}
