//! Waiting goals, and what may wake them.

use super::super::*;
use crate::goal::budget::Budget;
use crate::goal::wait::{Seen, Wait, WaitFor};
use crate::goal::{NewGoal, turn};
use crate::host::Host;
use crate::limit::{Limits, SharedSpend};

const START: Millis = 1_794_744_000_000;
const WAKE: Millis = START + 60_000;

fn goal(budget: Budget) -> Goal {
    let new = NewGoal { objective: "x".into(), budget, ..NewGoal::default() };
    Goal::start(new, "s", Host::Claude, None, START)
}

fn wait_until(goal: &Goal, until: Millis, now: Millis) -> Result<Change, Refusal> {
    wait(goal, WaitFor::Time, Some(until), now)
}

fn file() -> WaitFor {
    WaitFor::File("/project/build.done".into())
}

/// A goal that waits for a file since the start.
fn waits_for_file(limits: Limits, until: Option<Millis>) -> Goal {
    wait(&goal(Budget { limits, ..Budget::default() }), file(), until, START).unwrap().goal
}

fn looked_at(goal: &Goal) -> &Wait {
    goal.wait.as_ref().unwrap()
}

#[test]
fn a_waiting_goal_stops_its_clock_and_records_its_wake_up() {
    let change = wait_until(&goal(Budget::default()), WAKE, START + 5_000).unwrap();
    assert_eq!(change.goal.state(), "paused (waiting)");
    assert_eq!((change.goal.wake_at_ms, change.goal.resume_at_ms), (Some(WAKE), None));
    assert_eq!(change.goal.time_used_seconds, 5);
    assert_eq!(change.events[0].kind, EventKind::GoalWaiting);
    assert!(wait_until(&change.goal, WAKE, START + 6_000).is_err(), "it waits already");
}

#[test]
fn a_returning_session_wakes_a_waiting_goal_only_after_its_time() {
    let waiting = wait_until(&goal(Budget::default()), WAKE, START).unwrap().goal;
    assert_eq!(session_resumed(&waiting, START, WAKE - 1), None);
    let woken = session_resumed(&waiting, START, WAKE).unwrap().goal;
    assert_eq!((woken.status, woken.paused_reason), (GoalStatus::Active, None));
    assert_eq!((woken.wake_at_ms, woken.resume_at_ms), (None, Some(WAKE)));
    let paused = pause(&waiting, START + 1).unwrap().goal;
    assert_eq!(session_resumed(&paused, START, WAKE), None, "a person's pause ends the wait");
}

#[test]
fn a_goal_at_its_limit_cannot_wait() {
    let limits = Limits::default().with(Axis::Tokens, 10);
    let mut goal = goal(Budget { limits, ..Budget::default() });
    goal.tokens_used = 10;
    assert!(matches!(wait_until(&goal, WAKE, START), Err(Refusal::NotEnough(_))));
    goal.tokens_used = 0;
    goal.wind_down = Some(Axis::Turns);
    assert!(matches!(wait_until(&goal, WAKE, START), Err(Refusal::NotEnough(_))));
}

#[test]
fn a_wait_for_a_condition_ends_after_a_day_unless_a_moment_is_given() {
    let goal = waits_for_file(Limits::default(), None);
    assert_eq!((goal.state().as_str(), goal.wake_at_ms), ("paused (waiting)", Some(START + 86_400_000)));
    assert_eq!(goal.next_check(), Some(START), "it may be met already");
    let goal = waits_for_file(Limits::default(), Some(WAKE));
    assert_eq!(goal.wake_at_ms, Some(WAKE));
}

