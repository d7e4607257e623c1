//! Failed attempts.

use super::*;
use crate::reading::FARTHEST_RESET;

#[test]
fn errors_are_retried_with_back_off_and_five_in_a_row_end_the_run() {
    for kind in
        [FailureKind::Transient, FailureKind::TimedOut, FailureKind::NoResult, FailureKind::Reported, FailureKind::Exit]
    {
        let mut drive = Drive::started(loop_of(stage(Rule::FixedN, 3)));
        for (attempt, rest) in [(1, 1_000), (2, 4_000), (3, 8_000), (4, 16_000)] {
            let failed = format!("1.1.{attempt} failed: {}", kind.name());
            assert_eq!(drive.fails(&format!("1.1.{attempt}"), kind), [failed, format!("wake in {rest}")]);
            let next = attempt + 1;
            assert_eq!(drive.wakes_after(rest), [format!("attempt 1.1.{next}"), format!("start 1.1.{next}")]);
        }
        let reason = format!("errors: it was {}", kind.name());
        assert_eq!(
            drive.fails("1.1.5", kind),
            [
                format!("1.1.5 failed: {}", kind.name()),
                format!("stage 1 failed: {reason}"),
                format!("run failed: {reason}"),
                "finish".into()
            ]
        );
        assert_eq!(drive.run.stages[0].iterations, 0);
        assert_eq!((drive.run.tokens, drive.run.cost_micros), (25, 500), "failed attempts cost, too");
    }
}

#[test]
fn the_back_off_has_a_maximum_and_its_base_is_the_plans() {
    let mut plan = loop_of(stage(Rule::FixedN, 1));
    plan.limits = RunLimits { errors: 100, back_off_ms: 60 * SECOND, ..RunLimits::default() };
    let mut drive = Drive::started(plan.clone());
    for (attempt, rest) in (1..90).zip([30, 120, 240, 300, 300].into_iter().chain(std::iter::repeat(300))) {
        let words = drive.fails(&format!("1.1.{attempt}"), FailureKind::Exit);
        assert_eq!(words[1], format!("wake in {}", rest * SECOND), "attempt {attempt}");
        drive.wakes_after(rest * SECOND);
    }
    plan.limits.back_off_ms = 0;
    let mut drive = Drive::started(plan);
    assert_eq!(
        drive.fails("1.1.1", FailureKind::Exit),
        ["1.1.1 failed: exit", "attempt 1.1.2", "start 1.1.2"],
        "no rest, no waking"
    );
}

#[test]
fn a_success_resets_the_error_count() {
    let mut drive = Drive::started(loop_of(stage(Rule::FixedN, 3)));
    for attempt in 1..=4 {
        drive.fails(&format!("1.1.{attempt}"), FailureKind::Exit);
        drive.wakes_after(MINUTE);
    }
    assert_eq!(drive.errors(), 4);
    drive.ok("1.1.5");
    assert_eq!(drive.errors(), 0);
    drive.fails("1.2.1", FailureKind::Exit);
    assert_eq!((drive.run.status, drive.errors()), (RunStatus::Running, 1));
}

#[test]
fn a_usage_limit_is_waited_for_and_is_no_error() {
    let mut plan = loop_of(stage(Rule::FixedN, 1));
    plan.limits.errors = 1;
    let mut drive = Drive::started(plan);
    let resets = FailureKind::UsageLimit { until_ms: Some(START + 2 * HOUR) };
    assert_eq!(drive.fails("1.1.1", resets), ["1.1.1 failed: usage_limit", "wake in 7200000"]);
    assert_eq!(drive.run.wait, Some(Wait { until_ms: START + 2 * HOUR, why: WaitReason::UsageLimit }));
    assert_eq!(drive.wakes_after(2 * HOUR), ["attempt 1.1.2", "start 1.1.2"]);
    assert_eq!((drive.errors(), drive.run.stages[0].iterations), (0, 0));
    drive.ok("1.1.2");
    assert_eq!(drive.end(), (RunStatus::Completed, Some("fixed-n")));
}

#[test]
fn an_unknown_reset_is_waited_for_longer_each_time() {
    let mut drive = Drive::started(loop_of(stage(Rule::FixedN, 1)));
    for (attempt, minutes) in [(1, 5), (2, 15), (3, 30), (4, 60), (5, 60)] {
        // A reset in the past counts as unknown.
        let until_ms = (attempt % 2 == 0).then_some(START);
        let words = drive.fails(&format!("1.1.{attempt}"), FailureKind::UsageLimit { until_ms });
        assert_eq!(words[1], format!("wake in {}", minutes * MINUTE));
        drive.wakes_after(minutes * MINUTE);
    }
    let words = drive.fails("1.1.6", FailureKind::UsageLimit { until_ms: Some(Millis::MAX) });
    assert_eq!(words[1], format!("wake in {FARTHEST_RESET}"), "no limit is longer than a month");
}

