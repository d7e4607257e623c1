//! What people see of runs: another agent for the rest, commands from a subdirectory, dead engines, stages that ended
//! a run, and reasons of judges.

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::attempts::eventually;
use crate::env::{Output, finish};
use crate::runs::World;
use crate::schemas::check;

fn below(world: &World, folder: &str, arguments: &[&str]) -> Output {
    let directory = world.in_project(folder);
    std::fs::create_dir_all(&directory).unwrap();
    finish(world.env.command(arguments).current_dir(directory), b"")
}

#[test]
fn a_run_is_resumed_with_another_agent() {
    let world = World::new();
    let yaml = "name: two\ndefaults: {agent: ./first.sh}\nstages:\n  - {name: a, prompt: a, completion: {promise: DONE}, runs: 2}\n  \
                - {name: b, prompt: b}\n  - {name: c, prompt: c, agent: 'sh other.sh'}\n";
    world.write(&world.in_project("p.yaml"), yaml);
    world.write(&world.in_project("other.sh"), "echo other >> who; echo fine\n");
    // Its agent does not exist any more when it is resumed.
    world.write(&world.in_project("first.sh"), "#!/bin/sh\necho first >> who; exit 3\n");
    make_executable(&world, "first.sh");
    assert_eq!(world.run(&["pipeline", "run", "p.yaml", "r"]).code, 1);
    std::fs::remove_file(world.in_project("first.sh")).unwrap();
    world.run(&["pipeline", "resume", "r"]).fails_with(4, "does not exist");
    world.run(&["pipeline", "resume", "r", "--agent", "./none.sh"]).fails_with(4, "none.sh");
    world.run(&["pipeline", "resume", "r", "--agent", "cluade"]).fails_with(1, "there is no agent `cluade`");
    let next = world.agent("echo next >> who; echo '<promise>DONE</promise>'");
    let resumed = world.run(&["pipeline", "resume", "r", "--agent", &next, "--model", "m1"]);
    assert!(resumed.succeeds().stderr.contains("stage a: sh "), "{resumed:?}");
    let who = world.lines("who");
    assert_eq!(who[who.len() - 3..], ["next", "next", "other"]);
    assert!(who[..who.len() - 3].iter().all(|line| line == "first"), "{who:?}");
    let plans = world.env.sql("SELECT plan_json FROM runs");
    let plan: Value = serde_json::from_str(&plans[0][0]).unwrap();
    let models: Vec<&Value> = plan["stages"].as_array().unwrap().iter().map(|s| &s["agent"]["model"]).collect();
    assert_eq!(models, [&json!("m1"), &json!("m1"), &Value::Null]);
}

fn make_executable(world: &World, file: &str) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(world.in_project(file), mode).unwrap();
}

#[test]
fn only_a_person_gives_a_run_another_agent() {
    let world = World::new();
    world.loop_type("open", "completion: {promise: NEVER}");
    assert_eq!(world.loop_run(&["open", "a"], "echo x", &["--max", "1"]).code, 5);
    let steadfast = env!("CARGO_BIN_EXE_steadfast");
    let script =
        format!("{steadfast} loop resume a --max 2 --agent 'sh -c true' > said 2>&1; echo $? >> said; echo fine");
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    world.loop_run(&["once", "b"], &script, &[]).succeeds();
    let said = world.lines("said").join("\n");
    assert!(said.contains("resume with another agent"), "{said}");
    assert_eq!(world.status("loop", "a")["iteration"], json!(1));
}

#[test]
fn commands_in_a_subdirectory_are_about_the_project() {
    let world = World::new();
    world.repository();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    let agent = world.agent("pwd > where; echo fine");
    let run = below(&world, "part/deep", &["loop", "run", "once", "a", "--agent", &agent]);
    let project = std::fs::canonicalize(world.env.project()).unwrap();
    let note = format!("note: the run belongs to the project {}; its agents work there", project.display());
    assert!(run.succeeds().stderr.contains(&note), "{run:?}");
    assert!(!world.in_project("part/deep/.claude").exists());
    assert_eq!(world.lines("where"), [project.display().to_string()]);
    let list = below(&world, "part/deep", &["loop", "list", "--json"]).succeeds().json();
    assert_eq!(list["runs"][0]["name"], json!("a"));
    below(&world, "part", &["loop", "status", "a"]).succeeds();
    // A definition and an agent that are named by a path are those of the directory where the user is.
    world.write(&world.in_project("part/p.yaml"), "name: p\nstages: [{name: a, prompt: here}]\n");
    world.write(&world.in_project("part/agent.sh"), "#!/bin/sh\ncat > prompt; echo fine\n");
    make_executable(&world, "part/agent.sh");
    below(&world, "part", &["pipeline", "validate", "p.yaml"]).succeeds();
    below(&world, "part", &["pipeline", "run", "./p.yaml", "x", "--agent", "./agent.sh"]).succeeds();
    assert_eq!(world.lines("prompt"), ["here"]);
    assert_eq!(world.status("pipeline", "x")["status"], json!("completed"));
}

