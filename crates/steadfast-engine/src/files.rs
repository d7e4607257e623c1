//! The public view of a run: the files under `PROJECT/.claude` that people, scripts and other sessions read and edit.
//! The store is the truth; these files are derived from plan, state and committed iterations, so that writing them
//! again changes nothing and repairs whatever a crash left. Pure functions in `files/` say what they contain,
//! `files/document.rs` reads and replaces them, and [`PublicFiles`] puts the two together under one lock.
//!
//! The order of writing is a promise: the registry's entry before the state, and the completions log before the state
//! says that the run ended. So a state file that shows a run proves that its entry was there, and an entry that is
//! missing now was removed by a person.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use steadfast_core::run::name::{NameError, RunName};
use steadfast_core::run::{Plan, Run, RunKind, RunStatus};

mod completions;
mod document;
mod history;
pub mod import;
mod loop_state;
mod outputs;
mod pipeline_state;
mod place;
mod progress;
mod registry;
mod shown;
#[cfg(test)]
mod tests;
mod tidy;

pub use history::{Committed, History, HistoryError, StoredHistory};
pub use outputs::OutputOf;
pub(crate) use outputs::first_files;
pub use registry::{Edits, RegistryEntry, StopEdit, registry_key};
pub use tidy::{Tidied, Tidy, mark_killed, tidy};

use document::{CLAUDE, Document, Found, Lock};
use place::Place;
use shown::{Shown, set_owed};

#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("`{name}` cannot be part of a path")]
    Part { name: String },
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("`{}` is a link that leaves the project", path.display())]
    LeavesProject { path: PathBuf },
    #[error("`{}` is not a file", path.display())]
    NotAFile { path: PathBuf },
    #[error("`{}` is not a directory", path.display())]
    NotADirectory { path: PathBuf },
    #[error("another process holds `{}`", path.display())]
    Busy { path: PathBuf },
    #[error("the run's iterations cannot be read: {0}")]
    History(#[source] HistoryError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl FilesError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Part { .. } => "rename it: use letters, digits, `.`, `_` and `-`".into(),
            Self::Name(error) => error.hint().into(),
            Self::LeavesProject { path } => {
                format!("remove the link (rm {}), or let it point into the project", path.display())
            }
            Self::NotAFile { path } | Self::NotADirectory { path } => format!("move `{}` away", path.display()),
            Self::Busy { .. } => "wait for it to end, then try again".into(),
            Self::History(_) => "run `steadfast doctor`".into(),
            Self::Io(_) => "check the permissions and the free space of the project's `.claude`".into(),
        }
    }
}

/// A run as it is now.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub run_id: &'a str,
    pub plan: &'a Plan,
    pub run: &'a Run,
    /// The process that drives it.
    pub pid: Option<i64>,
}

/// What came of publishing a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Published {
    pub edits: Edits,
    /// For the user: files that had to be put aside.
    pub warnings: Vec<String>,
}

/// The public files of one run.
#[derive(Debug)]
pub struct PublicFiles {
    place: Place,
    kind: RunKind,
    name: String,
    registry: Document,
    state: Document,
    completions: Document,
    /// The status we wrote last into the registry; `None` before the first time.
    wrote: Option<RunStatus>,
    /// Somebody removed our entry.
    removed: bool,
}

impl PublicFiles {
    /// Nothing is read or written yet.
    pub fn open(project: &Path, kind: RunKind, name: &str) -> Result<Self, FilesError> {
        let _: RunName = name.parse()?;
        let state = match kind {
            RunKind::Loop => Document::new(&[CLAUDE, &loop_state::file(name)], Value::is_object),
            RunKind::Pipeline => {
                let parts = [CLAUDE, pipeline_state::DIRECTORY, name, pipeline_state::FILE];
                Document::new(&parts, Value::is_object)
            }
        };
        Ok(Self {
            place: Place::of(project)?,
            kind,
            name: name.to_owned(),
            registry: Document::new(&[CLAUDE, registry::FILE], registry::is_registry),
            state,
            completions: Document::new(&[CLAUDE, completions::FILE], Value::is_array),
            wrote: None,
            removed: false,
        })
    }

    /// Publishes a run for the first time, and writes what belongs to it and is not there yet: progress files and, of a
    /// pipeline, the copy of its definition. Repeating it, on resuming, changes nothing.
    pub fn begin(
        &mut self,
        view: &View<'_>,
        definition: Option<&str>,
        history: &dyn History,
    ) -> Result<Published, FilesError> {
        for stage in &view.plan.stages {
            let _: RunName = stage.name.parse()?;
        }
        let published = self.publish(view, history)?;
        let lock = Lock::take(&self.place)?;
        document::sweep(&self.place.directory(&[CLAUDE])?, &lock);
        outputs::prepare(&self.place, view.plan, definition, &lock)?;
        Ok(published)
    }

