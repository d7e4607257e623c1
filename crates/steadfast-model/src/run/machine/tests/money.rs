//! What agents used, what judges used, and how many agents a budget lets run at once.

use super::*;
use crate::reading::Tokens;
use crate::run::{AttemptUsage, Checked};

fn spends(cost_micros: i64) -> Outcome {
    let usage = AttemptUsage { cost_micros, ..AttemptUsage::default() };
    Outcome::Succeeded(Box::new(Success { usage, ..success("x") }))
}

#[test]
fn what_a_judge_used_is_charged_with_its_verdict() {
    let mut judged = stage(Rule::Plateau(2), 9);
    judged.judge = Some(agent());
    let mut drive = Drive::started(loop_of(judged));
    drive.send(RunEvent::Ended { id: id("1.1.1"), outcome: spends(100) });
    let tokens = Tokens { input: 7, ..Tokens::default() };
    let usage = AttemptUsage { tokens, cost_micros: 50, cost_unknown: true, tokens_unknown: true };
    let fact = Checked { check: Check::Judge, holds: Some(false), detail: String::new(), usage: Some(usage) };
    let verdict = RunEvent::Checked { id: id("1.1.1"), facts: vec![fact] };
    drive.send(verdict.clone());
    drive.send(verdict);
    assert_eq!((drive.run.cost_micros, drive.run.tokens), (150, 7), "once");
    assert!(drive.run.cost_unknown && drive.run.tokens_unknown && drive.run.tokens_unknown_now);
    assert_eq!(drive.run.stages[0].cost_micros, 150);
}

#[test]
fn no_more_agents_run_at_once_than_the_rest_of_the_budget_pays_for() {
    let side_by_side = StagePlan { parallel: true, ..stage(Rule::FixedN, 8) };
    let mut plan = pipeline_of(vec![side_by_side]);
    plan.limits = RunLimits { parallel: 4, ..at_most(Axis::Usd, 300) };
    let mut drive = Drive::started(plan);
    assert_eq!(drive.run.active.len(), 4, "nothing is known of the first wave");
    for attempt in ["1.1.1", "1.2.1", "1.3.1", "1.4.1"] {
        let did = drive.send(RunEvent::Ended { id: id(attempt), outcome: spends(200) });
        assert!(!did.iter().any(|act| act.starts_with("start")), "{did:?}");
    }
    assert_eq!((drive.end(), drive.run.cost_micros), ((RunStatus::Completed, Some("budget_usd")), 800));
}

#[test]
fn the_budget_of_a_stage_holds_back_its_agents_too() {
    let mut side_by_side = StagePlan { parallel: true, ..stage(Rule::FixedN, 8) };
    side_by_side.limits.set(Axis::Usd, Some(500));
    let mut drive = Drive::started(pipeline_of(vec![stage(Rule::FixedN, 1), side_by_side]));
    drive.send(RunEvent::Ended { id: id("1.1.1"), outcome: spends(200) });
    assert_eq!(drive.run.active.len(), 3, "the third one passes the budget");
}

#[test]
fn no_run_ends_before_it_began() {
    let mut drive = Drive::started(loop_of(stage(Rule::FixedN, 1)));
    drive.now -= 5 * HOUR;
    drive.ok("1.1.1");
    let stage = &drive.run.stages[0];
    assert_eq!((drive.run.completed_at_ms, stage.completed_at_ms), (Some(START), stage.started_at_ms));
}
