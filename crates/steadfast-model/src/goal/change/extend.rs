//! Ways a person gets a stopped goal going: more room, or accepting a gap in the accounting.

use serde_json::json;
use strum::IntoEnumIterator as _;

use super::{Change, Refusal, Span};
use crate::clock::Millis;
use crate::goal::budget::BudgetSource;
use crate::goal::event::EventKind;
use crate::goal::{Goal, GoalStatus, PausedReason, UNLIMITED_CONTINUATIONS, UNLIMITED_SECONDS};
use crate::limit::{Axis, Limits, Standing};

/// Raises limits by the amounts of `add`. Resumes the goal when the limit that stopped it is no longer reached; an
/// extension too small for that is refused, since the goal would only stop again.
pub fn extend(goal: &Goal, add: Limits, now: Millis) -> Result<Change, Refusal> {
    if !goal.status.is_live() {
        return Err(goal.wrong_state("it is over; start a new one with `/goal-start`"));
    }
    let mut after = goal.changed(now);
    let is_raised = |axis: Axis| add.get(axis.extended_by()).is_some();
    for axis in Axis::iter() {
        if let Some(amount) = add.get(axis.extended_by()) {
            raise(&mut after, axis, amount, now);
        }
    }
    if is_raised(Axis::Tokens) && goal.limits.get(Axis::Tokens).is_none() {
        after.budget_source = BudgetSource::Tokens;
    }
    after.warned.retain(|axis| !is_raised(*axis));
    // A deadline that was moved may let the goal wait longer.
    after.set_end_of_wait();

    let stopped_by = stopped_by(goal, now);
    let raised = stopped_by.iter().any(|axis| is_raised(*axis));
    let used = after.used(now);
    let standings = stopped_by.iter().filter_map(|axis| after.limits.standing(*axis, &used));
    let still_reached = standings.into_iter().find(Standing::is_reached);
    let mut span = Span::Keep;
    match still_reached {
        Some(standing) if raised => {
            return Err(Refusal::NotEnough(format!("not enough, even then: {}", standing.describe_reached())));
        }
        None if raised => {
            after.enter_active(now);
            after.budget_limit_reported = false;
            span = Span::Open;
        }
        _ => {}
    }
    let payload = json!({
        "add_turns": add.get(Axis::Turns), "add_seconds": add.get(Axis::Hours).map(|ms| ms / 1_000),
        "add_tokens": add.get(Axis::Tokens), "add_usd_micros": add.get(Axis::Usd),
    });
    Ok(Change::new(after, EventKind::GoalExtended, payload, span))
}

/// Adds to one limit. A first limit on an axis counts from what is used now; a deadline is only moved.
fn raise(goal: &mut Goal, axis: Axis, amount: i64, now: Millis) {
    let limit = goal.limits.get(axis);
    let used = || Limits::default().with(axis, i64::MAX).standing(axis, &goal.used(now)).map_or(0, |now| now.used);
    let raised = match axis {
        Axis::Deadline => limit.map(|at| at.max(now).saturating_add(amount)),
        // Hours move the deadline of a goal that has one; they are a limit of their own only if they were one before.
        Axis::Hours if limit.is_none() && goal.limits.get(Axis::Deadline).is_some() => None,
        _ => Some(limit.unwrap_or_else(used).saturating_add(amount)),
    };
    let most = match axis {
        Axis::Turns => UNLIMITED_CONTINUATIONS - 1,
        Axis::Hours => (UNLIMITED_SECONDS - 1) * 1_000,
        _ => i64::MAX,
    };
    goal.limits.set(axis, raised.map(|amount| amount.min(most)));
}

/// The limits that stopped the goal.
fn stopped_by(goal: &Goal, now: Millis) -> Vec<Axis> {
    match (goal.status, goal.paused_reason) {
        (GoalStatus::BudgetLimited, _) => {
            let used = goal.used(now);
            let is_spent =
                |axis: &Axis| goal.limits.standing(*axis, &used).is_some_and(|standing| standing.is_reached());
            let budgets: Vec<Axis> = Axis::iter().filter(|axis| axis.is_budget()).collect();
            let spent: Vec<Axis> = budgets.iter().copied().filter(is_spent).collect();
            // If none seems spent, any can free the goal.
            if spent.is_empty() { budgets } else { spent }
        }
        (GoalStatus::Paused, Some(reason)) => {
            Axis::iter().filter(|axis| axis.paused_reason() == Some(reason)).collect()
        }
        _ => goal.wind_down.into_iter().collect(),
    }
}

/// Accepts that some tokens may be uncounted: the flag is cleared, the cursor is where the caller put it, and
/// the goal continues if that was what stopped it.
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
    Ok(Change::new(after, EventKind::GoalReconciled, payload, span))
}
