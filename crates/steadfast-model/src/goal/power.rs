//! What the worker may do to its goal, and when. A person may do all of it; the worker mostly only in a turn that a
//! person's prompt began, since without one it would decide about its own task.

use strum::{Display, IntoStaticStr};

use super::{Goal, GoalStatus, PausedReason};
use crate::clock::Millis;
use crate::limit::{Axis, Limits};

/// Turns that a goal must have had before the worker may call it blocked, the running one included.
const TURNS_BEFORE_BLOCKED: i64 = 3;

/// The running turn of a goal's session, as hooks recorded it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunningTurn {
    pub since: Option<Millis>,
    /// When a person last typed a prompt that is more than commands of ours.
    pub prompted_at: Option<Millis>,
}

/// Whether a person's prompt began the running turn, or came in the middle of it. The prompt that started the goal does
/// not count, nor one from before the last continuation or wake-up.
pub fn is_users_turn(goal: &Goal, turn: RunningTurn) -> bool {
    let (Some(prompted_at), Some(since)) = (turn.prompted_at, turn.since) else {
        return false;
    };
    let earlier = [Some(goal.created_at_ms), goal.last_continuation_at_ms, goal.woken_at_ms];
    // The turn that winds a goal down is ours, also where it is part of the client's turn.
    prompted_at >= since && earlier.into_iter().flatten().all(|at| prompted_at > at) && goal.wind_down.is_none()
}

/// What a worker may do in some turns only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Verb {
    Edit,
    Abandon,
    Pause,
    Block,
}

/// What decides whether the worker may.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnFacts {
    pub is_users_turn: bool,
    /// The worker itself created the goal.
    pub is_workers_goal: bool,
}

#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum Denial {
    #[error("the goal is paused; its objective stays as it is")]
    Paused,
    #[error("the user paused the goal; an agent may not {0} it")]
    PausedByUser(Verb),
    #[error("an agent may {0} the goal only in a turn that the user's prompt began")]
    NotAsked(Verb),
    #[error("a goal is blocked only after {TURNS_BEFORE_BLOCKED} turns; this is turn {0}")]
    TooEarly(i64),
}

impl Denial {
    pub fn verb(self) -> Verb {
        match self {
            Self::Paused => Verb::Edit,
            Self::PausedByUser(verb) | Self::NotAsked(verb) => verb,
            Self::TooEarly(_) => Verb::Block,
        }
    }

    pub fn hint(self) -> String {
        match self {
            Self::TooEarly(_) => "try another way, or ask the user in your answer".to_owned(),
            denied => format!("propose it in your answer; the user can type /goal-{}", denied.verb()),
        }
    }
}

/// Whether the worker may do this to the goal now.
pub fn may(goal: &Goal, verb: Verb, facts: TurnFacts) -> Result<(), Denial> {
    let is_paused = goal.status == GoalStatus::Paused;
    match verb {
        Verb::Edit if is_paused => Err(Denial::Paused),
        _ if is_paused && goal.paused_reason == Some(PausedReason::User) => Err(Denial::PausedByUser(verb)),
        _ if facts.is_users_turn => Ok(()),
        Verb::Abandon | Verb::Pause if facts.is_workers_goal => Ok(()),
        Verb::Block if goal.continuations_used + 1 >= TURNS_BEFORE_BLOCKED => Ok(()),
        Verb::Block => Err(Denial::TooEarly(goal.continuations_used + 1)),
        Verb::Edit | Verb::Abandon | Verb::Pause => Err(Denial::NotAsked(verb)),
    }
}

/// What is left of each limit of a goal that another one follows: at most what was asked for it. `Err` names the limit
/// of which nothing is left.
pub fn inherited(old: &Goal, asked: Limits, now: Millis) -> Result<Limits, Axis> {
    let used = old.used(now);
    let mut limits = asked;
    for (axis, amount) in old.limits.iter() {
        let standing = old.limits.standing(axis, &used).filter(|_| axis != Axis::Shared);
        let Some(standing) = standing else { continue };
        if standing.is_reached() {
            return Err(axis);
        }
        let left = if axis == Axis::Deadline { amount } else { standing.most - standing.used };
        limits.set(axis, Some(asked.get(axis).map_or(left, |asked| asked.min(left))));
    }
    Ok(limits)
}

#[cfg(test)]
mod tests;
