//! What starts next. Every event ends here, so agents start in one place and runs end in one place: limits first, then
//! waits that are over, then new iterations while there is room.

use super::{Machine, RunReason, RunStatus, limit_reached, room, stage_limit_reached, stages_in, unknown_in_run, used};
use crate::limit::{Spend, Used};
use crate::run::{Act, ActiveAttempt, AttemptId, Phase, Record, StagePlan, StageStatus, Undecided};

impl Machine<'_> {
    pub(super) fn advance(&mut self) {
        // Each round but the last opens or ends a stage, or commits an attempt that an earlier stop left undecided.
        while self.run.status == RunStatus::Running {
            if let Some(reason) = limit_reached(self.plan, &self.run, self.now) {
                let is_unknown = unknown_in_run(self.plan, &self.run) == Some(reason);
                let detail = if is_unknown { "an attempt did not report what it used" } else { "" };
                self.wind_down(RunStatus::Completed, reason.with_detail(detail));
            }
            if self.run.stopping.is_some() {
                self.end_when_idle();
                return;
            }
            if self.run.stages.is_empty() {
                self.finish_all();
                return;
            }
            self.open_stages();
            if self.continue_stages() {
                continue;
            }
            if !self.is_stuck() {
                return;
            }
            let reason = RunReason::Condition.with_detail("the stages that are left need each other");
            self.wind_down(RunStatus::Failed, reason);
        }
    }

    /// Whether nothing is under way and nothing will begin, which only a plan with a cycle makes possible.
    fn is_stuck(&self) -> bool {
        let waits = |status: StageStatus| status == StageStatus::Pending || status.is_over();
        self.run.active.is_empty() && self.run.stages.iter().all(|current| waits(current.status))
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
        let completed = stopping.status == RunStatus::Completed;
        let status = if completed { StageStatus::Completed } else { StageStatus::Failed };
        for stage in stages_in(&self.run, StageStatus::Running) {
            self.cut_off(stage, status, stopping.reason.clone());
        }
        // Conditions are tested again and people are asked again when the run is resumed.
        for opening in [StageStatus::Deciding, StageStatus::AwaitingApproval] {
            for stage in stages_in(&self.run, opening) {
                self.set_status(stage, StageStatus::Pending);
            }
        }
        self.finish(stopping.status, stopping.reason);
    }

    /// Returns whether to repeat, because a stage ended or may have ended.
    fn continue_stages(&mut self) -> bool {
        let mut is_changed = false;
        for stage in stages_in(&self.run, StageStatus::Running) {
            let Some(plan) = self.plan.stage(stage) else { continue };
            is_changed |= self.continue_stage(stage, plan);
            if self.run.stopping.is_some() || self.run.status != RunStatus::Running {
                return true;
            }
        }
        is_changed
    }

    fn continue_stage(&mut self, stage: u32, plan: &StagePlan) -> bool {
        let now = self.now;
        let is_idle = !self.is_active(stage);
        let Some(current) = self.state_mut(stage) else { return false };
        if is_idle && current.delay_until_ms.is_some_and(|until| until > now) {
            return false;
        }
        current.delay_until_ms = None;
        if self.decide_undecided(stage) {
            return true;
        }
        if let Some(reason) = stage_limit_reached(self.plan, &self.run, stage, now) {
            return self.end_at_limit(stage, reason);
        }
        self.retry_due(stage);
        if !self.is_active(stage) && self.end_if_settled(stage, plan, &[], &[]) {
            return true;
        }
        let of_stage = if plan.parallel { self.most_at_once_in(stage, plan) } else { 1 };
        while self.active_in(stage) < of_stage && self.active_count() < self.most_at_once() {
            let Some(last) = self.next_iteration(stage, plan) else { break };
            let checks = if plan.check_before && !plan.parallel { self.checks_before(stage) } else { Vec::new() };
            if checks.is_empty() {
                self.start_after(&ActiveAttempt::new(last, Phase::Running));
            } else {
                self.run.active.push(ActiveAttempt::new(last, Phase::CheckingBefore));
                self.acts.push(Act::Check { id: last, checks });
            }
        }
        false
    }

    /// How many agents may run at once.
    fn most_at_once(&self) -> u32 {
        let (limits, used) = (&self.plan.limits, used(&self.run, self.now));
        room::agents_at_once(&limits.limits, &used, self.dearest(), limits.parallel)
    }

    fn most_at_once_in(&self, stage: u32, plan: &StagePlan) -> u32 {
        let current = self.run.stage_state(stage);
        let (tokens, cost_micros) = current.map_or((0, 0), |current| (current.tokens, current.cost_micros));
        let used = Used { tokens, cost_micros, ..Used::default() };
        room::agents_at_once(&plan.limits, &used, self.dearest(), self.most_at_once())
    }

    /// The most that one attempt used so far.
    fn dearest(&self) -> Spend {
        Spend { tokens: self.run.most_tokens, cost_micros: self.run.most_cost_micros }
    }

    /// A stage at a limit of its own starts nothing more, and ends when its last attempt has ended.
    fn end_at_limit(&mut self, stage: u32, reason: RunReason) -> bool {
        let rests = |attempt: &&ActiveAttempt| {
            attempt.id.stage == stage && matches!(attempt.phase, Phase::Resting | Phase::CheckingBefore)
        };
        let resting: Vec<AttemptId> = self.run.active.iter().filter(rests).map(|attempt| attempt.id).collect();
        for id in resting {
            self.leave(id);
        }
        let is_over = !self.is_active(stage);
        if is_over {
            self.end_unheld(stage, reason);
        }
        is_over
    }

    /// Tests the rules of attempts that succeeded while the run was being stopped. Returns whether one of them needed no
    /// test and was committed.
    fn decide_undecided(&mut self, stage: u32) -> bool {
        let undecided = self.state_mut(stage).map(|current| std::mem::take(&mut current.undecided)).unwrap_or_default();
        let mut committed = false;
        for Undecided { id, success } in undecided {
            let checks = self.checks_after(stage, &success);
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

    fn retry_due(&mut self, stage: u32) {
        let now = self.now;
        let is_due = |attempt: &ActiveAttempt| {
            let is_rested = attempt.wait.as_ref().is_none_or(|wait| wait.until_ms <= now);
            attempt.id.stage == stage && attempt.phase == Phase::Resting && is_rested
        };
        let (due, others): (Vec<ActiveAttempt>, Vec<ActiveAttempt>) =
            std::mem::take(&mut self.run.active).into_iter().partition(is_due);
        self.run.active = others;
        for attempt in &due {
            self.start_after(attempt);
        }
    }

    /// The next iteration, with the number of its last attempt; an iteration that was left comes first.
    fn next_iteration(&mut self, stage: u32, plan: &StagePlan) -> Option<AttemptId> {
        let (active, width) = (self.active_in(stage), self.width(stage, plan));
        let begun = self.state_mut(stage)?;
        if !begun.left.is_empty() {
            return Some(begun.left.remove(0));
        }
        let done = begun.iterations.saturating_add(begun.given_up);
        let iteration = done.saturating_add(active).saturating_add(1);
        (!plan.parallel || iteration <= width).then_some(AttemptId { stage, iteration, attempt: 0 })
    }

    fn active_count(&self) -> u32 {
        u32::try_from(self.run.active.len()).unwrap_or(u32::MAX)
    }

    /// How many attempts of a stage are active.
    pub(super) fn active_in(&self, stage: u32) -> u32 {
        let count = self.run.active.iter().filter(|attempt| attempt.id.stage == stage).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Starts the agent after its rule was tested and did not hold, unless a limit was reached meanwhile.
    pub(super) fn start_checked(&mut self, last: AttemptId) {
        let is_at_limit = limit_reached(self.plan, &self.run, self.now)
            .or_else(|| stage_limit_reached(self.plan, &self.run, last.stage, self.now))
            .is_some();
        if self.run.stopping.is_some() || is_at_limit {
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
