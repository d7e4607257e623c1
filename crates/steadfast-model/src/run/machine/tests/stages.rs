//! Pipelines: gates, stages side by side, conditions, approvals, and what follows a stage that did not end well.

use super::*;
use crate::run::condition::Condition;
use crate::run::{StageState, Then};

fn named(name: &str, rule: Rule, runs: u32) -> StagePlan {
    StagePlan { name: name.into(), ..stage(rule, runs) }
}

fn once(name: &str, needs: &[u32]) -> StagePlan {
    StagePlan { needs: Some(needs.to_vec()), ..named(name, Rule::FixedN, 1) }
}

fn verify() -> Rule {
    Rule::Verify(vec!["make test".into()])
}

fn verified(holds: bool) -> [(Check, Option<bool>); 1] {
    [(Check::Verify(vec!["make test".into()]), Some(holds))]
}

fn fix_then_deploy(fix: StagePlan) -> Drive {
    Drive::started(pipeline_of(vec![fix, named("deploy", Rule::FixedN, 1)]))
}

fn statuses(drive: &Drive) -> Vec<String> {
    let word = |state: &StageState| format!("{} {}", state.status, state.reason.as_deref().unwrap_or("-"));
    drive.run.stages.iter().map(word).collect()
}

#[test]
fn a_gate_that_does_not_hold_at_its_maximum_stops_the_pipeline() {
    let gates = [
        (verify(), Check::Verify(vec!["make test".into()])),
        (Rule::Command("make".into()), Check::Command("make".into())),
        (Rule::Checklist("PLAN.md".into()), Check::Checklist("PLAN.md".into())),
        (Rule::Any(vec![Rule::Promise("DONE".into()), verify()]), Check::Verify(vec!["make test".into()])),
    ];
    for (rule, check) in gates {
        let mut drive = fix_then_deploy(named("fix", rule.clone(), 1));
        drive.ok("1.1.1");
        let words = drive.checked("1.1.1", &[(check.clone(), Some(false))]);
        let end = ["commit 1.1.1", "stage 1 completed: max_iterations", "run completed: max_iterations", "finish"];
        assert_eq!(words, end, "{rule:?}");
        assert_eq!((drive.run.ended_by, drive.run.stage, drive.run.is_limited()), (Some(1), 1, true));
        assert_eq!(statuses(&drive)[1], "pending -");
        // With a larger maximum the same stage goes on, and then the next one.
        assert_eq!(drive.reopen(Some(1)), [""; 0], "not enough");
        drive.reopen(Some(2));
        assert_eq!(drive.send(RunEvent::Started), ["attempt 1.2.1", "start 1.2.1"]);
        drive.ok("1.2.1");
        drive.checked("1.2.1", &[(check, Some(true))]);
        drive.ok("2.1.1");
        assert_eq!(drive.end(), (RunStatus::Completed, Some("completed")));
        assert_eq!(drive.run.ended_by, None);
    }
}

#[test]
fn a_gate_may_be_told_to_let_the_pipeline_go_on() {
    let mut drive = fix_then_deploy(StagePlan { on_max: Some(Then::Continue), ..named("fix", verify(), 1) });
    drive.ok("1.1.1");
    drive.checked("1.1.1", &verified(false));
    drive.ok("2.1.1");
    assert_eq!(drive.end(), (RunStatus::Completed, Some("completed")));
    assert_eq!(statuses(&drive), ["completed max_iterations", "completed fixed-n"]);
    assert!(!drive.run.is_limited());
}

#[test]
fn rules_that_are_voted_promised_or_counted_let_the_pipeline_go_on() {
    for rule in [Rule::Plateau(2), Rule::Promise("DONE".into())] {
        let mut drive = fix_then_deploy(named("fix", rule.clone(), 1));
        drive.votes("1.1.1", false);
        drive.ok("2.1.1");
        assert_eq!(drive.end(), (RunStatus::Completed, Some("completed")), "{rule:?}");
        let stops = StagePlan { on_max: Some(Then::Stop), ..named("fix", rule, 1) };
        let mut drive = fix_then_deploy(stops);
        drive.votes("1.1.1", false);
        assert_eq!(drive.end(), (RunStatus::Completed, Some("max_iterations")));
    }
}

