//! The JSON of runs: names, order and units that scripts rely on.

use serde_json::Value;
use steadfast_model::clock;
use steadfast_model::run::Plan;

use super::*;
use crate::testing::{MINUTE, START, World};
use steadfast_model::limit::{Axis, Limits};
use steadfast_model::run::{Outcome, Rule, RunEvent, RunLimits, StageStatus, machine};
use steadfast_model::testing::runs::{id, pipeline_of, stage, success};

fn not_started(_: AttemptId) -> LeftView {
    LeftView { state: Left::NotStarted, pids: Vec::new() }
}

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
    let facts =
        RunFacts { is_live: true, now: START + 3 * MINUTE, branch_of: &|_, _| branch.clone(), left_of: &not_started };
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
        "engine_gone",
        "type",
        "stage",
        "project",
        "run_id",
    ];
    let more = [
        "limits",
        "stopping",
        "waiting_until",
        "waiting_for",
        "under_way",
        "ended_by",
        "stages",
        "history",
        "goal",
        "notes",
        "approvals",
    ];
    assert_eq!(keys(&json), [list.as_slice(), more.as_slice()].concat());
    assert_eq!(json["limits"], serde_json::json!({"tokens": null, "usd": 2.5, "hours": 1.5}));
    assert_eq!((&json["iteration"], &json["live"]), (&Value::from(1), &Value::from(true)));
    assert_eq!(
        keys(&json["under_way"][0]),
        ["stage", "iteration", "attempt", "phase", "errors", "branch", "worktree", "waiting_until", "left"]
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
    assert_eq!((view.is_orphaned, view.status), (true, RunStatus::UnknownTermination));
    assert_eq!(view.reason.as_deref(), Some("engine_gone"));
}

#[test]
fn a_run_without_an_engine_is_starting_only_for_a_moment() {
    let engine = Some(ProcessId { pid: 1, started: 1 });
    assert!(is_starting(RunStatus::Running, None, START, START + STARTING_MS - 1));
    assert!(!is_starting(RunStatus::Running, None, START, START + STARTING_MS));
    assert!(!is_starting(RunStatus::Running, engine, START, START));
    assert!(!is_starting(RunStatus::Killed, None, START, START));
}

/// The pipeline of `world` at its end, with these changes.
fn ended(change: impl FnOnce(&mut Plan, &mut steadfast_model::run::Run)) -> RunDetail {
    let (world, mut row) = world();
    change(&mut row.plan, &mut row.run);
    let facts =
        RunFacts { is_live: false, now: START, branch_of: &|_, _| BranchView::default(), left_of: &not_started };
    run_detail(world.store.read(), &row, &facts, None).unwrap()
}

#[test]
fn the_stage_that_ended_a_run_is_named_with_its_rule() {
    let why = |reason: &str, status: RunStatus| {
        let detail = ended(|plan, run| {
            plan.stages[0].name = "fix".into();
            plan.stages[0].completion = Rule::Verify(vec!["cargo test".into()]);
            (run.status, run.reason, run.ended_by) = (status, Some(reason.to_owned()), Some(1));
            run.stages[0].iterations = 3;
        });
        detail.ended_by.unwrap().why
    };
    let completed = RunStatus::Completed;
    assert_eq!(why("max_iterations", completed), "stage fix did not hold: verify failed after 3 iterations");
    let stopped = "stage fix did not hold: its agent said stop after 3 iterations, and verify failed";
    assert_eq!(why("stopped", completed), stopped);
    assert_eq!(why("budget_usd", completed), "stage fix reached its limit (budget_usd)");
    assert_eq!(why("rejected: not today", RunStatus::Failed), "stage fix was rejected: not today");
    assert_eq!(why("errors: no network", RunStatus::Failed), "stage fix failed: errors: no network");
}

#[test]
fn a_stage_shows_its_needs_and_why_the_pipeline_continued() {
    let detail = ended(|plan, run| {
        plan.stages[0].completion = Rule::Command("false".into());
        plan.stages[0].on_max = Some(steadfast_model::run::Then::Continue);
        plan.stages[1].needs = Some(vec![1]);
        plan.stages[1].approve = Some("Ship it?".into());
        run.stages[0].status = StageStatus::Completed;
        run.stages[0].reason = Some("max_iterations".into());
        run.stages[1].status = StageStatus::AwaitingApproval;
    });
    let [first, second] = &detail.stages[..] else { panic!("{detail:?}") };
    assert_eq!(first.note.as_deref(), Some("command did not hold; the pipeline continued (on_max: continue)"));
    assert_eq!((&first.needs, &second.needs), (&None, &Some(vec![first.name.clone()])));
    assert_eq!((second.status, second.approve.as_deref()), (StageStatus::AwaitingApproval, Some("Ship it?")));
    assert_eq!(serde_json::to_value(second).unwrap()["status"], "awaiting_approval");
}
