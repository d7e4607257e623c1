//! A goal that a run pursues: its numbers and its end come from the run. Derived from the run alone, so that doing it
//! again, also after a crash, changes nothing.

use serde_json::json;

use super::completion::request_sign_off;
use super::{Change, Span, pause_for};
use crate::clock::Millis;
use crate::goal::event::{Event, EventKind};
use crate::goal::proof::Proof;
use crate::goal::{Actor, Goal, GoalStatus, PausedReason};
use crate::limit::Axis;
use crate::run::{Plan, Run, RunReason, RunStatus};

/// Whether an actor may reactivate a goal by resuming its run. An agent may retry after a failure, but not override a
/// person or a limit.
pub fn can_resume(goal: &Goal, actor: Actor) -> bool {
    let is_broken = goal.status == GoalStatus::Paused && goal.paused_reason == Some(PausedReason::Degraded);
    !actor.is_agent() || goal.status == GoalStatus::Active || !goal.status.is_live() || is_broken
}

/// Updates the goal from its run. `resumed_by` is the actor who starts or resumes the run in this step, and with it the
/// goal.
pub fn follow_run(goal: &Goal, plan: &Plan, run: &Run, resumed_by: Option<Actor>, now: Millis) -> Option<Change> {
    if !goal.status.is_live() {
        return None;
    }
    let mut change = count(goal, plan, run, now);
    if run.status == RunStatus::Running {
        let is_resumed = resumed_by.is_some_and(|actor| can_resume(goal, actor));
        if is_resumed && change.goal.status != GoalStatus::Active {
            change.goal.enter_active(now);
            change.goal.budget_limit_reported = false;
            change.events.push(Event::new(EventKind::GoalResumed, json!({"from": goal.state(), "by": "run"})));
            change.span = Span::Open;
        }
    } else {
        end(&mut change, run, now);
    }
    let is_new =
        !change.events.is_empty() || Goal { updated_at_ms: goal.updated_at_ms, ..change.goal.clone() } != *goal;
    is_new.then_some(change)
}

/// The numbers. Limits may have been raised when the run was resumed.
fn count(goal: &Goal, plan: &Plan, run: &Run, now: Millis) -> Change {
    let iterations = i64::from(run.stages.iter().map(|stage| stage.iterations).sum::<u32>());
    let most = i64::from(run.max_iterations(plan, run.stage));
    let mut after = goal.changed(now);
    after.tokens_used = run.tokens;
    after.subagent_tokens = run.nested_tokens;
    after.cost_micros = run.cost_micros.saturating_add(run.nested_cost_micros);
    after.unpriced_tokens = if run.cost_unknown { run.tokens.max(1) } else { 0 };
    after.continuations_used = iterations;
    let planned = plan.limits.limits;
    after.limits = planned.with(Axis::Turns, most.max(iterations));
    // A run has no deadline, and may have no limit on its time: those of the goal stay.
    for axis in [Axis::Hours, Axis::Deadline] {
        after.limits.set(axis, planned.get(axis).or(goal.limits.get(axis)));
    }
    let mut events = Vec::new();
    let tokens = after.total_tokens() - goal.total_tokens();
    if tokens != 0 || iterations > goal.continuations_used {
        let payload = json!({"iterations": iterations, "cost_micros": after.cost_micros - goal.cost_micros});
        events.push(Event { tokens_delta: Some(tokens), ..Event::new(EventKind::RunIteration, payload) });
        after.last_continuation_at_ms = Some(now);
    }
    Change { goal: after, events, span: Span::Keep }
}