#[test]
fn a_result_that_says_stop_ends_the_stage_under_every_rule() {
    for rule in [Rule::FixedN, Rule::AllItems, Rule::Plateau(2), Rule::Promise("DONE".into())] {
        let fix = StagePlan { items: vec!["a".into(), "b".into()], ..named("fix", rule.clone(), 6) };
        let mut drive = fix_then_deploy(fix);
        drive.stops("1.1.1");
        assert_eq!(statuses(&drive), ["completed stopped", "running -"], "{rule:?}");
    }
    let mut drive = fix_then_deploy(named("fix", beads_rule(), 6));
    drive.stops("1.1.1");
    drive.checked("1.1.1", &[(beads(), Some(false))]);
    assert_eq!(statuses(&drive), ["completed stopped", "running -"], "no gate");
}

#[test]
fn a_gate_that_does_not_hold_is_not_passed_by_saying_stop() {
    for (rule, check) in [
        (verify(), verified(true)[0].0.clone()),
        (Rule::Command("make test".into()), Check::Command("make test".into())),
        (Rule::Checklist("PLAN.md".into()), Check::Checklist("PLAN.md".into())),
    ] {
        let stopped = |holds: bool| {
            let mut drive = fix_then_deploy(named("fix", rule.clone(), 6));
            drive.stops("1.1.1");
            drive.checked("1.1.1", &[(check.clone(), Some(holds))]);
            drive
        };
        let drive = stopped(false);
        assert_eq!(drive.end(), (RunStatus::Completed, Some("stopped")), "{rule:?}");
        assert!(drive.run.is_limited() && drive.run.ended_by == Some(1), "{rule:?}");
        assert_eq!(statuses(&stopped(true)), [&format!("completed {}", rule.name()), "running -"]);
    }
}

#[test]
fn stop_counts_only_after_the_minimum_and_not_where_it_is_a_promise() {
    let mut drive = fix_then_deploy(StagePlan { min_iterations: 2, ..named("fix", Rule::Plateau(3), 6) });
    drive.stops("1.1.1");
    assert_eq!(drive.run.stages[0].status, StageStatus::Running);
    drive.stops("1.2.1");
    assert_eq!(statuses(&drive)[0], "completed stopped");
    let mut drive = Drive::started(loop_of(StagePlan { stop_is_promise: true, ..stage(verify(), 6) }));
    drive.stops("1.1.1");
    drive.checked("1.1.1", &verified(false));
    assert_eq!(drive.run.status, RunStatus::Running);
}

#[test]
fn a_stop_that_comes_while_the_run_is_stopped_counts_after_resuming() {
    let mut drive = Drive::started(loop_of(stage(Rule::FixedN, 6)));
    drive.send(RunEvent::StopRequested(killed()));
    drive.stops("1.1.1");
    assert_eq!(drive.run.status, RunStatus::Killed);
    drive.reopen(None);
    drive.send(RunEvent::Started);
    assert_eq!(drive.end(), (RunStatus::Completed, Some("stopped")));
    assert_eq!(drive.run.stages[0].iterations, 1);
}

#[test]
fn stages_without_a_common_need_run_at_the_same_time() {
    let stages = vec![once("plan", &[]), once("api", &[1]), once("page", &[1]), once("ship", &[2, 3])];
    let mut drive = Drive::started(pipeline_of(stages));
    let words = drive.ok("1.1.1");
    assert_eq!(
        words[3..],
        ["stage 2 begins", "stage 3 begins", "attempt 2.1.1", "attempt 3.1.1", "start 2.1.1", "start 3.1.1"]
    );
    drive.ok("3.1.1");
    assert_eq!((drive.run.stage, statuses(&drive)[3].as_str()), (2, "pending -"));
    assert_eq!(drive.ok("2.1.1")[3..], ["stage 4 begins", "attempt 4.1.1", "start 4.1.1"]);
    drive.ok("4.1.1");
    assert_eq!(drive.end(), (RunStatus::Completed, Some("completed")));
}

