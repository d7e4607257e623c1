//! The state machine of a run: from (run, event, now) to the new run, the records to save and the actions to take. An
//! event that does not fit changes nothing. Between steps an iteration is active, committed, left for later, or not
//! started. A run that is over has no active attempt, unless its engine ended without recording the end.

mod advance;
mod attempt;
mod decide;
mod reopen;
mod room;
mod stages;

use super::{
    Act, ActiveAttempt, AttemptId, Phase, Plan, Record, Run, RunEvent, RunReason, RunStatus, StagePlan, StageState,
    StageStatus, Step, Stopping, Wait, WaitReason,
};
use crate::clock::Millis;
use crate::limit::{Axis, Limits, SharedSpend, Used};

pub use reopen::{ReopenError, orphaned, reopen, stages_left, with_limits};

/// A new run; [`RunEvent::Started`] starts it.
pub fn begin(plan: &Plan, now: Millis) -> Run {
    let stages = vec![StageState::default(); plan.stages.len()];
    Run { started_at_ms: now, stage: 1, stages, ..Run::default() }
}

pub fn step(plan: &Plan, run: Run, event: RunEvent, now: Millis) -> Step {
    let woken_before = next_wake(plan, &run, now);
    let asks_for_wake = matches!(event, RunEvent::Started | RunEvent::Woke);
    let mut machine = Machine::new(plan, run, now);
    match event {
        RunEvent::Started if machine.run.status != RunStatus::Running => machine.acts.push(Act::Finish),
        _ if machine.run.status != RunStatus::Running => {}
        RunEvent::Started => machine.started(),
        RunEvent::Ended { id, outcome } => machine.ended(id, outcome),
        RunEvent::Checked { id, facts } => machine.checked(id, &facts),
        RunEvent::Decided { stage, holds, detail } => machine.decided(stage, holds, &detail),
        RunEvent::Answered { stage, approved, note } => machine.answered(stage, approved, note),
        RunEvent::Woke => machine.advance(),
        RunEvent::StopRequested(stopping) => machine.stop_requested(stopping),
        RunEvent::CapReached => machine.run.capped = true,
        RunEvent::NestedSpent { tokens, cost_micros } => machine.nested_spent(tokens, cost_micros),
        RunEvent::Using { tokens, cost_micros } => machine.using(tokens, cost_micros),
        RunEvent::Slept { slept_ms } => machine.slept(slept_ms),
    }
    machine.run.wait = machine.soonest_wait();
    if let Some(at) = next_wake(plan, &machine.run, now)
        && (asks_for_wake || woken_before != Some(at))
    {
        machine.acts.push(Act::WakeAt(at));
    }
    machine.into_step()
}

/// When something happens if no event comes before: a wait is over, or a limit on time is reached meanwhile.
fn next_wake(plan: &Plan, run: &Run, now: Millis) -> Option<Millis> {
    if run.status != RunStatus::Running || (run.wait.is_none() && !run.is_asking()) {
        return None;
    }
    let limits = stages_in(run, StageStatus::Running).into_iter().map(|stage| attempt_time_left(plan, run, stage, now));
    let limit = limits.chain([time_left(plan, run, now)]).flatten().min().map(|left| now.saturating_add(left));
    run.wait.as_ref().map(|wait| wait.until_ms).into_iter().chain(limit).min()
}

/// The numbers of the stages with this status.
fn stages_in(run: &Run, status: StageStatus) -> Vec<u32> {
    let stages = (1..).zip(&run.stages);
    stages.filter(|(_, stage)| stage.status == status).map(|(number, _)| number).collect()
}

/// The limit that the run has reached.
pub fn limit_reached(plan: &Plan, run: &Run, now: Millis) -> Option<RunReason> {
    plan.limits.limits.reached(&used(run, now)).map(RunReason::from).or_else(|| unknown_in_run(plan, run))
}

/// The limit that cannot hold, because an attempt did not report what it used. An attempt of another stage does not count
/// for the limits of a stage.
fn unknown_spend(limits: &Limits, cost_unknown: bool, tokens_unknown: bool) -> Option<RunReason> {
    let usd = (Axis::Usd, cost_unknown);
    let tokens = (Axis::Tokens, tokens_unknown);
    let is_void = |(axis, is_unknown): &(Axis, bool)| *is_unknown && limits.get(*axis).is_some();
    [usd, tokens].into_iter().find(is_void).map(|(axis, _)| RunReason::from(axis))
}