#[test]
fn a_lost_attempt_is_retried_at_once_and_a_second_one_is_an_error() {
    let mut drive = Drive::started(loop_of(stage(Rule::FixedN, 1)));
    assert_eq!(drive.fails("1.1.1", FailureKind::Lost), ["1.1.1 failed: lost", "attempt 1.1.2", "start 1.1.2"]);
    assert_eq!(drive.errors(), 0);
    assert_eq!(drive.fails("1.1.2", FailureKind::Lost), ["1.1.2 failed: lost", "wake in 1000"]);
    assert_eq!(drive.errors(), 1);
    drive.wakes_after(SECOND);
    drive.fails("1.1.3", FailureKind::Exit);
    drive.wakes_after(MINUTE);
    assert_eq!(drive.fails("1.1.4", FailureKind::Lost)[1..], ["attempt 1.1.5", "start 1.1.5"], "the first in a row");
    assert_eq!(drive.fails("1.1.5", FailureKind::Stopped)[1], "wake in 8000", "stopped by another process");
}

#[test]
fn an_attempt_whose_worker_left_is_retried_at_once_and_is_no_error() {
    let mut drive = Drive::started(loop_of(stage(Rule::FixedN, 1)));
    for attempt in 1..20 {
        let kind = if attempt % 2 == 0 { FailureKind::Drained } else { FailureKind::NeverBegan };
        let (failed, next) = (format!("1.1.{attempt}"), format!("1.1.{}", attempt + 1));
        let expected =
            [format!("{failed} failed: {}", kind.name()), format!("attempt {next}"), format!("start {next}")];
        assert_eq!(drive.fails(&failed, kind), expected);
        assert_eq!(drive.errors(), 0);
    }
    drive.fails("1.1.20", FailureKind::Lost);
    drive.fails("1.1.21", FailureKind::NeverBegan);
    assert_eq!(drive.fails("1.1.22", FailureKind::Lost)[1], "wake in 1000", "the second in a row");
}

#[test]
fn an_agent_that_cannot_start_ends_the_run_at_once() {
    let mut drive = Drive::started(loop_of(stage(Rule::FixedN, 3)));
    assert_eq!(
        drive.fails("1.1.1", FailureKind::CannotStart),
        [
            "1.1.1 failed: cannot_start",
            "stage 1 failed: cannot_start: it was cannot_start",
            "run failed: cannot_start: it was cannot_start",
            "finish"
        ]
    );
}

#[test]
fn a_missing_vote_is_a_failed_attempt() {
    let mut drive = Drive::started(loop_of(stage(Rule::Any(vec![Rule::Plateau(2), beads_rule()]), 5)));
    assert_eq!(drive.ok("1.1.1"), ["1.1.1 failed: no_result", "wake in 1000"]);
    assert_eq!(drive.run.tokens, 100, "and it is paid for");
    let mut drive = Drive::started(loop_of(stage(Rule::FixedN, 5)));
    assert_eq!(drive.ok("1.1.1")[1], "commit 1.1.1", "no vote is needed");
}

#[test]
fn an_agent_that_reports_an_error_has_failed_whatever_its_exit_code() {
    let mut plan = loop_of(stage(Rule::FixedN, 5));
    plan.limits.errors = 1;
    let mut drive = Drive::started(plan);
    let result = AgentResult {
        decision: Some(AgentDecision::Error),
        plateau: Some(true),
        reasoning: Some("the database is down\nand more".into()),
        ..AgentResult::default()
    };
    let words = drive.ended("1.1.1", Outcome::Succeeded(Box::new(Success { result, ..success("1") })));
    assert_eq!(words[0], "1.1.1 failed: reported");
    assert_eq!(drive.end(), (RunStatus::Failed, Some("errors: the database is down …")));
}

#[test]
fn a_reason_is_one_short_line_without_control_characters() {
    let mut plan = loop_of(stage(Rule::FixedN, 5));
    plan.limits.errors = 1;
    for (message, reason) in [
        (format!("\u{1b}[31m{}", "x".repeat(5_000)), format!("errors: {}…", "x".repeat(199))),
        ("  \n".into(), "errors".to_owned()),
    ] {
        let mut drive = Drive::started(plan.clone());
        let Outcome::Failed(failed) = failure(FailureKind::Exit) else { unreachable!() };
        drive.ended("1.1.1", Outcome::Failed(crate::run::Failure { message, ..failed }));
        assert_eq!(drive.run.reason, Some(reason));
    }
}
