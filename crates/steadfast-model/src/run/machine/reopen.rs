//! Resuming a run that is over, and ending a run whose engine is gone. Commits stay; errors and idle iterations are
//! counted from 0 again, because a person has looked at the run and wants it to continue.

use super::{Machine, limit_reached};
use crate::clock::Millis;
use crate::run::{ActiveAttempt, Plan, Record, Rule, Run, RunKind, RunReason, RunStatus, StageStatus, Step};

#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum ReopenError {
    #[error("the run is running")]
    Running,
    #[error("the run is completed ({reason})")]
    Completed { reason: String },
    #[error("the stage has {iterations} iterations and its maximum is {max}")]
    NotEnough { iterations: u32, max: u32 },
    #[error("the run is still at its limit ({limit})")]
    LimitReached { limit: RunReason },
}

impl ReopenError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Running => "see `status`, or end it with `kill`",
            Self::Completed { .. } => "start a new run",
            Self::NotEnough { .. } => "give it a larger `--max N`",
            Self::LimitReached { .. } => "give it a larger budget, or start a new run",
        }
    }
}

/// Reopens a run that was killed, failed or lost its engine, one that reached its maximum (with a larger one) or a limit
/// (after the plan's limit was raised). Nothing starts before [`crate::run::RunEvent::Started`].
pub fn reopen(plan: &Plan, run: &Run, max: Option<u32>, now: Millis) -> Result<Step, ReopenError> {
    let reason = run.reason.as_deref().unwrap_or_default();
    // A `fixed-n` loop ends at its maximum too, but under the name of the rule.
    let is_fixed = plan.kind == RunKind::Loop && reason == Rule::FixedN.name();
    let has_reached_maximum =
        run.status == RunStatus::Completed && (is_fixed || run.end_reason() == Some(RunReason::MaxIterations));
    match run.status {
        RunStatus::Running => return Err(ReopenError::Running),
        RunStatus::Completed if !has_reached_maximum && !run.end_reason().is_some_and(RunReason::is_limit) => {
            return Err(ReopenError::Completed { reason: reason.to_owned() });
        }
        RunStatus::Completed | RunStatus::Failed | RunStatus::Killed | RunStatus::UnknownTermination => {}
    }
    let mut run = run.clone();
    if let Some(ended) = run.completed_at_ms {
        run.closed_ms = run.closed_ms.saturating_add(now.saturating_sub(ended).max(0));
    }
    let planned = run.max_iterations(plan, run.stage);
    let is_parallel = plan.stage(run.stage).is_some_and(|stage| stage.parallel);
    let mut machine = Machine::new(plan, run, now);
    if let Some(stage) = machine.stage_state_mut() {
        let wanted = max.unwrap_or(planned);
        let is_too_small = max.is_some() && (wanted <= stage.iterations || (is_parallel && wanted < planned));
        if is_too_small || (has_reached_maximum && wanted <= stage.iterations) {
            return Err(ReopenError::NotEnough { iterations: stage.iterations, max: wanted });
        }
        stage.max = max.or(stage.max);
        stage.idle = 0;
        if stage.status != StageStatus::Pending {
            stage.status = StageStatus::Running;
            stage.completed_at_ms = None;
            stage.reason = None;
        }
    }
    // The next engine checks the cap again.
    machine.run.capped = false;
    machine.run.cost_unknown_now = false;
    if let Some(limit) = limit_reached(plan, &machine.run, now) {
        return Err(ReopenError::LimitReached { limit });
    }
    let run = &mut machine.run;
    run.status = RunStatus::Running;
    run.reason = None;
    run.completed_at_ms = None;
    run.stopping = None;
    run.cut_short = false;
    for attempt in &mut run.active {
        *attempt = ActiveAttempt { errors: 0, usage_waits: 0, lost: false, ..attempt.clone() };
    }
    machine.records.push(Record::Reopened);
    Ok(machine.into_step())
}

/// Ends a run whose engine is gone. Its active attempts stay in the state: their agents may still run, and the engine that
/// resumes the run checks that.
pub fn orphaned(plan: &Plan, run: Run, now: Millis) -> Step {
    let mut machine = Machine::new(plan, run, now);
    if machine.run.status == RunStatus::Running {
        let stopping = (machine.run.stopping.take(), machine.run.cut_short);
        machine.finish(RunStatus::UnknownTermination, RunReason::EngineGone.into());
        (machine.run.stopping, machine.run.cut_short) = stopping;
        machine.run.wait = None;
        machine.acts.clear();
    }
    machine.into_step()
}
