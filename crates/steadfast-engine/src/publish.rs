//! The observer that writes the public files of a run: after every saved step it updates them and keeps the outputs of
//! stages. A kill mark that a person wrote into them becomes a request to stop. All of it is derived from the store and
//! the folder of the run, so that what a killed engine left half done, or what git removed, is written again.

mod aside;
mod notes;
mod outputs;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use steadfast_model::clock::{self, Millis};
use steadfast_model::run::{AttemptId, Plan, Record, Run, RunReason, RunStatus, Stopping};
use steadfast_store::{RunRow, Store, StoreError};

pub use self::aside::publish_aside;
use self::notes::ProgressNotes;
use self::outputs::{PublicOutputs, output_of};
use crate::files::{Address, FileView, FilesError, GitGuard, PublicFiles};
use crate::observer::{KeptOutput, Observer, PromptValues, SavedStep};
use crate::old_state;
use crate::run_folder::RunFolder;

/// The reason of a run whose registry entry was marked as killed.
pub const KILLED_IN_REGISTRY: &str = "killed_in_registry";

#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot keep the output of stage {stage}: {error}")]
    Output { stage: u32, error: FilesError },
}

/// With more iterations, the state is not written after every one.
const LONG_HISTORY: u32 = 400;
/// How often it is written while the history grows by its own length.
const WRITES_PER_HISTORY: u32 = 200;

fn iterations_of(run: &Run) -> u32 {
    run.stages.iter().map(|stage| stage.iterations).sum()
}

/// Writes the public files of one run.
pub struct Publisher {
    /// Its own connection: the dispatcher holds the other one.
    store: Store,
    files: PublicFiles,
    git: GitGuard,
    folder: RunFolder,
    run_id: String,
    plan: Plan,
    has_begun: bool,
    outputs: PublicOutputs,
    notes: ProgressNotes,
    /// The stages whose agents work now.
    working: BTreeSet<u32>,
    /// The name of the run, which this process holds.
    address: Option<Address>,
    /// Errors that were reported, which are not repeated after every step.
    reported: BTreeSet<String>,
    /// How many iterations the files show.
    shown: u32,
    /// Whether the run has changed since they were written.
    is_late: bool,
}

impl Publisher {
    /// Opens the files of a run. Nothing is written before the first step.
    pub fn open(home: &Path, store: &Path, row: &RunRow) -> Result<Self, PublishError> {
        let folder = RunFolder::at(home, &row.run_id);
        let files = PublicFiles::open(Path::new(&row.project_dir), row.plan.kind, &row.plan.name)?;
        // Refuses links that leave the project before an agent starts.
        files.progress_file(&row.plan, 1)?;
        Ok(Self {
            store: Store::open_existing(store)?,
            files: files.continued(folder.was_published(), Some(clock::now())),
            git: GitGuard::of(Path::new(&row.project_dir)),
            run_id: row.run_id.clone(),
            plan: row.plan.clone(),
            has_begun: false,
            outputs: PublicOutputs::new(home.to_owned(), row.run_id.clone()),
            notes: ProgressNotes::new(folder.clone()),
            folder,
            working: BTreeSet::new(),
            address: None,
            reported: BTreeSet::new(),
            shown: 0,
            is_late: false,
        })
    }

    /// Holds the name of the run until this is dropped, and takes it again if its lock file is removed.
    pub fn hold(&mut self, address: Option<Address>) {
        self.address = address;
    }

    /// Whether the public files do not show the end of a run.
    pub fn is_behind(&mut self, row: &RunRow) -> Result<bool, PublishError> {
        let view = FileView { run_id: &row.run_id, plan: &row.plan, run: &row.run, pid: None };
        // What was never written was not removed by a person. A run of another home has no folder here, and the files of an
        // imported one are those of the older tool until it is resumed.
        let has_worked = self.folder.path().is_dir() && !old_state::is_imported(&row.run_id);
        if has_worked && !self.folder.was_published() && !self.files.shows_later(&view)? {
            return Ok(true);
        }
        Ok(self.files.is_behind(&view)?)
    }

