//! Waiting: the pause that ends by itself, at a moment or when its condition is met.

use serde_json::json;

use super::{Change, Refusal, Span, pause_for};
use crate::clock::Millis;
use crate::goal::event::{Event, EventKind};
use crate::goal::wait::{Seen, Wait, WaitFor};
use crate::goal::{Goal, GoalStatus, PausedReason};
use crate::limit::Axis;

/// Pauses until a moment or a condition. A goal at one of its limits is not let off its wind-down that way.
pub fn wait(goal: &Goal, wait_for: WaitFor, until: Option<Millis>, now: Millis) -> Result<Change, Refusal> {
    may_wait(goal, now)?;
    let wait = Wait::new(wait_for, until, now);
    let payload = json!({"for": wait.wait_for, "until_ms": wait.until_ms});
    let mut change = pause_for(goal, PausedReason::Waiting, Event::new(EventKind::GoalWaiting, payload), now);
    change.goal.begin_overtime(goal);
    change.goal.wait = Some(wait);
    change.goal.set_end_of_wait();
    // The rest of the turn that chose to wait is still this goal's; the next Stop closes the span.
    change.span = Span::Keep;
    Ok(change)
}

/// Whether the goal can wait; asked before the request is looked at closely.
pub fn may_wait(goal: &Goal, now: Millis) -> Result<(), Refusal> {
    if goal.status != GoalStatus::Active {
        return Err(goal.wrong_state("only an active goal can wait"));
    }
    if goal.wind_down.is_some() || goal.reached_limit(now).is_some() {
        return Err(Refusal::NotEnough("a limit of the goal is reached, so it cannot wait".into()));
    }
    Ok(())
}

impl Goal {
    /// The goal wakes at the end of its wait, or at its deadline for the wind-down turn.
    pub(super) fn set_end_of_wait(&mut self) {
        if let Some(wait) = self.wait.as_ref().filter(|wait| !wait.is_met()) {
            let deadline = self.limits.get(Axis::Deadline).unwrap_or(Millis::MAX);
            self.wake_at_ms = Some(wait.until_ms.min(deadline));
        }
    }

    /// The wait of a goal that waits for a condition, until that is met.
    fn open_wait(&self) -> Option<&Wait> {
        let waits = self.status == GoalStatus::Paused && self.paused_reason == Some(PausedReason::Waiting);
        self.wait.as_ref().filter(|wait| waits && wait.next_check().is_some())
    }

    /// When the condition of the wait is looked at next; `None` if nothing is to be looked at.
    pub fn next_check(&self) -> Option<Millis> {
        self.open_wait().and_then(Wait::next_check)
    }
}

/// A process begins to look at the condition: no other one looks until `lease` is over. `None` if it is not time.
pub fn begin_check(goal: &Goal, lease: Millis, now: Millis) -> Option<Change> {
    let wait = goal.open_wait().filter(|wait| wait.check_due(lease, now))?.during_check(lease, now);
    // Looking is no activity of the goal, so `updated_at_ms` stays.
    let after = Goal { wait: Some(wait), ..goal.clone() };
    Some(Change { goal: after, events: Vec::new(), span: Span::Keep })
}

/// Records what a look found. A condition that is met wakes the goal now. `None` if the goal no longer waits as it did
/// at the time of the look, or if another process recorded a later look.
pub fn note_check(goal: &Goal, looked_at: &Wait, seen: Seen, now: Millis) -> Option<Change> {
    let wait = goal.open_wait().filter(|wait| wait.since_ms == looked_at.since_ms)?;
    if seen != Seen::Met && wait.checks != looked_at.checks {
        return None;
    }
    let mut after = Goal { wait: Some(wait.after_check(seen, now)), ..goal.clone() };
    if seen == Seen::Met {
        after.updated_at_ms = now;
        after.wake_at_ms = Some(now.min(goal.wake_at_ms.unwrap_or(now)));
    }
    Some(Change { goal: after, events: Vec::new(), span: Span::Keep })
}

/// Ends a pause that ends by itself, at its moment, whatever limit is reached by then: the turn that follows is the one
/// to wind down.
pub fn end_pause(goal: &Goal, now: Millis) -> Option<Change> {
    if goal.status != GoalStatus::Paused || !goal.pause_is_over(now) {
        return None;
    }
    let mut after = goal.changed(now);
    after.enter_active(now);
    if goal.reached_limit(now).is_some_and(Axis::is_budget) {
        after.stop_clock(now);
        after.status = GoalStatus::BudgetLimited;
    }
    let payload = json!({"from": goal.state(), "wait": goal.wait});
    Some(Change::new(after, EventKind::GoalResumed, payload, Span::Open))
}
