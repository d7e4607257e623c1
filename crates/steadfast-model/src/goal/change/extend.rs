//! Ways a person gets a stopped goal going: more room, or accepting a gap in the accounting.

use serde_json::json;

use super::{Change, Event, Refusal, Span};
use crate::clock::Millis;
use crate::goal::budget::BudgetSource;
use crate::goal::limit::Limit;
use crate::goal::{Goal, GoalStatus, PausedReason, UNLIMITED_CONTINUATIONS, UNLIMITED_SECONDS};

/// What `goal extend` adds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extension {
    pub turns: Option<i64>,
    pub seconds: Option<i64>,
    pub tokens: Option<i64>,
    pub usd_micros: Option<i64>,
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
            after.budget_source = BudgetSource::Tokens;
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
        Limit::Shared => false,
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
