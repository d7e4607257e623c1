//! Limits, stopping, and resuming after an end.

use super::*;

fn limited(limits: RunLimits) -> Plan {
    Plan { limits, ..loop_of(stage(Rule::Promise("DONE".into()), 9)) }
}

#[test]
fn a_reached_limit_ends_the_run_after_the_current_attempt() {
    let tokens = at_most(Axis::Tokens, 200);
    let usd = at_most(Axis::Usd, 4_000);
    let wall = at_most(Axis::Hours, 2 * HOUR);
    for (limits, reason) in [(tokens, "budget_tokens"), (usd, "budget_usd"), (wall, "max_hours")] {
        let mut drive = Drive::started(limited(limits));
        drive.now += HOUR;
        assert_eq!(drive.ok("1.1.1").last().unwrap(), "start 1.2.1", "{reason}");
        drive.now += HOUR;
        assert_eq!(
            drive.ok("1.2.1")[1..],
            [
                "commit 1.2.1".to_owned(),
                format!("stage 1 completed: {reason}"),
                format!("run completed: {reason}"),
                "finish".into()
            ]
        );
    }
}

#[test]
fn at_a_limit_the_rule_is_checked_and_decides() {
    let limits = at_most(Axis::Tokens, 1);
    for (holds, reason) in [(true, "beads-empty"), (false, "budget_tokens")] {
        let mut drive = Drive::started(Plan { limits: limits.clone(), ..loop_of(stage(beads_rule(), 9)) });
        assert_eq!(drive.ok("1.1.1"), ["1.1.1 came through", "check 1.1.1 beads loop/auth"]);
        drive.checked("1.1.1", &[(beads(), Some(holds))]);
        assert_eq!(drive.end(), (RunStatus::Completed, Some(reason)));
        assert_eq!(drive.run.stages[0].iterations, 1);
    }
}

#[test]
fn a_shared_cap_is_checked_again_on_resume() {
    let mut drive = Drive::started(limited(RunLimits::default()));
    assert_eq!(drive.send(RunEvent::CapReached), Vec::<String>::new(), "what is under way may end");
    drive.ok("1.1.1");
    assert_eq!(drive.end(), (RunStatus::Completed, Some("cost_cap")));
    drive.reopen(None);
    assert_eq!(drive.send(RunEvent::Started).last().unwrap(), "start 1.2.1");
}

#[test]
fn a_limit_counts_failed_attempts_and_stops_their_repetition() {
    let limits = at_most(Axis::Tokens, 5);
    let mut drive = Drive::started(limited(limits));
    drive.fails("1.1.1", FailureKind::Transient);
    assert_eq!(drive.end(), (RunStatus::Completed, Some("budget_tokens")));
    assert_eq!(drive.run.stages[0].left, [id("1.1.1")]);
}

#[test]
fn a_delay_ends_at_the_time_limit() {
    let limits = at_most(Axis::Hours, HOUR);
    let mut drive = Drive::started(limited(limits));
    let resets = FailureKind::UsageLimit { until_ms: Some(START + 5 * HOUR) };
    assert_eq!(drive.fails("1.1.1", resets)[1], format!("wake in {HOUR}"));
    drive.wakes_after(HOUR);
    assert_eq!(drive.end(), (RunStatus::Completed, Some("max_hours")));
}

#[test]
fn a_stop_waits_for_what_it_stopped() {
    let mut drive = Drive::started(loop_of(stage(Rule::FixedN, 9)));
    assert_eq!(drive.send(RunEvent::StopRequested(killed())), ["stop 1.1.1"]);
    assert_eq!(drive.send(RunEvent::Started), ["stop 1.1.1"], "asked for again after a crash");
    assert_eq!(
        drive.fails("1.1.1", FailureKind::Stopped),
        ["1.1.1 failed: stopped", "stage 1 failed: killed by user", "run killed: killed by user", "finish"]
    );
    assert_eq!(drive.send(RunEvent::StopRequested(killed())), Vec::<String>::new());
}

#[test]
fn a_stop_keeps_the_work_of_an_agent_that_succeeded() {
    let mut drive = Drive::started(loop_of(stage(Rule::FixedN, 1)));
    drive.send(RunEvent::StopRequested(killed()));
    assert_eq!(drive.ok("1.1.1")[..2], ["1.1.1 came through", "commit 1.1.1"]);
    assert_eq!(drive.end(), (RunStatus::Killed, Some("killed by user")));
    drive.reopen(None);
    assert_eq!(
        drive.send(RunEvent::Started),
        ["stage 1 completed: fixed-n", "run completed: fixed-n", "finish"],
        "what was done before the stop is not done again"
    );
}

