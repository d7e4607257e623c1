//! What moves a goal next. One function over facts, for status, status line, page and supervisor. An active goal has a
//! turn running, or a living process that wakes it at a known moment; otherwise it is stalled, and the user is told.

use serde::Serialize;

use super::{Goal, GoalStatus, PausedReason};
use crate::clock::Millis;

/// How long a wake-up may take to begin a turn. After that, a dialog holds the client up.
pub const TURN_BEGINS_WITHIN: Millis = 15_000;
/// How long a due wake-up may be late before the goal counts as stalled.
pub const WAKE_GRACE: Millis = 30_000;

/// What is known about the client of a goal and about the processes that can wake it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts {
    /// The client of the session runs.
    pub client_runs: bool,
    pub turn_runs: bool,
    /// The user interrupted the last turn and typed nothing since.
    pub interrupted: bool,
    /// The client asks the user for a permission.
    pub asks_permission: bool,
    /// Tasks of the last turn run in the background.
    pub background_work: bool,
    /// The client's own goal feature drives the session.
    pub native_goal: bool,
    /// A background hook of the client waits for the moment of the goal.
    pub waker_waits: bool,
    /// The client starts such a hook when a turn ends.
    pub starts_waker: bool,
    /// `steadfast watch` runs.
    pub supervisor_runs: bool,
    /// The supervisor can reach a running client of this host.
    pub wakes_from_outside: bool,
    /// The user allows the supervisor to continue a closed session without its client.
    pub headless_allowed: bool,
}

/// Who wakes a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WokenBy {
    /// A background hook of its client.
    Client,
    /// `steadfast watch`.
    Supervisor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A turn runs, and the goal continues when it ends.
    TurnEnds,
    /// The one turn after a limit runs.
    WindsDown,
    NativeGoalEnds,
    Wakes {
        at: Millis,
        by: WokenBy,
    },
    /// Tasks run in the background; the goal is woken when they end, at the latest at this moment.
    BackgroundEnds {
        at: Millis,
    },
    /// It is active, or its pause is over, and nothing moves it.
    Stalled(Stall),
    /// It is paused, blocked or limited: the user decides.
    NeedsUser,
    Over,
}

/// Why nothing moves a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stall {
    /// The user interrupted the turn; the next prompt continues.
    Interrupted,
    /// The client asks for a permission.
    Permission,
    /// The client was woken and began no turn: a dialog is open in it.
    Dialog,
    /// The client of the session does not run.
    SessionClosed,
    /// No process will wake the client.
    NoWaker,
}

impl Stall {
    /// A few words for a message to the user.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Interrupted => "you interrupted it",
            Self::Permission => "the agent asks for a permission",
            Self::Dialog => "a dialog is open in the agent",
            Self::SessionClosed => "its session is closed",
            Self::NoWaker => "it needs a prompt",
        }
    }
}

impl Next {
    pub fn stall(self) -> Option<Stall> {
        match self {
            Self::Stalled(stall) => Some(stall),
            _ => None,
        }
    }
}

/// Makes the clock and the wake-up of an active goal agree with what its client does: time counts only while a turn
/// runs, and without a turn the goal has a moment at which it is woken.
pub fn settle(goal: &mut Goal, turn_runs: bool, wake_at: Millis, now: Millis) {
    if goal.status != GoalStatus::Active {
        return;
    }
    if turn_runs {
        goal.resume_at_ms.get_or_insert(now);
        goal.wake_at_ms = None;
    } else {
        goal.stop_clock(now);
        goal.wake_at_ms.get_or_insert(wake_at);
    }
}

/// Decides what moves the goal of a client's session next.
pub fn next(goal: &Goal, facts: Facts, now: Millis) -> Next {
    match goal.status {
        GoalStatus::Complete | GoalStatus::Abandoned => Next::Over,
        GoalStatus::Active => next_of_active(goal, facts, now),
        GoalStatus::BudgetLimited => next_of_spent(goal, facts, now),
        GoalStatus::Paused if goal.paused_reason.is_some_and(PausedReason::wakes_by_itself) => match goal.wake_at_ms {
            // The end of the turn starts the waker.
            Some(at) if facts.client_runs && facts.turn_runs && goal.host.capabilities().can_wake => {
                Next::Wakes { at, by: WokenBy::Client }
            }
            Some(at) => wakes(at, facts, now),
            None => Next::NeedsUser,
        },
        GoalStatus::Paused | GoalStatus::Blocked => Next::NeedsUser,
    }
}

/// Charging makes a goal `budget_limited` in the middle of a turn; its wind-down turn is granted when that turn ends, and
/// may begin a moment later.
fn next_of_spent(goal: &Goal, facts: Facts, now: Millis) -> Next {
    let begins = goal.wake_at_ms.or(goal.woken_at_ms).is_some_and(|at| now - at <= TURN_BEGINS_WITHIN);
    match goal.wind_down {
        _ if !facts.client_runs => Next::NeedsUser,
        Some(_) if facts.turn_runs || begins => Next::WindsDown,
        None if facts.turn_runs && !goal.budget_limit_reported => Next::TurnEnds,
        _ => Next::NeedsUser,
    }
}

