//! The goal that a run counts to which its agent started: the run works while the goal does.

use super::{Goal, GoalStatus, PausedReason};
use crate::clock::Millis;
use crate::run::{RunReason, RunStatus, Stopping};

/// Whether a run that counts to this goal may work: also while the goal waits for a moment at which it continues by
/// itself.
pub fn may_work(goal: &Goal) -> bool {
    let waits = goal.status == GoalStatus::Paused && goal.paused_reason.is_some_and(PausedReason::wakes_by_itself);
    goal.status == GoalStatus::Active || waits
}

/// How the goal that a run counts to ends it.
pub fn end_with_goal(goal: Option<&Goal>, now: Millis) -> Option<Stopping> {
    let killed = |reason: RunReason| Some(Stopping { status: RunStatus::Killed, reason: reason.into() });
    let Some(goal) = goal else { return killed(RunReason::GoalAbandoned) };
    if may_work(goal) {
        return None;
    }
    match goal.status {
        GoalStatus::BudgetLimited => {
            let reason = goal.reached_limit(now).map_or(RunReason::BudgetTokens, RunReason::from);
            Some(Stopping { status: RunStatus::Completed, reason: reason.into() })
        }
        GoalStatus::Complete => killed(RunReason::GoalCompleted),
        GoalStatus::Abandoned => killed(RunReason::GoalAbandoned),
        GoalStatus::Active | GoalStatus::Paused | GoalStatus::Blocked => killed(RunReason::GoalPaused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::NewGoal;
    use crate::host::Host;
    use crate::limit::Axis;

    fn goal(status: GoalStatus, paused_reason: Option<PausedReason>) -> Goal {
        let new = NewGoal { objective: "ship".into(), ..NewGoal::default() };
        Goal { status, paused_reason, ..Goal::start(new, "s1", Host::Claude, None, 0) }
    }

    #[test]
    fn a_nested_run_ends_with_its_goal() {
        let end = |goal: &Goal| end_with_goal(Some(goal), 0).map(|stopping| (stopping.status, stopping.reason));
        assert_eq!(end(&goal(GoalStatus::Active, None)), None);
        assert_eq!(end(&goal(GoalStatus::Paused, Some(PausedReason::Waiting))), None);
        let killed = |reason: RunReason| Some((RunStatus::Killed, reason.to_string()));
        assert_eq!(end(&goal(GoalStatus::Paused, Some(PausedReason::User))), killed(RunReason::GoalPaused));
        assert_eq!(end(&goal(GoalStatus::Blocked, None)), killed(RunReason::GoalPaused));
        assert_eq!(end(&goal(GoalStatus::Complete, None)), killed(RunReason::GoalCompleted));
        let mut spent = goal(GoalStatus::BudgetLimited, None);
        spent.limits.set(Axis::Usd, Some(0));
        assert_eq!(end(&spent), Some((RunStatus::Completed, "budget_usd".into())));
        assert_eq!(end_with_goal(None, 0).map(|stopping| stopping.reason), Some("goal_abandoned".into()));
    }
}
