//! The line above everything: what was spent today, against the caps and the plan.

use super::{CapView, Header, PlanView, pace};
use crate::overview::Today;
use steadfast_model::clock::Millis;
use steadfast_model::host::Host;
use steadfast_model::limit::CapScope;
use steadfast_model::price::dollars;
use steadfast_store::{Db, StoreError};
use steadfast_system::paths::Paths;

pub(super) fn header(
    db: Db<'_>,
    paths: &Paths,
    today: &Today,
    (live_goals, live_runs): (usize, usize),
    now: Millis,
) -> Result<Header, StoreError> {
    Ok(Header {
        live_goals,
        live_runs,
        today_tokens: today.tokens,
        today_cost_usd: today.cost_micros.map(dollars),
        caps: caps(db, paths, now)?,
        plan: plan(db, now)?,
    })
}

fn caps(db: Db<'_>, paths: &Paths, now: Millis) -> Result<Vec<CapView>, StoreError> {
    let mut views = Vec::new();
    for cap in paths.config.limits.caps.iter().filter(|cap| matches!(cap.scope, CapScope::Machine(_))) {
        let from = db.cap_start(cap, now)?;
        let standing = cap.standing(db.spent_since(from)?, from).standing;
        views.push(CapView {
            name: cap.name(),
            used: cap.axis.format(standing.used),
            most: cap.axis.format(standing.most),
            percent: pace::percent(standing.used, standing.most),
            is_reached: standing.is_reached(),
        });
    }
    Ok(views)
}

fn plan(db: Db<'_>, now: Millis) -> Result<Vec<PlanView>, StoreError> {
    let mut views = Vec::new();
    for host in Host::ALL.iter().copied() {
        let quotas = db.quotas(host)?.into_iter().filter(|quota| quota.holds(now));
        views.extend(quotas.map(|quota| PlanView {
            host,
            window: quota.window.into(),
            noun: quota.window.noun(),
            used_percent: quota.used_percent,
            resets_at_ms: quota.resets_at_ms,
        }));
    }
    Ok(views)
}
