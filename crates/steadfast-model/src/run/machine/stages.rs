//! From stage to stage. A stage opens when all that it needs are over: first its condition is tested, then a person is
//! asked, then it begins. It ends by its rule, unheld at its maximum or a limit, or failed; what that means for the rest
//! of the pipeline is decided here.

use super::{Machine, RunReason, RunStatus, index, stages_in};
use crate::run::{Act, Plan, Record, RunKind, StageState, StageStatus, Then};

impl Plan {
    /// The stages that have to end before this one, counted from 1.
    pub fn needs_of(&self, stage: u32) -> Vec<u32> {
        let before = || if stage > 1 { vec![stage - 1] } else { Vec::new() };
        self.stage(stage).and_then(|plan| plan.needs.clone()).unwrap_or_else(before)
    }

    /// Whether no other stage needs this one.
    fn is_last(&self, stage: u32) -> bool {
        (1..).zip(&self.stages).all(|(other, _)| !self.needs_of(other).contains(&stage))
    }
}

impl Machine<'_> {
    /// Opens every stage whose needs are over. Returns whether one began or was skipped.
    pub(super) fn open_stages(&mut self) {
        for stage in stages_in(&self.run, StageStatus::Pending) {
            let is_over = |need: &u32| self.run.stage_state(*need).is_none_or(|current| current.status.is_over());
            if !self.plan.needs_of(stage).iter().all(is_over) {
                continue;
            }
            if self.plan.stage(stage).is_some_and(|plan| plan.when.is_some()) {
                self.set_status(stage, StageStatus::Deciding);
                self.acts.push(Act::Decide(stage));
            } else {
                self.ask_or_begin(stage);
            }
        }
    }

    pub(super) fn decided(&mut self, stage: u32, holds: Option<bool>, detail: &str) {
        if !self.is_in(stage, StageStatus::Deciding) {
            return;
        }
        match holds {
            Some(true) => self.ask_or_begin(stage),
            Some(false) => self.end_stage(stage, StageStatus::Skipped, RunReason::Condition.with_detail(detail)),
            None => self.fail_stage(stage, RunReason::Condition, detail),
        }
        self.advance();
    }

    fn ask_or_begin(&mut self, stage: u32) {
        if self.plan.stage(stage).is_some_and(|plan| plan.approve.is_some()) {
            self.set_status(stage, StageStatus::AwaitingApproval);
            self.records.push(Record::ApprovalAsked { stage });
        } else {
            self.begin_stage(stage);
        }
    }

    pub(super) fn answered(&mut self, stage: u32, approved: bool, note: Option<String>) {
        if !self.is_in(stage, StageStatus::AwaitingApproval) {
            return;
        }
        let said = note.clone().unwrap_or_default();
        if let Some(current) = self.state_mut(stage) {
            current.answer = note;
        }
        if approved {
            self.begin_stage(stage);
        } else {
            self.fail_stage(stage, RunReason::Rejected, &said);
        }
        self.advance();
    }

    fn begin_stage(&mut self, stage: u32) {
        let now = self.now;
        if let Some(current) = self.state_mut(stage) {
            current.status = StageStatus::Running;
            current.started_at_ms.get_or_insert(now);
            self.records.push(Record::StageStarted { stage });
        }
    }

    fn is_in(&self, stage: u32, status: StageStatus) -> bool {
        self.run.stage_state(stage).is_some_and(|current| current.status == status)
    }

    pub(super) fn set_status(&mut self, stage: u32, status: StageStatus) {
        if let Some(current) = self.state_mut(stage) {
            current.status = status;
        }
    }

    /// Ends a stage before its rule holds: at its maximum, at a limit of its own, or because an agent said `stop`. Where
    /// the rule is a gate the pipeline stops, unless the plan says otherwise; limits stop it under every rule.
    pub(super) fn end_unheld(&mut self, stage: u32, reason: RunReason) {
        let Some(plan) = self.plan.stage(stage) else { return };
        let is_counted = matches!(reason, RunReason::MaxIterations | RunReason::Stopped);
        let by_default = if is_counted && !plan.completion.is_gate() { Then::Continue } else { Then::Stop };
        if plan.on_max.unwrap_or(by_default) == Then::Continue {
            self.end_stage(stage, StageStatus::Completed, reason.into());
            return;
        }
        self.stop_after(stage, RunStatus::Completed, reason.into());
    }

    /// Ends a stage that cannot succeed, and the run with it, unless the plan says otherwise.
    pub(super) fn fail_stage(&mut self, stage: u32, reason: RunReason, detail: &str) {
        let goes_on = self.plan.stage(stage).is_some_and(|plan| plan.on_fail == Then::Continue);
        if goes_on {
            self.end_stage(stage, StageStatus::Failed, reason.with_detail(detail));
        } else {
            self.stop_after(stage, RunStatus::Failed, reason.with_detail(detail));
        }
    }

    /// Ends the run because of a stage. Attempts of other stages may end first.
    fn stop_after(&mut self, stage: u32, status: RunStatus, reason: String) {
        if self.run.stopping.is_none() {
            self.run.ended_by = Some(stage);
        }
        self.wind_down(status, reason.clone());
        if !self.is_active(stage) {
            let of_stage = if status == RunStatus::Completed { StageStatus::Completed } else { StageStatus::Failed };
            self.cut_off(stage, of_stage, reason);
        }
    }

    pub(super) fn is_active(&self, stage: u32) -> bool {
        self.active_in(stage) > 0
    }

    /// Closes a stage that ends with the run; resuming continues it.
    pub(super) fn cut_off(&mut self, stage: u32, status: StageStatus, reason: String) {
        self.close_stage(stage, status, reason);
        if let Some(current) = self.state_mut(stage) {
            current.cut_off = true;
        }
    }

    /// Ends a stage for good; after the last one the run is over.
    pub(super) fn end_stage(&mut self, stage: u32, status: StageStatus, reason: String) {
        self.close_stage(stage, status, reason);
        let open = self.run.stages.iter().position(|current| !current.status.is_over());
        if let Some(open) = open {
            self.run.stage = u32::try_from(open).unwrap_or(0).saturating_add(1);
        } else {
            self.run.stage = u32::try_from(self.run.stages.len()).unwrap_or(u32::MAX);
            self.finish_all();
        }
    }

    /// All stages are over. A loop ends with the reason of its stage; a pipeline with `completed`, or `max_iterations` if
    /// the rule of a stage that nothing follows did not hold.
    pub(super) fn finish_all(&mut self) {
        let is_unheld = |(number, current): &(u32, &StageState)| {
            let ends_at_max = current.reason.as_deref() == Some(RunReason::MaxIterations.into());
            let is_accepted = self.plan.stage(*number).is_some_and(|plan| plan.on_max == Some(Then::Continue));
            ends_at_max && !is_accepted && self.plan.is_last(*number)
        };
        let unheld = (1..).zip(&self.run.stages).find(is_unheld).map(|(number, _)| number);
        let of_stage = self.run.stages.last().and_then(|current| current.reason.clone());
        let reason = match (self.plan.kind, unheld) {
            (RunKind::Loop, _) => of_stage.unwrap_or_else(|| RunReason::Completed.into()),
            (RunKind::Pipeline, Some(_)) => RunReason::MaxIterations.into(),
            (RunKind::Pipeline, None) => RunReason::Completed.into(),
        };
        self.run.ended_by = unheld;
        self.finish(RunStatus::Completed, reason);
    }

    pub(super) fn close_stage(&mut self, stage: u32, status: StageStatus, reason: String) {
        let now = self.now;
        if let Some(current) = index(stage).and_then(|index| self.run.stages.get_mut(index)) {
            current.status = status;
            current.reason = Some(reason.clone());
            // The clock may have been set back.
            current.completed_at_ms = Some(current.started_at_ms.map_or(now, |started| now.max(started)));
            current.delay_until_ms = None;
            self.records.push(Record::StageEnded { stage, status, reason });
        }
    }

    pub(super) fn finish(&mut self, status: RunStatus, reason: String) {
        if let Some(stage) = self.run.ended_by {
            self.run.stage = stage;
        }
        self.run.status = status;
        self.run.reason = Some(reason.clone());
        self.run.completed_at_ms = Some(self.now.max(self.run.started_at_ms));
        self.run.stopping = None;
        self.run.cut_short = false;
        self.records.push(Record::Finished { status, reason });
        self.acts.push(Act::Finish);
    }
}
