//! What the world sees of a run while it is driven: after every saved step the public files are brought up to date,
//! outputs of stages are kept, and whoever watches is told. What people changed in those files becomes a request to
//! stop. All of it is derived from the store, so that a new engine repairs whatever the last one left half done.

use std::path::{Path, PathBuf};

use steadfast_system::log;
use steadfast_model::run::{AttemptId, Plan, Record, Run, RunKind, RunReason, RunStatus, Stopping};
use steadfast_store::{RunRow, Store, StoreError};

use crate::attempt::{Attempt, run_directory};
use crate::dispatcher::{self, KeptOutput, Observer, Places, Saved};
use crate::durable;
use crate::files::{FilesError, OutputOf, PublicFiles, View};

/// More iterations of a pipeline than these are not looked through for outputs that are missing.
const MOST_REPAIRED: usize = 10_000;

/// Files of a run that are written when it is made and read by every engine.
const DEFINITION: &str = "pipeline.yaml";
const INPUTS: &str = "inputs.md";

/// Looks on while a run is driven.
pub trait Watch {
    /// A step was saved and published.
    fn stepped(&mut self, _saved: &Saved<'_>) {}

    /// Called a few times a second while nothing happens.
    fn idle(&mut self) {}

    /// Something that people should know and that changes nothing.
    fn note(&mut self, _message: &str) {}

    /// Whether the run is to end, in a way that only the watcher sees.
    fn stop_requested(&mut self) -> Option<Stopping> {
        None
    }

    /// What the run is about, for prompts that ask for it.
    fn objective(&self) -> String {
        String::new()
    }
}

/// Nobody looks.
impl Watch for () {}

#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Keeps what a run needs besides its plan: a pipeline's own text, what its first stage gets as input, and whether it
/// works in a worktree.
pub fn keep_sources(
    home: &Path,
    run_id: &str,
    definition: Option<&str>,
    inputs: Option<&str>,
    worktree: bool,
) -> Result<(), std::io::Error> {
    let directory = run_directory(home, run_id);
    for private in [home, &home.join("runs"), &directory] {
        steadfast_system::paths::create_private_dir(private)?;
    }
    for (name, text) in [(DEFINITION, definition), (INPUTS, inputs)] {
        if let Some(text) = text {
            durable::replace(&directory.join(name), text.as_bytes())?;
        }
    }
    if worktree { dispatcher::choose_worktree(&directory) } else { Ok(()) }
}

/// Publishes one run.
pub struct Publisher<'a> {
    /// A connection of its own: the dispatcher holds the other one.
    store: Store,
    files: PublicFiles,
    home: PathBuf,
    run_id: String,
    watch: &'a mut dyn Watch,
    has_begun: bool,
    /// Told once, not after every step.
    trouble: Option<String>,
}

impl<'a> Publisher<'a> {
    /// Nothing is written before the first step.
    pub fn open(home: &Path, store: &Path, row: &RunRow, watch: &'a mut dyn Watch) -> Result<Self, PublishError> {
        let files = PublicFiles::open(Path::new(&row.project_dir), row.plan.kind, &row.plan.name)?;
        // Refuses links that leave the project before anything is started.
        files.progress_file(&row.plan, 1)?;
        Ok(Self {
            store: Store::open_existing(store)?,
            files,
            home: home.to_owned(),
            run_id: row.run_id.clone(),
            watch,
            has_begun: false,
            trouble: None,
        })
    }

    /// Whether the public files do not show how a run ended.
    pub fn is_behind(&mut self, row: &RunRow) -> Result<bool, PublishError> {
        let view = View { run_id: &row.run_id, plan: &row.plan, run: &row.run, pid: None };
        Ok(self.files.is_behind(&view)?)
    }

    /// Shows a run as the store has it, for those who change it without driving it.
    pub fn show(&mut self, row: &RunRow) -> Result<(), PublishError> {
        let warnings = self.publish(&row.plan, &row.run)?;
        for warning in &warnings {
            self.tell(warning);
        }
        Ok(())
    }

    fn publish(&mut self, plan: &Plan, run: &Run) -> Result<Vec<String>, FilesError> {
        let view = View { run_id: &self.run_id, plan, run, pid: Some(i64::from(std::process::id())) };
        let db = self.store.read();
        let warnings = if self.has_begun {
            self.files.publish(&view, db)?
        } else {
            let definition = self.kept(DEFINITION);
            self.files.begin(&view, definition.as_deref(), db)?
        };
        self.has_begun = true;
        Ok(warnings)
    }

