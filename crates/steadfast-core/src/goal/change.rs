//! The life cycle: which change is allowed from which state, what the goal looks like afterwards, and what is
//! written to its event log. Nothing here reads a clock, a file or a database.

use serde_json::{Value, json};

use super::limit::{self, Limit};
use super::{Actor, Goal, GoalStatus, PausedReason, UNLIMITED_CONTINUATIONS, UNLIMITED_SECONDS};
use crate::clock::Millis;

/// A line of the event log, before the store adds who, when and the versions.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub kind: &'static str,
    pub tokens_delta: Option<i64>,
    pub decision: Option<&'static str>,
    pub payload: Value,
}

impl Event {
    pub fn new(kind: &'static str, payload: Value) -> Self {
        Self { kind, tokens_delta: None, decision: None, payload }
    }
}

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

/// Why a change is not allowed.
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

/// Who says that the objective is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletedBy {
    SelfUpdate,
    Evaluator,
    /// All verification commands of the goal passed just now.
    Verification,
    User,
}

/// What `goal extend` adds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extension {
    pub turns: Option<i64>,
    pub seconds: Option<i64>,
    pub tokens: Option<i64>,
    pub usd_micros: Option<i64>,
}

impl Goal {
    fn wrong_state(&self, hint: &str) -> Refusal {
        Refusal::WrongState { status: self.status, reason: self.paused_reason, hint: hint.to_owned() }
    }

    fn changed(&self, now: Millis) -> Self {
        Self { updated_at_ms: now, ..self.clone() }
    }

    /// Moves the running interval into the bank and stops the clock.
    fn stop_clock(&mut self, now: Millis) {
        self.time_used_seconds = self.active_seconds(now);
        self.resume_at_ms = None;
    }

    fn leave_active(&mut self, status: GoalStatus, reason: Option<PausedReason>, now: Millis) {
        self.stop_clock(now);
        self.status = status;
        self.paused_reason = reason;
        self.wind_down = None;
    }

    fn enter_active(&mut self, now: Millis) {
        self.stop_clock(now);
        self.status = GoalStatus::Active;
        self.paused_reason = None;
        self.resume_at_ms = Some(now);
        self.wake_at_ms = None;
        self.wind_down = None;
        self.idle_continuations = 0;
        self.blocks_in_row = 0;
        self.failures_in_row = 0;
    }
}

/// Pauses for a person. A goal that waits for a reset is paused too, so that it does not wake by itself.
pub fn pause(goal: &Goal, now: Millis) -> Result<Change, Refusal> {
    let wakes_by_itself = goal.paused_reason.is_some_and(PausedReason::wakes_by_itself);
    match goal.status {
        GoalStatus::Active | GoalStatus::BudgetLimited => {}
        GoalStatus::Paused if wakes_by_itself => {}
        GoalStatus::Paused => {
            return Err(goal.wrong_state("it is paused already; resume it with `steadfast goal resume`"));
        }
        _ => return Err(goal.wrong_state("only a running goal can be paused")),
    }
    Ok(pause_for(goal, PausedReason::User, Event::new("goal_paused", json!({"reason": "user"})), now))
}

/// Pauses for any reason, from any live state.
pub fn pause_for(goal: &Goal, reason: PausedReason, event: Event, now: Millis) -> Change {
    let mut after = goal.changed(now);
    after.leave_active(GoalStatus::Paused, Some(reason), now);
    after.wake_at_ms = None;
    Change { goal: after, events: vec![event], span: Span::Close }
}

/// Pauses until a moment, for something that takes its time. A goal at one of its limits is not let off its
/// wind-down that way.
pub fn wait(goal: &Goal, until: Millis, now: Millis) -> Result<Change, Refusal> {
    if goal.status != GoalStatus::Active {
        return Err(goal.wrong_state("only an active goal can wait"));
    }
    if goal.wind_down.is_some() || limit::reached(goal, now).is_some() {
        return Err(Refusal::NotEnough("a limit of the goal is reached, so it cannot wait".into()));
    }
    let event = Event::new("goal_waiting", json!({"until_ms": until}));
    let mut change = pause_for(goal, PausedReason::Waiting, event, now);
    change.goal.wake_at_ms = Some(until);
    // The rest of the turn that chose to wait is still this goal's; the next Stop closes the span.
    change.span = Span::Keep;
    Ok(change)
}

