//! What a batch of tool calls in the middle of a turn leads to: limits that hold inside of a long turn.

use super::{budget_limited_at_stop, hand_wind_down, overtime, stop_at_limit};
use crate::clock::Millis;
use crate::goal::change::{Change, Span};
use crate::goal::{Goal, GoalStatus};
use crate::limit::{Axis, SharedSpend};

/// Batches of tool calls a turn may still make after a notice, in the middle, that a limit is reached.
const WIND_DOWN_BATCHES: i64 = 3;

/// What a batch of tool calls inside a turn leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchDecision {
    Proceed,
    /// Ask the model to wrap up now.
    WindDown(Axis),
    /// The model was asked and continued: end its turn.
    EndTurn(Axis),
    /// The goal no longer runs: ask the model to end its turn.
    Overtime,
    /// It was asked and continued: end its turn.
    EndOvertime,
    /// The hook cannot end it, and the model ignores that it was asked: end the turn from outside.
    OvertimeIgnored,
    /// The same tool calls gave the same results this often: tell the model.
    Nudge(i64),
    /// They went on: ask for another approach.
    OtherApproach(i64),
    /// They still went on: the goal pauses.
    Repeats(i64),
}

/// Decides between two rounds of tool calls, so that one long turn cannot spend without bound.
pub fn at_batch(goal: &Goal, shared: SharedSpend, now: Millis) -> (Option<Change>, BatchDecision) {
    if let Some(batches) = goal.overtime {
        let (change, decision) = overtime::at_batch(goal, batches, now);
        return (Some(change), decision);
    }
    let reached = goal.limits.reached_within_turn(&goal.used_with(shared, now));
    match goal.status {
        GoalStatus::Active | GoalStatus::BudgetLimited => {}
        // The turn that ended the goal counts to it, so the limits hold in it too.
        GoalStatus::Complete if reached.is_some() => {
            let (change, decision) = overtime::at_batch(goal, 0, now);
            return (Some(change), decision);
        }
        _ => return (None, BatchDecision::Proceed),
    }
    // The last turn of the turn cap is held to the other limits like any turn.
    let limit = goal.wind_down.filter(|limit| *limit != Axis::Turns).or(reached);
    let Some(limit) = limit.filter(|_| !goal.was_limited_before_turn()) else {
        if goal.worked_since_continuation {
            return (None, BatchDecision::Proceed);
        }
        let mut after = goal.changed(now);
        after.worked_since_continuation = true;
        return (Some(Change { goal: after, events: Vec::new(), span: Span::Keep }), BatchDecision::Proceed);
    };
    if goal.wind_down.is_none() {
        return (Some(hand_wind_down(goal, limit, now)), BatchDecision::WindDown(limit));
    }
    if goal.wind_down_batches < WIND_DOWN_BATCHES {
        let mut after = goal.changed(now);
        after.wind_down_batches += 1;
        return (Some(Change { goal: after, events: Vec::new(), span: Span::Keep }), BatchDecision::Proceed);
    }
    let change = match goal.status {
        GoalStatus::BudgetLimited => budget_limited_at_stop(goal, now).0,
        _ => Some(stop_at_limit(goal, limit, now)),
    };
    (change.map(overtime::end_turn), BatchDecision::EndTurn(limit))
}

impl Goal {
    /// Whether its budget was spent in an earlier turn: this one is the user's own.
    pub(super) fn was_limited_before_turn(&self) -> bool {
        self.status == GoalStatus::BudgetLimited && self.budget_limit_reported && self.wind_down.is_none()
    }
}
