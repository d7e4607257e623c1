//! What happens when a turn ends, or a batch of tool calls within it: continue, wind down, pause, or let the
//! turn end. Pure; the hook supplies the facts and carries the decision out.

mod batch;
mod charge;
mod overtime;
mod quota;
mod repeats;

use serde_json::json;

use super::change::{Change, Span, pause_for};
use super::event::{Event, EventKind};
use super::{Goal, GoalStatus, PausedReason};
use crate::clock::Millis;
use crate::limit::{Axis, SharedSpend, Standing};

pub use batch::{BatchDecision, at_batch};
pub use charge::{Charge, charge};
pub use overtime::{CallingAgent, ToolRefusal, before_tool, count_refusal, overtime_over};
pub use quota::at_quota;
pub use repeats::{at_repeats, count_calls};

#[derive(Debug, Clone, Default)]
pub struct TurnEnd {
    /// Whether the turn was started by a continuation and not by a person.
    pub after_continuation: bool,
    /// Fingerprint of the last message.
    pub message: Option<String>,
    /// The agent called a tool in this turn.
    pub worked: bool,
    /// The user typed something that waits for the turn to end.
    pub user_waits: bool,
    /// Shells or subagents still run in the background; their end starts a new turn.
    pub background_work: bool,
    /// The client's own goal feature is driving the session.
    pub native_goal: bool,
    /// How many blocks in a row with no tool call the client accepts; `None` for no cap.
    pub block_cap: Option<i64>,
    /// How the client is kept going.
    pub drive: Drive,
    /// When the goal is woken although tasks still run in the background.
    pub background_until: Millis,
}

/// Failed turns or wake-ups in a row after which trying again is pointless.
pub const MOST_FAILURES: i64 = 8;

/// How long to wait after a number of failures in a row: 5 s, then twice as long each time, at most 10 minutes.
pub fn retry_delay(failures: i64) -> Millis {
    const FIRST: Millis = 5_000;
    const LONGEST: Millis = 600_000;
    (FIRST << (failures - 1).clamp(0, 10)).min(LONGEST)
}

/// How a client is kept going when a turn ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Drive {
    /// The hook keeps the turn going.
    #[default]
    Block,
    /// The turn ends, and a background hook wakes the client.
    Wake,
}

/// What the user typed ahead begins a turn at once, or was a command that begins none.
const TYPED_AHEAD_WAIT: Millis = 2_000;

/// What happens at the end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nothing is driven: the turn ends as if we were not there.
    Silent,
    /// The turn ends although the goal is active; what comes first begins a turn, or the goal is woken later.
    UserFirst,
    BackgroundFirst,
    NativeGoalDrives,
    /// The client would override one more block: end the turn and continue another way.
    HandOver,
    Continue,
    WindDown(Axis),
    /// The wind-down turn is over.
    Limited(Axis),
    NoProgress,
    /// The same tool calls gave the same results this often.
    Repeats(i64),
    AccountingUncertain,
}

/// What the configuration says about the end of a turn.
#[derive(Debug, Clone, Copy)]
pub struct TurnRules {
    /// Continuations in a row without progress before the goal pauses; 0 switches the breaker off.
    pub no_progress_limit: i64,
    /// Tool calls with the same results before the goal pauses; 0 switches this breaker off.
    pub repeated_calls_limit: i64,
    /// Pause a goal with uncertain accounting even if it has no token or money budget.
    pub always_pause_uncertain: bool,
    /// What all goals together have spent, against the caps of the day and the week.
    pub shared: SharedSpend,
}

impl Decision {
    /// Whether the model gets another turn, or more of this one.
    fn continues(self) -> bool {
        matches!(self, Self::Continue | Self::WindDown(_))
    }
}

