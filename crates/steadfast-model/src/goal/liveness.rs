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

/// Decides what moves the goal of a client's session next.
pub fn next(goal: &Goal, facts: Facts, now: Millis) -> Next {
    match goal.status {
        GoalStatus::Complete | GoalStatus::Abandoned => Next::Over,
        GoalStatus::Active => next_of_active(goal, facts, now),
        GoalStatus::BudgetLimited if goal.wind_down.is_some() && facts.turn_runs => Next::WindsDown,
        GoalStatus::Paused if goal.paused_reason.is_some_and(PausedReason::wakes_by_itself) => match goal.wake_at_ms {
            Some(at) => wakes(at, facts, now),
            None => Next::NeedsUser,
        },
        GoalStatus::Paused | GoalStatus::Blocked | GoalStatus::BudgetLimited => Next::NeedsUser,
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
    if facts.waker_waits && now - at <= WAKE_GRACE {
        return Next::Wakes { at, by: WokenBy::Client };
    }
    if supervised {
        return Next::Wakes { at, by: WokenBy::Supervisor };
    }
    Next::Stalled(Stall::NoWaker)
}
