//! Runs that end while a real client works. After `kill -9` of the engine the next engine collects the client's answer
//! and starts no second client; after `kill` neither the client nor its child processes are left.

use super::lab::{Gate, Lab, PATIENCE, eventually, no_claude, no_codex, wait};
use crate::codex;
use crate::model::ScriptedModel;
use crate::reply::{Reply, Usage};
use crate::request::Kind;
use serde_json::json;

const RUN: &[&str] = &["loop", "run", "steps", "walk", "--max", "1", "--agent"];

fn loop_type(lab: &Lab) {
    lab.loop_type("steps", "name: steps\ncompletion: fixed-n\ndelay: 0\n", "Step ${ITERATION}.\n");
}

/// One iteration, one attempt, and what it used.
fn assert_done_once(lab: &Lab, tokens: i64) {
    let status = lab.json(&["loop", "status", "walk"]);
    let row = &status["history"][0];
    assert_eq!(
        json!([status["status"], status["iteration"], row["attempts"], row["summary"], row["tokens"]]),
        json!(["completed", 1, 1, "Did step 1.", tokens]),
        "{status:#}"
    );
    assert_eq!(status["history"].as_array().map(Vec::len), Some(1), "{status:#}");
}

#[test]
fn a_client_that_outlives_its_engine_is_waited_for() {
    let gate = Gate::default();
    let in_script = gate.clone();
    let model = ScriptedModel::start(move |_| {
        in_script.pass();
        Reply::text("Did step 1.").usage(Usage::new(100, 10, 1, 7))
    });
    let codex = no_codex();
    let lab = Lab::new(&model, &codex);
    loop_type(&lab);

    let mut engine = lab.start("run", &[RUN, &["claude"]].concat());
    model.wait_for_request("the step", PATIENCE, |request| request.kind == Kind::Main);
    engine.kill().expect("kill -9");
    engine.wait().expect("dead");
    let status = lab.json(&["loop", "status", "walk"]);
    assert_eq!(json!([status["status"], status["live"]]), json!(["unknown_termination", false]), "{status:#}");
    let resumed = lab.start("resume", &["loop", "resume", "walk"]);
    eventually("an engine drives it again", || lab.json(&["loop", "status", "walk"])["live"] == true);
    gate.open();

    assert_eq!(wait(resumed, "the second engine"), Some(0), "{}", lab.printed("resume"));
    model.check_script();
    assert_eq!(model.requests_of(Kind::Main).len(), 1);
    assert_done_once(&lab, 111);
}

#[test]
fn the_answer_of_a_client_that_ended_without_an_engine_is_collected() {
    let gate = Gate::default();
    let in_script = gate.clone();
    let claude = no_claude();
    let model = codex::ScriptedResponses::start(move |_| {
        in_script.pass();
        codex::Reply::text("Did step 1.").usage(codex::Usage::new(107, 7, 11, 0))
    });
    let lab = Lab::new(&claude, &model);
    loop_type(&lab);

    let mut engine = lab.start("run", &[RUN, &["codex"]].concat());
    model.wait_for_request("the step", PATIENCE, |request| request.kind == Kind::Main);
    engine.kill().expect("kill -9");
    engine.wait().expect("dead");
    gate.open();
    let attempt = lab.attempt_directory("walk", "1-1-1");
    eventually("the client ends", || attempt.join("exit.json").exists());

    lab.expect(0, &["loop", "resume", "walk"]);

    model.check_script();
    assert_eq!(model.requests_of(Kind::Main).len(), 1);
    assert_done_once(&lab, 111);
}

/// Whether a process with these words in its command line lives.
fn is_running(words: &str) -> bool {
    let output = std::process::Command::new("ps").args(["-eo", "stat=,args="]).output().expect("ps");
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    listed.lines().any(|line| line.contains(words) && !line.starts_with('Z'))
}

/// Starts a run whose agent sleeps in a tool, kills it from another terminal, and checks that nothing is left.
fn kill_while_asleep(lab: &Lab, agent: &str, sleep: &str) {
    loop_type(lab);
    let run = lab.start("run", &[RUN, &[agent]].concat());
    eventually("the tool sleeps", || is_running(sleep));

    lab.expect(0, &["loop", "kill", "walk"]);

    assert_eq!(wait(run, "the engine"), Some(130), "{}", lab.printed("run"));
    assert!(!is_running(sleep), "the tool sleeps on");
    let directory = lab.attempt_directory("walk", "1-1-1");
    assert!(!is_running(&directory.to_string_lossy()), "the client or its supervisor is left");
    let status = lab.json(&["loop", "status", "walk"]);
    assert_eq!(json!([status["status"], status["history"]]), json!(["killed", []]), "{status:#}");
}

#[test]
fn killing_a_run_ends_claude_and_what_it_started() {
    let sleep = format!("sleep 1{:07}.25", std::process::id());
    let command = sleep.clone();
    let model = ScriptedModel::start(move |_| {
        Reply::tool("Bash", json!({"command": command, "description": "Sleep", "timeout": 600_000}))
    });
    let codex = no_codex();
    kill_while_asleep(&Lab::new(&model, &codex), "claude", &sleep);
    model.check_script();
}

#[test]
fn killing_a_run_ends_codex_and_what_it_started() {
    let sleep = format!("sleep 2{:07}.25", std::process::id());
    let command = sleep.clone();
    let claude = no_claude();
    let model = codex::ScriptedResponses::start(move |_| codex::Reply::shell("call_sleep", &command));
    kill_while_asleep(&Lab::new(&claude, &model), "codex", &sleep);
    model.check_script();
}
