//! Stages that wait for a person's yes: the commands and what the store keeps.

use serde_json::Value;

use crate::env::{Output, finish};
use crate::runs::World;
use crate::schemas::check;

/// A run whose engine died while its stages waited for an answer.
fn waiting(stages: &[u32]) -> World {
    let world = World::new();
    let stages_of_file =
        "stages:\n  - {name: build, prompt: B}\n  - {name: deploy, prompt: D}\n  - {name: tell, prompt: T}\n";
    world.write(&world.env.home().join("pipelines/ship.yaml"), &format!("name: ship\n{stages_of_file}"));
    let run = ["pipeline", "run", "ship", "ship", "--agent", &world.agent("echo done")];
    finish(world.env.command(&run).env("STEADFAST_CRASH_AT", "engine.locked:1"), b"");
    for stage in stages {
        let index = stage - 1;
        world.env.execute(&format!(
            "UPDATE runs SET state_json = json_set(state_json, '$.stages[{index}].status', 'awaiting_approval')"
        ));
        world.env.execute(&format!(
            "INSERT INTO run_approvals (run_id, stage, question, asked_at_ms)
             SELECT run_id, {stage}, 'Ship <it>?', 1794800000000 FROM runs"
        ));
    }
    world
}

fn pipeline(world: &World, arguments: &[&str]) -> Output {
    world.run(&[&["pipeline"], arguments].concat())
}

fn approvals(world: &World) -> Value {
    let status = world.status("pipeline", "ship");
    check("run-status.schema.json", &status);
    status["approvals"].clone()
}

fn take(world: &World) {
    world.env.execute("UPDATE run_approvals SET taken_at_ms = 1794800000001");
}

#[test]
fn an_answer_waits_for_the_engine_and_can_be_changed_until_it_is_taken() {
    let world = waiting(&[2]);
    let page = pipeline(&world, &["status", "ship"]);
    assert!(page.succeeds().stdout.contains("stage deploy waits for your yes: Ship <it>?"), "{page:?}");
    assert!(page.stdout.contains("next: steadfast pipeline approve ship deploy (or reject), then resume"), "{page:?}");
    assert_eq!((&approvals(&world)[0]["waiting"], &approvals(&world)[0]["approved"]), (&true.into(), &Value::Null));
    let answer = pipeline(&world, &["reject", "ship", "--note", "not\u{1b}[31m today"]);
    assert!(
        answer.succeeds().stdout.contains("rejected stage deploy of pipeline ship; its engine is gone"),
        "{answer:?}"
    );
    assert_eq!(
        (&approvals(&world)[0]["approved"], &approvals(&world)[0]["note"]),
        (&false.into(), &"not today".into())
    );
    // The name, the number, and the same answer again.
    for arguments in [&["approve", "ship", "deploy"][..], &["approve", "ship", "2"], &["approve", "ship"]] {
        pipeline(&world, arguments).succeeds();
    }
    assert_eq!((&approvals(&world)[0]["approved"], &approvals(&world)[0]["waiting"]), (&true.into(), &false.into()));
    take(&world);
    let again = pipeline(&world, &["approve", "ship", "deploy", "--json"]);
    assert_eq!(again.succeeds().json()["changed"], false);
    pipeline(&world, &["reject", "ship", "deploy"]).fails_with(3, "was approved, and the run has acted on it");
}

#[test]
fn a_stage_is_named_when_several_wait() {
    let world = waiting(&[2, 3]);
    let several = pipeline(&world, &["approve", "ship"]);
    several.fails_with(3, "2 stages of pipeline ship wait");
    assert!(several.stderr.contains("deploy, tell"), "{several:?}");
    pipeline(&world, &["approve", "ship", "tell"]).succeeds();
    assert_eq!((&approvals(&world)[0]["approved"], &approvals(&world)[1]["approved"]), (&Value::Null, &true.into()));
    pipeline(&world, &["approve", "ship", "build"]).fails_with(3, "stage build of pipeline ship waits for no answer");
    let unknown = pipeline(&world, &["approve", "ship", "deplay"]);
    unknown.fails_with(2, "has no stage deplay");
    assert!(unknown.stderr.contains("build, deploy, tell"), "{unknown:?}");
    pipeline(&world, &["approve", "other"]).fails_with(2, "no pipeline named other");
}

#[test]
fn an_agent_may_not_answer() {
    let world = waiting(&[2]);
    for verb in ["approve", "reject"] {
        let mut command = world.env.command(&["pipeline", verb, "ship", "deploy"]);
        finish(command.env("CLAUDECODE", "1"), b"").fails_with(3, "is for the user");
    }
    assert_eq!(approvals(&world)[0]["approved"], Value::Null);
    let log = std::fs::read_to_string(world.env.home().join("log/hooks.log")).unwrap_or_default();
    assert!(log.contains("refused `approve` in an agent's shell"), "{log}");
}

#[test]
fn a_run_that_is_over_takes_no_answer() {
    let world = waiting(&[2]);
    world.run(&["pipeline", "kill", "ship"]).succeeds();
    let late = pipeline(&world, &["approve", "ship", "deploy"]);
    late.fails_with(3, "pipeline ship is over (killed)");
    assert!(late.stderr.contains("resume ship"), "{late:?}");
}