fn next_of_active(goal: &Goal, facts: Facts, now: Millis) -> Next {
    if !facts.client_runs {
        return wakes(goal.wake_at_ms.unwrap_or(now), facts, now);
    }
    if facts.interrupted {
        return Next::Stalled(Stall::Interrupted);
    }
    if facts.native_goal {
        return Next::NativeGoalEnds;
    }
    if facts.turn_runs {
        return match goal.wind_down {
            _ if facts.asks_permission => Next::Stalled(Stall::Permission),
            Some(_) => Next::WindsDown,
            None => Next::TurnEnds,
        };
    }
    if let Some(woken_at) = goal.woken_at_ms {
        let is_late = now - woken_at > TURN_BEGINS_WITHIN;
        let begins = Next::Wakes { at: woken_at, by: WokenBy::Client };
        return if is_late { Next::Stalled(Stall::Dialog) } else { begins };
    }
    match goal.wake_at_ms {
        Some(at) if facts.background_work && at > now && facts.waker_waits => Next::BackgroundEnds { at },
        Some(at) => wakes(at, facts, now),
        None => Next::Stalled(Stall::NoWaker),
    }
}

/// Whether a living process wakes the goal at its moment.
fn wakes(at: Millis, facts: Facts, now: Millis) -> Next {
    let supervised =
        facts.supervisor_runs && if facts.client_runs { facts.wakes_from_outside } else { facts.headless_allowed };
    if !facts.client_runs {
        return if supervised {
            Next::Wakes { at, by: WokenBy::Supervisor }
        } else {
            Next::Stalled(Stall::SessionClosed)
        };
    }
    let has_waker = facts.waker_waits || facts.turn_runs && facts.starts_waker;
    if has_waker && now - at <= WAKE_GRACE {
        return Next::Wakes { at, by: WokenBy::Client };
    }
    if supervised {
        return Next::Wakes { at, by: WokenBy::Supervisor };
    }
    Next::Stalled(Stall::NoWaker)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Axis;
    use crate::testing::{START, goal};

    const NOW: Millis = START + 60_000;
    const IDLE: Facts = Facts {
        client_runs: true,
        turn_runs: false,
        interrupted: false,
        asks_permission: false,
        background_work: false,
        native_goal: false,
        waker_waits: true,
        starts_waker: true,
        supervisor_runs: false,
        wakes_from_outside: false,
        headless_allowed: false,
    };
    const TURN: Facts = Facts { turn_runs: true, waker_waits: false, ..IDLE };

    fn due(at: Millis) -> Goal {
        Goal { resume_at_ms: None, wake_at_ms: Some(at), ..goal() }
    }

    #[test]
    fn a_running_turn_moves_the_goal_unless_the_user_is_asked() {
        assert_eq!(next(&goal(), TURN, NOW), Next::TurnEnds);
        assert_eq!(next(&Goal { wind_down: Some(Axis::Turns), ..goal() }, TURN, NOW), Next::WindsDown);
        assert_eq!(next(&goal(), Facts { native_goal: true, ..TURN }, NOW), Next::NativeGoalEnds);
        for (facts, stall) in [
            (Facts { asks_permission: true, ..TURN }, Stall::Permission),
            (Facts { interrupted: true, ..TURN }, Stall::Interrupted),
            (Facts { client_runs: false, ..TURN }, Stall::SessionClosed),
        ] {
            assert_eq!(next(&goal(), facts, NOW), Next::Stalled(stall), "{facts:?}");
        }
    }

    #[test]
    fn without_a_turn_a_living_process_wakes_the_goal_or_it_is_stalled() {
        let by = |by| Next::Wakes { at: NOW, by };
        let nobody = Facts { waker_waits: false, ..IDLE };
        let supervised = Facts { supervisor_runs: true, wakes_from_outside: true, ..nobody };
        let closed = Facts { client_runs: false, supervisor_runs: true, ..nobody };
        for (facts, expected) in [
            (IDLE, by(WokenBy::Client)),
            (supervised, by(WokenBy::Supervisor)),
            (Facts { wakes_from_outside: false, ..supervised }, Next::Stalled(Stall::NoWaker)),
            (nobody, Next::Stalled(Stall::NoWaker)),
            (closed, Next::Stalled(Stall::SessionClosed)),
            (Facts { headless_allowed: true, ..closed }, by(WokenBy::Supervisor)),
            (Facts { headless_allowed: true, supervisor_runs: false, ..closed }, Next::Stalled(Stall::SessionClosed)),
        ] {
            assert_eq!(next(&due(NOW), facts, NOW), expected, "{facts:?}");
            let waits = Goal { status: GoalStatus::Paused, paused_reason: Some(PausedReason::UsageLimit), ..due(NOW) };
            assert_eq!(next(&waits, facts, NOW), expected, "a pause that ends by itself: {facts:?}");
            if facts.client_runs {
                assert_eq!(next(&waits, TURN, NOW), by(WokenBy::Client), "in the turn that chose to wait");
            }
        }
        assert_eq!(next(&Goal { wake_at_ms: None, ..due(0) }, IDLE, NOW), Next::Stalled(Stall::NoWaker));
    }

    #[test]
    fn a_waker_that_is_late_and_a_turn_that_does_not_begin_are_stalls() {
        assert_eq!(next(&due(NOW - WAKE_GRACE - 1), IDLE, NOW), Next::Stalled(Stall::NoWaker));
        let woken = |at| Goal { resume_at_ms: None, woken_at_ms: Some(at), ..goal() };
        assert_eq!(next(&woken(NOW), IDLE, NOW), Next::Wakes { at: NOW, by: WokenBy::Client });
        assert_eq!(next(&woken(NOW - TURN_BEGINS_WITHIN - 1), IDLE, NOW), Next::Stalled(Stall::Dialog));
    }

    #[test]
    fn background_tasks_are_waited_for_until_their_moment() {
        let facts = Facts { background_work: true, ..IDLE };
        assert_eq!(next(&due(NOW + 1), facts, NOW), Next::BackgroundEnds { at: NOW + 1 });
        assert_eq!(next(&due(NOW), facts, NOW), Next::Wakes { at: NOW, by: WokenBy::Client });
    }

    #[test]
    fn a_goal_that_chose_to_wait_in_a_turn_is_woken_by_the_client() {
        let (status, paused_reason) = (GoalStatus::Paused, Some(PausedReason::Waiting));
        let waiting = Goal { status, paused_reason, wake_at_ms: Some(NOW + 1), ..goal() };
        let nobody_yet = Facts { waker_waits: false, ..TURN };
        assert_eq!(next(&waiting, nobody_yet, NOW), Next::Wakes { at: NOW + 1, by: WokenBy::Client });
        let closed = Facts { client_runs: false, ..nobody_yet };
        assert_eq!(next(&waiting, closed, NOW), Next::Stalled(Stall::SessionClosed));
    }

    #[test]
    fn stopped_goals_need_the_user_and_ended_ones_nobody() {
        for status in [GoalStatus::Paused, GoalStatus::Blocked, GoalStatus::BudgetLimited] {
            assert_eq!(next(&Goal { status, ..goal() }, IDLE, NOW), Next::NeedsUser, "{status}");
        }
        for status in [GoalStatus::Complete, GoalStatus::Abandoned] {
            assert_eq!(next(&Goal { status, ..goal() }, TURN, NOW), Next::Over, "{status}");
        }
    }

    #[test]
    fn a_spent_goal_needs_the_user_only_after_its_wind_down_turn() {
        let spent = Goal { status: GoalStatus::BudgetLimited, ..goal() };
        assert_eq!(next(&spent, TURN, NOW), Next::TurnEnds, "the turn that spent it runs");
        let granted = Goal { wind_down: Some(Axis::Tokens), budget_limit_reported: true, ..spent };
        let due = Goal { wake_at_ms: Some(NOW), ..granted.clone() };
        let woken = Goal { woken_at_ms: Some(NOW), ..granted.clone() };
        assert_eq!(next(&due, IDLE, NOW), Next::WindsDown);
        assert_eq!(next(&woken, IDLE, NOW + 1), Next::WindsDown);
        assert_eq!(next(&granted, TURN, NOW), Next::WindsDown);
        for (goal, facts, now) in [
            (&woken, IDLE, NOW + TURN_BEGINS_WITHIN + 1),
            (&due, Facts { client_runs: false, ..IDLE }, NOW),
            (&Goal { wind_down: None, ..granted.clone() }, TURN, NOW),
        ] {
            assert_eq!(next(goal, facts, now), Next::NeedsUser, "{facts:?}");
        }
    }

    #[test]
    fn time_counts_only_while_a_turn_runs_and_an_active_goal_without_one_is_woken() {
        let mut idle = goal();
        settle(&mut idle, false, NOW + 5, NOW);
        assert_eq!((idle.resume_at_ms, idle.wake_at_ms), (None, Some(NOW + 5)));
        settle(&mut idle, true, NOW + 5, NOW + 9);
        assert_eq!((idle.resume_at_ms, idle.wake_at_ms), (Some(NOW + 9), None));
        let mut paused = Goal { status: GoalStatus::Paused, ..due(NOW + 7) };
        settle(&mut paused, true, NOW, NOW);
        assert_eq!(paused.wake_at_ms, Some(NOW + 7));
    }
}