#[test]
fn a_wait_ends_at_the_deadline_and_the_goal_winds_down() {
    let limits = Limits::default().with(Axis::Deadline, WAKE);
    let waiting = waits_for_file(limits, Some(WAKE + 1));
    assert_eq!(waiting.wake_at_ms, Some(WAKE));
    assert_eq!(end_pause(&waiting, WAKE - 1), None);
    let ended = end_pause(&waiting, WAKE).unwrap();
    assert_eq!((ended.goal.status, ended.goal.wait.as_ref()), (GoalStatus::Active, None));
    assert_eq!((ended.events[0].kind, ended.span), (EventKind::GoalResumed, Span::Open));
    let woken = turn::wake(&ended.goal, SharedSpend::Free, WAKE).goal;
    assert_eq!((woken.wind_down, woken.wake_at_ms), (Some(Axis::Deadline), None));
    let later = extend(&waiting, Limits::default().with(Axis::Hours, 3_600_000), START).unwrap().goal;
    assert_eq!((later.state().as_str(), later.wake_at_ms), ("paused (waiting)", Some(WAKE + 1)));
}

#[test]
fn a_budget_spent_by_the_turn_that_chose_to_wait_gets_its_wind_down_at_the_wake_up() {
    let mut waiting = waits_for_file(Limits::default().with(Axis::Tokens, 10), Some(WAKE));
    waiting.tokens_used = 10;
    let ended = end_pause(&waiting, WAKE).unwrap().goal;
    assert_eq!((ended.status, ended.resume_at_ms), (GoalStatus::BudgetLimited, None));
    let woken = turn::wake(&ended, SharedSpend::Free, WAKE).goal;
    assert_eq!((woken.wind_down, woken.budget_limit_reported), (Some(Axis::Tokens), true));
    let resumed = resume(&waiting, WAKE).unwrap().goal;
    assert_eq!((resumed.status, resumed.wake_at_ms, resumed.wait), (GoalStatus::BudgetLimited, None, None));
}

#[test]
fn a_condition_that_is_met_wakes_the_goal_once() {
    let waiting = waits_for_file(Limits::default(), None);
    let wait = looked_at(&waiting);
    let met = note_check(&waiting, wait, Seen::Met, START + 9).unwrap().goal;
    assert_eq!((met.wake_at_ms, met.next_check()), (Some(START + 9), None));
    assert_eq!(note_check(&met, wait, Seen::Met, START + 10), None);
    assert_eq!(note_check(&met, wait, Seen::NotYet, START + 10), None, "a slow look does not undo it");
    assert_eq!(begin_check(&met, 1_000, START + 10), None);
    assert_eq!(end_pause(&met, START + 9).unwrap().goal.status, GoalStatus::Active);
    let extended = extend(&met, Limits::default().with(Axis::Turns, 1), START + 10).unwrap().goal;
    assert_eq!(extended.wake_at_ms, Some(START + 9));
}

#[test]
fn of_two_looks_at_the_same_time_one_is_recorded_unless_the_other_finds_it_met() {
    let waiting = waits_for_file(Limits::default(), None);
    let wait = looked_at(&waiting);
    let after = note_check(&waiting, wait, Seen::NotYet, START).unwrap().goal;
    assert_eq!((after.wake_at_ms, after.updated_at_ms), (waiting.wake_at_ms, waiting.updated_at_ms));
    assert_eq!(note_check(&after, wait, Seen::NotYet, START), None);
    let met = note_check(&after, wait, Seen::Met, START + 1).unwrap().goal;
    assert_eq!(met.wake_at_ms, Some(START + 1));
}

#[test]
fn a_look_that_outlives_its_wait_changes_nothing() {
    let waiting = waits_for_file(Limits::default(), None);
    let looked_at = looked_at(&waiting);
    let resumed = resume(&waiting, START + 1).unwrap().goal;
    let paused = pause(&waiting, START + 1).unwrap().goal;
    let over = abandon(&waiting, START + 1).unwrap().goal;
    for ended in [&resumed, &paused, &over] {
        assert_eq!((ended.wait.as_ref(), ended.next_check()), (None, None));
        assert_eq!(note_check(ended, looked_at, Seen::Met, START + 2), None);
    }
    let again = wait(&resumed, file(), None, START + 2).unwrap().goal;
    assert_eq!(note_check(&again, looked_at, Seen::Met, START + 3), None, "another wait for the same file");
}
