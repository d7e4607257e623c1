//! The life cycle: which change is allowed from which state, what the goal looks like afterwards, and what is
//! written to its event log. Nothing here reads a clock, a file or a database.

mod completion;
mod extend;
mod run;
mod wait;

use serde_json::{Value, json};

use super::event::{Event, EventKind};
use super::{Goal, GoalStatus, PausedReason};
use crate::clock::Millis;
use crate::limit::Axis;
use crate::redact::redact;

pub use completion::{complete, may_complete, prove_items, verdict};
pub use extend::{extend, reconcile};
pub use run::{can_resume, follow_run};
pub use wait::{begin_check, end_pause, may_wait, note_check, wait};

/// What happens to the goal's claim on the tokens of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    Keep,
    Open,
    Close,
}

/// A goal after a change, and what the change is called.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub goal: Goal,
    pub events: Vec<Event>,
    pub span: Span,
}

impl Change {
    pub(super) fn new(goal: Goal, kind: EventKind, payload: Value, span: Span) -> Self {
        Self { goal, events: vec![Event::new(kind, payload)], span }
    }

    /// A change whose event keeps the turn going.
    pub(super) fn blocking(goal: Goal, kind: EventKind, payload: Value) -> Self {
        let event = Event { decision: Some("block"), ..Event::new(kind, payload) };
        Self { goal, events: vec![event], span: Span::Keep }
    }
}

#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum Refusal {
    #[error("the goal is {status}{}", .reason.map(|r| format!(" ({r})")).unwrap_or_default())]
    WrongState { status: GoalStatus, reason: Option<PausedReason>, hint: String },
    #[error("{0}")]
    NotEnough(String),
    #[error("{message}")]
    NotProven { message: String, hint: String },
}

impl Refusal {
    pub fn hint(&self) -> &str {
        match self {
            Self::WrongState { hint, .. } | Self::NotProven { hint, .. } => hint,
            Self::NotEnough(_) => "add more, or abandon the goal",
        }
    }
}

impl Goal {
    fn wrong_state(&self, hint: &str) -> Refusal {
        Refusal::WrongState { status: self.status, reason: self.paused_reason, hint: hint.to_owned() }
    }

    pub(super) fn changed(&self, now: Millis) -> Self {
        Self { updated_at_ms: now, ..self.clone() }
    }

    /// Moves the running interval into the bank and stops the clock.
    pub(super) fn stop_clock(&mut self, now: Millis) {
        let unbanked = self.unbanked_ms(now);
        self.time_used_seconds += unbanked / 1000;
        self.time_used_rest_ms = unbanked % 1000;
        self.resume_at_ms = None;
    }

    fn leave_active(&mut self, status: GoalStatus, reason: Option<PausedReason>, now: Millis) {
        self.stop_clock(now);
        self.status = status;
        self.paused_reason = reason;
        self.wait = None;
        self.wind_down = None;
        self.wake_at_ms = None;
        self.woken_at_ms = None;
        self.stall_told = false;
        self.overtime = None;
    }

    fn enter_active(&mut self, now: Millis) {
        self.stop_clock(now);
        self.status = GoalStatus::Active;
        self.paused_reason = None;
        self.resume_at_ms = Some(now);
        self.wake_at_ms = None;
        self.wait = None;
        self.woken_at_ms = None;
        self.stall_told = false;
        self.wind_down = None;
        self.idle_continuations = 0;
        self.blocks_in_row = 0;
        self.failures_in_row = 0;
        self.overtime = None;
        self.forget_repeats();
    }

    /// The breaker counts anew.
    fn forget_repeats(&mut self) {
        self.same_calls = 0;
        self.repeats_told = 0;
        self.recent_calls.clear();
    }
}

/// Pauses for a person. A goal that a reset or the next prompt would continue is paused too.
pub fn pause(goal: &Goal, now: Millis) -> Result<Change, Refusal> {
    pause_as(goal, PausedReason::User, now)
}

/// The same by the worker, whom a person asked. It is not the person's own pause.
pub fn pause_by_worker(goal: &Goal, now: Millis) -> Result<Change, Refusal> {
    pause_as(goal, PausedReason::Worker, now)
}

