//! What `loop`, `pipeline` and `run` share. A loop is a pipeline with one stage, so both kinds have the same verbs.
//! A name belongs to its project directory and is never guessed. A run is live if an engine holds its lock, whatever its
//! row says.

mod attaching;
mod cleanup;
mod detaching;
mod driving;
mod ending;
mod finding;
mod logs;
mod preflight;
mod progress;
mod resuming;
mod starting;
mod trust;
mod view;

use std::path::{Path, PathBuf};

use steadfast_engine::plan::{self, Catalogue};
use steadfast_model::clock::{self, Millis};
use steadfast_model::run::RunKind;
use steadfast_system::config::Config;
use steadfast_system::paths::Paths;

use crate::cli::RunVerb;
use crate::error::CliError;
use crate::output::CommandOutput;

pub(super) use starting::{How, NewRun, agent_overrides, check_commands, inputs_text, start};
pub(super) use trust::require_trust;
pub(super) use view::{faults_json, format_faults};

/// Where and when a command about runs was called.
pub(super) struct RunContext {
    pub(super) paths: Paths,
    pub(super) kind: RunKind,
    /// Without symbolic links: runs are found by this path and their name.
    pub(super) project: PathBuf,
    pub(super) now: Millis,
    /// Whether to print JSON.
    pub(super) json: bool,
}

impl RunContext {
    pub(super) fn new(db: Option<&Path>, kind: RunKind, json: bool) -> Result<Self, CliError> {
        let paths = Paths::find(db)?;
        let project = fs_err::canonicalize(std::env::current_dir()?)?;
        Ok(Self { paths, kind, project, now: clock::now(), json })
    }

    pub(super) fn catalogue(&self) -> Catalogue {
        Catalogue { project: self.project.clone(), home: self.paths.home.clone() }
    }

    /// A hint if a parent directory is a project and this one is not.
    fn project_above_hint(&self) -> String {
        plan::go_up(self.catalogue().project_above().as_deref())
    }

    pub(super) fn project_dir(&self) -> String {
        self.project.to_string_lossy().into_owned()
    }
}

/// Runs a verb about an existing run.
pub(super) fn on_run(context: &RunContext, verb: &RunVerb) -> Result<CommandOutput, CliError> {
    let reads_registry = match verb {
        RunVerb::List { .. } | RunVerb::Status { .. } => true,
        RunVerb::Cleanup(arguments) => !arguments.dry_run,
        _ => false,
    };
    if reads_registry {
        ending::apply_registry_kills(context);
    }
    match verb {
        RunVerb::List { all } => view::list(context, *all),
        RunVerb::Status { name } => view::status(context, name),
        RunVerb::Logs(arguments) => logs::logs(context, arguments),
        RunVerb::Attach { name } => attaching::attach(context, name),
        RunVerb::Kill { name } => ending::kill(context, name),
        RunVerb::Resume(arguments) => resuming::resume(context, arguments),
        RunVerb::Cleanup(arguments) => cleanup::cleanup(context, arguments),
    }
}

/// `__engine`: drives a run in the background. It reads everything from the run and its arguments, because its
/// environment may be that of another terminal.
pub(crate) fn engine(home: PathBuf, store: PathBuf, run_id: &str) -> Result<CommandOutput, CliError> {
    let config = Config::load(&home.join("config.toml")).map_err(steadfast_system::paths::PathError::from)?;
    let paths = Paths { home, store, store_from: "engine", config };
    driving::in_background(&paths, run_id)
}
