//! Stages that wait for a person's yes: the commands and what the store keeps.

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::attempts::eventually;
use crate::env::{Output, finish};
use crate::runs::World;
use crate::schemas::check;

/// Appends the name of its stage to `ran`.
const RECORDING: &str = "cat > /dev/null; echo $STEADFAST_STAGE >> ran; echo done";

/// A run of `build`, `deploy` and `tell`, whose engine died before anything started.
fn crashed(deploy: &str, more: &[&str]) -> World {
    let world = World::new();
    let stages =
        format!("{{name: build, prompt: B}}\n  - {{name: deploy, prompt: D{deploy}}}\n  - {{name: tell, prompt: T}}");
    world.write(&world.env.home().join("pipelines/ship.yaml"), &format!("name: ship\nstages:\n  - {stages}\n"));
    let agent = world.agent(RECORDING);
    let run = [&["pipeline", "run", "ship", "ship", "--agent", &agent], more].concat();
    finish(world.env.command(&run).env("STEADFAST_CRASH_AT", "engine.locked:1"), b"");
    world
}

/// A run whose engine died while its stages waited for an answer.
pub(crate) fn waiting(stages: &[u32]) -> World {
    let world = crashed("", &[]);
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
    assert!(page.stdout.contains("`steadfast pipeline approve ship deploy`, or reject"), "{page:?}");
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

/// A run whose second stage asks.
fn asking(keys: &str, more: &[&str]) -> World {
    crashed(&format!(", approve: \"Ship <it>?\"{keys}"), more)
}

fn asks(world: &World) {
    eventually(|| {
        let status = world.status("pipeline", "ship");
        (status["approvals"][0]["waiting"] == true).then_some(())
    });
}

fn ends(world: &World) -> (String, Vec<String>) {
    let status = world.ends("pipeline", "ship");
    (format!("{} {}", status["status"].as_str().unwrap(), status["reason"].as_str().unwrap()), world.lines("ran"))
}

fn both(words: &str, ran: &[&str]) -> (String, Vec<String>) {
    (words.to_owned(), ran.iter().map(|stage| (*stage).to_owned()).collect())
}

#[test]
fn a_stage_starts_after_a_yes_and_the_user_hears_the_question() {
    let world = asking("", &[]);
    let told = world.env.path("told");
    let config = format!("[notify]\ndesktop = false\ncommand = ['sh', '-c', 'cat >> {}']\n", told.display());
    std::fs::write(world.env.home().join("config.toml"), config).unwrap();
    let foreground = world.spawn(&["pipeline", "resume", "ship"]);
    asks(&world);
    assert_eq!(world.lines("ran"), ["build"]);
    let page = pipeline(&world, &["status", "ship"]);
    assert!(page.succeeds().stdout.contains("`steadfast pipeline approve ship deploy`, or reject"), "{page:?}");
    let list = pipeline(&world, &["list"]);
    assert!(list.succeeds().stdout.contains("running (waits for your yes)"), "{list:?}");
    let message = eventually(|| std::fs::read_to_string(&told).ok().filter(|text| text.contains('}')));
    let message: Value = serde_json::from_str(&message).unwrap();
    assert_eq!(message["title"], "pipeline ship: stage deploy waits for your yes");
    assert!(message["body"].as_str().unwrap().contains("Ship <it>?"), "{message}");
    pipeline(&world, &["approve", "ship", "--note", "after lunch"]).succeeds();
    assert_eq!(ends(&world), both("completed completed", &["build", "deploy", "tell"]));
    let output = crate::runs::wait(foreground);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stderr.contains("steadfast pipeline approve ship deploy"), "{output:?}");
    assert_eq!(approvals(&world)[0]["note"], "after lunch");
    let page = pipeline(&world, &["status", "ship"]);
    assert!(page.succeeds().stdout.contains("stage deploy was approved: after lunch"), "{page:?}");
}

#[test]
fn an_answer_given_while_the_engine_is_gone_counts_once_it_is_back() {
    for point in ["", "engine.before_save:1", "engine.saved:1", "engine.before_save:2", "engine.saved:2"] {
        let world = asking("", &[]);
        pipeline(&world, &["resume", "ship", "-d"]).succeeds();
        asks(&world);
        kill_process(world.engine("pipeline", "ship"), Signal::KILL).unwrap();
        eventually(|| (world.status("pipeline", "ship")["live"] == false).then_some(()));
        pipeline(&world, &["approve", "ship"]).succeeds();
        if !point.is_empty() {
            finish(world.env.command(&["pipeline", "resume", "ship"]).env("STEADFAST_CRASH_AT", point), b"");
        }
        pipeline(&world, &["resume", "ship"]).succeeds();
        assert_eq!(ends(&world), both("completed completed", &["build", "deploy", "tell"]), "{point}");
        assert_eq!(world.env.sql("SELECT count(*) FROM outbox WHERE kind = 'blocked'"), [["1"]], "{point}");
    }
}

#[test]
fn a_no_fails_the_run_and_resuming_it_asks_again() {
    let world = asking("", &[]);
    pipeline(&world, &["resume", "ship", "-d"]).succeeds();
    asks(&world);
    pipeline(&world, &["reject", "ship", "--note", "not today"]).succeeds();
    assert_eq!(ends(&world), both("failed rejected: not today", &["build"]));
    // The engine that saved the end may still be there.
    eventually(|| (pipeline(&world, &["resume", "ship", "-d"]).code == 0).then_some(()));
    asks(&world);
    assert_eq!((&approvals(&world)[0]["approved"], &approvals(&world)[0]["note"]), (&Value::Null, &Value::Null));
    pipeline(&world, &["approve", "ship"]).succeeds();
    assert_eq!(ends(&world), both("completed completed", &["build", "deploy", "tell"]));
}

#[test]
fn a_no_lets_later_stages_run_where_the_plan_says_so() {
    let world = asking(", on_fail: continue", &[]);
    pipeline(&world, &["resume", "ship", "-d"]).succeeds();
    asks(&world);
    pipeline(&world, &["reject", "ship", "deploy"]).succeeds();
    assert_eq!(ends(&world), both("completed completed", &["build", "tell"]));
}

#[test]
fn the_time_limit_of_the_run_counts_while_it_waits() {
    let world = asking("", &["--max-hours", "0.002"]);
    let output = pipeline(&world, &["resume", "ship"]);
    assert_eq!((output.code, world.lines("ran")), (5, vec!["build".to_owned()]), "{output:?}");
    assert_eq!(world.status("pipeline", "ship")["reason"], "max_hours");
}
