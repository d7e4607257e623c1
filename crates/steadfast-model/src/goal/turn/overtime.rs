//! The turn of a goal that no longer runs: it is asked to end, and then its tool calls are refused and it is ended. What
//! it spends meanwhile still counts to the goal, unless a person paused it. A prompt of the user begins a turn of its own.

use crate::clock::Millis;
use crate::goal::change::{Change, Span};
use crate::goal::turn::BatchDecision;
use crate::goal::{Goal, GoalStatus, PausedReason};
use crate::limit::Axis;

/// Asking the worker to end its turn is pointless after three refused tool calls.
const IGNORED_AFTER: i64 = 4;

/// Who wants to use a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallingAgent {
    Worker,
    Subagent,
    /// Judges the goal, also one at its limit.
    Evaluator,
}

/// Why a tool call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolRefusal {
    /// The goal no longer runs, so its turn must end.
    Overtime {
        /// The worker has ignored this so often that its turn must be ended from outside.
        is_ignored: bool,
    },
    /// A limit of the goal is reached, so its subagents must end.
    Limit(Axis),
}

/// Decides whether a tool may run, by the row of the goal alone: this is asked before every call of every tool.
pub fn before_tool(goal: &Goal, caller: CallingAgent, now: Millis) -> Option<ToolRefusal> {
    if let Some(batches) = goal.overtime {
        let since_asked = batches - goal.asked_to_end_at();
        let is_ignored = caller == CallingAgent::Worker && since_asked == IGNORED_AFTER;
        return (since_asked > 0).then_some(ToolRefusal::Overtime { is_ignored });
    }
    let runs = matches!(goal.status, GoalStatus::Active | GoalStatus::BudgetLimited);
    if caller != CallingAgent::Subagent || !runs || goal.was_limited_before_turn() {
        return None;
    }
    goal.limits.reached_within_turn(&goal.used(now)).map(ToolRefusal::Limit)
}

/// Counts a tool call of the worker that was refused.
pub fn count_refusal(goal: &Goal, now: Millis) -> Option<Change> {
    let overtime = Some(goal.overtime? + 1);
    Some(Change { goal: Goal { overtime, ..goal.changed(now) }, events: Vec::new(), span: Span::Keep })
}

/// The turn is over.
pub fn overtime_over(goal: &Goal, now: Millis) -> Option<Change> {
    goal.overtime?;
    let after = Goal { overtime: None, ..goal.changed(now) };
    Some(Change { goal: after, events: Vec::new(), span: Span::Close })
}

/// A batch of tool calls in overtime.
pub(super) fn at_batch(goal: &Goal, batches: i64, now: Millis) -> (Change, BatchDecision) {
    let mut after = Goal { overtime: Some(batches + 1), ..goal.changed(now) };
    let mut span = Span::Keep;
    let decision = match batches - goal.asked_to_end_at() {
        0 => BatchDecision::Overtime,
        1.. if goal.host.capabilities().batch_ends_turn => {
            after.overtime = None;
            span = Span::Close;
            BatchDecision::EndOvertime
        }
        // Our own tools are never refused.
        IGNORED_AFTER => BatchDecision::OvertimeIgnored,
        _ => BatchDecision::Proceed,
    };
    (Change { goal: after, events: Vec::new(), span }, decision)
}

/// A change at a batch that ends the running turn. Where the client cannot do that, the turn is in overtime.
pub(super) fn end_turn(mut change: Change) -> Change {
    if !change.goal.host.capabilities().batch_ends_turn {
        change.goal.overtime = Some(change.goal.asked_to_end_at() + 1);
        change.span = Span::Keep;
    }
    change
}

impl Goal {
    /// Whether a turn of the goal may be running, as far as its row shows.
    fn may_have_turn(&self) -> bool {
        self.resume_at_ms.is_some() || self.wind_down.is_some() || self.overtime.is_some()
    }

    /// The goal `before` no longer runs; if its turn does, it is in overtime.
    pub(in crate::goal) fn begin_overtime(&mut self, before: &Self) {
        self.overtime = before.may_have_turn().then_some(0);
    }

    /// The batch of overtime at which the model is asked to end its turn. A worker that chose to wait or is blocked knows
    /// it: that batch is the call by which it said so, and it gets one more.
    fn asked_to_end_at(&self) -> i64 {
        i64::from(self.status == GoalStatus::Blocked || self.paused_reason == Some(PausedReason::Waiting))
    }
}