    /// Brings all files up to date with a run. Doing it again changes nothing. A file that cannot be written does not
    /// keep the others from being: the first error is told once they are, and the state says what is still owed.
    pub fn publish(&mut self, view: &View<'_>, history: &dyn History) -> Result<Published, FilesError> {
        let lock = Lock::take(&self.place)?;
        let mut published = Published::default();
        let mut owed = Vec::new();
        let mut first_error = None;
        let before = match self.state.take(&self.place, &lock) {
            Ok(found) => self.state_of_run(found, view, &mut published.warnings),
            Err(error) => Err(error),
        };
        // Without a state, what it would have said is not known; it is not written then, either.
        let (state, shown) = match before {
            Ok(state) => {
                let shown = Shown::of(&state);
                (Some(state), shown)
            }
            Err(error) => {
                first_error = Some(error);
                (None, Shown::default())
            }
        };
        match self.publish_entry(view, &shown, &lock, &mut published.warnings) {
            Ok(edits) => published.edits = edits,
            Err(error) => {
                owed.push(registry::FILE);
                first_error.get_or_insert(error);
            }
        }
        let is_told = shown.is_end_of(view) && !shown.owes(completions::FILE);
        if view.run.status != RunStatus::Running
            && !is_told
            && let Err(error) = self.publish_end(view, &lock, &mut published.warnings)
        {
            owed.push(completions::FILE);
            first_error.get_or_insert(error);
        }
        if let Some(state) = state
            && let Err(error) = self.publish_state(state, view, history, &owed, &lock)
        {
            first_error.get_or_insert(error);
        }
        first_error.map_or(Ok(published), Err)
    }

    fn publish_state(
        &mut self,
        mut state: Value,
        view: &View<'_>,
        history: &dyn History,
        owed: &[&str],
        lock: &Lock,
    ) -> Result<(), FilesError> {
        let updated = match self.kind {
            RunKind::Loop => loop_state::update(&mut state, view, history)?,
            RunKind::Pipeline => pipeline_state::update(&mut state, view, history)?,
        };
        let changed = set_owed(&mut state, owed) | updated;
        self.state.put(&self.place, lock, state, changed)
    }

    /// Whether the files do not show how a run ended, so that they have to be written again. What a person removed is
    /// not missed.
    pub fn is_behind(&mut self, view: &View<'_>) -> Result<bool, FilesError> {
        // A registry that cannot be read says nothing, and the state may say that it is owed.
        let listed = self.registry.peek(&self.place).ok().flatten().map(registry::entries).unwrap_or_default();
        let own = listed.iter().find(|entry| entry.run_id.as_deref() == Some(view.run_id));
        if own.is_some_and(|entry| entry.status == RunStatus::Running.to_string()) {
            return Ok(true);
        }
        let state = self.state.peek(&self.place)?;
        let shown = state.map(Shown::of).unwrap_or_default();
        if shown.run_id.as_deref() != Some(view.run_id) {
            return Ok(own.is_some());
        }
        let status = view.run.status.to_string();
        let shows_status = state.and_then(|state| state.get("status")).and_then(Value::as_str) == Some(&status);
        Ok(!shows_status || !shown.is_end_of(view) || !shown.owed.is_empty())
    }

    /// Refuses links that leave the project, and whatever else is not a file where one belongs. Nothing is made.
    pub fn check(&self, plan: &Plan) -> Result<(), FilesError> {
        for document in [&self.registry, &self.completions, &self.state] {
            document.path(&self.place)?;
        }
        document::check_lock(&self.place)?;
        for (stage, _) in (1..).zip(&plan.stages) {
            self.progress_file(plan, stage)?;
        }
        Ok(())
    }

    /// The state as the file has it, if it is this run's; anything else makes room.
    fn state_of_run(&self, found: Found, view: &View<'_>, warnings: &mut Vec<String>) -> Result<Value, FilesError> {
        let state = match found {
            Found::Missing => return Ok(json!({})),
            Found::Broken(aside) => {
                warnings.push(broken(&aside));
                return Ok(json!({}));
            }
            Found::Value(state) => state,
        };
        let run_id = state.get("run_id").and_then(Value::as_str);
        if run_id == Some(view.run_id) {
            return Ok(state);
        }
        let aside = match self.kind {
            // The store has an earlier loop of ours; somebody else's state is nowhere but here.
            RunKind::Loop if run_id.is_some() => return Ok(json!({})),
            RunKind::Loop => self.state.path(&self.place)?,
            // Outputs of an earlier run must not be taken for this one's.
            RunKind::Pipeline => self.place.directory(&[CLAUDE, pipeline_state::DIRECTORY, &self.name])?,
        };
        let aside = document::put_aside(&aside, "previous")?;
        warnings.push(format!("an earlier run of that name was moved to `{}`", aside.display()));
        Ok(json!({}))
    }

