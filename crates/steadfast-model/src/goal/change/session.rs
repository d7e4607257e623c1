//! What a goal goes through with its session: the client leaves, comes back, or takes a prompt.

use serde_json::json;

use super::{Change, Span};
use crate::clock::Millis;
use crate::goal::event::{Event, EventKind};
use crate::goal::{Goal, GoalStatus, PausedReason};

/// The client of an unfinished goal went away: its clock stops where it was last seen.
pub fn session_ended(goal: &Goal, last_seen: Millis, now: Millis) -> Option<Change> {
    goal.resume_at_ms?;
    let mut after = goal.changed(now);
    after.stop_clock(last_seen);
    Some(Change { goal: after, events: vec![Event::new(EventKind::SessionEnded, json!({}))], span: Span::Close })
}

/// The client came back. Time before `last_seen` is banked, time without a client is not charged. A pause that
/// ends by itself (a usage limit, a wait) is over when its moment has passed.
pub fn session_resumed(goal: &Goal, last_seen: Millis, now: Millis) -> Option<Change> {
    let wake_passed =
        goal.paused_reason.is_some_and(PausedReason::wakes_by_itself) && goal.wake_at_ms.is_some_and(|at| at <= now);
    if goal.status != GoalStatus::Active && !wake_passed {
        return None;
    }
    let mut after = goal.changed(now);
    after.stop_clock(last_seen);
    after.enter_active(now);
    let event = Event::new(EventKind::SessionResumed, json!({"away_since_ms": last_seen}));
    Some(Change { goal: after, events: vec![event], span: Span::Open })
}

/// A person typed a prompt: what the breaker and the client's block cap count starts anew.
pub fn prompted(goal: &Goal, now: Millis) -> Option<Change> {
    let nothing_counted = goal.idle_continuations == 0
        && goal.blocks_in_row == 0
        && goal.failures_in_row == 0
        && goal.wake_at_ms.is_none();
    let clock_runs = goal.resume_at_ms.is_some();
    if goal.status != GoalStatus::Active || (nothing_counted && clock_runs) {
        return None;
    }
    let mut after = goal.changed(now);
    after.idle_continuations = 0;
    after.blocks_in_row = 0;
    after.failures_in_row = 0;
    after.wake_at_ms = None;
    let span = if clock_runs { Span::Keep } else { Span::Open };
    after.resume_at_ms = after.resume_at_ms.or(Some(now));
    Some(Change { goal: after, events: Vec::new(), span })
}