#[test]
fn a_stop_commits_no_unchecked_iteration_and_resume_checks_it_first() {
    const ENDED: [&str; 3] = ["stage 1 failed: killed by user", "run killed: killed by user", "finish"];
    let in_the_test = |drive: &mut Drive| {
        drive.ok("1.1.1");
        assert_eq!(drive.send(RunEvent::StopRequested(killed())), ENDED);
    };
    let in_the_attempt = |drive: &mut Drive| {
        drive.send(RunEvent::StopRequested(killed()));
        assert_eq!(drive.ok("1.1.1")[1..], ENDED);
    };
    for stop in [in_the_test as fn(&mut Drive), in_the_attempt] {
        let mut drive = Drive::started(loop_of(stage(beads_rule(), 1)));
        stop(&mut drive);
        assert_eq!((drive.run.stages[0].iterations, drive.run.active.len()), (0, 0));
        drive.reopen(None);
        assert_eq!(drive.send(RunEvent::Started), ["check 1.1.1 beads loop/auth"]);
        assert_eq!(drive.send(RunEvent::Started), ["check 1.1.1 beads loop/auth"], "asked for again after a crash");
        assert_eq!(
            drive.checked("1.1.1", &[(beads(), Some(true))]),
            ["commit 1.1.1", "stage 1 completed: beads-empty", "run completed: beads-empty", "finish"]
        );
    }
}

#[test]
fn a_promise_made_during_a_stop_still_counts() {
    let mut drive = Drive::started(loop_of(stage(Rule::Promise("DONE".into()), 9)));
    drive.send(RunEvent::StopRequested(killed()));
    let done = Success { promises: vec!["DONE".into()], ..success("done") };
    drive.ended("1.1.1", Outcome::Succeeded(Box::new(done)));
    assert_eq!(drive.end(), (RunStatus::Killed, Some("killed by user")));
    drive.reopen(None);
    drive.send(RunEvent::Started);
    assert_eq!((drive.end(), drive.run.stages[0].iterations), ((RunStatus::Completed, Some("promise")), 1));
}

#[test]
fn a_stop_ends_a_waiting_or_checking_run_at_once() {
    let rests = |drive: &mut Drive| drive.fails("1.1.1", FailureKind::Exit);
    let delays = |drive: &mut Drive| drive.ok("1.1.1");
    let plan = loop_of(StagePlan { delay_ms: HOUR, ..stage(Rule::FixedN, 9) });
    for prepare in [rests as fn(&mut Drive) -> Vec<String>, delays] {
        let mut drive = Drive::started(plan.clone());
        prepare(&mut drive);
        assert_eq!(drive.send(RunEvent::StopRequested(killed())).last().unwrap(), "finish");
        assert_eq!((drive.run.status, drive.run.wait), (RunStatus::Killed, None));
    }
    let tests = StagePlan { check_before: true, ..stage(beads_rule(), 9) };
    let mut drive = Drive::started(loop_of(tests));
    assert_eq!(drive.send(RunEvent::StopRequested(killed())).last().unwrap(), "finish");
}

#[test]
fn a_stop_outranks_a_limit_and_the_first_stop_wins() {
    let limits = at_most(Axis::Hours, HOUR);
    let mut drive = Drive::started(limited(limits));
    drive.wakes_after(HOUR);
    assert_eq!(drive.run.stopping.as_ref().unwrap().reason, "max_hours");
    assert_eq!(drive.send(RunEvent::StopRequested(killed())), ["stop 1.1.1"]);
    let later = Stopping { status: RunStatus::Running, reason: "later".into() };
    assert_eq!(drive.send(RunEvent::StopRequested(later)), ["stop 1.1.1"]);
    drive.fails("1.1.1", FailureKind::Stopped);
    assert_eq!(drive.end(), (RunStatus::Killed, Some("killed by user")));
}

#[test]
fn an_attempt_cut_by_the_runs_time_limit_is_not_an_error() {
    let limits = RunLimits { errors: 1, ..at_most(Axis::Hours, HOUR) };
    let plan = limited(limits);
    let mut drive = Drive::started(plan.clone());
    assert_eq!(time_left(&plan, &drive.run, drive.now + HOUR - SECOND), Some(SECOND));
    drive.now += HOUR;
    assert_eq!(time_left(&plan, &drive.run, drive.now + SECOND), Some(0));
    drive.fails("1.1.1", FailureKind::TimedOut);
    assert_eq!(drive.end(), (RunStatus::Completed, Some("max_hours")));
    // Without that, its own time limit is an error like any other.
    let mut drive = Drive::started(plan);
    drive.fails("1.1.1", FailureKind::TimedOut);
    assert_eq!(drive.run.status, RunStatus::Failed);
}