#[test]
fn no_more_agents_run_at_once_than_the_run_allows() {
    let mut plan = pipeline_of((0..5).map(|number| once(&format!("s{number}"), &[])).collect());
    plan.limits.parallel = 2;
    let mut drive = Drive::started(plan);
    assert_eq!(drive.run.active.len(), 2);
    drive.ok("1.1.1");
    assert_eq!(drive.run.active.len(), 2);
}

#[test]
fn the_delay_of_one_stage_does_not_hold_up_another() {
    let slow = StagePlan { delay_ms: 5 * SECOND, runs: 2, ..once("slow", &[]) };
    let mut drive = Drive::started(pipeline_of(vec![slow, StagePlan { runs: 2, ..once("fast", &[]) }]));
    assert_eq!(drive.ok("1.1.1"), ["1.1.1 came through", "commit 1.1.1", "wake in 5000"]);
    assert_eq!(drive.ok("2.1.1"), ["2.1.1 came through", "commit 2.1.1", "attempt 2.2.1", "start 2.2.1"]);
    assert_eq!(drive.wakes_after(5 * SECOND), ["attempt 1.2.1", "start 1.2.1"]);
}

fn with_condition() -> Drive {
    let when = Some(Condition::Exists("PLAN.md".into()));
    let maybe = StagePlan { when, approve: Some("Ship it?".into()), ..once("maybe", &[1]) };
    let mut drive = Drive::started(pipeline_of(vec![once("first", &[]), maybe, once("last", &[2])]));
    assert_eq!(drive.ok("1.1.1").last().unwrap(), "decide 2");
    drive
}

fn decided(drive: &mut Drive, holds: Option<bool>) -> Vec<String> {
    drive.send(RunEvent::Decided { stage: 2, holds, detail: "no PLAN.md".into() })
}

fn answered(drive: &mut Drive, approved: bool) -> Vec<String> {
    drive.send(RunEvent::Answered { stage: 2, approved, note: Some("go".into()) })
}

#[test]
fn a_stage_whose_condition_does_not_hold_is_skipped() {
    let mut drive = with_condition();
    let words = decided(&mut drive, Some(false));
    assert_eq!(words[..2], ["stage 2 skipped: condition: no PLAN.md", "stage 3 begins"]);
    drive.ok("3.1.1");
    assert_eq!(drive.end(), (RunStatus::Completed, Some("completed")));
    assert_eq!(decided(&mut drive, Some(true)), [""; 0], "too late");
}

#[test]
fn a_condition_that_cannot_be_tested_fails_the_run() {
    let mut drive = with_condition();
    decided(&mut drive, None);
    assert_eq!(drive.end(), (RunStatus::Failed, Some("condition: no PLAN.md")));
    drive.reopen(None);
    assert_eq!(drive.send(RunEvent::Started), ["decide 2"]);
}

#[test]
fn a_new_engine_tests_an_open_condition_again() {
    let mut drive = with_condition();
    assert_eq!(drive.send(RunEvent::Started), ["decide 2"]);
}

#[test]
fn a_stage_waits_for_a_persons_yes() {
    let mut drive = with_condition();
    assert_eq!(decided(&mut drive, Some(true)), ["ask for stage 2"]);
    assert_eq!(drive.send(RunEvent::Started), [""; 0], "it is asked once");
    assert_eq!(answered(&mut drive, true)[..2], ["stage 2 begins", "attempt 2.1.1"]);
    assert_eq!(drive.run.stages[1].answer.as_deref(), Some("go"));
    assert_eq!(answered(&mut drive, false), [""; 0], "too late");
}