fn unknown_in_run(plan: &Plan, run: &Run) -> Option<RunReason> {
    unknown_spend(&plan.limits.limits, run.cost_unknown_now, run.tokens_unknown_now)
}

/// The limit of its own that a stage has reached.
fn stage_limit_reached(plan: &Plan, run: &Run, stage: u32, now: Millis) -> Option<RunReason> {
    let (limits, current) = (&plan.stage(stage)?.limits, run.stage_state(stage)?);
    let used = Used {
        tokens: current.tokens,
        cost_micros: current.cost_micros,
        time_ms: stage_open_for(current, now),
        now_ms: now,
        ..Used::default()
    };
    let unknown = || unknown_spend(limits, current.cost_unknown_now, current.tokens_unknown_now);
    limits.reached(&used).map(RunReason::from).or_else(unknown)
}

fn stage_open_for(current: &StageState, now: Millis) -> Millis {
    let since = current.started_at_ms.unwrap_or(now);
    now.saturating_sub(since).saturating_sub(current.closed_ms).max(0)
}

/// The time that an attempt of a stage may take: until a limit of the run or of its stage. `None` without such a limit.
pub fn attempt_time_left(plan: &Plan, run: &Run, stage: u32, now: Millis) -> Option<Millis> {
    let hours = plan.stage(stage).and_then(|stage| stage.limits.get(Axis::Hours));
    let of_stage = hours.zip(run.stage_state(stage)).map(|(most, current)| most - stage_open_for(current, now));
    of_stage.map(|left| left.max(0)).into_iter().chain(time_left(plan, run, now)).min()
}

/// The time left until the wall-clock limit or the deadline of the run.
pub fn time_left(plan: &Plan, run: &Run, now: Millis) -> Option<Millis> {
    let limits = &plan.limits.limits;
    let hours = limits.get(Axis::Hours).map(|most| most.saturating_sub(open_for(run, now)));
    let deadline = limits.get(Axis::Deadline).map(|at| at.saturating_sub(now));
    hours.into_iter().chain(deadline).min().map(|left| left.max(0))
}

/// What a run used of its limits, with the runs that its agents started.
pub fn used(run: &Run, now: Millis) -> Used {
    Used {
        tokens: run.tokens.saturating_add(run.nested_tokens),
        cost_micros: run.cost_micros.saturating_add(run.nested_cost_micros),
        time_ms: open_for(run, now),
        started_at_ms: run.started_at_ms,
        now_ms: now,
        shared: if run.capped { SharedSpend::Reached } else { SharedSpend::Free },
        ..Used::default()
    }
}

fn open_for(run: &Run, now: Millis) -> Millis {
    now.saturating_sub(run.started_at_ms).saturating_sub(run.closed_ms)
}

fn index(stage: u32) -> Option<usize> {
    usize::try_from(stage).ok()?.checked_sub(1)
}

impl Run {
    /// Whether a stage waits for a person.
    pub fn is_asking(&self) -> bool {
        self.stages.iter().any(|stage| stage.status == StageStatus::AwaitingApproval)
    }

    /// The state of a stage, counted from 1.
    pub fn stage_state(&self, stage: u32) -> Option<&StageState> {
        self.stages.get(index(stage)?)
    }

    /// The maximum of a stage: the plan's, unless the run was reopened with another one.
    pub fn max_iterations(&self, plan: &Plan, stage: u32) -> u32 {
        let planned = || plan.stage(stage).map_or(0, |plan| plan.runs);
        self.stage_state(stage).and_then(|current| current.max).unwrap_or_else(planned)
    }
}

impl Plan {
    /// The plan of a stage, counted from 1.
    pub fn stage(&self, stage: u32) -> Option<&StagePlan> {
        self.stages.get(index(stage)?)
    }
}

/// Builds one step.
struct Machine<'a> {
    plan: &'a Plan,
    run: Run,
    now: Millis,
    records: Vec<Record>,
    acts: Vec<Act>,
}

impl<'a> Machine<'a> {
    /// Counts a time as one in which the run was closed.
    fn slept(&mut self, slept_ms: Millis) {
        self.run.closed_ms = self.run.closed_ms.saturating_add(slept_ms);
        for stage in self.run.stages.iter_mut().filter(|stage| stage.status == StageStatus::Running) {
            stage.closed_ms = stage.closed_ms.saturating_add(slept_ms);
        }
    }

    fn new(plan: &'a Plan, run: Run, now: Millis) -> Self {
        Self { plan, run, now, records: Vec::new(), acts: Vec::new() }
    }

