//! What `loop`, `pipeline` and `run` share: a loop is a pipeline with one stage, so that all verbs about runs are here.
//! Names belong to the directory they are used in and are never guessed; whether a run lives is told by its engine's
//! lock, not by what its row says.

mod attaching;
mod cleanup;
mod detaching;
mod driving;
mod ending;
mod fence;
mod finding;
mod limits;
mod logs;
mod preflight;
mod progress;
mod resuming;
mod starting;
mod trust;
mod view;

use std::path::{Path, PathBuf};

use steadfast_engine::plan::{self, Catalogue};
use steadfast_model::clock;
use steadfast_model::clock::Millis;
use steadfast_model::run::RunKind;
use steadfast_system::config::Config;
use steadfast_system::paths::Paths;

use crate::cli::RunVerb;
use crate::error::CliError;
use crate::output::CommandOutput;

pub(super) use limits::{agent_overrides, budget_of, check_commands, run_overrides, within};
pub(super) use starting::{How, NewRun, inputs_text, start};
pub(super) use trust::require_trust;
pub(super) use view::{faults_json, told};

/// Where a command about runs was typed.
pub(super) struct Here {
    pub(super) paths: Paths,
    pub(super) kind: RunKind,
    /// Without links, since it is a part of a run's name.
    pub(super) project: PathBuf,
    pub(super) now: Millis,
    /// Whether the answer is for a script, which gets everything, or for a person.
    pub(super) json: bool,
}

impl Here {
    pub(super) fn new(db: Option<&Path>, kind: RunKind, json: bool) -> Result<Self, CliError> {
        let paths = Paths::find(db)?;
        let project = fs_err::canonicalize(std::env::current_dir()?)?;
        Ok(Self { paths, kind, project, now: clock::now(), json })
    }

    pub(super) fn catalogue(&self) -> Catalogue {
        Catalogue { project: self.project.clone(), home: self.paths.home.clone() }
    }

    /// A word about the project further up, if somebody went down into a part of it.
    fn go_up(&self) -> String {
        plan::go_up(self.catalogue().project_above().as_deref())
    }

    pub(super) fn project_dir(&self) -> String {
        self.project.to_string_lossy().into_owned()
    }
}

/// A verb about runs that exist.
pub(super) fn on_run(here: &Here, verb: &RunVerb) -> Result<CommandOutput, CliError> {
    let is_look = match verb {
        RunVerb::List { .. } | RunVerb::Status { .. } => true,
        RunVerb::Cleanup(arguments) => !arguments.dry_run,
        _ => false,
    };
    if is_look {
        ending::obey_marks(here);
    }
    match verb {
        RunVerb::List { all } => view::list(here, *all),
        RunVerb::Status { name } => view::status(here, name),
        RunVerb::Logs(arguments) => logs::logs(here, arguments),
        RunVerb::Attach { name } => attaching::attach(here, name),
        RunVerb::Kill { name } => ending::kill(here, name),
        RunVerb::Resume(arguments) => resuming::resume(here, arguments),
        RunVerb::Cleanup(arguments) => cleanup::cleanup(here, arguments),
    }
}

/// `__engine`: drives a run in the background. Everything it needs to know is in the run and in its arguments, since
/// the environment may be another terminal's.
pub(crate) fn engine(home: PathBuf, store: PathBuf, run_id: &str) -> Result<CommandOutput, CliError> {
    let config = Config::load(&home.join("config.toml")).map_err(steadfast_system::paths::PathError::from)?;
    let paths = Paths { home, store, store_from: "engine", config };
    driving::in_background(&paths, run_id)
}