#[test]
fn a_rejected_stage_fails_and_is_asked_for_again_on_resume() {
    let mut drive = with_condition();
    decided(&mut drive, Some(true));
    answered(&mut drive, false);
    assert_eq!(drive.end(), (RunStatus::Failed, Some("rejected: go")));
    assert_eq!(drive.run.ended_by, Some(2));
    drive.reopen(None);
    assert_eq!(drive.send(RunEvent::Started), ["decide 2"]);
    assert_eq!(decided(&mut drive, Some(true)), ["ask for stage 2"]);
}

#[test]
fn a_kill_while_a_person_is_asked_ends_the_run_and_resume_asks_again() {
    let mut drive = with_condition();
    decided(&mut drive, Some(true));
    drive.send(RunEvent::StopRequested(killed()));
    assert_eq!(drive.run.status, RunStatus::Killed);
    drive.reopen(None);
    assert_eq!(drive.send(RunEvent::Started), ["decide 2"]);
}

#[test]
fn the_time_limit_of_the_run_holds_while_a_person_is_asked() {
    let asks = StagePlan { approve: Some("Go?".into()), ..once("ask", &[]) };
    let mut drive = Drive::new(Plan { limits: at_most(Axis::Hours, HOUR), ..pipeline_of(vec![asks]) });
    assert_eq!(drive.send(RunEvent::Started), ["ask for stage 1", "wake in 3600000"]);
    drive.wakes_after(HOUR);
    assert_eq!(drive.end(), (RunStatus::Completed, Some("max_hours")));
}

#[test]
fn a_failed_stage_may_let_the_others_go_on() {
    let fails = StagePlan { on_fail: Then::Continue, retries: Some(1), ..once("lint", &[]) };
    let mut drive = Drive::started(pipeline_of(vec![fails, once("build", &[1])]));
    drive.fails("1.1.1", FailureKind::Exit);
    drive.wakes_after(SECOND);
    let words = drive.fails("1.1.2", FailureKind::Exit);
    assert_eq!(words[1..3], ["stage 1 failed: errors: it was exit", "stage 2 begins"]);
    drive.ok("2.1.1");
    assert_eq!(drive.end(), (RunStatus::Completed, Some("completed")));
}

#[test]
fn retries_replace_the_errors_of_the_run() {
    let mut drive = Drive::started(pipeline_of(vec![StagePlan { retries: Some(0), ..once("lint", &[]) }]));
    drive.fails("1.1.1", FailureKind::Exit);
    assert_eq!((drive.end().0, drive.run.ended_by), (RunStatus::Failed, Some(1)));
}

#[test]
fn a_parallel_stage_that_may_fail_gives_up_single_iterations() {
    let three = StagePlan { parallel: true, runs: 3, retries: Some(0), on_fail: Then::Continue, ..once("try", &[]) };
    let mut drive = Drive::started(pipeline_of(vec![three.clone(), once("judge", &[1])]));
    drive.fails("1.2.1", FailureKind::Exit);
    drive.ok("1.1.1");
    drive.ok("1.3.1");
    assert_eq!(statuses(&drive), ["completed fixed-n", "running -"]);
    assert_eq!((drive.run.stages[0].iterations, drive.run.stages[0].given_up), (2, 1));
    let mut drive = Drive::started(pipeline_of(vec![three, once("judge", &[1])]));
    for attempt in ["1.1.1", "1.2.1", "1.3.1"] {
        drive.fails(attempt, FailureKind::Exit);
    }
    assert_eq!(statuses(&drive), ["failed errors: it was exit", "running -"]);
}