#[test]
fn a_run_cannot_be_stopped_into_running() {
    let mut drive = Drive::new(loop_of(stage(Rule::FixedN, 9)));
    let odd = Stopping { status: RunStatus::Running, reason: "odd".into() };
    drive.send(RunEvent::StopRequested(odd));
    assert_eq!(drive.end(), (RunStatus::Killed, Some("odd")));
}

#[test]
fn a_killed_run_resumes_with_a_new_attempt_of_the_same_iteration() {
    let mut drive = Drive::started(loop_of(stage(Rule::FixedN, 3)));
    drive.ok("1.1.1");
    drive.fails("1.2.1", FailureKind::Exit);
    drive.wakes_after(SECOND);
    drive.send(RunEvent::StopRequested(killed()));
    drive.fails("1.2.2", FailureKind::Stopped);
    assert_eq!(drive.reopen(None), ["reopened"]);
    let state = &drive.run.stages[0];
    assert_eq!((state.status, state.completed_at_ms, &state.reason), (StageStatus::Running, None, &None));
    assert_eq!(drive.send(RunEvent::Started), ["attempt 1.2.3", "start 1.2.3"]);
    drive.ok("1.2.3");
    drive.ok("1.3.1");
    assert_eq!((drive.end(), drive.run.stages[0].iterations), ((RunStatus::Completed, Some("fixed-n")), 3));
}

#[test]
fn reopening_resets_errors_and_idle_iterations() {
    let mut plan = loop_of(stage(Rule::Promise("DONE".into()), 20));
    plan.limits.errors = 2;
    plan.limits.idle = 1;
    let mut drive = Drive::started(plan);
    drive.fails("1.1.1", FailureKind::Exit);
    drive.wakes_after(MINUTE);
    drive.fails("1.1.2", FailureKind::Exit);
    assert_eq!(drive.run.status, RunStatus::Failed);
    drive.reopen(None);
    drive.send(RunEvent::Started);
    drive.fails("1.1.3", FailureKind::Exit);
    assert_eq!((drive.run.status, drive.errors()), (RunStatus::Running, 1));
    drive.wakes_after(MINUTE);
    for attempt in ["1.1.4", "1.2.1"] {
        drive.ended(attempt, Outcome::Succeeded(Box::new(success("same"))));
    }
    assert_eq!(drive.end(), (RunStatus::Failed, Some("no_progress")));
    drive.reopen(None);
    assert_eq!(drive.run.stages[0].idle, 0);
    assert_eq!(drive.send(RunEvent::Started), ["attempt 1.3.1", "start 1.3.1"]);
}

#[test]
fn a_run_at_its_maximum_resumes_only_with_a_larger_one() {
    for rule in [Rule::Promise("DONE".into()), Rule::FixedN] {
        let mut drive = Drive::started(loop_of(stage(rule, 1)));
        drive.ok("1.1.1");
        for (max, shown) in [(None, 1), (Some(0), 0), (Some(1), 1)] {
            let refused = reopen(&drive.plan, &drive.run, max, drive.now);
            assert_eq!(refused, Err(ReopenError::NotEnough { iterations: 1, max: shown }));
        }
        assert_eq!(drive.reopen(Some(2)), ["reopened"]);
        assert_eq!(drive.run.max_iterations(&drive.plan, 1), 2);
        drive.send(RunEvent::Started);
        drive.ok("1.2.1");
        assert_eq!((drive.run.status, drive.run.stages[0].iterations), (RunStatus::Completed, 2));
    }
}

#[test]
fn a_run_that_is_done_or_running_is_not_reopened() {
    let mut drive = Drive::started(pipeline_of(vec![stage(Rule::FixedN, 1)]));
    assert_eq!(reopen(&drive.plan, &drive.run, Some(5), START), Err(ReopenError::Running));
    drive.ok("1.1.1");
    let refused = reopen(&drive.plan, &drive.run, Some(5), START);
    assert_eq!(refused, Err(ReopenError::Completed { reason: "completed".into() }));
}

#[test]
fn a_run_at_a_limit_resumes_once_the_limit_is_larger() {
    let limits = at_most(Axis::Tokens, 100);
    let stages = vec![stage(Rule::FixedN, 1), stage(Rule::FixedN, 1)];
    let mut drive = Drive::started(Plan { limits, ..pipeline_of(stages) });
    assert_eq!(
        drive.ok("1.1.1")[2..],
        ["stage 1 completed: fixed-n", "run completed: budget_tokens", "finish"],
        "the second stage has not begun"
    );
    let refused = reopen(&drive.plan, &drive.run, None, drive.now);
    assert_eq!(refused, Err(ReopenError::LimitReached { limit: RunReason::BudgetTokens }));
    drive.plan.limits.limits.set(Axis::Tokens, Some(1_000));
    drive.reopen(None);
    assert_eq!(drive.send(RunEvent::Started), ["stage 2 begins", "attempt 2.1.1", "start 2.1.1"]);
}

