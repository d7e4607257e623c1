//! Crashes between saving and acting, and events that do not fit the state.

use super::*;

#[test]
fn actions_lost_in_a_crash_are_requested_again() {
    let plan = loop_of(StagePlan { check_before: true, delay_ms: SECOND, ..stage(beads_rule(), 9) });
    let mut drive = Drive::started(plan);
    assert_eq!(drive.send(RunEvent::Started), ["check 1.1.0 beads loop/auth"]);
    drive.checked("1.1.0", &[]);
    assert_eq!(drive.send(RunEvent::Started), Vec::<String>::new(), "the engine that started it reports its end");
    drive.fails("1.1.1", FailureKind::Exit);
    assert_eq!(drive.send(RunEvent::Started), ["wake in 1000"]);
    drive.wakes_after(SECOND);
    drive.ok("1.1.2");
    assert_eq!(drive.send(RunEvent::Started), ["check 1.1.2 beads loop/auth"]);
    drive.checked("1.1.2", &[]);
    assert_eq!(drive.send(RunEvent::Started), ["wake in 1000"]);
    drive.now += HOUR;
    assert_eq!(drive.send(RunEvent::Started), ["check 1.2.0 beads loop/auth"], "the rest was over meanwhile");
    drive.checked("1.2.0", &[(beads(), Some(true))]);
    assert_eq!(drive.send(RunEvent::Started), ["finish"]);
}

#[test]
fn unexpected_events_change_nothing() {
    let ended = |attempt: &str| RunEvent::Ended { id: id(attempt), outcome: failure(FailureKind::Exit) };
    let checked = |attempt: &str| RunEvent::Checked { id: id(attempt), facts: Vec::new() };
    let odd = || {
        vec![
            ended("1.1.2"),
            ended("1.2.1"),
            ended("2.1.1"),
            ended("0.0.0"),
            checked("1.1.1"),
            checked("7.7.7"),
            RunEvent::Woke,
        ]
    };
    let running = Drive::started(loop_of(stage(beads_rule(), 9)));
    let mut over = Drive::started(loop_of(stage(Rule::FixedN, 1)));
    over.ok("1.1.1");
    for mut drive in [running, over] {
        let before = drive.run.clone();
        for event in odd() {
            assert_eq!(drive.send(event.clone()), Vec::<String>::new(), "{event:?}");
            assert_eq!(drive.run, before, "{event:?}");
        }
    }
}

/// An unreachable state, as in a damaged row, must not panic and must end the run.
#[test]
fn a_stage_that_does_not_exist_ends_the_run() {
    let mut drive = Drive::new(loop_of(stage(Rule::FixedN, 1)));
    drive.run.stages.clear();
    assert_eq!(drive.send(RunEvent::Started), ["run completed: completed", "finish"]);
    let mut drive = Drive::started(loop_of(stage(Rule::FixedN, 1)));
    drive.run.stages.clear();
    drive.ok("1.1.1");
    drive.send(RunEvent::StopRequested(killed()));
    drive.reopen(Some(3));
    drive.send(RunEvent::Started);
}

#[test]
fn extreme_numbers_do_not_overflow() {
    let mut plan = loop_of(StagePlan {
        delay_ms: Millis::MAX,
        min_iterations: u32::MAX,
        ..stage(Rule::Promise("x".into()), u32::MAX)
    });
    plan.limits = RunLimits { errors: u32::MAX, back_off_ms: Millis::MAX, ..at_most(Axis::Hours, Millis::MAX) };
    let mut drive = Drive::started(plan);
    drive.now = Millis::MAX - 1;
    for attempt in 1..80 {
        drive.fails(&format!("1.1.{attempt}"), FailureKind::Exit);
        drive.send(RunEvent::Woke);
        drive.run.active[0].wait = None;
        drive.send(RunEvent::Woke);
    }
    let mut greedy = success("1");
    greedy.usage.tokens.input = i64::MAX;
    greedy.usage.tokens.output = i64::MAX;
    greedy.usage.cost_micros = i64::MIN;
    drive.ended("1.1.80", Outcome::Succeeded(Box::new(greedy)));
    assert_eq!((drive.run.tokens, drive.run.stages[0].iterations), (i64::MAX, 1));
}

/// State of an earlier version, without the fields that came later.
#[test]
fn a_state_without_the_newer_fields_is_read() {
    let drive = Drive::started(loop_of(stage(Rule::FixedN, 1)));
    let mut json = serde_json::to_value(&drive.run).unwrap();
    for field in ["cut_short", "closed_ms"] {
        json.as_object_mut().unwrap().remove(field).unwrap();
    }
    for field in ["max", "left", "undecided"] {
        json["stages"][0].as_object_mut().unwrap().remove(field).unwrap();
    }
    for field in ["wait", "errors", "usage_waits", "lost"] {
        json["flights"][0].as_object_mut().unwrap().remove(field).unwrap();
    }
    assert_eq!(serde_json::from_value::<Run>(json).unwrap(), drive.run);
}