pub fn at_stop(goal: &Goal, turn: &TurnEnd, rules: TurnRules, now: Millis) -> (Option<Change>, Decision) {
    let (mut change, decision) = decide(goal, turn, rules, now);
    if decision.continues()
        && turn.drive == Drive::Wake
        && let Some(change) = &mut change
    {
        change.goal.stop_clock(now);
        change.goal.wake_at_ms = Some(now);
    }
    (change, decision)
}

fn decide(goal: &Goal, turn: &TurnEnd, rules: TurnRules, now: Millis) -> (Option<Change>, Decision) {
    match goal.status {
        GoalStatus::Active => {}
        GoalStatus::BudgetLimited => return budget_limited_at_stop(goal, now),
        _ => return (None, Decision::Silent),
    }
    if let Some(limit) = goal.wind_down {
        return (Some(stop_at_limit(goal, limit, now)), Decision::Limited(limit));
    }
    if goal.accounting_uncertain && (goal.limits.has_budget() || rules.always_pause_uncertain) {
        let reason = PausedReason::AccountingUncertain;
        let event = Event::new(EventKind::GoalPaused, json!({"reason": reason}));
        return (Some(pause_for(goal, reason, event, now)), Decision::AccountingUncertain);
    }
    if turn.user_waits {
        return (Some(rest(goal, now + TYPED_AHEAD_WAIT, now)), Decision::UserFirst);
    }
    if turn.background_work {
        return (Some(rest(goal, turn.background_until, now)), Decision::BackgroundFirst);
    }
    if turn.native_goal {
        return (None, Decision::NativeGoalDrives);
    }
    if let Some(limit) = goal.limits.reached(&goal.used_with(rules.shared, now)) {
        return (Some(hand_wind_down(goal, limit, now)), Decision::WindDown(limit));
    }
    if let Some((change, count)) = repeats::pause_at_repeats(goal, rules.repeated_calls_limit, now) {
        return (Some(change), Decision::Repeats(count));
    }
    let worked = turn.worked || goal.worked_since_continuation;
    let same_message = turn.message.is_some() && turn.message == goal.last_message_hash;
    let idle = turn.after_continuation && (!worked || same_message);
    let idle_continuations = if idle { goal.idle_continuations + 1 } else { 0 };
    if rules.no_progress_limit > 0 && idle_continuations >= rules.no_progress_limit {
        let reason = PausedReason::NoProgress;
        let payload = json!({"reason": reason, "continuations": idle_continuations});
        let change = pause_for(goal, reason, Event::new(EventKind::GoalPaused, payload), now);
        return (Some(change), Decision::NoProgress);
    }
    let blocks = if worked || !turn.after_continuation { 0 } else { goal.blocks_in_row };
    let hand_over = turn.drive == Drive::Block && turn.block_cap.is_some_and(|cap| blocks >= cap);
    let mut after = goal.changed(now);
    after.idle_continuations = idle_continuations;
    after.blocks_in_row = if hand_over { 0 } else { blocks + 1 };
    after.last_message_hash.clone_from(&turn.message);
    after.worked_since_continuation = false;
    after.failures_in_row = 0;
    after.wake_at_ms = None;
    after.count_continuation(now);
    let payload = json!({"message": turn.message, "last_accounted_byte_offset": goal.last_accounted_byte_offset});
    if hand_over {
        after.stop_clock(now);
        after.wake_at_ms = Some(now);
        return (Some(Change::new(after, EventKind::BlockCapReached, payload, Span::Keep)), Decision::HandOver);
    }
    (Some(Change::blocking(after, EventKind::ContinuationInjected, payload)), Decision::Continue)
}

impl Goal {
    fn count_continuation(&mut self, now: Millis) {
        self.last_continuation_at_ms = Some(now);
        self.continuations_used += 1;
    }
}

/// The turn ends and the goal stays active: the clock stops, and it is woken if no turn begins until then.
fn rest(goal: &Goal, wake_at: Millis, now: Millis) -> Change {
    let mut after = goal.changed(now);
    after.stop_clock(now);
    after.wake_at_ms = Some(wake_at);
    Change { goal: after, events: Vec::new(), span: Span::Keep }
}