/// The end of the run ends the goal or pauses it with a reason.
fn end(change: &mut Change, run: &Run, now: Millis) {
    let reason = run.reason.as_deref().unwrap_or_default();
    let limit = run.end_reason().and_then(RunReason::axis);
    let why = match (run.status, run.end_reason()) {
        (RunStatus::Completed, _) if limit.is_some_and(Axis::is_budget) => {
            if change.goal.status != GoalStatus::BudgetLimited {
                change.goal.leave_active(GoalStatus::BudgetLimited, None, now);
                change.goal.budget_limit_reported = true;
                change.events.push(Event::new(EventKind::BudgetLimited, json!({"limit": reason})));
                change.span = Span::Close;
            }
            return;
        }
        (RunStatus::Completed, _) if let Some(reason) = limit.and_then(Axis::paused_reason) => reason,
        (RunStatus::Completed, _) => {
            let proof = Proof::from_run(&change.goal);
            if change.goal.sign_off {
                if change.goal.paused_reason != Some(PausedReason::SignOff) {
                    let asked = request_sign_off(&change.goal, proof.by(), now);
                    change.goal = asked.goal;
                    change.events.extend(asked.events);
                    change.span = Span::Close;
                }
                return;
            }
            change.goal.leave_active(GoalStatus::Complete, None, now);
            change.goal.completed_by = Some(proof.by());
            change.goal.accounting_uncertain = false;
            let payload = json!({"completed_by": proof.by().to_string(), "reason": reason});
            change.events.push(Event::new(proof.by().event_kind(), payload));
            change.span = Span::Close;
            return;
        }
        (RunStatus::Failed, Some(RunReason::NoProgress)) => PausedReason::NoProgress,
        (RunStatus::Killed, _) => PausedReason::User,
        _ => PausedReason::Degraded,
    };
    // A person may have paused or blocked it before for another reason.
    if change.goal.status == GoalStatus::Active {
        let kind = if why == PausedReason::Degraded { EventKind::PausedDegraded } else { EventKind::GoalPaused };
        let event = Event::new(kind, json!({"reason": why, "cause": reason, "run": run.status}));
        let paused = pause_for(&change.goal, why, event, now);
        change.goal = paused.goal;
        change.events.extend(paused.events);
        change.span = paused.span;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::NewGoal;
    use crate::host::Host;
    use crate::run::Rule;
    use crate::run::machine;
    use crate::testing::runs::{loop_of, stage};

    fn goal(verify: &[&str]) -> Goal {
        let verify = verify.iter().map(|command| (*command).to_owned()).collect();
        let new = NewGoal { objective: "ship".into(), verify, ..NewGoal::default() };
        Goal::start(new, "run-1", Host::Claude, None, 0)
    }

    fn ended(status: RunStatus, reason: &str) -> (Plan, Run) {
        let plan = loop_of(stage(Rule::FixedN, 2));
        let mut run = machine::begin(&plan, 0);
        run.status = status;
        run.reason = Some(reason.to_owned());
        run.tokens = 70;
        run.stages[0].iterations = 2;
        (plan, run)
    }

    fn kinds(change: &Change) -> Vec<EventKind> {
        change.events.iter().map(|event| event.kind).collect()
    }

    #[test]
    fn every_end_of_a_run_ends_or_pauses_its_goal() {
        for (status, reason, expected) in [
            (RunStatus::Completed, "verify", "complete"),
            (RunStatus::Completed, "max_iterations", "paused (continuation_cap)"),
            (RunStatus::Completed, "budget_tokens", "budget_limited"),
            (RunStatus::Completed, "budget_usd", "budget_limited"),
            (RunStatus::Completed, "max_hours", "paused (wall_clock_cap)"),
            (RunStatus::Completed, "cost_cap", "paused (cost_cap)"),
            (RunStatus::Failed, "no_progress", "paused (no_progress)"),
            (RunStatus::Failed, "errors: exit code 1", "paused (degraded)"),
            (RunStatus::Killed, "interrupted", "paused (user)"),
            (RunStatus::UnknownTermination, "engine_gone", "paused (degraded)"),
        ] {
            let (plan, run) = ended(status, reason);
            let change = follow_run(&goal(&["true"]), &plan, &run, None, 5_000).unwrap();
            assert_eq!(change.goal.state(), expected, "{reason}");
            assert_eq!(change.goal.resume_at_ms, None, "its clock is stopped: {reason}");
            assert_eq!((change.goal.tokens_used, change.goal.continuations_used), (70, 2));
            assert_eq!(change.events[0].tokens_delta, Some(70));
            // Doing it again changes nothing.
            assert_eq!(follow_run(&change.goal, &plan, &run, None, 6_000), None, "{reason}");
        }
    }

    #[test]
    fn resuming_a_run_resumes_its_goal_and_a_running_one_does_not_undo_a_pause() {
        let (plan, mut run) = ended(RunStatus::Completed, "max_iterations");
        let paused = follow_run(&goal(&[]), &plan, &run, None, 5_000).unwrap().goal;
        run.status = RunStatus::Running;
        run.stages[0].max = Some(9);
        let counted = follow_run(&paused, &plan, &run, None, 6_000).unwrap();
        assert_eq!(
            (counted.goal.state(), counted.goal.continuations_remaining()),
            ("paused (continuation_cap)".into(), 7)
        );
        let change = follow_run(&paused, &plan, &run, Some(Actor::User), 7_000).unwrap();
        assert_eq!((change.goal.status, kinds(&change)), (GoalStatus::Active, vec![EventKind::GoalResumed]));
    }

    #[test]
    fn an_agent_resumes_after_a_failure_but_nothing_that_was_stopped() {
        for (status, reason, is_resumed) in [
            (RunStatus::UnknownTermination, "engine_gone", true),
            (RunStatus::Failed, "errors: exit code 1", true),
            (RunStatus::Killed, "killed", false),
            (RunStatus::Killed, "goal_paused", false),
            (RunStatus::Failed, "no_progress", false),
            (RunStatus::Completed, "max_iterations", false),
            (RunStatus::Completed, "budget_tokens", false),
            (RunStatus::Completed, "cost_cap", false),
        ] {
            let (plan, mut run) = ended(status, reason);
            let stopped = follow_run(&goal(&[]), &plan, &run, None, 5_000).unwrap().goal;
            run.status = RunStatus::Running;
            let resumed = follow_run(&stopped, &plan, &run, Some(Actor::Worker), 6_000);
            let state = resumed.map_or(stopped.status, |change| change.goal.status);
            assert_eq!(state == GoalStatus::Active, is_resumed, "{reason}");
            let by_user = follow_run(&stopped, &plan, &run, Some(Actor::User), 6_000).unwrap();
            assert_eq!(by_user.goal.status, GoalStatus::Active, "{reason}");
        }
    }

    #[test]
    fn a_goal_that_is_over_stays_as_it_is() {
        let (plan, run) = ended(RunStatus::Completed, "verify");
        let over = Goal { status: GoalStatus::Abandoned, ..goal(&[]) };
        assert_eq!(follow_run(&over, &plan, &run, Some(Actor::User), 1), None);
    }
}