fn pause_as(goal: &Goal, by: PausedReason, now: Millis) -> Result<Change, Refusal> {
    match goal.status {
        GoalStatus::Active | GoalStatus::BudgetLimited => {}
        GoalStatus::Paused if goal.paused_reason.is_some_and(PausedReason::ends_without_resume) => {}
        GoalStatus::Paused => {
            let flag = goal.paused_reason.and_then(Axis::of_pause).and_then(Axis::extend_flag);
            let verb = flag.map_or_else(|| "resume".to_owned(), |flag| format!("extend {flag}"));
            return Err(goal.wrong_state(&format!("it is paused already; `/goal-{verb}` continues it")));
        }
        _ => return Err(goal.wrong_state("only a running goal can be paused")),
    }
    Ok(pause_of_turn(goal, by, json!({"reason": by}), now))
}

/// Pauses for a person, from any live state. A turn that runs is asked to end.
pub fn pause_by_user(goal: &Goal, payload: Value, now: Millis) -> Change {
    pause_of_turn(goal, PausedReason::User, payload, now)
}

fn pause_of_turn(goal: &Goal, by: PausedReason, payload: Value, now: Millis) -> Change {
    let mut change = pause_for(goal, by, Event::new(EventKind::GoalPaused, payload), now);
    change.goal.begin_overtime(goal);
    change
}

/// Pauses for any reason, from any live state.
pub fn pause_for(goal: &Goal, reason: PausedReason, event: Event, now: Millis) -> Change {
    let mut after = goal.changed(now);
    after.leave_active(GoalStatus::Paused, Some(reason), now);
    Change { goal: after, events: vec![event], span: Span::Close }
}

/// Resumes a blocked or paused goal. A limit that is still reached must be extended first, and doubtful
/// accounting must be reconciled first.
pub fn resume(goal: &Goal, now: Millis) -> Result<Change, Refusal> {
    let reason = match (goal.status, goal.paused_reason) {
        (GoalStatus::Blocked, _) => None,
        (GoalStatus::Paused, reason) => reason,
        (GoalStatus::BudgetLimited, _) => {
            return Err(goal.wrong_state("its budget is spent: `/goal-extend --add-tokens N` (or `--add-usd X`)"));
        }
        (GoalStatus::Active, _) => return Err(goal.wrong_state("it is running already")),
        _ => return Err(goal.wrong_state("it is over; start a new one with `/goal-start`")),
    };
    if let Some(PausedReason::AccountingError | PausedReason::AccountingUncertain) = reason {
        return Err(goal.wrong_state("accept the gap with `/goal-reconcile --accept-reset`"));
    }
    match goal.reached_limit(now) {
        Some(axis) if axis.extend_flag().is_some() && !axis.is_budget() => {
            let flag = axis.extend_flag().unwrap_or_default();
            let reached = goal.standing(axis, now).describe_reached();
            return Err(goal.wrong_state(&format!("limit reached ({reached}): `/goal-extend {flag}`")));
        }
        // Paused while it was budget_limited: it returns to that status instead of getting another turn.
        Some(Axis::Tokens | Axis::Usd) => {
            let mut after = goal.changed(now);
            after.status = GoalStatus::BudgetLimited;
            after.paused_reason = None;
            after.wake_at_ms = None;
            after.wait = None;
            return Ok(Change::new(after, EventKind::GoalResumed, json!({"budget": "spent"}), Span::Keep));
        }
        _ => {}
    }
    let mut after = goal.changed(now);
    after.enter_active(now);
    Ok(Change::new(after, EventKind::GoalResumed, json!({"from": goal.state()}), Span::Open))
}

pub fn abandon(goal: &Goal, now: Millis) -> Result<Change, Refusal> {
    if !goal.status.is_live() {
        return Err(goal.wrong_state("it is over already"));
    }
    let mut after = goal.changed(now);
    after.leave_active(GoalStatus::Abandoned, None, now);
    Ok(Change::new(after, EventKind::GoalAbandoned, json!({}), Span::Close))
}

/// Replaces the text of the objective. Verdicts given for the old text, and proofs of items, no longer count.
pub fn edit(goal: &Goal, objective: String, now: Millis) -> Result<Change, Refusal> {
    if !goal.status.is_live() {
        return Err(goal.wrong_state("it is over; start a new one with `/goal-start`"));
    }
    let mut after = goal.changed(now);
    if objective != goal.objective {
        after.clear_proofs();
    }
    after.objective = objective;
    let payload = json!({"previous_objective": goal.objective});
    Ok(Change::new(after, EventKind::GoalObjectiveUpdated, payload, Span::Keep))
}

pub fn block(goal: &Goal, reason: &str, now: Millis) -> Result<Change, Refusal> {
    if goal.status != GoalStatus::Active {
        return Err(goal.wrong_state("only an active goal can be blocked"));
    }
    let mut after = goal.changed(now);
    after.leave_active(GoalStatus::Blocked, None, now);
    after.begin_overtime(goal);
    // The rest of the turn that blocked it is still this goal's; the next Stop closes the span.
    Ok(Change::new(after, EventKind::GoalBlocked, json!({"reason": redact(reason)}), Span::Keep))
}

