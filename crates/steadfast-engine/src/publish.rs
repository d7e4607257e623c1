//! The observer that writes the public files of a run: after every saved step it updates them and keeps the outputs of
//! stages. A kill mark that a person wrote into them becomes a request to stop. All of it is derived from the store, so
//! that the next engine repairs what a killed one left half done.

use std::path::{Path, PathBuf};

use steadfast_model::run::{AttemptId, Plan, Record, Run, RunKind, RunReason, RunStatus, Stopping};
use steadfast_store::{RunRow, Store, StoreError};

use crate::attempt::Attempt;
use crate::files::{FileView, FilesError, OutputOf, PublicFiles};
use crate::observer::{KeptOutput, Observer, PromptValues, SavedStep};
use crate::run_folder::RunFolder;

/// The reason of a run whose registry entry was marked as killed.
pub const KILLED_IN_REGISTRY: &str = "killed_in_registry";
/// How many iterations of a pipeline are searched for missing outputs.
const MOST_REPAIRED: usize = 10_000;

#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Writes the public files of one run.
pub struct Publisher {
    /// Its own connection: the dispatcher holds the other one.
    store: Store,
    files: PublicFiles,
    home: PathBuf,
    folder: RunFolder,
    run_id: String,
    has_begun: bool,
    /// The last error, which is not repeated after every step.
    last_error: Option<String>,
}

impl Publisher {
    /// Opens the files of a run. Nothing is written before the first step.
    pub fn open(home: &Path, store: &Path, row: &RunRow) -> Result<Self, PublishError> {
        let files = PublicFiles::open(Path::new(&row.project_dir), row.plan.kind, &row.plan.name)?;
        // Refuses links that leave the project before an agent starts.
        files.progress_file(&row.plan, 1)?;
        Ok(Self {
            store: Store::open_existing(store)?,
            files,
            home: home.to_owned(),
            folder: RunFolder::at(home, &row.run_id),
            run_id: row.run_id.clone(),
            has_begun: false,
            last_error: None,
        })
    }

    /// Whether the public files do not show the end of a run.
    pub fn is_behind(&mut self, row: &RunRow) -> Result<bool, PublishError> {
        let view = FileView { run_id: &row.run_id, plan: &row.plan, run: &row.run, pid: None };
        Ok(self.files.is_behind(&view)?)
    }

    /// Writes the files as the store has the run, for commands that change a run without an engine.
    pub fn show(&mut self, row: &RunRow) -> Result<(), PublishError> {
        for warning in self.publish(&row.plan, &row.run)? {
            self.folder.log(&warning);
        }
        Ok(())
    }

    fn publish(&mut self, plan: &Plan, run: &Run) -> Result<Vec<String>, FilesError> {
        let view = FileView { run_id: &self.run_id, plan, run, pid: Some(i64::from(std::process::id())) };
        let db = self.store.read();
        let warnings = if self.has_begun {
            self.files.publish(&view, db)?
        } else {
            self.files.begin(&view, self.folder.definition().as_deref(), db)?
        };
        self.has_begun = true;
        Ok(warnings)
    }

    fn keep_output(&mut self, plan: &Plan, run: &Run, id: AttemptId, notes: &mut Vec<String>) {
        let text = Attempt::at(&self.home, &self.run_id, id).read_answer().unwrap_or_default();
        if let Err(error) = self.files.save_output(output_of(plan, run, id), &text) {
            self.note_once(format!("cannot keep the output of stage {}: {error}", id.stage), notes);
        }
    }

    /// Keeps the outputs of steps that an engine saved before it was killed.
    fn repair_outputs(&mut self, plan: &Plan, run: &Run, notes: &mut Vec<String>) {
        if plan.kind != RunKind::Pipeline {
            return;
        }
        match self.store.read().run_history(&self.run_id, None, MOST_REPAIRED) {
            Ok(rows) => rows.iter().for_each(|row| self.keep_output(plan, run, row.id, notes)),
            Err(error) => self.note_once(format!("cannot read the outputs of earlier iterations: {error}"), notes),
        }
    }

    fn note_once(&mut self, error: String, notes: &mut Vec<String>) {
        if self.last_error.as_ref() != Some(&error) {
            notes.push(error.clone());
            self.last_error = Some(error);
        }
    }
}

fn output_of<'a>(plan: &'a Plan, run: &'a Run, id: AttemptId) -> OutputOf<'a> {
    OutputOf { plan, run, stage: id.stage, iteration: id.iteration }
}

impl Observer for Publisher {
    fn saved(&mut self, step: &SavedStep<'_>, notes: &mut Vec<String>) {
        let is_first = !self.has_begun;
        // Outputs come first: a state file that shows an iteration promises that its output exists.
        if !is_first {
            for record in step.records {
                if let Record::Committed { id, .. } = record {
                    self.keep_output(step.plan, step.run, *id, notes);
                }
            }
        }
        match self.publish(step.plan, step.run) {
            Ok(warnings) => notes.extend(warnings),
            Err(error) => {
                self.note_once(format!("cannot write the public files: {error} ({})", error.hint()), notes);
            }
        }
        if is_first && self.has_begun {
            self.repair_outputs(step.plan, step.run, notes);
        }
    }

    fn stop_requested(&mut self, notes: &mut Vec<String>) -> Option<Stopping> {
        match self.files.put_entry_back() {
            Ok(warnings) => notes.extend(warnings),
            Err(error) => self.note_once(format!("cannot write the registry: {error}"), notes),
        }
        match self.files.is_marked_killed() {
            Ok(is_marked) => {
                is_marked.then(|| Stopping { status: RunStatus::Killed, reason: RunReason::KilledInRegistry.into() })
            }
            Err(error) => {
                self.note_once(format!("cannot read the registry: {error}"), notes);
                None
            }
        }
    }

    fn starting(&mut self, plan: &Plan, run: &Run, id: AttemptId, notes: &mut Vec<String>) -> Result<(), String> {
        // The agent may not need it, so this is no reason not to start.
        if let Err(error) = self.files.ensure_progress(plan, id.stage) {
            self.note_once(format!("cannot write the progress file: {error} ({})", error.hint()), notes);
        }
        let cleared = self.files.clear_output(output_of(plan, run, id));
        cleared.map_err(|error| format!("cannot prepare the output file: {error} ({})", error.hint()))
    }

    fn add_prompt_values(&self, plan: &Plan, run: &Run, id: AttemptId, values: &mut PromptValues) {
        values.output = self.files.output_file(output_of(plan, run, id)).ok().flatten();
        values.progress = self.files.progress_file(plan, id.stage).ok();
        values.inputs = self.folder.inputs().unwrap_or_default();
    }

    fn output(&self, plan: &Plan, run: &Run, id: AttemptId) -> Option<KeptOutput> {
        KeptOutput::read(self.output_file(plan, run, id)?)
    }

    fn output_file(&self, plan: &Plan, run: &Run, id: AttemptId) -> Option<PathBuf> {
        self.files.output_file(output_of(plan, run, id)).ok()?
    }
}