    fn kept(&self, name: &str) -> Option<String> {
        fs_err::read_to_string(run_directory(&self.home, &self.run_id).join(name)).ok()
    }

    fn keep_output(&mut self, plan: &Plan, run: &Run, id: AttemptId) {
        let text = Attempt::at(&self.home, &self.run_id, id).read_answer().unwrap_or_default();
        if let Err(error) = self.files.save_output(output_of(plan, run, id), &text) {
            self.trouble(&format!("the output of stage {} cannot be kept: {error}", id.stage));
        }
    }

    /// What an engine that was killed after saving a step did not get to.
    fn repair_outputs(&mut self, plan: &Plan, run: &Run) {
        if plan.kind != RunKind::Pipeline {
            return;
        }
        match self.store.read().run_history(&self.run_id, None, MOST_REPAIRED) {
            Ok(rows) => rows.iter().for_each(|row| self.keep_output(plan, run, row.id)),
            Err(error) => self.trouble(&format!("outputs of earlier iterations cannot be looked at: {error}")),
        }
    }

    fn tell(&mut self, message: &str) {
        log::line(&run_directory(&self.home, &self.run_id).join("engine.log"), message);
        self.watch.note(message);
    }

    fn trouble(&mut self, message: &str) {
        if self.trouble.as_deref() != Some(message) {
            self.tell(message);
            self.trouble = Some(message.to_owned());
        }
    }
}

fn output_of<'a>(plan: &'a Plan, run: &'a Run, id: AttemptId) -> OutputOf<'a> {
    OutputOf { plan, run, stage: id.stage, iteration: id.iteration }
}

impl Observer for Publisher<'_> {
    fn saved(&mut self, saved: &Saved<'_>) {
        let is_first = !self.has_begun;
        // A state that shows an iteration proves that its output is there.
        if !is_first {
            for record in saved.records {
                if let Record::Committed { id, .. } = record {
                    self.keep_output(saved.plan, saved.run, *id);
                }
            }
        }
        match self.publish(saved.plan, saved.run) {
            Ok(warnings) => warnings.iter().for_each(|warning| self.tell(warning)),
            Err(error) => self.trouble(&format!("the public files cannot be written: {error} ({})", error.hint())),
        }
        if is_first && self.has_begun {
            self.repair_outputs(saved.plan, saved.run);
        }
        self.watch.stepped(saved);
    }

    fn stop_requested(&mut self) -> Option<Stopping> {
        self.watch.idle();
        if let Some(stopping) = self.watch.stop_requested() {
            return Some(stopping);
        }
        match self.files.put_entry_back() {
            Ok(warnings) => warnings.iter().for_each(|warning| self.tell(warning)),
            Err(error) => self.trouble(&format!("the registry cannot be written anew: {error}")),
        }
        match self.files.is_marked_killed() {
            Ok(is_marked) => {
                is_marked.then(|| Stopping { status: RunStatus::Killed, reason: RunReason::KilledInRegistry.into() })
            }
            Err(error) => {
                self.trouble(&format!("the registry cannot be read: {error}"));
                None
            }
        }
    }

    fn starting(&mut self, plan: &Plan, run: &Run, id: AttemptId) -> Result<(), String> {
        // The agent may do without it; somebody who deleted it wants to know why it does not come back.
        if let Err(error) = self.files.ensure_progress(plan, id.stage) {
            self.trouble(&format!("the progress file cannot be written: {error} ({})", error.hint()));
        }
        let cleared = self.files.clear_output(output_of(plan, run, id));
        cleared.map_err(|error| format!("there is no room for its output: {error} ({})", error.hint()))
    }

    fn places(&self, plan: &Plan, run: &Run, id: AttemptId) -> Places {
        Places {
            output: self.files.output_file(output_of(plan, run, id)).ok().flatten(),
            progress: self.files.progress_file(plan, id.stage).ok(),
            objective: self.watch.objective(),
            inputs: self.kept(INPUTS).unwrap_or_default(),
        }
    }

    fn output(&self, plan: &Plan, run: &Run, id: AttemptId) -> Option<KeptOutput> {
        KeptOutput::read(self.files.output_file(output_of(plan, run, id)).ok()??, dispatcher::MOST_READ)
    }

    fn note(&mut self, message: &str) {
        self.watch.note(message);
    }
}
