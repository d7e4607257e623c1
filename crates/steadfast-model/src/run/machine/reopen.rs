//! Resuming a run that is over, and ending a run whose engine is gone. Commits stay; errors and idle iterations are
//! counted from 0 again, because a person has looked at the run and wants it to continue.

use super::{Machine, limit_reached, stage_limit_reached};
use crate::clock::Millis;
use crate::limit::{Axis, Limits};
use crate::run::{ActiveAttempt, Plan, Record, Rule, Run, RunKind, RunReason, RunStatus, StageStatus, Step};

#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum ReopenError {
    #[error("the run is running")]
    Running,
    #[error("the run is completed{}", if reason == "completed" { String::new() } else { format!(" ({reason})") })]
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

/// The plan of a run that is resumed with other limits.
pub fn with_limits(mut plan: Plan, run: &Run, mut wanted: Limits) -> Plan {
    // The turns of a profile limit the iterations of each stage, not the run.
    wanted.set(Axis::Turns, None);
    plan.limits.limits = wanted.or(plan.limits.limits);
    // A stage that ended the run at a limit of its own gets the new amount too.
    let ended_by = run.ended_by.and_then(|stage| plan.stages.get_mut(usize::try_from(stage).ok()?.checked_sub(1)?));
    if let Some(stage) = ended_by {
        let of_stage = stage.limits;
        for (axis, amount) in wanted.iter().filter(|(axis, _)| of_stage.get(*axis).is_some()) {
            stage.limits.set(axis, Some(amount));
        }
    }
    plan
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
    let closed_ms = run.completed_at_ms.map_or(0, |ended| now.saturating_sub(ended).max(0));
    run.closed_ms = run.closed_ms.saturating_add(closed_ms);
    let reopened = stages_to_reopen(&run);
    let focus = run.ended_by.or_else(|| reopened.first().copied()).unwrap_or(run.stage);
    check_maximum(plan, &run, focus, max, has_reached_maximum)?;
    let mut machine = Machine::new(plan, run, now);
    for stage in reopened {
        machine.reopen_stage(stage, closed_ms);
    }
    if let Some(current) = machine.state_mut(focus) {
        current.max = max.or(current.max);
    }
    // The next engine checks the cap again.
    machine.run.capped = false;
    machine.run.cost_unknown_now = false;
    machine.run.tokens_unknown_now = false;
    let of_stage = || stage_limit_reached(plan, &machine.run, focus, now);
    if let Some(limit) = limit_reached(plan, &machine.run, now).or_else(of_stage) {
        return Err(ReopenError::LimitReached { limit });
    }
    let run = &mut machine.run;
    run.status = RunStatus::Running;
    run.reason = None;
    run.completed_at_ms = None;
    run.stopping = None;
    run.cut_short = false;
    run.ended_by = None;
    for attempt in &mut run.active {
        *attempt = ActiveAttempt { errors: 0, usage_waits: 0, lost: false, ..attempt.clone() };
    }
    machine.records.push(Record::Reopened);
    Ok(machine.into_step())
}

/// The stages that are worked on if the run is resumed.
pub fn stages_left(run: &Run) -> Vec<u32> {
    let reopened = stages_to_reopen(run);
    let stages = (1..).zip(&run.stages);
    let left = stages.filter(|(number, current)| !current.status.is_over() || reopened.contains(number));
    left.map(|(number, _)| number).collect()
}

/// The stages that the end of the run cut off. A run of an earlier version has only its current stage.
fn stages_to_reopen(run: &Run) -> Vec<u32> {
    let stages = (1..).zip(&run.stages);
    let cut_off = stages.filter(|(number, current)| current.cut_off || run.ended_by == Some(*number));
    let cut_off: Vec<u32> = cut_off.map(|(number, _)| number).collect();
    let has_begun = run.stages.iter().any(|current| current.status == StageStatus::Running);
    if cut_off.is_empty() && !has_begun { vec![run.stage] } else { cut_off }
}

fn check_maximum(
    plan: &Plan,
    run: &Run,
    stage: u32,
    max: Option<u32>,
    has_reached_maximum: bool,
) -> Result<(), ReopenError> {
    let Some(current) = run.stage_state(stage) else { return Ok(()) };
    let planned = run.max_iterations(plan, stage);
    let wanted = max.unwrap_or(planned);
    let is_parallel = plan.stage(stage).is_some_and(|stage| stage.parallel);
    let is_too_small = max.is_some() && (wanted <= current.iterations || (is_parallel && wanted < planned));
    if is_too_small || (has_reached_maximum && wanted <= current.iterations) {
        return Err(ReopenError::NotEnough { iterations: current.iterations, max: wanted });
    }
    Ok(())
}

impl Machine<'_> {
    /// Continues a stage. One that had not begun is opened again from its condition on.
    fn reopen_stage(&mut self, stage: u32, closed_ms: Millis) {
        let Some(current) = self.state_mut(stage) else { return };
        current.idle = 0;
        current.cut_off = false;
        (current.cost_unknown_now, current.tokens_unknown_now) = (false, false);
        current.answer = None;
        if current.status == StageStatus::Pending {
            return;
        }
        let has_begun = current.started_at_ms.is_some();
        current.status = if has_begun { StageStatus::Running } else { StageStatus::Pending };
        current.closed_ms = current.closed_ms.saturating_add(if has_begun { closed_ms } else { 0 });
        current.completed_at_ms = None;
        current.reason = None;
    }
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