/// Wakes an active goal whose moment has come. It counts as a continuation, unless the end of the last turn counted it
/// already or a failed turn is repeated. At a limit, the turn that begins is the one to wind down.
pub fn wake(goal: &Goal, shared: SharedSpend, now: Millis) -> Change {
    let reached = goal.limits.reached(&goal.used_with(shared, now)).filter(|_| goal.wind_down.is_none());
    let mut change = match reached {
        Some(limit) => hand_wind_down(goal, limit, now),
        None => Change { goal: goal.changed(now), events: Vec::new(), span: Span::Keep },
    };
    let is_counted = goal.last_continuation_at_ms.is_some() && goal.last_continuation_at_ms == goal.wake_at_ms;
    if !is_counted && goal.failures_in_row == 0 && change.goal.wind_down.is_none() {
        change.goal.count_continuation(now);
    }
    change.goal.wake_at_ms = None;
    change.goal.woken_at_ms = Some(now);
    change.events.push(Event::new(EventKind::GoalWoken, json!({})));
    change
}

fn budget_limited_at_stop(goal: &Goal, now: Millis) -> (Option<Change>, Decision) {
    let limit = goal.reached_limit(now).unwrap_or(Axis::Tokens);
    if !goal.budget_limit_reported {
        return (Some(hand_wind_down(goal, limit, now)), Decision::WindDown(limit));
    }
    if goal.wind_down.is_none() {
        return (None, Decision::Silent);
    }
    // The wind-down turn is over; what the session spends from here on is not this goal's.
    let mut after = goal.changed(now);
    after.wind_down = None;
    let change = Change::new(after, EventKind::WindDownEnded, json!({"limit": limit}), Span::Close);
    (Some(change), Decision::Limited(limit))
}

/// Grants the one wind-down turn.
fn hand_wind_down(goal: &Goal, limit: Axis, now: Millis) -> Change {
    let mut after = goal.changed(now);
    after.wind_down = Some(limit);
    after.wind_down_batches = 0;
    after.budget_limit_reported |= limit.is_budget();
    let kind = if limit.is_budget() { EventKind::BudgetLimitReported } else { EventKind::WindDownStarted };
    Change::blocking(after, kind, json!({"limit": limit}))
}

/// Ends a goal's wind-down turn: at a cap it pauses under the cap's name, at a budget it is `budget_limited`.
pub(super) fn stop_at_limit(goal: &Goal, limit: Axis, now: Millis) -> Change {
    let Standing { used, most, .. } = goal.standing(limit, now);
    let reason = limit.paused_reason();
    let payload = json!({"limit": limit, "used": used, "most": most, "reason": reason});
    let event = Event::new(EventKind::CapReached, payload);
    if let Some(reason) = reason {
        return pause_for(goal, reason, event, now);
    }
    // Charging has set the status already, unless the goal became active again above its budget.
    let mut change = pause_for(goal, PausedReason::CostCap, event, now);
    change.goal.status = GoalStatus::BudgetLimited;
    change.goal.paused_reason = None;
    change
}

/// Notes warnings as given and returns which limits they are about.
pub fn warn(goal: &Goal, shared: SharedSpend, now: Millis) -> Option<(Change, Vec<Axis>)> {
    if goal.status != GoalStatus::Active {
        return None;
    }
    let used = goal.used_with(shared, now);
    let near = goal.limits.standings(&used).filter(Standing::needs_warning).map(|standing| standing.axis);
    let limits: Vec<Axis> = near.filter(|axis| !goal.warned.contains(axis)).collect();
    if limits.is_empty() {
        return None;
    }
    let mut after = goal.changed(now);
    after.warned.extend(&limits);
    let change = Change::new(after, EventKind::LimitWarning, json!({"limits": limits}), Span::Keep);
    Some((change, limits))
}

#[cfg(test)]
mod tests;
