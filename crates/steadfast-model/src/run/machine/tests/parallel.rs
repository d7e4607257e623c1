//! Stages whose iterations run at once.

use super::*;

fn four_by_two() -> Plan {
    let mut plan = loop_of(StagePlan { parallel: true, ..stage(Rule::FixedN, 4) });
    plan.limits.parallel = 2;
    plan.limits.errors = 2;
    plan
}

#[test]
fn all_iterations_run_a_few_at_a_time_and_end_in_any_order() {
    let mut drive = Drive::new(four_by_two());
    assert_eq!(
        drive.send(RunEvent::Started),
        ["stage 1 begins", "attempt 1.1.1", "attempt 1.2.1", "start 1.1.1", "start 1.2.1"]
    );
    assert_eq!(drive.ok("1.2.1"), ["1.2.1 came through", "commit 1.2.1", "attempt 1.3.1", "start 1.3.1"]);
    assert_eq!(drive.ok("1.3.1"), ["1.3.1 came through", "commit 1.3.1", "attempt 1.4.1", "start 1.4.1"]);
    assert_eq!(drive.ok("1.4.1"), ["1.4.1 came through", "commit 1.4.1"]);
    assert_eq!(
        drive.ok("1.1.1"),
        ["1.1.1 came through", "commit 1.1.1", "stage 1 completed: fixed-n", "run completed: fixed-n", "finish"]
    );
}

#[test]
fn each_iteration_is_retried_separately_and_keeps_its_number() {
    let mut drive = Drive::started(four_by_two());
    assert_eq!(drive.fails("1.1.1", FailureKind::Exit), ["1.1.1 failed: exit", "wake in 1000"]);
    let resets = FailureKind::UsageLimit { until_ms: None };
    assert_eq!(drive.fails("1.2.1", resets), ["1.2.1 failed: usage_limit"], "the other one is sooner");
    assert_eq!(drive.wakes_after(SECOND), ["attempt 1.1.2", "start 1.1.2", "wake in 299000"]);
    assert_eq!(drive.ok("1.1.2")[1..], ["commit 1.1.2", "attempt 1.3.1", "start 1.3.1"]);
    assert_eq!(drive.errors(), 0);
    assert_eq!(drive.wakes_after(5 * MINUTE), ["attempt 1.2.2", "start 1.2.2"]);
}

#[test]
fn a_failed_iteration_fails_the_stage_after_the_others_end() {
    let mut drive = Drive::started(four_by_two());
    drive.fails("1.1.1", FailureKind::Exit);
    drive.wakes_after(SECOND);
    assert_eq!(drive.fails("1.1.2", FailureKind::Exit), ["1.1.2 failed: exit"], "the second one still runs");
    assert_eq!(
        drive.ok("1.2.1"),
        [
            "1.2.1 came through",
            "commit 1.2.1",
            "stage 1 failed: errors: it was exit",
            "run failed: errors: it was exit",
            "finish"
        ]
    );
    assert_eq!(drive.run.stages[0].left, [id("1.1.2")]);
    drive.reopen(None);
    assert_eq!(
        drive.send(RunEvent::Started),
        ["attempt 1.1.3", "attempt 1.3.1", "start 1.1.3", "start 1.3.1"],
        "what failed first, and then what had not begun"
    );
    for attempt in ["1.3.1", "1.4.1", "1.1.3"] {
        drive.ok(attempt);
    }
    assert_eq!((drive.end(), drive.run.stages[0].iterations), ((RunStatus::Completed, Some("fixed-n")), 4));
}