#[test]
fn a_directory_without_a_project_above_is_its_own() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    let agent = world.agent("echo fine");
    let run = below(&world, "alone", &["loop", "run", "once", "--agent", &agent]);
    assert!(!run.succeeds().stderr.contains("belongs to the project"), "{run:?}");
    assert!(world.in_project("alone/.claude/loop-sessions.json").exists());
}

#[test]
fn a_dead_engine_is_shown_with_what_it_left() {
    let world = World::new();
    world.repository();
    let yaml = "name: p\nstages:\n  - {name: work, prompt: x, runs: 2, parallel: true}\n  - {name: end, prompt: y}\n";
    world.write(&world.in_project("p.yaml"), yaml);
    let wait = world.env.path("go");
    let script = format!(
        "echo $$ >> {0}/agents; [ \"$STEADFAST_ITERATION\" = 1 ] || while [ ! -e {1} ]; do sleep 0.05; done; \
         while [ ! -e {1}.first ]; do sleep 0.05; done; echo fine",
        world.env.project().display(),
        wait.display()
    );
    let agent = world.agent(&script);
    world.run(&["pipeline", "run", "p.yaml", "r", "--agent", &agent, "-d"]).succeeds();
    eventually(|| (world.lines("agents").len() == 2).then_some(()));
    kill_process(world.engine("pipeline", "r"), Signal::KILL).unwrap();
    std::fs::write(wait.with_extension("first"), "").unwrap();
    let shown = eventually(|| {
        let shown = world.run(&["pipeline", "status", "r"]).stdout;
        shown.contains("waits to be collected").then_some(shown)
    });
    for part in [
        "its engine is gone, and left:",
        "stage work, iteration 1: its agent has finished; the result waits to be collected",
        "stage work, iteration 2: its agent still runs (pid ",
        "`steadfast pipeline resume r` waits for the agents that run, collects what is finished, continues the run",
        "`steadfast pipeline kill r` stops the agents that run and ends the run",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let list = world.run(&["pipeline", "list", "--json"]).succeeds().json();
    check("run-list.schema.json", &list);
    let status = world.status("pipeline", "r");
    check("run-status.schema.json", &status);
    for run in [&list["runs"][0], &status] {
        let facts = [&run["status"], &run["reason"], &run["live"], &run["engine_gone"], &run["pid"]];
        let gone = [json!("unknown_termination"), json!("engine_gone"), json!(false), json!(true), Value::Null];
        assert_eq!(facts, gone.each_ref());
    }
    let left: Vec<&Value> = status["under_way"].as_array().unwrap().iter().map(|it| &it["left"]["state"]).collect();
    assert_eq!(left, ["finished", "running"]);
    assert!(!status["under_way"][1]["left"]["pids"].as_array().unwrap().is_empty(), "{status}");
    std::fs::write(&wait, "").unwrap();
    world.run(&["pipeline", "resume", "r"]).succeeds();
    // Looking did not start or end anything: each iteration of the first stage had one agent.
    assert_eq!(world.lines("agents").len(), 3);
}

#[test]
fn list_repairs_an_entry_that_another_tool_set_back() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    world.loop_run(&["once", "a"], "echo fine", &[]).succeeds();
    world.jq(".sessions[\"loop-a\"].status = \"running\" | .sessions[\"loop-a\"].completed_at = null");
    world.run(&["loop", "list"]).succeeds();
    assert_eq!(world.entry("loop-a")["status"], json!("completed"));
}

#[test]
fn the_stage_that_did_not_hold_is_named() {
    let world = World::new();
    let yaml =
        "name: p\nstages:\n  - {name: fix, prompt: x, verify: 'false', runs: 2}\n  - {name: deploy, prompt: y}\n";
    world.write(&world.in_project("p.yaml"), yaml);
    let agent = world.agent("echo $STEADFAST_STAGE >> who; date +%N; echo fine");
    let run = world.run(&["pipeline", "run", "p.yaml", "r", "--agent", &agent]);
    assert_eq!(run.code, 5, "{run:?}");
    let why = "stage fix did not hold: verify failed after 2 iterations";
    assert!(run.stdout.contains(why), "{run:?}");
    let status = world.status("pipeline", "r");
    check("run-status.schema.json", &status);
    assert_eq!(status["ended_by"], json!({"stage": 1, "name": "fix", "why": why}));
    assert_eq!((&status["reason"], &status["stages"][1]["status"]), (&json!("max_iterations"), &json!("pending")));
    assert_eq!(world.lines("who"), ["fix", "fix"]);
}

#[test]
fn history_has_the_reasons_of_the_judge() {
    let world = World::new();
    let judge = world.agent("echo '{\"stop\": true, \"reason\": \"nothing is left\"}'");
    world.loop_type("judged", &format!("completion: plateau\nconsensus: 1\njudge: {{agent: '{judge}'}}\nruns: 2"));
    let script = "echo '{\"summary\": \"did it\", \"reasoning\": \"the worker thinks so\"}' > $STEADFAST_RESULT";
    world.loop_run(&["judged", "j"], script, &[]);
    let history = &world.status("loop", "j")["history"];
    assert_eq!(history[0]["reasoning"], json!("nothing is left"), "{history}");
    assert_eq!(history[0]["summary"], json!("did it"));
    assert_eq!(world.json("loop-state-j.json")["history"][0]["reasoning"], json!("nothing is left"));
}
