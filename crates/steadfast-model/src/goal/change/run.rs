//! A goal that a run pursues: its numbers are the run's, and so is its end. Derived from the run alone, so that doing
//! it again, or after a crash, changes nothing.

use serde_json::json;

use super::{Change, Span, pause_for};
use crate::clock::Millis;
use crate::goal::event::{Event, EventKind};
use crate::goal::proof::Proof;
use crate::goal::{Actor, Goal, GoalStatus, PausedReason};
use crate::run::{Plan, Run, RunReason, RunStatus};

/// Whether somebody may set a goal going again by going on with its run. An agent may try again what broke; whatever
/// else stopped the goal was a person's will or a limit.
pub fn may_take_up(goal: &Goal, actor: Actor) -> bool {
    let is_broken = goal.status == GoalStatus::Paused && goal.paused_reason == Some(PausedReason::Degraded);
    !actor.is_agent() || goal.status == GoalStatus::Active || !goal.status.is_live() || is_broken
}

/// Brings the goal up to date with its run. `taken_up_by` says whose engine takes the run in hand just now, which is
/// their wish that the goal goes on.
pub fn follow_run(goal: &Goal, plan: &Plan, run: &Run, taken_up_by: Option<Actor>, now: Millis) -> Option<Change> {
    if !goal.status.is_live() {
        return None;
    }
    let mut change = count(goal, plan, run, now);
    if run.status == RunStatus::Running {
        let is_taken_up = taken_up_by.is_some_and(|actor| may_take_up(goal, actor));
        if is_taken_up && change.goal.status != GoalStatus::Active {
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

/// The numbers. Limits may have been raised when the run went on.
fn count(goal: &Goal, plan: &Plan, run: &Run, now: Millis) -> Change {
    let iterations = i64::from(run.stages.iter().map(|stage| stage.iterations).sum::<u32>());
    let most = i64::from(run.max_iterations(plan, run.stage));
    let mut after = goal.changed(now);
    after.tokens_used = run.tokens;
    after.cost_micros = run.cost_micros;
    after.continuations_used = iterations;
    after.limits.set(Axis::Turns, Some(most.max(iterations)));
    after.limits.set(Axis::Tokens, plan.limits.tokens);
    after.limits.set(Axis::Usd, plan.limits.cost_micros);
    after.limits.set(Axis::Hours, plan.limits.wall_ms.or(goal.limits.get(Axis::Hours)));
    let mut events = Vec::new();
    let tokens = run.tokens - goal.tokens_used;
    if tokens != 0 || iterations > goal.continuations_used {
        let payload = json!({"iterations": iterations, "cost_micros": run.cost_micros - goal.cost_micros});
        events.push(Event { tokens_delta: Some(tokens), ..Event::new(EventKind::RunIteration, payload) });
        after.last_continuation_at_ms = Some(now);
    }
    Change { goal: after, events, span: Span::Keep }
}

/// The end of the run is an end of the goal, or a pause that says why.
fn end(change: &mut Change, run: &Run, now: Millis) {
    let reason = run.reason.as_deref().unwrap_or_default();
    let why = match (run.status, run.end_reason()) {
        (RunStatus::Completed, Some(RunReason::BudgetTokens | RunReason::BudgetUsd)) => {
            if change.goal.status != GoalStatus::BudgetLimited {
                change.goal.leave_active(GoalStatus::BudgetLimited, None, now);
                change.goal.budget_limit_reported = true;
                change.events.push(Event::new(EventKind::BudgetLimited, json!({"limit": reason})));
                change.span = Span::Close;
            }
            return;
        }
        (RunStatus::Completed, Some(RunReason::MaxIterations)) => PausedReason::ContinuationCap,
        (RunStatus::Completed, Some(RunReason::MaxHours)) => PausedReason::WallClockCap,
        (RunStatus::Completed, Some(RunReason::CostCap)) => PausedReason::CostCap,
        (RunStatus::Completed, _) => {
            let proof = Proof::from_run(&change.goal);
            change.goal.leave_active(GoalStatus::Complete, None, now);
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
    // A person may have paused or blocked it before, for a reason of their own.
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
    fn every_end_of_a_run_says_what_became_of_its_goal() {
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
            assert_eq!(change.goal.resume_at_ms, None, "its clock stands: {reason}");
            assert_eq!((change.goal.tokens_used, change.goal.continuations_used), (70, 2));
            assert_eq!(change.events[0].tokens_delta, Some(70));
            // Once more, and nothing is new.
            assert_eq!(follow_run(&change.goal, &plan, &run, None, 6_000), None, "{reason}");
        }
    }

    #[test]
    fn a_run_that_is_taken_up_again_takes_its_goal_along_and_a_running_one_does_not_undo_a_pause() {
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
    fn an_agent_takes_up_what_broke_and_nothing_that_was_stopped() {
        for (status, reason, is_taken) in [
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
            let taken = follow_run(&stopped, &plan, &run, Some(Actor::Worker), 6_000);
            let state = taken.map_or(stopped.status, |change| change.goal.status);
            assert_eq!(state == GoalStatus::Active, is_taken, "{reason}");
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