/// A privileged verb came from inside an agent's shell.
pub fn refused(goal: &Goal, verb: &str, now: Millis) -> Change {
    Change::new(goal.changed(now), EventKind::PrivilegedVerbRefused, json!({"verb": verb}), Span::Keep)
}

/// The client of an unfinished goal went away: its clock stops where it was last seen. What can continue a closed
/// session may do so from now on.
pub fn session_ended(goal: &Goal, last_seen: Millis, now: Millis) -> Option<Change> {
    if goal.status != GoalStatus::Active {
        return None;
    }
    let mut after = goal.changed(now);
    after.stop_clock(last_seen);
    after.woken_at_ms = None;
    after.wake_at_ms.get_or_insert(now);
    Some(Change::new(after, EventKind::SessionEnded, json!({}), Span::Close))
}

/// The client came back. Time before `last_seen` is banked, time without a client is not charged. A pause that
/// ends by itself (a usage limit, a wait) is over when its moment has passed.
pub fn session_resumed(goal: &Goal, last_seen: Millis, now: Millis) -> Option<Change> {
    if goal.status != GoalStatus::Active && !goal.pause_is_over(now) {
        return None;
    }
    let mut after = goal.changed(now);
    after.stop_clock(last_seen);
    after.enter_active(now);
    // The model may have lost what it was told.
    after.briefed_hash = None;
    Some(Change::new(after, EventKind::SessionResumed, json!({"away_since_ms": last_seen}), Span::Open))
}

/// The machine slept for a while, as known only now: no turn ran in that time.
pub fn slept(goal: &Goal, slept_ms: Millis, now: Millis) -> Change {
    let mut after = goal.changed(now);
    after.resume_at_ms = goal.resume_at_ms.map(|since| since.saturating_add(slept_ms).min(now));
    Change::new(after, EventKind::ClockAdjusted, json!({"slept_ms": slept_ms}), Span::Keep)
}

/// The user stopped a turn at this moment. The next prompt continues the goal.
pub fn interrupt(goal: &Goal, at: Millis, now: Millis) -> Change {
    let mut stopped = goal.clone();
    stopped.stop_clock(at.min(now));
    let reason = PausedReason::Interrupted;
    let event = Event::new(EventKind::GoalPaused, json!({"reason": reason, "at_ms": at}));
    pause_for(&stopped, reason, event, now)
}

/// The user stopped a turn and then typed a prompt, before anything showed it: the time in between is not active.
pub fn interrupted_until(goal: &Goal, at: Millis, prompted: Millis, now: Millis) -> Change {
    let mut after = goal.changed(now);
    after.stop_clock(at);
    after.resume_at_ms = goal.resume_at_ms.map(|_| prompted);
    Change { goal: after, events: Vec::new(), span: Span::Keep }
}

/// A turn begins, by a prompt that the user `typed` or one that the client made itself. A prompt continues a goal that
/// was interrupted, and one whose pause is over; after it, the breaker and the client's block cap count anew.
pub fn turn_began(goal: &Goal, typed: bool, now: Millis) -> Option<Change> {
    let resumes = match (goal.status, goal.paused_reason) {
        (GoalStatus::Active, _) => false,
        (GoalStatus::Paused, Some(PausedReason::Interrupted)) => typed,
        _ => goal.pause_is_over(now),
    };
    if goal.status != GoalStatus::Active && !resumes {
        return None;
    }
    let mut after = goal.clone();
    let mut events = Vec::new();
    if resumes {
        after.enter_active(now);
        events.push(Event::new(EventKind::GoalResumed, json!({"from": goal.state()})));
    }
    after.wake_at_ms = None;
    after.woken_at_ms = None;
    after.stall_told = false;
    if typed {
        after.idle_continuations = 0;
        after.blocks_in_row = 0;
        after.failures_in_row = 0;
        after.forget_repeats();
    }
    after.resume_at_ms.get_or_insert(now);
    if after == *goal {
        return None;
    }
    after.updated_at_ms = now;
    Some(Change { goal: after, events, span: Span::Open })
}

impl Goal {
    /// Whether its pause ends by itself, and the moment for that has passed.
    fn pause_is_over(&self, now: Millis) -> bool {
        self.paused_reason.is_some_and(PausedReason::wakes_by_itself) && self.wake_at_ms.is_some_and(|at| at <= now)
    }
}

#[cfg(test)]
mod tests;