/// Resumes a blocked or paused goal. A limit that is still reached must be extended first, and doubtful
/// accounting must be reconciled first.
pub fn resume(goal: &Goal, now: Millis) -> Result<Change, Refusal> {
    let reason = match (goal.status, goal.paused_reason) {
        (GoalStatus::Blocked, _) => None,
        (GoalStatus::Paused, reason) => reason,
        (GoalStatus::BudgetLimited, _) => {
            return Err(
                goal.wrong_state("its budget is spent: `steadfast goal extend --add-tokens N` (or `--add-usd X`)")
            );
        }
        (GoalStatus::Active, _) => return Err(goal.wrong_state("it is running already")),
        _ => return Err(goal.wrong_state("it is over; start a new one with `steadfast goal start`")),
    };
    if let Some(PausedReason::AccountingError | PausedReason::AccountingUncertain) = reason {
        return Err(goal.wrong_state("accept the gap with `steadfast goal reconcile --accept-reset`"));
    }
    match limit::reached(goal, now) {
        Some(Limit::Turns) => {
            return Err(goal.wrong_state("its turns are used up: `steadfast goal extend --add-turns N`"));
        }
        Some(Limit::Hours) => {
            return Err(goal.wrong_state("its time is used up: `steadfast goal extend --add-hours H`"));
        }
        Some(Limit::Deadline) => {
            return Err(goal.wrong_state("its deadline has passed: `steadfast goal extend --add-hours H` moves it"));
        }
        // Paused while it was budget_limited: it goes back there instead of getting another turn.
        Some(Limit::Tokens | Limit::Usd) => {
            let mut after = goal.changed(now);
            after.status = GoalStatus::BudgetLimited;
            after.paused_reason = None;
            let event = Event::new("goal_resumed", json!({"budget": "spent"}));
            return Ok(Change { goal: after, events: vec![event], span: Span::Keep });
        }
        None => {}
    }
    let mut after = goal.changed(now);
    after.enter_active(now);
    let event = Event::new("goal_resumed", json!({"from": goal.state()}));
    Ok(Change { goal: after, events: vec![event], span: Span::Open })
}

pub fn abandon(goal: &Goal, now: Millis) -> Result<Change, Refusal> {
    if !goal.status.is_live() {
        return Err(goal.wrong_state("it is over already"));
    }
    let mut after = goal.changed(now);
    after.leave_active(GoalStatus::Abandoned, None, now);
    Ok(Change { goal: after, events: vec![Event::new("goal_abandoned", json!({}))], span: Span::Close })
}

/// Replaces the text of the objective. Verdicts given for the old text no longer count.
pub fn edit(goal: &Goal, objective: String, now: Millis) -> Result<Change, Refusal> {
    if !goal.status.is_live() {
        return Err(goal.wrong_state("it is over; start a new one with `steadfast goal start`"));
    }
    let mut after = goal.changed(now);
    let payload = json!({"previous_objective": goal.objective});
    after.objective = objective;
    Ok(Change { goal: after, events: vec![Event::new("goal_objective_updated", payload)], span: Span::Keep })
}

pub fn block(goal: &Goal, reason: &str, now: Millis) -> Result<Change, Refusal> {
    if goal.status != GoalStatus::Active {
        return Err(goal.wrong_state("only an active goal can be blocked"));
    }
    let mut after = goal.changed(now);
    after.leave_active(GoalStatus::Blocked, None, now);
    let event = Event::new("goal_blocked", json!({"reason": reason}));
    // The rest of the turn that blocked it is still this goal's; the next Stop closes the span.
    Ok(Change { goal: after, events: vec![event], span: Span::Keep })
}