    /// Writes the files as the store has the run, for commands that change a run without an engine. Returns what the user
    /// has to hear, such as a broken file that was moved aside.
    pub fn show(&mut self, row: &RunRow) -> Result<Vec<String>, PublishError> {
        let mut warnings = Vec::new();
        self.repair(&row.plan, &mut warnings);
        let written = self.write(&row.plan, &row.run, &mut warnings);
        for warning in &warnings {
            self.folder.log(warning);
        }
        written.map(|()| warnings)
    }

    /// The same for a project in which no engine ran: git must not see the files either.
    pub fn show_new(&mut self, row: &RunRow) -> Result<Vec<String>, PublishError> {
        let mut warnings = Vec::new();
        self.stay_out_of_git(&mut warnings);
        warnings.extend(self.show(row)?);
        Ok(warnings)
    }

    /// Records that the files show the end of a run completely, so that commands need not look again.
    pub fn set_complete(&self, row: &RunRow) {
        self.record_published(&row.run);
    }

    /// Writes the outputs that an engine saved and did not publish before it died. The run can still be resumed, so the
    /// other files stay as they are.
    pub fn save_outputs(&mut self, row: &RunRow) -> Result<(), PublishError> {
        if !self.files.shows(&row.run_id)? {
            return Ok(());
        }
        self.outputs.add_all(&row.plan, self.store.read())?;
        self.save_owed(&row.plan, &row.run)
    }

    fn save_owed(&mut self, plan: &Plan, run: &Run) -> Result<(), PublishError> {
        let failed = self.outputs.save(&mut self.files, plan, run);
        failed.map_or(Ok(()), |(stage, error)| Err(PublishError::Output { stage, error }))
    }

    /// Writes all files. Outputs come first: a state that shows an iteration promises that its output exists, or lists it
    /// as unpublished. At the very first time they come last, because the folder of an earlier run is moved aside.
    fn write(&mut self, plan: &Plan, run: &Run, warnings: &mut Vec<String>) -> Result<(), PublishError> {
        let was_published = self.has_begun || self.folder.was_published();
        let mut saved = if was_published { self.save_owed(plan, run) } else { Ok(()) };
        warnings.extend(self.publish(plan, run)?);
        if !was_published && !self.outputs.is_empty() {
            saved = self.save_owed(plan, run);
            warnings.extend(self.publish(plan, run)?);
        }
        if saved.is_ok() {
            self.record_published(run);
        }
        (self.shown, self.is_late) = (iterations_of(run), false);
        saved
    }

    /// Whether the state of a long history may be written later. The whole file is written each time, so a run of fast
    /// iterations would take longer for each of them. What waits is written at the next look at requests to stop.
    fn may_wait(&self, step: &SavedStep<'_>) -> bool {
        let of_iterations = |record: &Record| {
            matches!(record, Record::AttemptStarted { .. } | Record::AttemptEnded { .. } | Record::Committed { .. })
        };
        let done = iterations_of(step.run);
        let is_long = done > LONG_HISTORY && done.saturating_sub(self.shown) < done / WRITES_PER_HISTORY;
        let is_between = self.has_begun && step.run.status == RunStatus::Running;
        is_long && is_between && step.records.iter().all(of_iterations)
    }

    /// Writes what waits.
    fn catch_up(&mut self, notes: &mut Vec<String>) -> Result<(), PublishError> {
        if !self.is_late {
            return Ok(());
        }
        match self.store.read().run(&self.run_id)? {
            Some(row) => self.write(&row.plan, &row.run, notes),
            None => Ok(()),
        }
    }

