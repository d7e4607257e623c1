//! The JSON of runs: names, order and units that scripts rely on.

use super::*;
use crate::testing::{MINUTE, START, World};
use steadfast_model::limit::{Axis, Limits};
use steadfast_model::run::{Outcome, Rule, RunEvent, RunLimits, machine};
use steadfast_model::testing::runs::{id, pipeline_of, stage, success};

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// A pipeline of two stages whose first iteration is committed.
fn world() -> (World, RunRow) {
    let mut world = World::new();
    let limits = RunLimits {
        limits: Limits::default().with(Axis::Usd, 2_500_000).with(Axis::Hours, 90 * MINUTE),
        ..RunLimits::default()
    };
    let plan = Plan { limits, ..pipeline_of(vec![stage(Rule::FixedN, 2), stage(Rule::FixedN, 1)]) };
    let run = machine::begin(&plan, START);
    let mut row = world.store.write(|db| db.create_run("run-1", "/shop", &plan, &run, START)).unwrap();
    let outcome = Outcome::Succeeded(Box::new(success("one")));
    for event in [RunEvent::Started, RunEvent::Ended { id: id("1.1.1"), outcome }] {
        let step = machine::step(&row.plan, row.run, event, START + MINUTE);
        world.store.write(|db| db.save_step("run-1", row.version, &step, START + MINUTE)).unwrap();
        row = world.store.read().run("run-1").unwrap().unwrap();
    }
    (world, row)
}

#[test]
fn the_detail_has_the_documented_fields_in_their_order() {
    let (world, row) = world();
    let branch = BranchView { branch: Some("steadfast/shop".into()), ..BranchView::default() };
    let facts = RunFacts { is_live: true, now: START + 3 * MINUTE, branch_of: &|_, _| branch.clone() };
    let detail = run_detail(world.store.read(), &row, &facts, None).unwrap();
    assert_eq!(detail.elapsed_seconds, 180);
    let json = serde_json::to_value(&detail).unwrap();
    let list = [
        "name",
        "kind",
        "status",
        "iteration",
        "max_iterations",
        "started_at",
        "completed_at",
        "reason",
        "tokens",
        "cost_usd",
        "pid",
        "live",
        "type",
        "stage",
        "project",
        "run_id",
    ];
    let more = ["limits", "stopping", "waiting_until", "waiting_for", "under_way", "stages", "history", "goal"];
    assert_eq!(keys(&json), [list.as_slice(), more.as_slice()].concat());
    assert_eq!(json["limits"], serde_json::json!({"tokens": null, "usd": 2.5, "hours": 1.5}));
    assert_eq!((&json["iteration"], &json["live"]), (&Value::from(1), &Value::from(true)));
    assert_eq!(
        keys(&json["under_way"][0]),
        ["stage", "iteration", "attempt", "phase", "errors", "branch", "worktree", "waiting_until"]
    );
    let iteration = [
        "stage",
        "stage_name",
        "iteration",
        "timestamp",
        "plateau",
        "reasoning",
        "summary",
        "decision",
        "attempts",
        "tokens",
        "cost_usd",
        "duration_seconds",
        "branch",
        "worktree",
        "checks",
        "fields",
        "files_touched",
        "items_completed",
        "errors",
        "branches",
    ];
    assert_eq!(keys(&json["history"][0]), iteration);
    assert_eq!(json["history"][0]["timestamp"], clock::to_rfc3339(START + MINUTE));
}

#[test]
fn a_run_is_the_same_in_a_list_and_in_its_detail() {
    let (world, row) = world();
    let line = world.store.read().runs(steadfast_store::RunFilter::default(), 1).unwrap().remove(0);
    let view = RunView::new(line, false);
    assert_eq!(view, RunView::of_row(&row, false));
    assert!(view.is_orphaned());
}

#[test]
fn a_run_without_an_engine_is_starting_only_for_a_moment() {
    let engine = Some(ProcessId { pid: 1, started: 1 });
    assert!(is_starting(RunStatus::Running, None, START, START + STARTING_MS - 1));
    assert!(!is_starting(RunStatus::Running, None, START, START + STARTING_MS));
    assert!(!is_starting(RunStatus::Running, engine, START, START));
    assert!(!is_starting(RunStatus::Killed, None, START, START));
}
