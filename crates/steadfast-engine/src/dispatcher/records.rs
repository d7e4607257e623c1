//! What the dispatcher knows of its run, for the work on it: the rows of the store, and what observers keep.

use std::path::PathBuf;

use steadfast_model::run::{AttemptId, Plan, Run, StagePlan};
use steadfast_store::{IterationRow, StoreError};

use super::Dispatcher;
use crate::observer::{KeptOutput, PromptValues};
use crate::work::{RunRecords, RunView};
use crate::worktree;

/// Where a run is.
pub(super) struct RunPaths {
    run_id: String,
    home: PathBuf,
    project: PathBuf,
}

impl RunPaths {
    pub(super) fn view<'a>(&'a self, plan: &'a Plan, run: &'a Run) -> RunView<'a> {
        RunView { plan, run, run_id: &self.run_id, home: &self.home, project: &self.project }
    }
}

impl Dispatcher<'_, '_> {
    pub(super) fn paths(&self) -> RunPaths {
        RunPaths { run_id: self.run_id.clone(), home: self.engine.home.clone(), project: self.project.clone() }
    }
}

impl RunRecords for Dispatcher<'_, '_> {
    type Error = StoreError;

    fn end_of_stage(&mut self, stage: u32, most: usize) -> Result<Vec<IterationRow>, StoreError> {
        let run_id = self.run_id.clone();
        self.with_store(|store| store.read().end_of_stage(&run_id, stage, most))
    }

    fn last_iterations(&mut self, most: usize) -> Result<Vec<IterationRow>, StoreError> {
        let run_id = self.run_id.clone();
        let mut rows = self.with_store(|store| store.read().last_iterations(&run_id, most))?;
        rows.reverse();
        Ok(rows)
    }

    fn notes_for(&mut self, id: AttemptId) -> Result<Vec<String>, StoreError> {
        let run_id = self.run_id.clone();
        self.with_store(|store| store.read().notes_for(&run_id, id))
    }

    fn prompt_values(&self, id: AttemptId) -> PromptValues {
        self.observers.prompt_values(&self.plan, &self.run, id)
    }

    fn output(&self, id: AttemptId) -> Option<KeptOutput> {
        self.observers.output(&self.plan, &self.run, id)
    }

    fn output_file(&self, id: AttemptId) -> Option<PathBuf> {
        self.observers.output_file(&self.plan, &self.run, id)
    }

    fn branch_of(&self, stage: &StagePlan, id: AttemptId) -> Option<String> {
        worktree::kept(&self.engine.home, &self.run_id, stage, id).map(|kept| kept.branch)
    }

    fn directory_of(&self, stage: &StagePlan, id: AttemptId) -> Option<PathBuf> {
        self.workplace(stage, id).inside().ok()
    }

    fn note(&mut self, message: &str) {
        self.observers.note(message);
    }
}
