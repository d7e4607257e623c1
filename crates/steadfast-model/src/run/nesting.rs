//! Runs that agents start. What one spends counts to the goal of its agent, or to the run that its agent works for, and
//! it ends with them.

use super::{RunReason, RunStatus, Stopping};
use crate::clock::Millis;
use crate::goal::{Goal, GoalStatus};

/// How many runs may be inside each other, below a session or a run of the user.
pub const MOST_LEVELS: u32 = 2;

/// Whether a run that counts to this goal may work: also while the goal waits for a moment at which it continues by
/// itself.
pub fn may_work(goal: &Goal) -> bool {
    let waits = goal.status == GoalStatus::Paused && goal.paused_reason.is_some_and(|reason| reason.wakes_by_itself());
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

/// How a run ends the runs that its agents started: `stopping` is how it is about to end, if it is.
pub fn end_with_run(status: RunStatus, stopping: Option<&Stopping>) -> Option<Stopping> {
    let limit = stopping.and_then(|stopping| RunReason::parse(&stopping.reason)).filter(|reason| reason.is_limit());
    match limit {
        Some(reason) => Some(Stopping { status: RunStatus::Completed, reason: reason.into() }),
        None if status == RunStatus::Running && stopping.is_none() => None,
        None => {
            let reason = RunReason::Killed.with_detail("the run above it ended");
            Some(Stopping { status: RunStatus::Killed, reason })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::{NewGoal, PausedReason};
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

    #[test]
    fn a_nested_run_ends_with_the_run_above_it() {
        assert_eq!(end_with_run(RunStatus::Running, None), None);
        let at_limit = Stopping { status: RunStatus::Completed, reason: "max_hours".into() };
        assert_eq!(end_with_run(RunStatus::Running, Some(&at_limit)), Some(at_limit));
        let killed = end_with_run(RunStatus::Killed, None).unwrap();
        assert_eq!((killed.status, killed.reason.as_str()), (RunStatus::Killed, "killed: the run above it ended"));
    }
}
