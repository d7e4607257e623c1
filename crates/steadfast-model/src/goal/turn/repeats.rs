//! The breaker for tool calls that bring nothing new: the same calls with the same results, one after the other, side by
//! side, or in a circle. Anything new closes it again.

use serde_json::json;

use super::{BatchDecision, overtime};
use crate::clock::Millis;
use crate::goal::change::{Change, Span, pause_for};
use crate::goal::event::{Event, EventKind};
use crate::goal::{Goal, GoalStatus, PausedReason};
use crate::reading::ToolLine;
use crate::text;

/// The most calls that are kept.
const KEPT: usize = 32;

/// Adds tool calls with their results. A call and its result may be read in two passes, so open calls are kept too.
pub fn count_calls(goal: &mut Goal, lines: &[ToolLine]) {
    let mut open = open_calls(goal.open_calls.as_deref());
    for line in lines {
        match line {
            ToolLine::Called { id, call } => push(&mut open, (id.clone(), call.clone())),
            ToolLine::Answered { id, answer } => {
                let Some(at) = open.iter().position(|(called, _)| called == id) else {
                    continue;
                };
                let (_, call) = open.remove(at);
                let finished = text::fingerprint(&(call + answer));
                if goal.recent_calls.contains(&finished) {
                    goal.same_calls += 1;
                } else {
                    goal.same_calls = 0;
                    goal.repeats_told = 0;
                }
                push(&mut goal.recent_calls, finished);
            }
        }
    }
    let open: Vec<String> = open.into_iter().map(|(id, call)| format!("{id}:{call}")).collect();
    goal.open_calls = (!open.is_empty()).then(|| open.join(" "));
}

fn open_calls(known: Option<&str>) -> Vec<(String, String)> {
    let pairs = known.unwrap_or_default().split(' ').filter_map(|pair| pair.split_once(':'));
    pairs.map(|(id, call)| (id.to_owned(), call.to_owned())).collect()
}

/// Appends, and forgets the oldest.
fn push<T>(kept: &mut Vec<T>, new: T) {
    if kept.len() >= KEPT {
        kept.remove(0);
    }
    kept.push(new);
}

/// How often the most frequent call occurred since anything new did. In a long circle each call is rare, so a third of
/// the whole counts as well.
fn repeats(goal: &Goal) -> i64 {
    let run = usize::try_from(goal.same_calls).unwrap_or(0);
    let since_new = goal.recent_calls.get(goal.recent_calls.len().saturating_sub(run)..).unwrap_or_default();
    let occurrences = |call: &String| since_new.iter().filter(|other| *other == call).count();
    let most = since_new.iter().map(occurrences).max().unwrap_or(0);
    // Its first occurrence was new.
    i64::try_from(most + 1).unwrap_or(i64::MAX).max(goal.same_calls / 3)
}

/// What repeated tool calls lead to in the middle of a turn: a nudge at a third of the limit, the wish for another
/// approach at two thirds, then the pause. Each is said once.
pub fn at_repeats(goal: &Goal, limit: i64, now: Millis) -> Option<(Change, BatchDecision)> {
    if let Some((change, count)) = pause_at_repeats(goal, limit, now) {
        return Some((overtime::end_turn(change), BatchDecision::Repeats(count)));
    }
    let count = repeats(goal);
    let is_crossed = |at: i64| at > 1 && goal.repeats_told < at && count >= at;
    let decision = if is_crossed(limit * 2 / 3) {
        BatchDecision::OtherApproach(count)
    } else if is_crossed(limit / 3) {
        BatchDecision::Nudge(count)
    } else {
        return None;
    };
    let after = Goal { repeats_told: count, ..goal.changed(now) };
    let change = Change { goal: after, events: Vec::new(), span: Span::Keep };
    (goal.status == GoalStatus::Active).then_some((change, decision))
}

/// The pause of an active goal that repeats its tool calls, and how often it did.
pub(super) fn pause_at_repeats(goal: &Goal, limit: i64, now: Millis) -> Option<(Change, i64)> {
    let count = repeats(goal);
    if limit <= 0 || count < limit || goal.status != GoalStatus::Active {
        return None;
    }
    let reason = PausedReason::NoProgress;
    let payload = json!({"reason": reason, "repeated_calls": count});
    Some((pause_for(goal, reason, Event::new(EventKind::GoalPaused, payload), now), count))
}
