//! A goal whose plan is used up as far as the user allows: it waits for the reset, as it does when the client refuses.

use serde_json::json;

use crate::clock::Millis;
use crate::goal::change::{Change, pause_for};
use crate::goal::event::{Event, EventKind};
use crate::goal::{Goal, GoalStatus, PausedReason};
use crate::limit::Axis;
use crate::quota::Quota;

/// When to look again if the client does not say when the window is reset.
const UNKNOWN_RESET: Millis = 30 * 60_000;

/// Pauses a goal until the reset if `quota` is at its limit, or at the one of the configuration.
pub fn at_quota(goal: &Goal, quota: Option<Quota>, configured: Option<i64>, now: Millis) -> Option<Change> {
    let most = [goal.limits.get(Axis::Plan), configured].into_iter().flatten().min()?;
    let quota = quota.filter(|quota| quota.holds(now) && quota.used_percent >= most)?;
    if goal.status != GoalStatus::Active {
        return None;
    }
    let until = quota.resets_at_ms.unwrap_or(now + UNKNOWN_RESET);
    let reason = PausedReason::UsageLimit;
    let message = format!("{}, the limit is {most} %", quota.describe());
    let payload = json!({"reason": reason, "limit": Axis::Plan, "until_ms": until, "message": message});
    let mut change = pause_for(goal, reason, Event::new(EventKind::GoalPaused, payload), now);
    change.goal.wake_at_ms = Some(until);
    Some(change)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Limits;
    use crate::quota::Window;
    use crate::testing::{HOUR, START, goal_with};

    #[test]
    fn a_goal_waits_for_the_reset_of_a_window_that_is_used_as_far_as_allowed() {
        let quota = |used_percent| Quota {
            window: Window::FiveHour,
            used_percent,
            resets_at_ms: Some(START + HOUR),
            seen_at_ms: START,
        };
        for (own, configured, used, stops) in [
            (Some(90), None, 90, true),
            (Some(90), None, 89, false),
            (None, Some(80), 80, true),
            (Some(90), Some(80), 85, true),
            (Some(70), Some(80), 75, true),
            (None, None, 100, false),
        ] {
            let limits = own.map_or_else(Limits::default, |most| Limits::default().with(Axis::Plan, most));
            let goal = goal_with(limits);
            let change = at_quota(&goal, Some(quota(used)), configured, START);
            assert_eq!(change.is_some(), stops, "{own:?} {configured:?} {used}");
            if let Some(change) = change {
                assert_eq!(change.goal.paused_reason, Some(PausedReason::UsageLimit));
                assert_eq!(change.goal.wake_at_ms, Some(START + HOUR));
                assert_eq!(at_quota(&change.goal, Some(quota(used)), configured, START), None, "it waits already");
            }
            assert_eq!(at_quota(&goal, Some(quota(used)), configured, START + HOUR), None, "the window was reset");
            assert_eq!(at_quota(&goal, None, configured, START), None);
        }
    }
}
