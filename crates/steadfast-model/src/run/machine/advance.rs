//! What starts next. Every event ends here, so agents start in one place and runs end in one place: limits first, then
//! waits that are over, then new iterations while there is room.

use super::{Machine, RunReason, RunStatus, is_cost_unknown, limit_reached};
use crate::run::{Act, ActiveAttempt, AttemptId, Phase, Record, StagePlan, StageStatus, Undecided, WaitReason};

impl Machine<'_> {
    pub(super) fn advance(&mut self) {
        // Each round but the last ends a stage, or commits an attempt that an earlier stop left undecided.
        while self.run.status == RunStatus::Running {
            if let Some(reason) = limit_reached(self.plan, &self.run, self.now) {
                let unknown = reason == RunReason::BudgetUsd && is_cost_unknown(self.plan, &self.run);
                let detail = if unknown { "an attempt did not report what it cost" } else { "" };
                self.wind_down(RunStatus::Completed, reason.with_detail(detail));
            }
            if self.run.stopping.is_some() {
                self.end_when_idle();
                return;
            }
            let Some(plan) = self.stage_plan() else {
                self.finish(RunStatus::Completed, RunReason::Completed.into());
                return;
            };
            self.begin_stage();
            if !self.continue_stage(plan) {
                return;
            }
        }
    }

    /// Starts nothing new. Running attempts and tests may end; waiting attempts are left for a later run.
    fn end_when_idle(&mut self) {
        let rests = |attempt: &&ActiveAttempt| matches!(attempt.phase, Phase::Resting | Phase::CheckingBefore);
        let resting: Vec<AttemptId> = self.run.active.iter().filter(rests).map(|attempt| attempt.id).collect();
        for id in resting {
            self.leave(id);
        }
        self.run.wait = None;
        if !self.run.active.is_empty() {
            return;
        }
        let Some(stopping) = self.run.stopping.clone() else { return };
        let is_open = self.run.stage_state(self.run.stage).is_some_and(|stage| stage.status == StageStatus::Running);
        if is_open {
            let completed = stopping.status == RunStatus::Completed;
            let status = if completed { StageStatus::Completed } else { StageStatus::Failed };
            self.close_stage(status, stopping.reason.clone());
        }
        self.finish(stopping.status, stopping.reason);
    }

    fn begin_stage(&mut self) {
        let (stage, now) = (self.run.stage, self.now);
        if let Some(state) = self.stage_state_mut().filter(|state| state.status == StageStatus::Pending) {
            state.status = StageStatus::Running;
            state.started_at_ms = Some(now);
            self.records.push(Record::StageStarted { stage });
        }
    }

    /// Returns whether to repeat, because the stage may have ended.
    fn continue_stage(&mut self, plan: &StagePlan) -> bool {
        let delay = self.run.wait.as_ref().filter(|wait| wait.why == WaitReason::Delay);
        if self.run.active.is_empty() && delay.is_some_and(|wait| wait.until_ms > self.now) {
            return false;
        }
        self.run.wait = None;
        if self.decide_undecided() {
            return true;
        }
        self.retry_due();
        if self.run.active.is_empty() && self.end_if_settled(plan, &[], &[]) {
            return true;
        }
        let room = if plan.parallel { self.plan.limits.parallel.max(1) } else { 1 };
        while self.active_count() < room {
            let Some(last) = self.next_iteration(plan) else { break };
            let checks = if plan.check_before && !plan.parallel { self.checks_before() } else { Vec::new() };
            if checks.is_empty() {
                self.start_after(&ActiveAttempt::new(last, Phase::Running));
            } else {
                self.run.active.push(ActiveAttempt::new(last, Phase::CheckingBefore));
                self.acts.push(Act::Check { id: last, checks });
            }
        }
        false
    }

    /// Tests the rules of attempts that succeeded while the run was being stopped. Returns whether one of them needed no
    /// test and was committed.
    fn decide_undecided(&mut self) -> bool {
        let undecided = self.stage_state_mut().map(|stage| std::mem::take(&mut stage.undecided)).unwrap_or_default();
        let mut committed = false;
        for Undecided { id, success } in undecided {
            let checks = self.checks_after(&success);
            if checks.is_empty() {
                self.commit(id, success, &[]);
                committed = true;
            } else {
                self.run.active.push(ActiveAttempt::new(id, Phase::Checking(success)));
                self.acts.push(Act::Check { id, checks });
            }
        }
        committed
    }

    fn retry_due(&mut self) {
        let now = self.now;
        let is_due = |attempt: &ActiveAttempt| {
            attempt.phase == Phase::Resting && attempt.wait.as_ref().is_none_or(|wait| wait.until_ms <= now)
        };
        let (due, others): (Vec<ActiveAttempt>, Vec<ActiveAttempt>) =
            std::mem::take(&mut self.run.active).into_iter().partition(is_due);
        self.run.active = others;
        for attempt in &due {
            self.start_after(attempt);
        }
    }

    /// The next iteration, with the number of its last attempt; an iteration that was left comes first.
    fn next_iteration(&mut self, plan: &StagePlan) -> Option<AttemptId> {
        let (stage, active, width) = (self.run.stage, self.active_count(), self.width(plan));
        let begun = self.stage_state_mut()?;
        if !begun.left.is_empty() {
            return Some(begun.left.remove(0));
        }
        let iteration = begun.iterations.saturating_add(active).saturating_add(1);
        (!plan.parallel || iteration <= width).then_some(AttemptId { stage, iteration, attempt: 0 })
    }

    fn active_count(&self) -> u32 {
        u32::try_from(self.run.active.len()).unwrap_or(u32::MAX)
    }

    /// Starts the agent after its rule was tested and did not hold, unless a limit was reached meanwhile.
    pub(super) fn start_checked(&mut self, last: AttemptId) {
        if self.run.stopping.is_some() || limit_reached(self.plan, &self.run, self.now).is_some() {
            self.leave(last);
        } else {
            self.start_after(&ActiveAttempt::new(last, Phase::Running));
        }
    }

    /// Starts the attempt after `last`, and records it before its agent starts.
    fn start_after(&mut self, attempt: &ActiveAttempt) {
        let id = AttemptId { attempt: attempt.id.attempt.saturating_add(1), ..attempt.id };
        self.run.active.push(ActiveAttempt { id, phase: Phase::Running, wait: None, ..attempt.clone() });
        self.records.push(Record::AttemptStarted { id });
        self.acts.push(Act::Start(id));
    }
}
