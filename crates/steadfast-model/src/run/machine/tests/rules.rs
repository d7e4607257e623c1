//! When a stage is over, rule by rule.

use super::*;

#[test]
fn a_plateau_is_two_different_iterations_in_a_row() {
    for (votes, end) in [
        (&[true, true][..], Some("plateau")),
        (&[true, false, true, true], Some("plateau")),
        (&[true, false, true, false, true], Some("max_iterations")),
        (&[false, true], None),
    ] {
        let mut drive = Drive::started(loop_of(stage(Rule::Plateau(2), 5)));
        for (vote, iteration) in votes.iter().zip(1..) {
            assert_eq!(drive.run.status, RunStatus::Running, "{votes:?} before {iteration}");
            drive.votes(&format!("1.{iteration}.1"), *vote);
        }
        assert_eq!(drive.run.reason.as_deref(), end, "{votes:?}");
    }
}

/// Two attempts of one iteration are not two votes.
#[test]
fn attempts_of_one_iteration_are_one_vote() {
    let mut drive = Drive::started(loop_of(stage(Rule::Plateau(2), 5)));
    drive.fails("1.1.1", FailureKind::Lost);
    drive.votes("1.1.2", true);
    drive.votes("1.1.2", true);
    drive.votes("1.1.1", true);
    assert_eq!((drive.run.stages[0].agreeing, drive.run.stages[0].iterations), (1, 1));
    assert_eq!(drive.run.status, RunStatus::Running);
}

#[test]
fn a_stop_decision_is_a_vote_and_the_minimum_still_applies() {
    let plan = loop_of(StagePlan { min_iterations: 3, ..stage(Rule::Plateau(2), 5) });
    let mut drive = Drive::started(plan);
    let stops = |number: u32| {
        let result = AgentResult { decision: Some(AgentDecision::Stop), ..AgentResult::default() };
        Outcome::Succeeded(Box::new(Success { result, ..success(&number.to_string()) }))
    };
    drive.ended("1.1.1", stops(1));
    drive.ended("1.2.1", stops(2));
    assert_eq!((drive.run.stages[0].agreeing, drive.run.status), (2, RunStatus::Running));
    drive.ended("1.3.1", stops(3));
    assert_eq!(drive.end(), (RunStatus::Completed, Some("plateau")));
}

#[test]
fn a_minimum_larger_than_the_maximum_or_of_a_counting_rule_changes_nothing() {
    for (rule, items, reason) in
        [(Rule::FixedN, 0, "fixed-n"), (Rule::AllItems, 2, "all-items"), (Rule::Promise("DONE".into()), 0, "promise")]
    {
        let items = vec!["item".to_owned(); items];
        let mut drive = Drive::started(loop_of(StagePlan { min_iterations: 9, items, ..stage(rule, 2) }));
        for attempt in ["1.1.1", "1.2.1"] {
            let promising = Success { promises: vec!["DONE".into()], ..success(attempt) };
            drive.ended(attempt, Outcome::Succeeded(Box::new(promising)));
        }
        assert_eq!(drive.end(), (RunStatus::Completed, Some(reason)));
    }
}

#[test]
fn a_judge_votes_instead_of_the_worker() {
    let judged = StagePlan { judge: Some(agent()), ..stage(Rule::Plateau(2), 5) };
    let mut drive = Drive::started(loop_of(judged));
    assert_eq!(drive.votes("1.1.1", true), ["1.1.1 came through", "check 1.1.1 judge"]);
    assert_eq!(drive.checked("1.1.1", &[(Check::Judge, Some(false))])[0], "commit 1.1.1");
    assert_eq!(drive.run.stages[0].agreeing, 0, "the worker's own vote does not count");
    // A missing vote of the worker is not an error here.
    assert_eq!(drive.ok("1.2.1"), ["1.2.1 came through", "check 1.2.1 judge"]);
    drive.checked("1.2.1", &[(Check::Judge, Some(true))]);
    drive.votes("1.3.1", true);
    drive.checked("1.3.1", &[(Check::Judge, None)]);
    assert_eq!(drive.run.stages[0].agreeing, 0, "a judge without a verdict breaks the row");
    for iteration in ["1.4.1", "1.5.1"] {
        drive.votes(iteration, false);
        drive.checked(iteration, &[(Check::Judge, Some(true))]);
    }
    assert_eq!(drive.end(), (RunStatus::Completed, Some("plateau")));
}

#[test]
fn external_rules_are_checked_after_each_iteration_and_before_if_configured() {
    let table = [
        (beads_rule(), beads(), "check 1.1.1 beads loop/auth", "beads-empty"),
        (
            Rule::Command("test -f ok".into()),
            Check::Command("test -f ok".into()),
            "check 1.1.1 command test -f ok",
            "command",
        ),
        (
            Rule::Verify(vec!["a".into(), "b".into()]),
            Check::Verify(vec!["a".into(), "b".into()]),
            "check 1.1.1 verify a && b",
            "verify",
        ),
        (
            Rule::Checklist("TODO.md".into()),
            Check::Checklist("TODO.md".into()),
            "check 1.1.1 checklist TODO.md",
            "checklist",
        ),
    ];
    for (rule, check, act, reason) in table {
        let mut drive = Drive::started(loop_of(stage(rule, 5)));
        assert_eq!(drive.ok("1.1.1"), ["1.1.1 came through", act]);
        assert_eq!(
            drive.checked("1.1.1", &[(check.clone(), Some(false))]),
            ["commit 1.1.1", "attempt 1.2.1", "start 1.2.1"]
        );
        drive.ok("1.2.1");
        assert_eq!(drive.checked("1.2.1", &[(check.clone(), None)])[0], "commit 1.2.1", "not known is not done");
        drive.ok("1.3.1");
        drive.checked("1.3.1", &[(check, Some(true))]);
        assert_eq!(drive.end(), (RunStatus::Completed, Some(reason)));
    }
}