/// Completes the goal. A worker's word counts only while the goal is active; a verdict or passing verification
/// commands also close one that its budget or its accounting stopped; a person always may.
pub fn complete(goal: &Goal, by: CompletedBy, now: Millis) -> Result<Change, Refusal> {
    let guarded = goal.status == GoalStatus::BudgetLimited
        || matches!(goal.paused_reason, Some(PausedReason::AccountingError | PausedReason::AccountingUncertain));
    let allowed = match by {
        CompletedBy::User => goal.status.is_live(),
        CompletedBy::SelfUpdate => goal.status == GoalStatus::Active,
        CompletedBy::Evaluator | CompletedBy::Verification => goal.status == GoalStatus::Active || guarded,
    };
    if !allowed {
        let hint = match goal.status {
            GoalStatus::Complete | GoalStatus::Abandoned => "it is over already",
            _ if guarded => "only a complete verdict of the goal-evaluator, or the user, can close it now",
            _ => "the user must resume it first",
        };
        return Err(goal.wrong_state(hint));
    }
    let (kind, name) = match by {
        CompletedBy::SelfUpdate => ("goal_completed_by_self_update", "self_update"),
        CompletedBy::Verification => ("goal_completed_by_self_update", "verification"),
        CompletedBy::Evaluator => ("goal_completed_by_evaluator", "evaluator"),
        CompletedBy::User => ("goal_completed_by_user", "user"),
    };
    let mut payload = json!({"completed_by": name});
    if goal.status != GoalStatus::Active {
        payload["from_status"] = json!(goal.status);
        payload["paused_reason"] = json!(goal.paused_reason);
    }
    let mut after = goal.changed(now);
    after.leave_active(GoalStatus::Complete, None, now);
    after.accounting_uncertain = false;
    let span = if by == CompletedBy::User { Span::Close } else { Span::Keep };
    Ok(Change { goal: after, events: vec![Event::new(kind, payload)], span })
}

/// Raises limits. Resumes the goal when the limit that stopped it is no longer reached; an extension too small
/// for that is refused, since the goal would only stop again.
pub fn extend(goal: &Goal, add: Extension, now: Millis) -> Result<Change, Refusal> {
    if !goal.status.is_live() {
        return Err(goal.wrong_state("it is over; start a new one with `steadfast goal start`"));
    }
    let mut after = goal.changed(now);
    if let Some(turns) = add.turns {
        // A first cap on an unlimited goal counts from here.
        let base = if goal.has_turn_cap() { goal.continuations_remaining } else { 0 };
        let most = UNLIMITED_CONTINUATIONS - 1 - goal.continuations_used;
        after.continuations_remaining = base.saturating_add(turns).min(most);
    }
    if let Some(seconds) = add.seconds {
        let base = if goal.has_time_cap() { goal.max_wall_clock_seconds } else { goal.active_seconds(now) };
        if goal.deadline_ms.is_none() || goal.has_time_cap() {
            after.max_wall_clock_seconds = base.saturating_add(seconds).min(UNLIMITED_SECONDS - 1);
        }
        after.deadline_ms = goal.deadline_ms.map(|at| at.max(now).saturating_add(seconds.saturating_mul(1000)));
    }
    if let Some(tokens) = add.tokens {
        after.token_budget = Some(goal.token_budget.unwrap_or(goal.total_tokens()).saturating_add(tokens));
        if goal.token_budget.is_none() {
            after.budget_source = super::budget::BudgetSource::Tokens;
        }
    }
    if let Some(micros) = add.usd_micros {
        after.usd_budget_micros = Some(goal.usd_budget_micros.unwrap_or(goal.cost_micros).saturating_add(micros));
    }
    after.warned = goal.warned.iter().copied().filter(|limit| !limit_was_raised(*limit, add)).collect();

    let stopped_by = match (goal.status, goal.paused_reason) {
        (GoalStatus::BudgetLimited, _) => spent_budgets(goal, now),
        (GoalStatus::Paused, Some(PausedReason::ContinuationCap)) => vec![Limit::Turns],
        (GoalStatus::Paused, Some(PausedReason::WallClockCap)) => vec![Limit::Hours],
        (GoalStatus::Paused, Some(PausedReason::Deadline)) => vec![Limit::Deadline],
        _ => goal.wind_down.into_iter().collect(),
    };
    let raised = stopped_by.iter().any(|limit| limit_was_raised(*limit, add));
    let still_reached = stopped_by.iter().find(|limit| limit.is_reached(&after, now));
    let mut span = Span::Keep;
    match still_reached {
        Some(limit) if raised => {
            let (used, most) = limit.usage(&after, now).unwrap_or_default();
            return Err(Refusal::NotEnough(format!("not enough: {used} of {most} {limit} are used even then")));
        }
        None if raised => {
            after.enter_active(now);
            after.budget_limit_reported = false;
            span = Span::Open;
        }
        _ => {}
    }
    let payload = json!({
        "add_turns": add.turns, "add_seconds": add.seconds, "add_tokens": add.tokens, "add_usd_micros": add.usd_micros,
    });
    Ok(Change { goal: after, events: vec![Event::new("goal_extended", payload)], span })
}

