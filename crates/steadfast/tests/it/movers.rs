//! Stages and pipelines in the words of other tools: the context file, the status file, inputs and parallel blocks.

use std::path::Path;

use serde_json::{Value, json};

use crate::runs::World;

/// The value that the prompt gives after `name=`.
const READ: &str = r#"prompt=$(cat)
value() { printf '%s\n' "$prompt" | sed -n "s/^$1=//p"; }
"#;

/// A stage as other tools write it, among the user's definitions.
fn stage_type(world: &World, name: &str, yaml: &str) {
    let folder = world.env.home().join("loops").join(name);
    world.write(&folder.join("stage.yaml"), &format!("name: {name}\ndelay: 0\n{yaml}\n"));
    let prompt = "ctx=${CTX}\nstatus=${STATUS}\nresult=${RESULT}\npath=${OUTPUT_PATH}\ncontext=${CONTEXT}\n";
    world
        .write(&folder.join("prompt.md"), &format!("Read context from: ${{CTX}}\n{prompt}session=${{SESSION_NAME}}\n"));
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The contents of the files in a list of paths.
fn contents(paths: &Value) -> Vec<String> {
    let paths = paths.as_array().unwrap_or_else(|| panic!("{paths}"));
    paths.iter().map(|path| std::fs::read_to_string(path.as_str().unwrap()).unwrap().trim().to_owned()).collect()
}

/// Copies the context file to the project, whichever directory it works in.
fn copying(world: &World) -> String {
    let project = world.in_project("");
    let project = project.display();
    format!("{READ}cp \"$(value ctx)\" \"{project}/ctx-$STEADFAST_STAGE-$STEADFAST_ITERATION.json\"\n")
}

#[test]
fn a_stage_finds_inputs_and_outputs_of_others_in_its_context_file() {
    let world = World::new();
    stage_type(&world, "draft", "termination: {type: fixed, iterations: 3}\noutput_path: docs/ideas-${SESSION}.md");
    stage_type(&world, "refine", "termination: {type: fixed}\nguardrails: {max_runtime_seconds: 600}");
    world.write(&world.in_project("plans/a.md"), "plan a");
    world.write(&world.in_project("plans/b.md"), "plan b");
    world.write(&world.in_project("more/c.md"), "plan c");
    let yaml = "name: mover
commands: {test: make test}
inputs: [plans/*.md]
nodes:
  - {id: plan, stage: draft, runs: 2}
  - id: tasks
    stage: refine
    context: only small ones
    inputs: {from: plan, select: latest, from_initial: true}
  - {id: all, stage: refine, inputs: {from: plan, select: all}}
";
    world.write(&world.in_project("p.yaml"), yaml);
    let script = format!(
        "{}case $STEADFAST_STAGE in plan) mkdir -p docs; echo \"idea $STEADFAST_ITERATION\" >> \"$(value path)\";; esac
        echo \"said $STEADFAST_STAGE $STEADFAST_ITERATION: $(value context)\"",
        copying(&world)
    );
    let agent = world.agent(&script);
    let run = ["pipeline", "run", "p.yaml", "m", "--agent", &agent, "--input", "more", "--json"];
    let status = world.run(&run).succeeds().json();
    assert_eq!(status["status"], "completed");

    let first = read_json(&world.in_project("ctx-plan-1.json"));
    assert_eq!((&first["session"], &first["pipeline"], &first["iteration"]), (&json!("m"), &json!("mover"), &json!(1)));
    assert_eq!(first["stage"], json!({"id": "plan", "index": 0, "template": "draft"}));
    assert_eq!(contents(&first["inputs"]["from_initial"]), ["plan a", "plan b", "plan c"]);
    let nothing = json!({"from_stage": {}, "from_previous_iterations": [], "from_parallel": []});
    for name in ["from_stage", "from_previous_iterations", "from_parallel"] {
        assert_eq!(first["inputs"][name], nothing[name], "{name}");
    }
    assert_eq!(first["limits"]["max_iterations"], 2);
    let second = read_json(&world.in_project("ctx-plan-2.json"));
    let earlier = contents(&second["inputs"]["from_previous_iterations"]);
    // The second iteration has added to that file since.
    assert_eq!(earlier, ["said plan 1:", "idea 1\nidea 2"], "the answer, and the file that the stage names");

    let tasks = read_json(&world.in_project("ctx-tasks-1.json"));
    assert_eq!(contents(&tasks["inputs"]["from_stage"]["plan"]), ["said plan 2:", "idea 1\nidea 2"]);
    assert_eq!(contents(&tasks["inputs"]["from_initial"]).len(), 3);
    assert_eq!(tasks["commands"], json!({"test": "make test"}));
    let left = tasks["limits"]["remaining_seconds"].as_i64().unwrap();
    assert!((1..=600).contains(&left), "{left}");
    for name in ["session_dir", "stage_dir", "progress"] {
        assert!(Path::new(tasks["paths"][name].as_str().unwrap()).exists(), "{name}");
    }
    let output = std::fs::read_to_string(world.claude("pipeline-runs/m/stage-2-tasks/output.md")).unwrap();
    assert_eq!(output.trim(), "said tasks 1: only small ones");
    let all = read_json(&world.in_project("ctx-all-1.json"));
    assert_eq!(contents(&all["inputs"]["from_stage"]["plan"]), ["said plan 1:", "said plan 2:", "idea 1\nidea 2"]);
}

#[test]
fn a_loop_has_context_status_and_output_of_its_own() {
    let world = World::new();
    stage_type(&world, "solo", "termination: {type: fixed, iterations: 2}");
    let script = format!("{}echo \"mine $(value context)\" > \"$(value path)\"; echo said", copying(&world));
    world.loop_run(&["solo", "one"], &script, &["--context", "be quick"]).succeeds();
    let second = read_json(&world.in_project("ctx-solo-2.json"));
    assert_eq!(contents(&second["inputs"]["from_previous_iterations"]), ["mine be quick"]);
    assert_eq!(second["inputs"]["from_initial"], json!([]));
    assert!(Path::new(second["paths"]["progress"].as_str().unwrap()).exists());
}

#[test]
fn a_stop_in_the_status_file_is_a_vote_where_iterations_vote() {
    let world = World::new();
    stage_type(&world, "judged", "termination: {type: judgment, min_iterations: 2, consensus: 2, max: 9}");
    stage_type(&world, "counted", "termination: {type: fixed, iterations: 9}");
    let script = format!(
        r#"{READ}echo $STEADFAST_ITERATION >> work
case $STEADFAST_ITERATION in 1|3) decision=continue;; *) decision=stop;; esac
cat > "$(value status)" <<EOF
{{"decision": "$decision", "reason": "why $STEADFAST_ITERATION", "summary": "did it",
 "work": {{"items_completed": ["item"], "files_touched": ["a.rs", "b.rs"]}}, "errors": ["one warning"]}}
EOF
"#
    );
    let votes = world.loop_run(&["judged", "j"], &script, &["--json"]).succeeds().json();
    assert_eq!((&votes["reason"], &votes["iteration"]), (&json!("plateau"), &json!(5)));
    let history = votes["history"].as_array().unwrap();
    let said: Vec<&Value> = history.iter().map(|entry| &entry["plateau"]).collect();
    assert_eq!(said, [false, true, false, true, true]);
    assert_eq!(history[1]["reasoning"], "why 2");
    let state = world.json("loop-state-j.json");
    for entry in [&state["history"][0], &history[0]] {
        assert_eq!(entry["files_touched"], json!(["a.rs", "b.rs"]));
        assert_eq!((&entry["items_completed"], &entry["errors"]), (&json!(["item"]), &json!(["one warning"])));
    }
    let counted = world.loop_run(&["counted", "c"], &script, &["--json"]).json();
    assert_eq!(counted["iteration"], 2, "elsewhere it ends the stage");
}

#[test]
fn the_newer_result_file_votes_and_reports_risk() {
    let world = World::new();
    stage_type(&world, "judged", "termination: {type: judgment, consensus: 2, max: 9}");
    let script = format!(
        r#"{READ}risk=low; [ -e tried ] || risk=high; touch tried
cat > "$(value result)" <<EOF
{{"summary": "did it", "work": {{"items_completed": [], "files_touched": ["a.rs"]}},
 "artifacts": {{"outputs": ["out.md"], "paths": []}},
 "signals": {{"plateau_suspected": true, "risk": "$risk", "notes": "n"}}}}
EOF
"#
    );
    let run = world.loop_run(&["judged", "j"], &script, &["--json"]).succeeds().json();
    assert_eq!((&run["reason"], &run["iteration"]), (&json!("plateau"), &json!(2)));
    let first = &run["history"][0];
    assert_eq!(first["attempts"], 2, "high risk is a failed attempt");
    assert_eq!((&first["files_touched"], &first["reasoning"]), (&json!(["a.rs", "out.md"]), &json!("n")));
}

#[test]
fn each_provider_of_a_block_works_alone_and_the_next_stage_gets_both_outputs() {
    let world = World::new();
    world.repository();
    stage_type(&world, "think", "termination: {type: fixed, iterations: 1}");
    let copying = copying(&world);
    let agents = ["red", "blue"].map(|name| world.agent(&format!("{copying}echo \"{name} $STEADFAST_STAGE\"")));
    let last = world.agent(&format!("{copying}echo end"));
    let yaml = format!(
        "name: duel
nodes:
  - id: duel
    parallel:
      providers:
        - {{name: red, agent: '{}'}}
        - {{name: blue, agent: '{}'}}
      stages:
        - {{id: first, stage: think}}
        - {{id: second, stage: think, inputs: {{from: first}}}}
  - id: sum
    stage: think
    agent: '{last}'
    inputs: {{from_parallel: {{stage: second, block: duel}}}}
",
        agents[0], agents[1]
    );
    world.write(&world.in_project("p.yaml"), &yaml);
    let status = world.run(&["pipeline", "run", "p.yaml", "d", "--json"]).succeeds().json();
    assert_eq!(status["status"], "completed");
    let second = read_json(&world.in_project("ctx-duel-red-second-1.json"));
    assert_eq!(contents(&second["inputs"]["from_stage"]["first"]), ["red duel-red-first"]);
    assert_eq!(second["stage"]["id"], "second");
    let sum = read_json(&world.in_project("ctx-sum-1.json"));
    assert_eq!(sum["inputs"]["from_stage"], json!({}));
    assert_eq!(contents(&sum["inputs"]["from_parallel"]["red"]), ["red duel-red-second"]);
    assert_eq!(contents(&sum["inputs"]["from_parallel"]["blue"]), ["blue duel-blue-second"]);
}

#[test]
fn lanes_get_the_outputs_of_each_other_in_the_blocks_after_them() {
    let world = World::new();
    world.repository();
    for (name, reads) in [("think", ""), ("rate", ""), ("respond", "jq '.inputs.from_parallel[].providers' ${CTX}")] {
        stage_type(&world, name, "termination: {type: fixed, iterations: 1}");
        let prompt = format!("ctx=${{CTX}}\ncontext=${{CONTEXT}}\n{reads}\n");
        world.write(&world.env.home().join("loops").join(name).join("prompt.md"), &prompt);
    }
    let copying = copying(&world);
    let [red, blue] = ["red", "blue"]
        .map(|name| world.agent(&format!("{copying}echo \"$STEADFAST_STAGE by {name}: $(value context)\"")));
    let last = world.agent(&format!("{copying}echo end"));
    let yaml = format!(
        "name: crossed
nodes:
  - id: ideate
    parallel:
      providers: [{{name: red, agent: '{red}'}}, {{name: blue, agent: '{blue}'}}]
      stages: [{{id: generate, stage: think}}]
  - id: evaluate
    parallel:
      providers:
        - {{name: red, agent: '{red}', inputs: {{from_parallel: {{stage: generate, providers: [blue]}}}}}}
        - {{name: blue, agent: '{blue}', inputs: {{from_parallel: {{stage: generate, providers: [red]}}}}}}
      stages: [{{id: score, stage: rate, context: be fair}}]
  - id: reflect
    parallel:
      providers:
        - name: red
          agent: '{red}'
          inputs:
            from_parallel:
              - {{stage: generate, providers: [red]}}
              - {{stage: score, providers: [blue]}}
        - name: blue
          agent: '{blue}'
          inputs:
            from_parallel:
              - {{stage: generate, providers: [blue]}}
              - {{stage: score, providers: [red]}}
      stages: [{{id: reply, stage: respond}}]
  - {{id: sum, stage: think, agent: '{last}', inputs: {{from_parallel: {{stage: reply}}}}}}
"
    );
    world.write(&world.in_project("p.yaml"), &yaml);
    let status = world.run(&["pipeline", "run", "p.yaml", "x", "--json"]).succeeds().json();
    assert_eq!(status["status"], "completed");
    for (own, other) in [("red", "blue"), ("blue", "red")] {
        let score = read_json(&world.in_project(&format!("ctx-evaluate-{own}-score-1.json")));
        let of_other = json!([format!("ideate-{other}-generate by {other}:")]);
        assert_eq!(json!(contents(&score["inputs"]["from_parallel"][other])), of_other);
        assert_eq!(score["inputs"]["from_parallel"].get(own), None, "only the other's");
        let reply = read_json(&world.in_project(&format!("ctx-reflect-{own}-reply-1.json")));
        let blocks = reply["inputs"]["from_parallel"].as_array().unwrap();
        let named: Vec<_> = blocks.iter().map(|block| (&block["block"], &block["stage"])).collect();
        let expected = [(&json!("ideate"), &json!("generate")), (&json!("evaluate"), &json!("score"))];
        assert_eq!(named, expected, "the list keeps its order");
        let files = |at: usize, provider: &str| contents(&blocks[at]["providers"][provider]["files"]);
        assert_eq!(files(0, own), [format!("ideate-{own}-generate by {own}:")]);
        assert_eq!(files(1, other), [format!("evaluate-{other}-score by {other}: be fair")]);
        assert_eq!((blocks[0]["providers"].get(other), blocks[1]["providers"].get(own)), (None, None));
    }
    let sum = read_json(&world.in_project("ctx-sum-1.json"));
    assert_eq!(contents(&sum["inputs"]["from_parallel"]["red"]), ["reflect-red-reply by red:"]);
}

/// Definitions with the keys and variables of agent-pipelines, in the folders where it has them.
#[test]
fn stages_and_pipelines_of_agent_pipelines_are_valid_where_they_are() {
    let world = World::new();
    let stages = world.in_project("scripts/stages");
    let stage = |name: &str, yaml: &str, prompt: &str| {
        world.write(&stages.join(name).join("stage.yaml"), &format!("name: {name}\n{yaml}"));
        world.write(&stages.join(name).join("prompt.md"), prompt);
    };
    stage(
        "plan",
        "description: Improve a plan until two agents agree\nprovider: claude\nmodel: opus\n\
         termination: {type: judgment, consensus: 2, min_iterations: 2, max: 6}\ndelay: 3\n\
         output_path: docs/plan-${SESSION}.md\n",
        "Read context from: ${CTX}\nNotes: ${PROGRESS}\nWrite the plan to ${OUTPUT_PATH}.\n\
         Write your decision to ${STATUS}, your result to ${RESULT}. ${CONTEXT}\n",
    );
    stage(
        "work",
        "description: Take the next task\ntermination: {type: queue}\ncheck_before: true\n\
         guardrails: {max_runtime_seconds: 600}\n",
        "Session ${SESSION_NAME}, iteration ${ITERATION}. ${CONTEXT}\nInputs: ${INPUTS}\n",
    );
    stage("review", "description: Review\ntermination: {type: fixed, iterations: 1}\n", "Review. ${OUTPUT}\n");
    let pipelines = world.in_project("scripts/pipelines");
    world.write(
        &pipelines.join("ship.yaml"),
        "name: ship\ndescription: Plan, work, review\nversion: 1\ncommands: {test: make test}\n\
         nodes:\n  - {id: plan, stage: plan, runs: 3}\n  - id: work\n    stage: work\n    context: only small ones\n    \
         inputs: {from: plan, select: latest}\n  - {id: review, stage: review}\n",
    );
    world.write(&pipelines.join("lacking.yaml"), "name: lacking\nnodes:\n  - {id: a, stage: not-there}\n");

    let checked = world.run(&["pipeline", "validate", "--json"]).json();
    let definitions = checked["definitions"].as_array().unwrap();
    let faults_of = |name: &str| {
        let mut files = definitions.iter().filter(|one| one["file"].as_str().unwrap().ends_with(name));
        let found = files.next().unwrap_or_else(|| panic!("{name} is not found: {checked}"));
        found["faults"].as_array().unwrap().clone()
    };
    for name in ["stages/plan", "stages/work", "stages/review", "pipelines/ship.yaml"] {
        assert_eq!(faults_of(name), Vec::<Value>::new(), "{name}");
    }
    let missing = faults_of("pipelines/lacking.yaml");
    assert_eq!(missing[0]["level"], "error");
    assert!(missing[0]["message"].as_str().unwrap().starts_with("there is no loop type `not-there`"), "{missing:?}");
}

#[test]
fn inputs_that_are_not_there_are_named() {
    let world = World::new();
    world.write(&world.in_project("p.yaml"), "inputs: [docs/*.md]\nnodes:\n  - {id: a, prompt: x}\n");
    let checked = world.run(&["pipeline", "validate", "p.yaml"]);
    assert!(checked.stdout.contains("there is no file for the input `docs/*.md`"), "{}", checked.stdout);
    let started = world.run(&["pipeline", "run", "p.yaml", "x", "--agent", "true"]);
    assert!(started.stderr.contains("there is no file for the input `docs/*.md`"), "{}", started.stderr);
    assert_ne!(started.code, 0);
}