#[test]
fn a_rule_that_holds_before_the_start_needs_no_agent() {
    let plan = loop_of(StagePlan { check_before: true, min_iterations: 3, ..stage(beads_rule(), 5) });
    let mut drive = Drive::new(plan.clone());
    assert_eq!(drive.send(RunEvent::Started), ["stage 1 begins", "check 1.1.0 beads loop/auth"]);
    assert_eq!(
        drive.checked("1.1.0", &[(beads(), Some(true))]),
        ["stage 1 completed: beads-empty", "run completed: beads-empty", "finish"]
    );
    assert_eq!(drive.run.stages[0].iterations, 0);

    let mut drive = Drive::started(plan);
    assert_eq!(drive.checked("1.1.0", &[(beads(), Some(false))]), ["attempt 1.1.1", "start 1.1.1"]);
    assert_eq!(drive.ok("1.1.1"), ["1.1.1 came through", "commit 1.1.1", "check 1.2.0 beads loop/auth"]);
    drive.checked("1.2.0", &[(beads(), Some(true))]);
    assert_eq!((drive.end(), drive.run.stages[0].iterations), ((RunStatus::Completed, Some("beads-empty")), 1));
}

#[test]
fn check_before_does_nothing_if_only_agents_can_decide() {
    for rule in [Rule::Plateau(2), Rule::Promise("DONE".into()), Rule::FixedN] {
        let judged = StagePlan { check_before: true, judge: Some(agent()), ..stage(rule, 5) };
        let mut drive = Drive::new(loop_of(judged));
        assert_eq!(drive.send(RunEvent::Started), ["stage 1 begins", "attempt 1.1.1", "start 1.1.1"]);
    }
}

#[test]
fn combined_rules_end_under_the_names_that_held() {
    let verify = Check::Verify(vec!["make test".into()]);
    let rule = Rule::All(vec![Rule::Promise("DONE".into()), Rule::Verify(vec!["make test".into()])]);
    let mut drive = Drive::started(loop_of(stage(rule, 5)));
    assert_eq!(drive.ok("1.1.1")[1], "commit 1.1.1", "without the promise there is nothing to verify");
    let done = Success { promises: vec!["DONE".into()], ..success("done") };
    let words = drive.ended("1.2.1", Outcome::Succeeded(Box::new(done)));
    assert_eq!(words, ["1.2.1 came through", "check 1.2.1 verify make test"]);
    drive.checked("1.2.1", &[(verify, Some(true))]);
    assert_eq!(drive.end(), (RunStatus::Completed, Some("promise+verify")));
}

#[test]
fn before_the_minimum_only_the_judge_is_asked() {
    let rule = Rule::Any(vec![beads_rule(), Rule::Plateau(2)]);
    let plan = loop_of(StagePlan { min_iterations: 2, judge: Some(agent()), ..stage(rule, 5) });
    let mut drive = Drive::started(plan);
    assert_eq!(drive.ok("1.1.1")[1], "check 1.1.1 judge");
    drive.checked("1.1.1", &[(Check::Judge, Some(true))]);
    assert_eq!(drive.ok("1.2.1")[1], "check 1.2.1 beads loop/auth,judge");
    drive.checked("1.2.1", &[(beads(), Some(true)), (Check::Judge, Some(true))]);
    assert_eq!(drive.end(), (RunStatus::Completed, Some("beads-empty+plateau")));
}

#[test]
fn three_idle_iterations_stop_an_open_ended_stage() {
    let same = |untouched: bool| Outcome::Succeeded(Box::new(Success { untouched, ..success("the same") }));
    for (rule, idle, expected) in [
        (Rule::Promise("DONE".into()), 3, (RunStatus::Failed, Some("no_progress"))),
        (Rule::Promise("DONE".into()), 0, (RunStatus::Running, None)),
        (Rule::Any(vec![Rule::FixedN, Rule::Promise("DONE".into())]), 3, (RunStatus::Failed, Some("no_progress"))),
        (Rule::FixedN, 3, (RunStatus::Running, None)),
    ] {
        let mut plan = loop_of(stage(rule.clone(), 9));
        plan.limits.idle = idle;
        // A first iteration with progress makes it four.
        for (untouched, most) in [(true, 3), (false, 4)] {
            let mut drive = Drive::started(plan.clone());
            for iteration in 1..=most {
                assert_eq!(drive.run.status, RunStatus::Running, "{rule:?} {untouched} {iteration}");
                drive.ended(&format!("1.{iteration}.1"), same(untouched));
            }
            assert_eq!(drive.end(), expected, "{rule:?} {idle} {untouched}");
        }
    }
}

#[test]
fn progress_in_between_and_unknown_footprints_are_not_idle() {
    let mut drive = Drive::started(loop_of(stage(Rule::Promise("DONE".into()), 20)));
    for (footprint, iteration) in ["a", "a", "a", "b", "b", "b", "", "", "", "", "", "c"].iter().zip(1..) {
        drive.ended(&format!("1.{iteration}.1"), Outcome::Succeeded(Box::new(success(footprint))));
    }
    assert_eq!((drive.run.status, drive.run.stages[0].idle), (RunStatus::Running, 0));
}
