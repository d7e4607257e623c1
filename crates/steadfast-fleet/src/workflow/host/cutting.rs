//! Cutting a long history, and what lists show of a run.

use steadfast_model::run::StageStatus;
use temporalio_common::MemoValue;
use temporalio_workflow::{ContinueAsNewOptions, WorkflowResult};

use super::RunHost;
use crate::wire::{Carried, FleetAct, RUN_PLACE, RunInput, Status};
use crate::workflow::{REPO_MEMO, STATUS_MEMO};

impl RunHost<'_> {
    /// Whether the history is long enough to be cut.
    pub(super) fn holds(&self) -> bool {
        self.steps >= self.input.options.cut_after.max(1) || self.ctx.continue_as_new_suggested()
    }

    /// Activities do not outlive their history, so it is cut only while none is under way.
    pub(super) fn may_cut(&self) -> bool {
        let is_idle = self.working == 0 && !self.is_saving && self.unsaved.is_empty() && !self.is_finishing;
        let has_finish = self.acts.iter().any(|(_, act)| *act == FleetAct::Finish);
        let is_quiet = self.events.is_empty() && self.ctx.state(|state| state.inbox.is_empty());
        self.holds() && is_idle && is_quiet && !has_finish && self.run.is_some()
    }

    pub(super) fn cut(&mut self) -> WorkflowResult<()> {
        let Some(run) = self.run.clone() else { return Ok(()) };
        let carried = Carried {
            run,
            heads: self.heads.clone(),
            seq: self.seq,
            held: self.acts.iter().map(|(_, act)| act.clone()).collect(),
            inbox: Vec::new(),
            shas: self.shas.clone(),
            notes: self.ctx.state(|state| state.notes.clone()),
            records: Vec::new(),
            continued: true,
        };
        let input = RunInput { carried: Some(carried), ..self.input.clone() };
        self.ctx.continue_as_new(input, ContinueAsNewOptions::default())?;
        Ok(())
    }

    pub(super) fn status(&self) -> Status {
        let run = self.run.clone().unwrap_or_default();
        let asking = (1..).zip(&run.stages);
        let asking = asking.filter(|(_, stage)| stage.status == StageStatus::AwaitingApproval);
        let asking = asking.map(|(number, _)| number).next();
        let face = self.face.clone().unwrap_or_default();
        let iteration = run.stage_state(run.stage).map_or(0, |stage| stage.iterations);
        Status {
            name: self.input.run.name.clone(),
            run_id: self.input.run.run_id.clone(),
            repo: self.input.run.repo.url.clone(),
            kind: face.kind,
            title: face.title,
            status: run.status,
            reason: run.reason,
            stage: run.stage,
            iteration,
            max_iterations: face.max_iterations,
            tokens: run.tokens,
            tokens_unknown: run.tokens_unknown,
            cost_micros: run.cost_micros,
            cost_unknown: run.cost_unknown,
            started_at_ms: run.started_at_ms,
            completed_at_ms: run.completed_at_ms,
            asking,
            seq: self.saved,
            head: self.head_of(RUN_PLACE, RUN_PLACE),
        }
    }

    /// Keeps what lists show in the memo.
    pub(super) fn tell(&mut self) -> WorkflowResult<()> {
        if self.face.is_none() {
            return Ok(());
        }
        let status = self.status();
        let seen = |status: &Status| Status { seq: 0, ..status.clone() };
        if self.told.as_ref().map(seen) == Some(seen(&status)) {
            return Ok(());
        }
        let repo = MemoValue::new(status.repo.clone());
        self.ctx.upsert_memo([(STATUS_MEMO, Some(MemoValue::new(status.clone()))), (REPO_MEMO, Some(repo))])?;
        self.told = Some(status);
        Ok(())
    }
}