#[test]
fn a_stage_at_a_limit_of_its_own_stops_the_pipeline() {
    for (axis, amount, reason) in
        [(Axis::Tokens, 150, "budget_tokens"), (Axis::Usd, 3_000, "budget_usd"), (Axis::Hours, MINUTE, "max_hours")]
    {
        let limits = Limits::default().with(axis, amount);
        let capped = StagePlan { limits, ..named("fix", Rule::FixedN, 9) };
        let mut drive = fix_then_deploy(capped.clone());
        drive.now += MINUTE - SECOND;
        drive.ok("1.1.1");
        drive.now += SECOND;
        drive.ok("1.2.1");
        assert_eq!(drive.end(), (RunStatus::Completed, Some(reason)));
        assert_eq!((drive.run.ended_by, drive.reopen(Some(20))), (Some(1), Vec::new()), "its limit is still reached");
        let mut drive = fix_then_deploy(StagePlan { on_max: Some(Then::Continue), ..capped });
        drive.now += MINUTE;
        drive.ok("1.1.1");
        drive.ok("1.2.1");
        assert_eq!(statuses(&drive), [format!("completed {reason}"), "running -".to_owned()]);
    }
}

#[test]
fn an_attempt_gets_the_time_that_its_stage_has_left() {
    let limits = Limits::default().with(Axis::Hours, HOUR);
    let drive = fix_then_deploy(StagePlan { limits, ..named("fix", Rule::FixedN, 9) });
    let left = attempt_time_left(&drive.plan, &drive.run, 1, drive.now + 40 * MINUTE);
    assert_eq!(left, Some(20 * MINUTE));
    assert_eq!(attempt_time_left(&drive.plan, &drive.run, 2, drive.now), None);
}

#[test]
fn an_attempt_that_reports_no_tokens_ends_a_run_with_a_limit_on_tokens() {
    let mut drive = Drive::started(Plan { limits: at_most(Axis::Tokens, 1_000), ..loop_of(stage(Rule::FixedN, 3)) });
    let mut silent = success("1");
    silent.usage.tokens_unknown = true;
    drive.ended("1.1.1", Outcome::Succeeded(Box::new(silent)));
    assert_eq!(drive.end().1, Some("budget_tokens: an attempt did not report what it used"));
}

#[test]
fn when_one_stage_ends_the_run_the_others_may_finish_and_are_continued_later() {
    let fails = StagePlan { retries: Some(0), ..once("lint", &[]) };
    let mut drive = Drive::started(pipeline_of(vec![fails, StagePlan { runs: 2, ..once("build", &[]) }]));
    drive.fails("1.1.1", FailureKind::Exit);
    assert_eq!(drive.run.status, RunStatus::Running, "build still works");
    drive.ok("2.1.1");
    assert_eq!(statuses(&drive), ["failed errors: it was exit", "failed errors: it was exit"]);
    assert_eq!((drive.end().0, drive.run.ended_by), (RunStatus::Failed, Some(1)));
    drive.reopen(None);
    let words = drive.send(RunEvent::Started);
    assert_eq!(words, ["attempt 1.1.2", "attempt 2.2.1", "start 1.1.2", "start 2.2.1"]);
}

#[test]
fn stages_that_need_each_other_end_the_run() {
    let mut drive = Drive::started(pipeline_of(vec![once("a", &[2]), once("b", &[1])]));
    assert_eq!(drive.end().0, RunStatus::Failed);
    drive.reopen(None);
    drive.send(RunEvent::Started);
    assert_eq!(drive.end().0, RunStatus::Failed);
}

#[test]
fn an_unknown_cost_of_one_stage_does_not_end_another() {
    let limits = Limits::default().with(Axis::Usd, 1_000_000);
    let stages = vec![once("script", &[]), StagePlan { limits, ..once("agent", &[1]) }];
    let unknown = || {
        let mut silent = success("1");
        silent.usage.cost_unknown = true;
        Outcome::Succeeded(Box::new(silent))
    };
    let mut drive = Drive::started(pipeline_of(stages));
    drive.ended("1.1.1", unknown());
    assert_eq!(statuses(&drive), ["completed fixed-n", "running -"]);
    // Its own unknown cost does.
    let mut drive = Drive::started(pipeline_of(vec![StagePlan { limits, runs: 2, ..once("agent", &[]) }]));
    drive.ended("1.1.1", unknown());
    assert_eq!(drive.end(), (RunStatus::Completed, Some("budget_usd")));
}
