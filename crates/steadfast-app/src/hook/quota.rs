//! The quota of the user's plan: a warning at 80 %, and a pause where the user set a limit.

use super::{Call, HookError};
use steadfast_model::clock;
use steadfast_model::goal::{Goal, turn};
use steadfast_model::limit::Axis;
use steadfast_model::quota::{self, Quota};
use steadfast_store::{Db, Store, StoreError};

/// At this share of a window the user is warned, once.
const WARN_PERCENT: i64 = 80;

/// Warns about windows that are nearly used up. Returns the message for the user.
pub(super) fn warn(call: &Call<'_>, store: &mut Store) -> Result<Option<String>, HookError> {
    let quotas = store.read().quotas(call.host())?;
    let near = |quota: &&Quota| quota.holds(call.now) && quota.used_percent >= WARN_PERCENT;
    let mut lines = Vec::new();
    for quota in quotas.iter().filter(near) {
        if store.read().is_quota_warned(call.host(), quota)? {
            continue;
        }
        store.write(|db| db.note_quota_warning(call.host(), quota))?;
        let reset = quota.resets_at_ms.map(|at| format!(", reset at {}", clock::to_local(at))).unwrap_or_default();
        lines.push(format!("◎ {}{reset}.", quota.describe()));
    }
    Ok((!lines.is_empty()).then(|| lines.join("\n")))
}

/// Pauses the goal if the plan is used as far as the user allows. Returns it with the message for the user.
pub(super) fn pause(call: &Call<'_>, db: Db<'_>, goal: &Goal) -> Result<Option<(Goal, String)>, StoreError> {
    let configured = call.paths.config.limits.plan_percent;
    if configured.is_none() && goal.limits.get(Axis::Plan).is_none() {
        return Ok(None);
    }
    let quota = quota::fuller(&db.quotas(call.host())?, call.now);
    let Some(change) = turn::at_quota(goal, quota, configured, call.now) else {
        return Ok(None);
    };
    let goal = db.save(goal, change, call.origin)?;
    let used = quota.map(|quota| quota.describe()).unwrap_or_default();
    let at = goal.wake_at_ms.map(clock::to_local).unwrap_or_default();
    let message =
        format!("◎ {used}, so the goal is paused (usage_limit) and continues at {at}. /goal-resume continues it now.");
    Ok(Some((goal, call.host().spell(&message))))
}
