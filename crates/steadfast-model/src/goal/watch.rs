//! What `steadfast watch` does with a goal: wake it, tell the user that nothing moves it, or look again later. Pure; the
//! command gathers the facts and acts.

use serde_json::json;

use super::change::{Change, Span, pause_for, session_ended};
use super::event::{Event, EventKind};
use super::liveness::{self, Facts, Next, Stall, WAKE_GRACE, WokenBy};
use super::turn::{MOST_FAILURES, retry_delay, stop_at_limit};
use super::{Goal, GoalStatus, PausedReason};
use crate::clock::Millis;

/// How long a goal may stand still before the user is told.
const TELL_AFTER: Millis = 60_000;
/// How long a permission dialog may be open before the user is told: the client has asked already.
const TELL_PERMISSION_AFTER: Millis = 300_000;
/// How long a client without a terminal may take to begin a turn.
pub const HEADLESS_STARTS_WITHIN: Millis = 60_000;

/// What to do with a goal now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchStep {
    /// Send a message to the running client.
    WakeClient,
    /// Continue the closed session without a terminal.
    WakeHeadless,
    /// Tell the user that nothing moves the goal.
    Tell(Stall),
    /// Look again at this moment.
    LookAt(Millis),
    /// Something moves it, and nothing is due.
    Moves,
    /// The user has to act, and knows.
    Rests,
}

/// Decides about one goal. `idle_since` is when the session was last seen to do anything.
pub fn step(goal: &Goal, facts: Facts, idle_since: Millis, now: Millis) -> WatchStep {
    if let Some(woken_at) = goal.woken_at_ms.filter(|_| goal.status == GoalStatus::Active && !facts.client_runs) {
        let begins_until = woken_at + HEADLESS_STARTS_WITHIN;
        if now < begins_until {
            return WatchStep::LookAt(begins_until);
        }
    }
    match liveness::next(goal, Facts { supervisor_runs: true, ..facts }, now) {
        Next::Wakes { at, .. } if at > now => WatchStep::LookAt(at),
        Next::Wakes { by: WokenBy::Supervisor, .. } if facts.client_runs => WatchStep::WakeClient,
        Next::Wakes { by: WokenBy::Supervisor, .. } => WatchStep::WakeHeadless,
        Next::Wakes { at, by: WokenBy::Client } => WatchStep::LookAt(at + WAKE_GRACE + 1),
        Next::BackgroundEnds { at } => WatchStep::LookAt(at),
        Next::Stalled(_) if goal.stall_told => WatchStep::Rests,
        Next::Stalled(stall) => tell(stall, goal, idle_since, now),
        Next::TurnEnds | Next::WindsDown | Next::NativeGoalEnds => WatchStep::Moves,
        Next::NeedsUser | Next::Over => WatchStep::Rests,
    }
}

/// Tells the user once the goal has stood still for a while. A user who interrupted a turn knows.
fn tell(stall: Stall, goal: &Goal, idle_since: Millis, now: Millis) -> WatchStep {
    let patience = match stall {
        Stall::Interrupted => return WatchStep::Rests,
        Stall::Permission => TELL_PERMISSION_AFTER,
        Stall::Dialog | Stall::SessionClosed | Stall::NoWaker => TELL_AFTER,
    };
    let moments = [Some(idle_since), goal.wake_at_ms, goal.woken_at_ms];
    let since = moments.into_iter().flatten().max().unwrap_or(idle_since);
    let at = since + patience;
    if at > now { WatchStep::LookAt(at) } else { WatchStep::Tell(stall) }
}

/// The user is told that nothing moves the goal; the store adds the message. A wait that outlived the goal's deadline ends
/// as the pause of that limit: no turn can begin in which it would wind down.
pub fn told(goal: &Goal, stall: Stall, now: Millis) -> Change {
    let reached = goal.reached_limit(now).filter(|axis| !axis.is_budget());
    if let Some(limit) = reached.filter(|_| goal.paused_reason == Some(PausedReason::Waiting)) {
        return stop_at_limit(goal, limit, now);
    }
    let after = Goal { stall_told: true, ..goal.changed(now) };
    let event = Event::new(EventKind::GoalStalled, json!({"stall": stall, "reason": stall.reason()}));
    Change { goal: after, events: vec![event], span: Span::Keep }
}

