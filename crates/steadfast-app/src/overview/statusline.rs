//! The status line of a host, in segments. Each is short, and empty if there is nothing to say.

use steadfast_model::clock::Millis;
use steadfast_model::goal::liveness::{Next, Stall};
use steadfast_model::goal::{Goal, GoalStatus, PausedReason};
use steadfast_model::limit::{Axis, CapScope, Period, Standing};
use steadfast_model::quota::{Quota, Window};
use steadfast_model::text;
use steadfast_store::{Db, StoreError};
use steadfast_system::config::LimitsConfig;

pub use super::ceilings::plan_segment as near_plan;

/// Cells of a bar.
const CELLS: i64 = 7;

/// What the goal does and has used.
pub fn goal(goal: &Goal, next: Next, now: Millis) -> String {
    let budget = goal.limits.get(Axis::Tokens).map(|budget| format!("/{}", text::short_number(budget)));
    let tokens = format!("{}{}", text::short_number(goal.total_tokens()), budget.unwrap_or_default());
    let until = if goal.status.is_live() { now } else { goal.updated_at_ms };
    let numbers = format!(
        "{tokens} · {} · {}",
        text::count(goal.continuations_used, "turn"),
        text::clock(goal.active_seconds(until))
    );
    let doubt = if goal.accounting_uncertain { " ⚠" } else { "" };
    match (goal.status, goal.paused_reason) {
        (GoalStatus::Active, _) => {
            let state = match next {
                Next::Stalled(Stall::Interrupted) => "interrupted",
                Next::Stalled(Stall::Permission) => "asks you",
                Next::Stalled(Stall::Dialog) => "stalled: close the dialog",
                Next::Stalled(Stall::NoWaker) => "stalled: type a prompt",
                Next::BackgroundEnds { .. } => "waits for a task",
                _ => "active",
            };
            format!("◎ goal {state} {numbers}{doubt}")
        }
        (GoalStatus::Paused, Some(PausedReason::Interrupted)) => format!("◎ goal interrupted {numbers}{doubt}"),
        (GoalStatus::Paused, Some(PausedReason::SignOff)) => format!("◎ goal waits for your sign-off {numbers}{doubt}"),
        (GoalStatus::Paused, Some(reason)) => {
            format!("◎ goal paused ({}) {numbers}{doubt}", reason.to_string().replace('_', " "))
        }
        (GoalStatus::Paused, None) => format!("◎ goal paused {numbers}{doubt}"),
        (GoalStatus::Blocked, _) => format!("◎ goal blocked {numbers}"),
        (GoalStatus::BudgetLimited, _) => format!("◎ goal out of budget {numbers}"),
        (GoalStatus::Complete, _) if goal.is_unverified() => format!("◎ goal complete (unverified) {numbers}"),
        (GoalStatus::Complete, _) => format!("◎ goal achieved {numbers}"),
        (GoalStatus::Abandoned, _) => String::new(),
    }
}

/// How much is used of the limit that comes first: `▓▓▓░░░░ 42 %`. Empty without limits, and when the goal is over.
pub fn bar(goal: &Goal, now: Millis) -> String {
    let percent = |standing: &Standing| {
        let used = i128::from(standing.used.max(0)) * 100 / i128::from(standing.most.max(1));
        i64::try_from(used).unwrap_or(i64::MAX)
    };
    let fullest = goal.limits.standings(&goal.used(now)).map(|standing| percent(&standing)).max();
    match fullest.filter(|_| goal.status.is_live()) {
        Some(percent) => {
            // Any use is seen, and only what is used up is full.
            let rounded = percent.min(100) * CELLS + 50;
            let full = if percent >= 100 { CELLS } else { (rounded / 100).clamp(i64::from(percent > 0), CELLS - 1) };
            let cells = |character: &str, count: i64| character.repeat(usize::try_from(count).unwrap_or(0));
            format!("{}{} {percent} %", cells("▓", full), cells("░", CELLS - full))
        }
        None => String::new(),
    }
}

/// Both windows of the plan: `plan 5h 42 % week 13 %`.
pub fn plan(quotas: &[Quota], now: Millis) -> String {
    let window = |window: Window| quotas.iter().find(|quota| quota.window == window && quota.holds(now));
    let parts: Vec<String> = [(Window::FiveHour, "5h"), (Window::Weekly, "week")]
        .into_iter()
        .filter_map(|(of, name)| Some(format!("{name} {} %", window(of)?.used_percent)))
        .collect();
    if parts.is_empty() { String::new() } else { format!("plan {}", parts.join(" ")) }
}

/// `context 37 %`
pub fn context(percent: i64) -> String {
    format!("context {percent} %")
}

/// What everything on the machine cost since midnight, and the cap of the day: `today $4.20 of $20.00`. A plus means
/// that a part of the cost is unknown.
pub fn today(db: Db<'_>, limits: &LimitsConfig, now: Millis) -> Result<String, StoreError> {
    let midnight = Period::Daily.start(now);
    let spent = db.spent_since(midnight)?;
    let unknown = if db.has_unknown_cost_since(midnight)? { "+" } else { "" };
    let is_of_day = |axis: Axis, scope: &CapScope| axis == Axis::Usd && *scope == CapScope::Machine(Period::Daily);
    let cap = limits.caps.iter().find(|cap| is_of_day(cap.axis, &cap.scope)).map(|cap| in_cents(cap.most));
    let of = cap.map(|cap| format!(" of {cap}")).unwrap_or_default();
    Ok(format!("today {}{unknown}{of}", in_cents(spent.cost_micros)))
}

/// A status line has no space for fractions of a cent.
fn in_cents(micros: i64) -> String {
    let cents = micros.saturating_add(5_000) / 10_000;
    format!("${}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests;