#[test]
fn time_between_end_and_resume_is_not_counted() {
    let limits = at_most(Axis::Hours, 2 * HOUR);
    let mut drive = Drive::started(limited(limits));
    drive.now += HOUR;
    drive.send(RunEvent::StopRequested(killed()));
    drive.fails("1.1.1", FailureKind::Stopped);
    drive.now += 100 * HOUR;
    drive.reopen(None);
    assert_eq!(drive.send(RunEvent::Started), ["attempt 1.1.2", "start 1.1.2"]);
    drive.now += HOUR - 1;
    assert_eq!(drive.ok("1.1.2").last().unwrap(), "start 1.2.1");
    drive.now += 1;
    drive.ok("1.2.1");
    assert_eq!(drive.end(), (RunStatus::Completed, Some("max_hours")));
}

#[test]
fn a_run_marked_as_orphaned_keeps_its_active_attempts() {
    let mut drive = Drive::started(loop_of(stage(Rule::FixedN, 3)));
    let step = orphaned(&drive.plan, drive.run.clone(), START + HOUR);
    assert_eq!(drive.words(&step), ["run unknown_termination: engine_gone"]);
    drive.run = step.run;
    assert_eq!(drive.run.active, [ActiveAttempt::new(id("1.1.1"), Phase::Running)]);
    assert_eq!(drive.ok("1.1.1"), Vec::<String>::new(), "no engine drives it");
    assert_eq!(drive.reopen(None), ["reopened"]);
    assert_eq!(drive.send(RunEvent::Started), Vec::<String>::new(), "its agent may still be alive");
    assert_eq!(drive.ok("1.1.1")[1], "commit 1.1.1");

    drive.ok("1.2.1");
    drive.ok("1.3.1");
    let over = drive.run.clone();
    let step = orphaned(&drive.plan, over.clone(), START + HOUR);
    assert_eq!((step.run, step.records), (over, Vec::new()), "a run that is over was seen to end");
}

#[test]
fn a_deadline_holds_while_a_run_waits() {
    let plan = Plan { limits: at_most(Axis::Deadline, START + MINUTE), ..loop_of(stage(Rule::FixedN, 9)) };
    let mut drive = Drive::started(plan);
    assert_eq!(time_left(&drive.plan, &drive.run, drive.now), Some(MINUTE));
    let limited = failure(FailureKind::UsageLimit { until_ms: Some(START + HOUR) });
    let did = drive.send(RunEvent::Ended { id: id("1.1.1"), outcome: limited });
    assert_eq!(did.last().unwrap(), "wake in 60000", "at the deadline, not at the reset: {did:?}");
    drive.wakes_after(MINUTE);
    assert_eq!(drive.end(), (RunStatus::Completed, Some("max_hours")));
}

#[test]
fn what_nested_runs_spend_counts_to_the_limits() {
    let plan = Plan { limits: at_most(Axis::Tokens, 250), ..loop_of(stage(Rule::FixedN, 9)) };
    let mut drive = Drive::started(plan);
    drive.ok("1.1.1");
    assert_eq!(drive.send(RunEvent::NestedSpent { tokens: 150, cost_micros: 1 }), Vec::<String>::new());
    assert_eq!(
        drive.send(RunEvent::NestedSpent { tokens: 150, cost_micros: 1 }),
        Vec::<String>::new(),
        "not added twice"
    );
    assert_eq!(used(&drive.run, drive.now).tokens, 250);
    drive.ok("1.2.1");
    assert_eq!(drive.end(), (RunStatus::Completed, Some("budget_tokens")));
}

#[test]
fn running_attempts_are_stopped_when_they_pass_a_budget() {
    let plan = Plan { limits: at_most(Axis::Tokens, 1_000), ..loop_of(stage(Rule::FixedN, 9)) };
    let mut drive = Drive::started(plan);
    assert_eq!(drive.send(RunEvent::Using { tokens: 999, cost_micros: 0 }), Vec::<String>::new());
    assert_eq!(drive.send(RunEvent::Using { tokens: 1_000, cost_micros: 0 }), ["stop 1.1.1"]);
    drive.send(RunEvent::Ended { id: id("1.1.1"), outcome: failure(FailureKind::Stopped) });
    assert_eq!(drive.end(), (RunStatus::Completed, Some("budget_tokens")));
}
