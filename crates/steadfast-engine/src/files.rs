//! The public view of a run: the files under `PROJECT/.claude` that people, scripts and other sessions read and edit.
//! The store is the truth; these files are derived from plan, state and committed iterations, so that writing them
//! again changes nothing and repairs whatever a crash left. Pure functions in `files/` say what they contain,
//! `files/document.rs` reads and replaces them, and [`PublicFiles`] puts the two together under one lock
//! (`files/publishing.rs`).
//!
//! The order of writing is a promise: the registry's entry before the state, and the completions log before the state
//! says that the run ended. So a state file that shows a run proves that its entry was there, and an entry that is
//! missing now was removed by a person, unless the registry as a whole was lost (`files/listing.rs`).

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use steadfast_model::run::name::{NameError, RunName};
use steadfast_model::run::{Plan, Run, RunKind, RunStatus};
use steadfast_store::StoreError;

mod address;
mod completions;
mod document;
mod exchange;
mod layout;
mod listing;
mod loop_state;
mod outputs;
mod pipeline_state;
mod place;
mod progress;
mod publishing;
mod registry;
mod shown;
#[cfg(test)]
mod tests;
mod tidy;

pub use address::{Address, Holder, hold, holder};
pub(crate) use loop_state::OWN_FIELDS;
pub use outputs::OutputOf;
pub(crate) use outputs::first_files;
pub use registry::{RegistryEntry, registry_key};
pub use tidy::{Tidied, Tidy, mark_killed, tidy};

use document::{CLAUDE, Document};
use place::Place;
use shown::Shown;

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
    History(#[from] StoreError),
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

/// The public files of one run.
#[derive(Debug)]
pub struct PublicFiles {
    place: Place,
    kind: RunKind,
    name: String,
    registry: Document,
    state: Document,
    completions: Document,
    /// What we wrote last into the registry; `None` before the first time.
    listed: Option<listing::Listed>,
    /// Whether the last look found neither the entry nor a person who removed it.
    missed: bool,
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
            listed: None,
            missed: false,
        })
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

    /// Whether somebody marked the run's entry as killed since we wrote that it runs. Costs a look at the file's time
    /// while nobody changed it.
    pub fn is_marked_killed(&mut self) -> Result<bool, FilesError> {
        let key = registry_key(self.kind, &self.name);
        let wrote_running = self.wrote_running();
        let registry = self.registry.peek(&self.place)?;
        Ok(wrote_running && registry.is_some_and(|registry| registry::is_marked_killed(registry, &key)))
    }

    /// Writes the head of a progress file that is not there (any more), before an agent is told to read it.
    pub fn ensure_progress(&self, plan: &Plan, stage: u32) -> Result<(), FilesError> {
        outputs::ensure_progress(&self.place, plan, stage)
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

/// Millionths of a dollar as a number of dollars; whole ones without a point, as `jq` would write them.
fn usd(micros: i64) -> Value {
    if micros % 1_000_000 == 0 {
        return json!(micros / 1_000_000);
    }
    #[expect(clippy::cast_precision_loss, reason = "a cost has far fewer than 53 bits")]
    let micros = micros as f64;
    json!(micros / 1_000_000.0)
}
