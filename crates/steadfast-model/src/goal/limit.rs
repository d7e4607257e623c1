//! The five limits of a goal: which are reached, and which are near.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString, IntoEnumIterator, IntoStaticStr};

use super::{Goal, PausedReason};
use crate::clock::Millis;

/// At this share of a limit the model and the user are warned, once.
const WARN_PERCENT: i128 = 80;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumIter, EnumString, IntoStaticStr, Serialize, Deserialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Tokens,
    Usd,
    Turns,
    Hours,
    Deadline,
    /// The cap over all goals together, of a day or a week.
    Shared,
}

/// How near all goals together are to the caps of the day and the week.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SharedSpend {
    #[default]
    Free,
    Near,
    Reached,
}

/// Tokens and money that goals and runs were charged with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spend {
    pub tokens: i64,
    pub cost_micros: i64,
}

impl Limit {
    /// Tokens and money end in `budget_limited`; the other limits pause, under their own name.
    pub fn paused_reason(self) -> Option<PausedReason> {
        match self {
            Self::Tokens | Self::Usd => None,
            Self::Turns => Some(PausedReason::ContinuationCap),
            Self::Hours => Some(PausedReason::WallClockCap),
            Self::Deadline => Some(PausedReason::Deadline),
            Self::Shared => Some(PausedReason::CostCap),
        }
    }

    /// What is used of this limit and what there is, in one unit; `None` when the goal has no such limit.
    pub fn usage(self, goal: &Goal, now: Millis) -> Option<(i64, i64)> {
        match self {
            Self::Tokens => goal.token_budget.map(|budget| (goal.total_tokens(), budget)),
            Self::Usd => goal.usd_budget_micros.map(|budget| (goal.cost_micros, budget)),
            Self::Turns => goal
                .has_turn_cap()
                .then_some((goal.continuations_used, goal.continuations_used + goal.continuations_remaining)),
            Self::Hours => goal.has_time_cap().then_some((goal.active_seconds(now), goal.max_wall_clock_seconds)),
            Self::Deadline => goal.deadline_ms.map(|at| (now - goal.created_at_ms, at - goal.created_at_ms)),
            // Not a matter of this goal alone: the caller knows it as `SharedSpend`.
            Self::Shared => None,
        }
    }

    pub fn is_reached(self, goal: &Goal, now: Millis) -> bool {
        self.usage(goal, now).is_some_and(|(used, limit)| used >= limit)
    }

    fn is_near(self, goal: &Goal, now: Millis) -> bool {
        self.usage(goal, now).is_some_and(|(used, limit)| i128::from(used) * 100 >= i128::from(limit) * WARN_PERCENT)
    }
}

/// The first limit that is reached, money and tokens before the caps.
pub fn reached(goal: &Goal, now: Millis) -> Option<Limit> {
    Limit::iter().find(|limit| limit.is_reached(goal, now))
}

/// The first limit that is reached in the middle of a turn. The turn cap counts whole turns; it cannot be passed
/// inside one.
pub fn reached_inside_turn(goal: &Goal, now: Millis) -> Option<Limit> {
    Limit::iter().find(|limit| *limit != Limit::Turns && limit.is_reached(goal, now))
}

/// Limits past 80 % that nobody was warned of.
pub fn to_warn(goal: &Goal, shared: SharedSpend, now: Millis) -> Vec<Limit> {
    Limit::iter()
        .filter(|limit| limit.is_near(goal, now) || (*limit == Limit::Shared && shared == SharedSpend::Near))
        .filter(|limit| !goal.warned.contains(limit))
        .collect()
}