    fn publish_entry(
        &mut self,
        view: &View<'_>,
        shown: &Shown,
        lock: &Lock,
        warnings: &mut Vec<String>,
    ) -> Result<Edits, FilesError> {
        let key = registry_key(self.kind, &self.name);
        let (mut value, was_there) = match self.registry.take(&self.place, lock)? {
            Found::Value(value) => (value, true),
            Found::Missing => (registry::empty(), false),
            Found::Broken(aside) => {
                warnings.push(broken(&aside));
                (registry::empty(), false)
            }
        };
        let present = registry::entry(&value, &key).is_some();
        let reopened = view.run.status == RunStatus::Running && shown.ended;
        // An entry that we still owe was never there to be removed.
        let was_shown = shown.run_id.as_deref() == Some(view.run_id) && !shown.owes(registry::FILE);
        let known = was_shown || self.wrote.is_some();
        self.removed = was_there && !present && known && !reopened;
        let wrote_running = self.wrote == Some(RunStatus::Running);
        let edits = registry::edits(&value, &key, wrote_running, self.removed);
        let mut changed = false;
        if !self.removed {
            let marked = edits.stop.is_some() && view.run.status == RunStatus::Running;
            let project = self.place.root().to_string_lossy();
            changed = registry::write_entry(&mut value, &key, view, &project, marked);
        }
        self.registry.put(&self.place, lock, value, changed)?;
        self.wrote = Some(view.run.status);
        Ok(edits)
    }

    fn publish_end(&mut self, view: &View<'_>, lock: &Lock, warnings: &mut Vec<String>) -> Result<(), FilesError> {
        let mut list = match self.completions.take(&self.place, lock)? {
            Found::Value(list) => list,
            Found::Missing => json!([]),
            Found::Broken(aside) => {
                warnings.push(broken(&aside));
                json!([])
            }
        };
        let changed = completions::add(&mut list, view);
        self.completions.put(&self.place, lock, list, changed)
    }

    /// What people changed in the registry since we wrote it. Costs a look at the file's time while nobody did.
    pub fn edits(&mut self) -> Result<Edits, FilesError> {
        let wrote_running = self.wrote == Some(RunStatus::Running);
        let key = registry_key(self.kind, &self.name);
        let known = self.wrote.is_some() || self.removed;
        Ok(match self.registry.peek(&self.place)? {
            Some(registry) => registry::edits(registry, &key, wrote_running, known),
            None => Edits::default(),
        })
    }

    /// The progress file of a loop, or of a pipeline's stage (from 1).
    pub fn progress_file(&self, plan: &Plan, stage: u32) -> Result<PathBuf, FilesError> {
        outputs::progress_file(&self.place, plan, stage)
    }

    /// Where the output of an iteration belongs: `output.md` of a stage with one run, else `run-N.md`. Loops have none.
    pub fn output_file(&self, of: OutputOf<'_>) -> Result<Option<PathBuf>, FilesError> {
        outputs::output_file(&self.place, of)
    }

    /// Removes what a failed attempt left as the output of an iteration, before the next one starts.
    pub fn clear_output(&self, of: OutputOf<'_>) -> Result<(), FilesError> {
        outputs::clear(&self.place, of)
    }

    /// Keeps the output of a committed iteration. What the agent itself wrote to its output file wins over `text`.
    /// Of several runs, `output.md` is the one with the highest number. Returns the file, or nothing for a loop.
    pub fn save_output(&self, of: OutputOf<'_>, text: &str) -> Result<Option<PathBuf>, FilesError> {
        outputs::save(&self.place, of, text)
    }
}

/// Everything that a project's registry lists, by whomever; empty if there is none or it cannot be read at the moment.
pub fn registry(project: &Path) -> Result<Vec<RegistryEntry>, FilesError> {
    let mut document = Document::new(&[CLAUDE, registry::FILE], registry::is_registry);
    Ok(document.peek(&Place::of(project)?)?.map(registry::entries).unwrap_or_default())
}

fn broken(aside: &Path) -> String {
    format!("a broken file was moved to `{}` and a new one begun", aside.display())
}

/// Millionths of a dollar as a number of dollars; whole ones without a point, as `jq` would write them.
fn usd(micros: i64) -> Value {
    if micros % 1_000_000 == 0 {
        return json!(micros / 1_000_000);
    }
    #[expect(clippy::cast_precision_loss, reason = "a cost has far fewer than 53 bits")]
    let micros = micros as f64;
    json!(micros / 1_000_000.0)
}
