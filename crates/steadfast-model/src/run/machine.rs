//! The state machine of a run: from (run, event, now) to the new run, the records to save and the actions to take. An
//! event that does not fit changes nothing. Between steps an iteration is active, committed, left for later, or not
//! started. A run that is over has no active attempt, unless its engine ended without recording the end.

mod advance;
mod attempt;
mod decide;
mod reopen;

use super::{
    Act, ActiveAttempt, AttemptId, Phase, Plan, Record, Run, RunEvent, RunReason, RunStatus, StagePlan, StageState,
    Step, Stopping, Wait, WaitReason,
};
use crate::clock::Millis;
use crate::limit::{Axis, SharedSpend, Used};

pub use reopen::{ReopenError, orphaned, reopen};

/// A new run; [`RunEvent::Started`] starts it.
pub fn begin(plan: &Plan, now: Millis) -> Run {
    let stages = vec![StageState::default(); plan.stages.len()];
    Run { started_at_ms: now, stage: 1, stages, ..Run::default() }
}

pub fn step(plan: &Plan, run: Run, event: RunEvent, now: Millis) -> Step {
    let waited_for = run.wait.clone();
    let asks_for_wake = matches!(event, RunEvent::Started | RunEvent::Woke);
    let mut machine = Machine::new(plan, run, now);
    match event {
        RunEvent::Started if machine.run.status != RunStatus::Running => machine.acts.push(Act::Finish),
        _ if machine.run.status != RunStatus::Running => {}
        RunEvent::Started => machine.started(),
        RunEvent::Ended { id, outcome } => machine.ended(id, outcome),
        RunEvent::Checked { id, facts } => machine.checked(id, &facts),
        RunEvent::Decided { .. } | RunEvent::Answered { .. } => {}
        RunEvent::Woke => machine.advance(),
        RunEvent::StopRequested(stopping) => machine.stop_requested(stopping),
        RunEvent::CapReached => machine.run.capped = true,
        RunEvent::NestedSpent { tokens, cost_micros } => machine.nested_spent(tokens, cost_micros),
        RunEvent::Using { tokens, cost_micros } => machine.using(tokens, cost_micros),
    }
    machine.run.wait = machine.soonest_wait();
    if let Some(wait) = &machine.run.wait
        && (asks_for_wake || machine.run.wait != waited_for)
    {
        // Wake at the wall-clock limit at the latest: the run ends there.
        let left = time_left(plan, &machine.run, now).unwrap_or(Millis::MAX);
        let at = wait.until_ms.min(now.saturating_add(left));
        machine.acts.push(Act::WakeAt(at));
    }
    machine.into_step()
}

/// The limit that the run has reached.
pub fn limit_reached(plan: &Plan, run: &Run, now: Millis) -> Option<RunReason> {
    let unknown = is_cost_unknown(plan, run).then_some(RunReason::BudgetUsd);
    plan.limits.limits.reached(&used(run, now)).map(RunReason::from).or(unknown)
}

/// Whether the run's limit on money cannot hold, because what an attempt cost is not known.
fn is_cost_unknown(plan: &Plan, run: &Run) -> bool {
    run.cost_unknown_now && plan.limits.limits.get(Axis::Usd).is_some()
}

/// The time left until the wall-clock limit or the deadline. An attempt gets no more than that.
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
    /// The state of a stage, counted from 1.
    pub fn stage_state(&self, stage: u32) -> Option<&StageState> {
        self.stages.get(index(stage)?)
    }

    /// The maximum of a stage: the plan's, unless the run was reopened with another one.
    pub fn max_iterations(&self, plan: &Plan, stage: u32) -> u32 {
        let planned = || plan.stage(stage).map_or(0, |plan| plan.runs);
        self.stage_state(stage).and_then(|state| state.max).unwrap_or_else(planned)
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
    fn new(plan: &'a Plan, run: Run, now: Millis) -> Self {
        Self { plan, run, now, records: Vec::new(), acts: Vec::new() }
    }

    fn into_step(self) -> Step {
        Step { run: self.run, records: self.records, acts: self.acts }
    }

    fn stage_plan(&self) -> Option<&'a StagePlan> {
        self.plan.stage(self.run.stage)
    }

    fn stage_state_mut(&mut self) -> Option<&mut StageState> {
        self.run.stages.get_mut(index(self.run.stage)?)
    }

    fn active_mut(&mut self, id: AttemptId) -> Option<&mut ActiveAttempt> {
        self.run.active.iter_mut().find(|attempt| attempt.id == id)
    }

    /// A new engine drives the run, so actions that the last one may not have done are repeated.
    fn started(&mut self) {
        let unanswered: Vec<AttemptId> = self.run.active.iter().map(|attempt| attempt.id).collect();
        self.advance();
        for id in unanswered {
            let Some(attempt) = self.run.active.iter().find(|attempt| attempt.id == id) else { continue };
            let checks = match &attempt.phase {
                Phase::CheckingBefore => self.checks_before(),
                Phase::Checking(success) => self.checks_after(success),
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

    /// The next wake-up. The delay between iterations belongs to the run, other waits belong to attempts.
    fn soonest_wait(&self) -> Option<Wait> {
        if self.run.status != RunStatus::Running {
            return None;
        }
        let rests = self.run.active.iter().filter_map(|attempt| attempt.wait.as_ref());
        let soonest = rests.min_by_key(|wait| wait.until_ms).cloned();
        let delay = || self.run.wait.clone().filter(|wait| wait.why == WaitReason::Delay);
        soonest.or_else(|| delay().filter(|_| self.run.active.is_empty()))
    }
}

#[cfg(test)]
mod tests;