    fn report_error(&mut self, written: Result<(), PublishError>, notes: &mut Vec<String>) {
        match written {
            Ok(()) => {}
            Err(PublishError::Files(error)) => {
                self.report_once(format!("cannot write the public files: {error} ({})", error.hint()), notes);
            }
            Err(error) => self.report_once(error.to_string(), notes),
        }
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

    fn record_published(&self, run: &Run) {
        let end: Option<Millis> = run.completed_at_ms.filter(|_| run.status != RunStatus::Running);
        // Best effort: without it, the next command looks at the files again.
        let _ = self.folder.set_published(end);
    }

    /// Prepares to write everything again: at the start, and after the files were removed, edited or put back.
    fn repair(&mut self, plan: &Plan, notes: &mut Vec<String>) {
        if let Err(error) = self.outputs.add_all(plan, self.store.read()) {
            self.report_once(format!("cannot read the outputs of earlier iterations: {error}"), notes);
        }
        if !self.has_begun && !self.folder.was_published() {
            return;
        }
        let restored = (1..).zip(&plan.stages).try_for_each(|(stage, _)| self.notes.restore(&self.files, plan, stage));
        let repaired = restored.and_then(|()| self.files.repair(plan, self.folder.definition().as_deref()));
        if let Err(error) = repaired {
            self.report_once(format!("cannot write the public files: {error} ({})", error.hint()), notes);
        }
    }

    /// Copies the notes of working agents.
    fn keep_notes(&mut self, notes: &mut Vec<String>) {
        for stage in self.working.clone() {
            if let Err(error) = self.notes.look(&self.files, &self.plan, stage) {
                self.report_once(format!("cannot keep a copy of the progress file: {error}"), notes);
            }
        }
    }

    fn stay_out_of_git(&mut self, notes: &mut Vec<String>) {
        for note in self.git.look() {
            self.report_once(note, notes);
        }
    }

    fn report_once(&mut self, error: String, notes: &mut Vec<String>) {
        if self.reported.insert(error.clone()) {
            notes.push(error);
        }
    }
}

impl Observer for Publisher {
    fn saved(&mut self, step: &SavedStep<'_>, notes: &mut Vec<String>) {
        let is_first = !self.has_begun;
        if step.run.status == RunStatus::Running {
            self.stay_out_of_git(notes);
        }
        for record in step.records {
            if let Record::Committed { id, .. } = record {
                self.outputs.add_new(step.plan, *id);
            }
        }
        if is_first || self.files.is_touched() {
            self.repair(step.plan, notes);
        }
        let agents = step.run.active.iter().map(|active| active.id.stage);
        self.working = agents.chain(std::mem::take(&mut self.working)).collect();
        self.keep_notes(notes);
        self.working = step.run.active.iter().map(|active| active.id.stage).collect();
        let written = if self.may_wait(step) {
            self.is_late = true;
            self.save_owed(step.plan, step.run)
        } else {
            self.write(step.plan, step.run, notes)
        };
        self.report_error(written, notes);
    }

    fn stop_requested(&mut self, notes: &mut Vec<String>) -> Option<Stopping> {
        if let Some(address) = &mut self.address {
            address.keep();
        }
        self.stay_out_of_git(notes);
        self.keep_notes(notes);
        let written = self.catch_up(notes);
        self.report_error(written, notes);
        match self.files.put_entry_back() {
            Ok(warnings) => notes.extend(warnings),
            Err(error) => self.report_once(format!("cannot write the registry: {error}"), notes),
        }
        match self.files.is_marked_killed() {
            Ok(is_marked) => {
                is_marked.then(|| Stopping { status: RunStatus::Killed, reason: RunReason::KilledInRegistry.into() })
            }
            Err(error) => {
                self.report_once(format!("cannot read the registry: {error}"), notes);
                None
            }
        }
    }

    fn starting(&mut self, plan: &Plan, run: &Run, id: AttemptId, notes: &mut Vec<String>) -> Result<(), String> {
        // The agent may not need it, so this is no reason not to start.
        if let Err(error) = self.notes.restore(&self.files, plan, id.stage) {
            self.report_once(format!("cannot write the progress file: {error} ({})", error.hint()), notes);
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
        // The file of an output that is owed, or that git removed, is not there.
        let file = self.files.output_file(output_of(plan, run, id)).ok();
        if let Some(None) = file {
            return None;
        }
        file.flatten().and_then(KeptOutput::read).or_else(|| self.outputs.read(id))
    }

    fn output_file(&self, plan: &Plan, run: &Run, id: AttemptId) -> Option<PathBuf> {
        self.files.output_file(output_of(plan, run, id)).ok()?
    }
}