/// The budgets that stopped a `budget_limited` goal; both when neither seems spent, so that either can free it.
fn spent_budgets(goal: &Goal, now: Millis) -> Vec<Limit> {
    let budgets = [Limit::Tokens, Limit::Usd];
    let spent: Vec<Limit> = budgets.into_iter().filter(|limit| limit.is_reached(goal, now)).collect();
    if spent.is_empty() { budgets.to_vec() } else { spent }
}

fn limit_was_raised(limit: Limit, add: Extension) -> bool {
    match limit {
        Limit::Tokens => add.tokens.is_some(),
        Limit::Usd => add.usd_micros.is_some(),
        Limit::Turns => add.turns.is_some(),
        Limit::Hours | Limit::Deadline => add.seconds.is_some(),
    }
}

/// Accepts that some tokens may be uncounted: the flag is cleared, the cursor is where the caller put it, and
/// the goal goes on if that was what stopped it.
pub fn reconcile(goal: &Goal, new_offset: i64, now: Millis) -> Result<Change, Refusal> {
    let stopped = goal.status == GoalStatus::Paused
        && matches!(goal.paused_reason, Some(PausedReason::AccountingError | PausedReason::AccountingUncertain));
    if !goal.status.is_live() || !(stopped || goal.accounting_uncertain) {
        return Err(goal.wrong_state("nothing to reconcile: the accounting of this goal is in order"));
    }
    let mut after = goal.changed(now);
    after.accounting_uncertain = false;
    after.last_accounted_byte_offset = new_offset;
    after.last_accounted_uuid = None;
    let payload = json!({
        "old_cursor": goal.last_accounted_byte_offset,
        "old_uuid": goal.last_accounted_uuid,
        "new_cursor": new_offset,
    });
    let mut span = Span::Keep;
    if stopped {
        after.enter_active(now);
        span = Span::Open;
    }
    Ok(Change { goal: after, events: vec![Event::new("goal_reconciled", payload)], span })
}

/// The client of an unfinished goal went away: its clock stops where it was last seen.
pub fn session_ended(goal: &Goal, last_seen: Millis, now: Millis) -> Option<Change> {
    goal.resume_at_ms?;
    let mut after = goal.changed(now);
    after.stop_clock(last_seen);
    Some(Change { goal: after, events: vec![Event::new("session_ended", json!({}))], span: Span::Close })
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
    let event = Event::new("session_resumed", json!({"away_since_ms": last_seen}));
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

/// A verdict of the evaluator, kept as an event. It is bound to the text it judged.
pub fn verdict(
    goal: &Goal,
    verdict: &str,
    reason: Option<&str>,
    evidence: &[String],
    now: Millis,
) -> Result<Change, Refusal> {
    if !goal.status.is_live() {
        return Err(goal.wrong_state("it is over already"));
    }
    let payload = json!({
        "verdict": verdict,
        "reason": reason,
        "evidence": evidence,
        "objective_hash": crate::text::fingerprint(&goal.objective),
    });
    let event = Event::new("evaluator_verdict", payload);
    Ok(Change { goal: goal.changed(now), events: vec![event], span: Span::Keep })
}

/// A privileged verb came from inside an agent's shell.
pub fn refused(goal: &Goal, verb: &str, now: Millis) -> Change {
    let event = Event::new("privileged_verb_refused", json!({"verb": verb}));
    Change { goal: goal.changed(now), events: vec![event], span: Span::Keep }
}

/// Whether the actor may run the verbs that raise limits or undo a person's decision.
pub fn may_use_privileged_verbs(actor: Actor) -> bool {
    actor == Actor::User
}

#[cfg(test)]
mod tests;