    fn into_step(self) -> Step {
        Step { run: self.run, records: self.records, acts: self.acts }
    }

    fn state_mut(&mut self, stage: u32) -> Option<&mut StageState> {
        self.run.stages.get_mut(index(stage)?)
    }

    fn active_mut(&mut self, id: AttemptId) -> Option<&mut ActiveAttempt> {
        self.run.active.iter_mut().find(|attempt| attempt.id == id)
    }

    /// A new engine drives the run, so actions that the last one may not have done are repeated.
    fn started(&mut self) {
        let unanswered: Vec<AttemptId> = self.run.active.iter().map(|attempt| attempt.id).collect();
        self.acts.extend(stages_in(&self.run, StageStatus::Deciding).into_iter().map(Act::Decide));
        self.advance();
        for id in unanswered {
            let Some(attempt) = self.run.active.iter().find(|attempt| attempt.id == id) else { continue };
            let checks = match &attempt.phase {
                Phase::CheckingBefore => self.checks_before(id.stage),
                Phase::Checking(success) => self.checks_after(id.stage, success),
                Phase::Running | Phase::Resting => continue,
            };
            self.acts.push(Act::Check { id, checks });
        }
        self.stop_what_runs();
    }

    /// Ends the run early. Successful attempts are kept, and their rule is tested if the run is resumed.
    fn stop_requested(&mut self, mut stopping: Stopping) {
        if !self.run.cut_short {
            if stopping.status == RunStatus::Running {
                stopping.status = RunStatus::Killed;
            }
            self.run.stopping = Some(stopping);
            self.run.cut_short = true;
        }
        let checking = self.run.active.iter().filter_map(|attempt| match &attempt.phase {
            Phase::Checking(success) => Some((attempt.id, success.clone())),
            _ => None,
        });
        for (id, success) in checking.collect::<Vec<_>>() {
            self.leave_undecided(id, success);
        }
        self.stop_what_runs();
        self.advance();
    }

    fn stop_what_runs(&mut self) {
        let running = self.run.active.iter().filter(|attempt| attempt.phase == Phase::Running);
        let running: Vec<AttemptId> = running.map(|attempt| attempt.id).collect();
        if self.run.cut_short && !running.is_empty() {
            self.acts.push(Act::Stop(running));
        }
    }

    /// What nested runs spent may reach a limit, so that no further attempt starts.
    fn nested_spent(&mut self, tokens: i64, cost_micros: i64) {
        self.run.nested_tokens = tokens.max(0);
        self.run.nested_cost_micros = cost_micros.max(0);
        if limit_reached(self.plan, &self.run, self.now).is_some() {
            self.advance();
        }
    }

    /// Stops all running attempts if what they used so far passes a budget together with what is counted. What they used
    /// is counted when they have ended.
    fn using(&mut self, tokens: i64, cost_micros: i64) {
        let mut used = used(&self.run, self.now);
        used.tokens = used.tokens.saturating_add(tokens.max(0));
        used.cost_micros = used.cost_micros.saturating_add(cost_micros.max(0));
        let budget = self.plan.limits.limits.reached(&used).filter(|axis| axis.is_budget());
        let Some(axis) = budget else { return };
        self.wind_down(RunStatus::Completed, RunReason::from(axis));
        let running = self.run.active.iter().filter(|attempt| attempt.phase == Phase::Running);
        let running: Vec<AttemptId> = running.map(|attempt| attempt.id).collect();
        if !running.is_empty() {
            self.acts.push(Act::Stop(running));
        }
        self.advance();
    }

    /// Ends the run as soon as no attempt is active. The first reason is kept.
    fn wind_down(&mut self, status: RunStatus, reason: impl Into<String>) {
        self.run.stopping.get_or_insert_with(|| Stopping { status, reason: reason.into() });
    }

    /// The wait that is over first. The delay between iterations belongs to a stage, other waits belong to attempts.
    fn soonest_wait(&self) -> Option<Wait> {
        if self.run.status != RunStatus::Running {
            return None;
        }
        let rests = self.run.active.iter().filter_map(|attempt| attempt.wait.clone());
        let delays = stages_in(&self.run, StageStatus::Running).into_iter().filter(|stage| self.active_in(*stage) == 0);
        let delays = delays.filter_map(|stage| self.run.stage_state(stage)?.delay_until_ms);
        let delays = delays.map(|until_ms| Wait { until_ms, why: WaitReason::Delay });
        rests.chain(delays).min_by_key(|wait| wait.until_ms)
    }
}

#[cfg(test)]
mod tests;
