//! The state machine by scenarios: a plan, its events and the resulting actions.

use super::*;
use crate::limit::Limits;
use crate::run::{AgentDecision, AgentResult, Check, FailureKind, Outcome, Rule, RunLimits, StageStatus, Success};
use crate::testing::runs::{Drive, agent, failure, id, killed, loop_of, pipeline_of, stage, success};
use crate::testing::{HOUR, MINUTE, SECOND, START};

mod ending;
mod failures;
mod money;
mod parallel;
mod rules;
mod simulation;
mod stages;
mod surprises;

fn beads() -> Check {
    Check::BeadsEmpty("loop/auth".into())
}

fn beads_rule() -> Rule {
    Rule::BeadsEmpty("loop/auth".into())
}

/// Default limits, and one more.
fn at_most(axis: Axis, amount: i64) -> RunLimits {
    RunLimits { limits: Limits::default().with(axis, amount), ..RunLimits::default() }
}

#[test]
fn a_loop_of_two_from_start_to_end() {
    let mut drive = Drive::new(loop_of(stage(Rule::FixedN, 2)));
    assert_eq!(drive.run, begin(&drive.plan, START));
    assert_eq!(drive.send(RunEvent::Started), ["stage 1 begins", "attempt 1.1.1", "start 1.1.1"]);
    drive.now += MINUTE;
    assert_eq!(drive.ok("1.1.1"), ["1.1.1 came through", "commit 1.1.1", "attempt 1.2.1", "start 1.2.1"]);
    drive.now += MINUTE;
    assert_eq!(
        drive.ok("1.2.1"),
        ["1.2.1 came through", "commit 1.2.1", "stage 1 completed: fixed-n", "run completed: fixed-n", "finish"]
    );
    let expected = Run {
        status: RunStatus::Completed,
        reason: Some("fixed-n".into()),
        completed_at_ms: Some(START + 2 * MINUTE),
        stages: vec![StageState {
            status: StageStatus::Completed,
            started_at_ms: Some(START),
            completed_at_ms: Some(START + 2 * MINUTE),
            iterations: 2,
            reason: Some("fixed-n".into()),
            footprint: Some("footprint 2".into()),
            tokens: 200,
            cost_micros: 4_000,
            ..StageState::default()
        }],
        tokens: 200,
        cost_micros: 4_000,
        most_tokens: 100,
        most_cost_micros: 2_000,
        ..begin(&drive.plan, START)
    };
    assert_eq!(drive.run, expected);
}

#[test]
fn the_delay_is_between_iterations_and_not_after_the_last() {
    let mut drive = Drive::started(loop_of(StagePlan { delay_ms: 3 * SECOND, ..stage(Rule::FixedN, 2) }));
    assert_eq!(drive.ok("1.1.1"), ["1.1.1 came through", "commit 1.1.1", "wake in 3000"]);
    assert_eq!(drive.run.wait, Some(Wait { until_ms: START + 3 * SECOND, why: WaitReason::Delay }));
    assert_eq!(drive.wakes_after(SECOND), ["wake in 2000"], "woken too early");
    assert_eq!(drive.wakes_after(2 * SECOND), ["attempt 1.2.1", "start 1.2.1"]);
    assert_eq!(drive.run.wait, None);
    assert_eq!(drive.ok("1.2.1").last().unwrap(), "finish");
}

#[test]
fn each_stage_of_a_pipeline_may_reach_its_maximum() {
    let stages = vec![stage(Rule::FixedN, 1), stage(Rule::Plateau(2), 1), stage(Rule::FixedN, 1)];
    let mut drive = Drive::started(pipeline_of(stages));
    assert_eq!(
        drive.ok("1.1.1"),
        [
            "1.1.1 came through",
            "commit 1.1.1",
            "stage 1 completed: fixed-n",
            "stage 2 begins",
            "attempt 2.1.1",
            "start 2.1.1"
        ]
    );
    assert_eq!(drive.votes("2.1.1", true)[2..4], ["stage 2 completed: max_iterations", "stage 3 begins"]);
    drive.ok("3.1.1");
    assert_eq!(drive.end(), (RunStatus::Completed, Some("completed")));
}

#[test]
fn a_pipeline_whose_last_stage_reaches_its_maximum_ends_with_that_reason() {
    let mut drive = Drive::started(pipeline_of(vec![stage(Rule::FixedN, 1), stage(Rule::Plateau(2), 1)]));
    drive.ok("1.1.1");
    drive.votes("2.1.1", false);
    assert_eq!(drive.end(), (RunStatus::Completed, Some("max_iterations")));
}

#[test]
fn stages_with_nothing_to_do_are_skipped() {
    let no_items = StagePlan { items: Vec::new(), ..stage(Rule::AllItems, 5) };
    let stages = vec![no_items, stage(Rule::Plateau(2), 0), stage(Rule::FixedN, 0), stage(Rule::FixedN, 1)];
    let mut drive = Drive::new(pipeline_of(stages));
    assert_eq!(
        drive.send(RunEvent::Started),
        [
            "stage 1 begins",
            "stage 1 completed: all-items",
            "stage 2 begins",
            "stage 2 completed: max_iterations",
            "stage 3 begins",
            "stage 3 completed: fixed-n",
            "stage 4 begins",
            "attempt 4.1.1",
            "start 4.1.1"
        ]
    );
    let mut empty = Drive::new(pipeline_of(Vec::new()));
    assert_eq!(empty.send(RunEvent::Started), ["run completed: completed", "finish"]);
}
