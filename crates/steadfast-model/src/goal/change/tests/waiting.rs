//! Waiting goals, and what may wake them.

use super::super::*;
use crate::goal::NewGoal;
use crate::goal::budget::Budget;
use crate::host::Host;
use crate::limit::Limits;

const START: Millis = 1_794_744_000_000;
const WAKE: Millis = START + 60_000;

fn goal(budget: Budget) -> Goal {
    let new = NewGoal { objective: "x".into(), budget, ..NewGoal::default() };
    Goal::start(new, "s", Host::Claude, None, START)
}

#[test]
fn a_waiting_goal_stops_its_clock_and_records_its_wake_up() {
    let change = wait(&goal(Budget::default()), WAKE, START + 5_000).unwrap();
    assert_eq!(change.goal.state(), "paused (waiting)");
    assert_eq!((change.goal.wake_at_ms, change.goal.resume_at_ms), (Some(WAKE), None));
    assert_eq!(change.goal.time_used_seconds, 5);
    assert_eq!(change.events[0].kind, EventKind::GoalWaiting);
    assert!(wait(&change.goal, WAKE, START + 6_000).is_err(), "it waits already");
}

#[test]
fn a_returning_session_wakes_a_waiting_goal_only_after_its_time() {
    let waiting = wait(&goal(Budget::default()), WAKE, START).unwrap().goal;
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
    assert!(matches!(wait(&goal, WAKE, START), Err(Refusal::NotEnough(_))));
    goal.tokens_used = 0;
    goal.wind_down = Some(Axis::Turns);
    assert!(matches!(wait(&goal, WAKE, START), Err(Refusal::NotEnough(_))));
}
