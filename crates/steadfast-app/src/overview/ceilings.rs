//! What limits more than one goal: the caps of `[limits]` that are near or reached, and the quota of the user's plan.

use serde_json::{Value, json};

use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::Goal;
use steadfast_model::limit::{Axis, CapStanding};
use steadfast_model::price::dollars;
use steadfast_model::quota::{self, Quota};
use steadfast_store::spend::{self, Spender};
use steadfast_store::{Db, StoreError};
use steadfast_system::paths::Paths;

/// From this share on, a status line shows the plan.
const SHOWN_PERCENT: i64 = 50;

pub(super) fn caps(db: Db<'_>, goal: &Goal, paths: &Paths, now: Millis) -> Result<Vec<CapStanding>, StoreError> {
    spend::standings(db, &paths.config.limits.caps, Spender::Session(&goal.session_id), now)
}

/// Tokens as a number, money in dollars.
pub(super) fn cap_json(cap: &CapStanding) -> Value {
    let amount = |amount: i64| if cap.cap.axis == Axis::Usd { json!(dollars(amount)) } else { json!(amount) };
    let (used, most) = (amount(cap.standing.used), amount(cap.standing.most));
    json!({"name": cap.cap.name(), "used": used, "most": most, "reached": cap.standing.is_reached()})
}

/// The windows whose numbers still hold.
pub(super) fn plan(db: Db<'_>, goal: &Goal, now: Millis) -> Result<Vec<Quota>, StoreError> {
    let mut quotas = db.quotas(goal.host)?;
    quotas.retain(|quota| quota.holds(now));
    Ok(quotas)
}

pub(super) fn plan_json(quota: &Quota) -> Value {
    let window: &str = quota.window.into();
    json!({"window": window, "used_percent": quota.used_percent, "resets_at_ms": quota.resets_at_ms})
}

/// `caps:` and `plan:` lines of a status.
pub(super) fn lines(caps: &[CapStanding], plan: &[Quota], most: Option<i64>) -> Vec<String> {
    let cap_line = |cap: &CapStanding| {
        let state = if cap.standing.is_reached() { "reached" } else { "near" };
        format!("cap {state}: {}", cap.describe())
    };
    let plan_line = |quota: &Quota| {
        let reset = quota.resets_at_ms.map(|at| format!(", reset at {}", clock::to_local(at))).unwrap_or_default();
        let of = most.map(|most| format!(" (limit {most} %)")).unwrap_or_default();
        format!("plan: {} % of the {} used{of}{reset}", quota.used_percent, quota.window.noun())
    };
    caps.iter().map(cap_line).chain(plan.iter().map(plan_line)).collect()
}

/// What a status line appends about the plan; empty below half of it.
pub fn plan_segment(db: Db<'_>, goal: &Goal, now: Millis) -> Result<String, StoreError> {
    let fuller = quota::fuller(&db.quotas(goal.host)?, now).filter(|quota| quota.used_percent >= SHOWN_PERCENT);
    Ok(fuller.map(|quota| format!(" · plan {} %", quota.used_percent)).unwrap_or_default())
}
