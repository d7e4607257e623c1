//! The public files of a run: those under `PROJECT/.claude` that people, scripts and other sessions read and edit. The
//! store is the truth; these files are derived from plan, state and committed iterations, so writing them again changes
//! nothing and repairs what a crash left.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use steadfast_model::clock::{self, Millis};
use steadfast_model::price;
use steadfast_model::run::name::{NameError, RunName};
use steadfast_model::run::{Plan, Run, RunKind, RunStatus};
use steadfast_store::StoreError;

mod address;
mod artifacts;
mod aside;
mod document;
mod exchange;
mod exclude;
mod expired;
mod ignore;
mod listing;
mod outputs;
mod place;
mod publishing;
mod registry;
mod restored;
mod state;
#[cfg(test)]
mod tests;
mod tidy;

pub use address::{Address, Holder, hold, holder};
pub(crate) use aside::Aside;
pub use exclude::{has_state_files, patterns_anywhere, remove_lock_file, stop_excluding};
pub use expired::{Expiry, remove_expired};
pub(crate) use ignore::GitGuard;
pub use ignore::stop_ignoring;
pub(crate) use outputs::first_files;
pub use outputs::{OutputOf, without_secrets};
pub use registry::{RegistryEntry, registry_key};
pub(crate) use state::OWN_FIELDS;
pub use tidy::{Tidied, Tidy, mark_killed, tidy};

use document::{CLAUDE, Document};
use place::ProjectPlace;
use publishing::Shown;

/// The directory of pipelines.
const PIPELINES: &str = "pipeline-runs";

#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("invalid path component `{name}`")]
    Part { name: String },
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("`{}` is a link that leaves the project", path.display())]
    LeavesProject { path: PathBuf },
    #[error("`{}` is not a file", path.display())]
    NotAFile { path: PathBuf },
    #[error("`{}` is not a directory", path.display())]
    NotADirectory { path: PathBuf },
    #[error("`{}` is in use by another process", path.display())]
    Busy { path: PathBuf },
    #[error("cannot read the run's iterations: {0}")]
    History(#[from] StoreError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl FilesError {
    pub fn hint(&self) -> String {
        match self {
            Self::Part { .. } => "rename it: use letters, digits, `.`, `_` and `-`".into(),
            Self::Name(error) => error.hint().into(),
            Self::LeavesProject { path } => {
                format!("remove the link (rm {}), or point it into the project", path.display())
            }
            Self::NotAFile { path } | Self::NotADirectory { path } => format!("move `{}` away", path.display()),
            Self::Busy { .. } => "wait for that process to end, then try again".into(),
            Self::History(_) => "run `steadfast doctor`".into(),
            Self::Io(_) => "check the permissions and the free space of the project's `.claude`".into(),
        }
    }
}

/// A run as it is now.
#[derive(Debug, Clone, Copy)]
pub struct FileView<'a> {
    pub run_id: &'a str,
    pub plan: &'a Plan,
    pub run: &'a Run,
    /// The engine's process.
    pub pid: Option<i64>,
}

/// The public files of one run.
#[derive(Debug)]
pub struct PublicFiles {
    place: ProjectPlace,
    kind: RunKind,
    name: String,
    registry: Document,
    state: Document,
    completions: Document,
    /// `None` before the first write.
    listed: Option<listing::Listed>,
    /// Whether the last check found that the entry was lost.
    missed: bool,
    /// When the run was resumed: marks by hand that are older do not count.
    since_ms: Option<Millis>,
    /// Whether the files of this run were written before: what is there of another run was put back by git.
    has_begun: bool,
    /// Outputs that could not be written yet.
    owed_outputs: Vec<String>,
}

impl PublicFiles {
    /// Reads and writes nothing.
    pub fn open(project: &Path, kind: RunKind, name: &str) -> Result<Self, FilesError> {
        let _: RunName = name.parse()?;
        let state = match kind {
            RunKind::Loop => Document::new(&[CLAUDE, &format!("loop-state-{name}.json")], Value::is_object),
            RunKind::Pipeline => Document::new(&[CLAUDE, PIPELINES, name, "state.json"], Value::is_object),
        };
        Ok(Self {
            place: ProjectPlace::of(project)?,
            kind,
            name: name.to_owned(),
            registry: registry::document(),
            state,
            completions: Document::new(&[CLAUDE, publishing::COMPLETIONS], Value::is_array),
            listed: None,
            missed: false,
            since_ms: None,
            has_begun: false,
            owed_outputs: Vec::new(),
        })
    }

    /// For a run whose files were written by an earlier process, or are about to be driven since `since_ms`.
    pub(crate) fn continued(self, has_begun: bool, since_ms: Option<Millis>) -> Self {
        Self { since_ms, has_begun, ..self }
    }

    /// Whether the state file shows a run.
    pub(crate) fn shows(&mut self, run_id: &str) -> Result<bool, FilesError> {
        let shown = self.state.peek(&self.place)?.map(Shown::of).unwrap_or_default();
        Ok(shown.run_id.as_deref() == Some(run_id))
    }

    /// Whether the state file shows a run that started after this one, such as one of another store.
    pub(crate) fn shows_later(&mut self, view: &FileView<'_>) -> Result<bool, FilesError> {
        let state = self.state.peek(&self.place)?;
        let text = |name: &str| state.and_then(|state| state.get(name)).and_then(Value::as_str);
        let started = text("started_at").and_then(clock::parse_rfc3339);
        Ok(text("run_id") != Some(view.run_id) && started.is_some_and(|started| started > view.run.started_at_ms))
    }

    /// Whether the state was edited, removed or put back since this process wrote it.
    pub(crate) fn is_touched(&self) -> bool {
        self.state.is_touched(&self.place)
    }

    /// Whether the files do not show how a run ended and have to be written again. An entry that a person removed does
    /// not count.
    pub fn is_behind(&mut self, view: &FileView<'_>) -> Result<bool, FilesError> {
        // An unreadable registry is not decisive: the state lists it as owed if it could not be written.
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

    /// Refuses links that leave the project, and anything else that is not a file where one belongs. Creates nothing.
    pub fn check(&self, plan: &Plan) -> Result<(), FilesError> {
        for document in [&self.registry, &self.completions, &self.state] {
            document.path(&self.place)?;
        }
        self.place.file(&[CLAUDE, document::LOCK])?;
        for (stage, _) in (1..).zip(&plan.stages) {
            self.progress_file(plan, stage)?;
        }
        Ok(())
    }
}

/// All entries of a project's registry, other tools' too; empty if it is missing or broken.
pub fn registry(project: &Path) -> Result<Vec<RegistryEntry>, FilesError> {
    Ok(registry::document().peek(&ProjectPlace::of(project)?)?.map(registry::entries).unwrap_or_default())
}

/// Millionths of a dollar as dollars; whole numbers without a decimal point, as `jq` writes them. A cost of which a part
/// is unknown is null.
fn usd(micros: i64, is_unknown: bool) -> Value {
    if is_unknown {
        return Value::Null;
    }
    if micros % 1_000_000 == 0 {
        return json!(micros / 1_000_000);
    }
    json!(price::dollars(micros))
}