/// The client of an active goal ended without a word: its clock stops where it was last seen, and it is due.
pub fn client_lost(goal: &Goal, last_seen: Millis, now: Millis) -> Option<Change> {
    let is_settled = goal.resume_at_ms.is_none() && goal.wake_at_ms.is_some();
    let begins = goal.woken_at_ms.is_some_and(|woken_at| now < woken_at + HEADLESS_STARTS_WITHIN);
    if goal.status != GoalStatus::Active || is_settled || begins {
        return None;
    }
    session_ended(goal, last_seen, now)
}

/// A turn ended and no hook could record it: the clock stops, and an active goal is due.
pub fn turn_lost(goal: &Goal, now: Millis) -> Change {
    let mut after = goal.changed(now);
    liveness::settle(&mut after, false, now, now);
    Change { goal: after, events: Vec::new(), span: Span::Keep }
}

/// A wake-up that was claimed did not reach the client: it is repeated later, and after many failures the goal pauses.
pub fn wake_failed(goal: &Goal, message: &str, now: Millis) -> Change {
    let failures = goal.failures_in_row + 1;
    let payload = json!({"error": "wake_failed", "message": message, "failures": failures});
    if failures > MOST_FAILURES {
        let event = Event::new(EventKind::PausedDegraded, payload);
        return pause_for(goal, PausedReason::Degraded, event, now);
    }
    let mut change = put_back(goal, now + retry_delay(failures), now);
    change.goal.failures_in_row = failures;
    change.events.push(Event::new(EventKind::TurnFailed, payload));
    change
}

