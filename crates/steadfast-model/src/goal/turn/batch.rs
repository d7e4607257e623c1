//! What a batch of tool calls in the middle of a turn leads to: limits that hold inside of a long turn, and the breaker
//! for calls that repeat themselves.

use serde_json::json;

use super::{budget_limited_at_stop, hand_wind_down, stop_at_limit};
use crate::clock::Millis;
use crate::goal::change::{Change, Span, pause_for};
use crate::goal::event::{Event, EventKind};
use crate::goal::{Goal, GoalStatus, PausedReason};
use crate::limit::{Axis, SharedSpend};
use crate::reading::ToolLine;

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
    /// The same tool call gave the same result this often in a row: ask for something else.
    Nudge(i64),
    /// It went on all the same: the goal pauses.
    Repeats(i64),
}

/// Divides the last finished call from the one without an answer in `last_call_hash`.
const OPEN_CALL: char = '>';

/// Adds tool calls with their results to the count of equal ones in a row. The call and its result may be read in two
/// passes, so the open call is kept too.
pub fn count_calls(goal: &mut Goal, lines: &[ToolLine]) {
    if lines.is_empty() {
        return;
    }
    let known = goal.last_call_hash.take().unwrap_or_default();
    let (last, open) = known.split_once(OPEN_CALL).unwrap_or((&known, ""));
    let (mut last, mut open) = (last.to_owned(), open.to_owned());
    for line in lines {
        match line {
            ToolLine::Called(call) => open.clone_from(call),
            ToolLine::Answered(answer) => {
                let finished = std::mem::take(&mut open) + answer;
                goal.same_calls = if finished == last { goal.same_calls + 1 } else { 1 };
                last = finished;
            }
        }
    }
    goal.last_call_hash = Some(format!("{last}{OPEN_CALL}{open}"));
}

/// What repeated tool calls lead to: a nudge, then the wish for another approach, then the pause. `before` is the count
/// before this batch, so that each is said once.
pub fn at_repeats(goal: &Goal, before: i64, limit: i64, now: Millis) -> Option<(Option<Change>, BatchDecision)> {
    if limit <= 0 || goal.status != GoalStatus::Active {
        return None;
    }
    let same = goal.same_calls;
    if same >= limit {
        let reason = PausedReason::NoProgress;
        let payload = json!({"reason": reason, "repeated_calls": same});
        let change = pause_for(goal, reason, Event::new(EventKind::GoalPaused, payload), now);
        return Some((Some(change), BatchDecision::Repeats(same)));
    }
    let is_crossed = |at: i64| at > 1 && before < at && same >= at;
    let nudges = is_crossed(limit * 2 / 5) || is_crossed(limit * 7 / 10);
    nudges.then_some((None, BatchDecision::Nudge(same)))
}

/// Decides between two rounds of tool calls, so that one long turn cannot spend without bound.
pub fn at_batch(goal: &Goal, shared: SharedSpend, now: Millis) -> (Option<Change>, BatchDecision) {
    if !matches!(goal.status, GoalStatus::Active | GoalStatus::BudgetLimited) {
        return (None, BatchDecision::Proceed);
    }
    // The last turn of the turn cap is held to the other limits like any turn.
    let winding_down = goal.wind_down.filter(|limit| *limit != Axis::Turns);
    let limit = winding_down.or_else(|| goal.limits.reached_within_turn(&goal.used_with(shared, now)));
    let spent = goal.status == GoalStatus::BudgetLimited && goal.budget_limit_reported && goal.wind_down.is_none();
    let Some(limit) = limit.filter(|_| !spent) else {
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
    (change, BatchDecision::EndTurn(limit))
}