#[test]
fn a_stop_ends_all_iterations_and_resume_runs_the_missing_ones() {
    let mut drive = Drive::started(four_by_two());
    drive.ok("1.2.1");
    assert_eq!(drive.send(RunEvent::StopRequested(killed())), ["stop 1.1.1,1.3.1"]);
    drive.fails("1.3.1", FailureKind::Stopped);
    assert_eq!(drive.run.status, RunStatus::Running);
    drive.fails("1.1.1", FailureKind::Stopped);
    assert_eq!(drive.run.status, RunStatus::Killed);
    let refused = reopen(&drive.plan, &drive.run, Some(3), drive.now);
    assert_eq!(
        refused,
        Err(ReopenError::NotEnough { iterations: 1, max: 3 }),
        "agents with a number cannot be taken back"
    );
    drive.reopen(Some(5));
    assert_eq!(drive.send(RunEvent::Started)[..2], ["attempt 1.1.2", "attempt 1.3.2"]);
    for attempt in ["1.1.2", "1.3.2", "1.4.1", "1.5.1"] {
        drive.ok(attempt);
    }
    assert_eq!((drive.end(), drive.run.stages[0].iterations), ((RunStatus::Completed, Some("fixed-n")), 5));
}

#[test]
fn at_a_budget_nothing_new_starts_and_the_rest_ends() {
    let mut plan = four_by_two();
    plan.limits.limits.set(Axis::Tokens, Some(100));
    let mut drive = Drive::started(plan);
    assert_eq!(drive.ok("1.1.1"), ["1.1.1 came through", "commit 1.1.1"]);
    assert_eq!(drive.ok("1.2.1")[2..], ["stage 1 completed: budget_tokens", "run completed: budget_tokens", "finish"]);
}

#[test]
fn a_parallel_rule_only_sets_the_number_of_iterations() {
    for (rule, reason, agents) in
        [(Rule::AllItems, "all-items", 2), (Rule::Plateau(2), "fixed-n", 4), (beads_rule(), "fixed-n", 4)]
    {
        let mut plan = four_by_two();
        plan.stages[0] = StagePlan {
            check_before: true,
            delay_ms: HOUR,
            items: vec!["a".into(), "b".into()],
            completion: rule,
            ..plan.stages[0].clone()
        };
        let mut drive = Drive::started(plan);
        for iteration in 1..=agents {
            assert_eq!(drive.run.status, RunStatus::Running, "{reason}");
            drive.ok(&format!("1.{iteration}.1"));
        }
        assert_eq!(drive.end(), (RunStatus::Completed, Some(reason)));
    }
}

/// The documented bound: a limit is passed by what the branches of the first wave use, and by no more.
#[test]
fn a_budget_is_shared_by_all_branches_and_passed_by_the_running_ones_only() {
    let mut plan = loop_of(StagePlan { parallel: true, ..stage(Rule::FixedN, 9) });
    plan.limits = RunLimits { parallel: 3, ..at_most(Axis::Tokens, 150) };
    let mut drive = Drive::started(plan);
    let did = drive.ok("1.2.1");
    assert_eq!(
        did,
        ["1.2.1 came through", "commit 1.2.1"],
        "two run, and the rest of the budget pays for less than one"
    );
    assert_eq!(drive.ok("1.1.1"), ["1.1.1 came through", "commit 1.1.1"], "200 of 150: nothing starts");
    assert_eq!(drive.wakes_after(MINUTE), Vec::<String>::new());
    drive.ok("1.3.1");
    assert_eq!(drive.end(), (RunStatus::Completed, Some("budget_tokens")));
    assert_eq!(drive.run.tokens, 300, "one wave");
}

#[test]
fn all_branches_are_stopped_when_their_sum_passes_a_budget() {
    let mut plan = four_by_two();
    plan.limits.limits.set(Axis::Usd, Some(10_000));
    let mut drive = Drive::started(plan);
    drive.ok("1.1.1");
    assert_eq!(drive.send(RunEvent::Using { tokens: 0, cost_micros: 7_999 }), Vec::<String>::new());
    assert_eq!(drive.send(RunEvent::Using { tokens: 0, cost_micros: 8_000 }), ["stop 1.2.1,1.3.1"]);
    drive.fails("1.2.1", FailureKind::Stopped);
    drive.fails("1.3.1", FailureKind::Stopped);
    assert_eq!(drive.end(), (RunStatus::Completed, Some("budget_usd")));
    assert_eq!(drive.run.stages[0].left, [id("1.2.1"), id("1.3.1")], "resuming repeats them");
}