/// A wake-up that was claimed is due again.
fn put_back(goal: &Goal, wake_at: Millis, now: Millis) -> Change {
    let mut after = goal.changed(now);
    after.stop_clock(now);
    after.woken_at_ms = None;
    after.wake_at_ms = Some(wake_at);
    Change { goal: after, events: Vec::new(), span: Span::Keep }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::change;
    use crate::goal::wait::WaitFor;
    use crate::limit::{Axis, Limits};
    use crate::testing::{START, goal};

    const OPEN: Facts = Facts {
        client_runs: true,
        turn_runs: false,
        interrupted: false,
        asks_permission: false,
        background_work: false,
        native_goal: false,
        waker_waits: false,
        starts_waker: false,
        supervisor_runs: false,
        wakes_from_outside: false,
        headless_allowed: false,
    };
    const CLOSED: Facts = Facts { client_runs: false, ..OPEN };

    fn due() -> Goal {
        Goal { wake_at_ms: Some(START), resume_at_ms: None, ..goal() }
    }

    #[test]
    fn a_living_waker_comes_first_and_a_late_one_counts_as_gone() {
        let facts = Facts { waker_waits: true, wakes_from_outside: true, ..OPEN };
        assert_eq!(step(&due(), facts, START, START - 5), WatchStep::LookAt(START));
        assert_eq!(step(&due(), facts, START, START), WatchStep::LookAt(START + WAKE_GRACE + 1));
        assert_eq!(step(&due(), facts, START, START + WAKE_GRACE + 1), WatchStep::WakeClient);
        let only_waker = Facts { wakes_from_outside: false, ..facts };
        assert_eq!(step(&due(), only_waker, START, START + WAKE_GRACE + 1), WatchStep::LookAt(START + TELL_AFTER));
        assert_eq!(step(&due(), only_waker, START, START + TELL_AFTER), WatchStep::Tell(Stall::NoWaker));
    }

    #[test]
    fn a_closed_session_is_continued_only_if_the_user_allows_it() {
        let headless = Facts { headless_allowed: true, ..CLOSED };
        assert_eq!(step(&due(), headless, START, START), WatchStep::WakeHeadless);
        assert_eq!(step(&due(), CLOSED, START, START + TELL_AFTER), WatchStep::Tell(Stall::SessionClosed));
        let told = told(&due(), Stall::SessionClosed, START).goal;
        assert_eq!(step(&told, CLOSED, START, START + TELL_AFTER), WatchStep::Rests);
        // Its agent has been started and its first hook is still to come.
        let woken = Goal { wake_at_ms: None, woken_at_ms: Some(START), ..due() };
        assert_eq!(step(&woken, headless, START, START + 1), WatchStep::LookAt(START + HEADLESS_STARTS_WITHIN));
        assert_eq!(step(&woken, headless, START, START + HEADLESS_STARTS_WITHIN), WatchStep::WakeHeadless);
    }

    #[test]
    fn a_wait_in_a_closed_session_is_told_when_it_is_over() {
        let paused = Goal { status: GoalStatus::Paused, paused_reason: Some(PausedReason::Waiting), ..due() };
        let waiting = Goal { wake_at_ms: Some(START + 900_000), ..paused };
        assert_eq!(step(&waiting, CLOSED, START, START + 100_000), WatchStep::LookAt(START + 900_000 + TELL_AFTER));
    }

    #[test]
    fn a_deadline_that_passes_in_a_closed_session_ends_the_wait_as_its_pause() {
        let limits = Limits::default().with(Axis::Deadline, START + 60_000);
        let wait = change::wait(&Goal { limits, ..goal() }, WaitFor::Time, Some(START + 900_000), START).unwrap();
        let waiting = wait.goal;
        let told_at = START + 60_000 + TELL_AFTER;
        assert_eq!(step(&waiting, CLOSED, START, START + 60_000), WatchStep::LookAt(told_at));
        assert_eq!(step(&waiting, CLOSED, START, told_at), WatchStep::Tell(Stall::SessionClosed));
        let change = told(&waiting, Stall::SessionClosed, told_at);
        assert_eq!((change.goal.state(), change.goal.wake_at_ms), ("paused (deadline)".into(), None));
        assert_eq!(change.events[0].kind, EventKind::CapReached);
        assert_eq!(step(&change.goal, CLOSED, START, told_at), WatchStep::Rests);
    }

    #[test]
    fn an_interrupted_turn_is_never_told_and_a_permission_after_minutes() {
        let interrupted = Facts { interrupted: true, ..OPEN };
        assert_eq!(step(&due(), interrupted, START, START + 10 * TELL_AFTER), WatchStep::Rests);
        let asking = Facts { turn_runs: true, asks_permission: true, ..OPEN };
        let goal = goal();
        assert_eq!(step(&goal, asking, START, START + TELL_AFTER), WatchStep::LookAt(START + TELL_PERMISSION_AFTER));
        let tells = WatchStep::Tell(Stall::Permission);
        assert_eq!(step(&goal, asking, START, START + TELL_PERMISSION_AFTER), tells);
    }

    #[test]
    fn a_client_that_was_killed_costs_no_active_time() {
        let running = Goal { resume_at_ms: Some(START), wake_at_ms: None, ..goal() };
        let change = client_lost(&running, START + 2_000, START + 60_000).unwrap();
        assert_eq!((change.goal.active_seconds(START + 60_000), change.goal.wake_at_ms), (2, Some(START + 60_000)));
        assert_eq!(client_lost(&change.goal, START + 2_000, START + 61_000), None);
    }

    #[test]
    fn failed_wake_ups_are_repeated_ever_later_and_then_no_more() {
        let mut goal = Goal { wake_at_ms: None, woken_at_ms: Some(START), ..due() };
        let mut gaps = Vec::new();
        for _ in 0..MOST_FAILURES {
            goal = wake_failed(&goal, "no such program", START).goal;
            assert_eq!(goal.woken_at_ms, None);
            gaps.push((goal.wake_at_ms.unwrap() - START) / 1_000);
        }
        assert_eq!(gaps, [5, 10, 20, 40, 80, 160, 320, 600]);
        assert_eq!(wake_failed(&goal, "", START).goal.paused_reason, Some(PausedReason::Degraded));
    }
}
