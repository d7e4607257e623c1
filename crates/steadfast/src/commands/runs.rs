//! What `loop`, `pipeline` and `run` share. A loop is a pipeline with one stage, so both kinds have the same verbs. A name
//! means the newest run of this project and is never guessed. A run is live if an engine holds its lock, whatever its row
//! says.

mod appointments;
mod approval;
mod background;
mod cleanup;
mod control;
mod driving;
mod importing;
mod logs;
mod nested;
mod new_agent;
mod on_fleet;
mod permissions;
mod preflight;
mod progress;
mod project;
mod report;
mod say;
mod starting;
mod trust;
mod unpublished;
mod view;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use steadfast_app::overview::runs::is_starting;
use steadfast_engine::lock::RunLock;
use steadfast_engine::plan::{self, Catalogue};
use steadfast_model::clock::{self, Millis};
use steadfast_model::run::name::RunName;
use steadfast_model::run::{RunKind, RunStatus};
use steadfast_model::text;
use steadfast_store::{RunFilter, RunLine, RunRow, Store};
use steadfast_system::paths::Paths;

use super::own_paths;
use crate::cli::RunVerb;
use crate::error::{CliError, code};
use crate::output::{self, CommandResult};

pub(super) use appointments::make as make_appointment;
pub(super) use approval::answer;
pub(super) use background::restart;
pub(super) use on_fleet::senseless as senseless_on_fleet;
pub(super) use report::of_any_kind as report_of_any_kind;
pub(super) use starting::{How, NewRun, agent_overrides, check_commands, input_files, inputs_text, start};
pub(super) use trust::{ledger, record, refuse_agent, revoke, trust_new};
pub(super) use unpublished::publish_owed;
pub(super) use view::{faults_json, format_faults};

/// The most directories that a hint lists.
const MOST_PLACES: usize = 5;

/// Where and when a command about runs was called.
pub(super) struct RunContext {
    pub(super) paths: Paths,
    pub(super) kind: RunKind,
    /// Without symbolic links: runs are found by this path and their name.
    pub(super) project: PathBuf,
    pub(super) now: Millis,
    pub(super) json: bool,
}

impl RunContext {
    pub(super) fn new(db: Option<&Path>, kind: RunKind, json: bool) -> Result<Self, CliError> {
        Self::at(own_paths::find(db)?, kind, json)
    }

    /// For a verb about existing runs: only those that start agents need the configuration.
    pub(super) fn on_run(db: Option<&Path>, kind: RunKind, json: bool, verb: &RunVerb) -> Result<Self, CliError> {
        let starts = matches!(verb, RunVerb::Resume(_) | RunVerb::Cleanup(_) | RunVerb::Import { .. });
        Self::at(if starts { own_paths::find(db)? } else { own_paths::find_to_read(db)? }, kind, json)
    }

    fn at(paths: Paths, kind: RunKind, json: bool) -> Result<Self, CliError> {
        let project = project::of(&current_dir()?);
        let now = super::now(&paths);
        Ok(Self { paths, kind, project, now, json })
    }

    /// The path of a definition or program that the user named from a subdirectory of the project, if it exists there.
    pub(super) fn named_below(&self, path: &str) -> Option<PathBuf> {
        let here = current_dir().ok().filter(|here| *here != self.project)?;
        Some(here.join(path)).filter(|found| !path.is_empty() && found.exists())
    }

    /// What [`Self::named_below`] finds, or the text as it is.
    pub(super) fn resolve(&self, text: &str) -> String {
        self.named_below(text).map_or_else(|| text.to_owned(), |path| path.to_string_lossy().into_owned())
    }

    /// Says where a run works that is started in a subdirectory.
    pub(super) fn note_project(&self) {
        if current_dir().is_ok_and(|here| here != self.project) {
            output::note(&format!(
                "note: the run belongs to the project {}; its agents work there",
                self.project_dir()
            ));
        }
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
    fn existing_store(&self) -> Result<Option<Store>, CliError> {
        Ok(Store::open_if_there(&self.paths.store)?)
    }

    fn find(&self, name: &str) -> Result<(Store, RunRow), CliError> {
        let name: RunName = name.parse()?;
        let Some(store) = self.existing_store()? else { return Err(self.no_run(name.as_str(), &[])) };
        let project = self.project_dir();
        // The key in the registry, `loop-NAME`, is accepted too.
        let of_key = name.as_str().strip_prefix(&format!("{}-", self.kind));
        for name in [Some(name.as_str()), of_key].into_iter().flatten() {
            if let Some(row) = store.read().newest_run(&project, self.kind, name)? {
                self.publish_end(&row)?;
                return Ok((store, row));
            }
        }
        let everywhere = store.read().runs(RunFilter::default(), usize::MAX)?;
        let of_name: Vec<RunLine> = everywhere.into_iter().filter(|line| line.name == name.as_str()).collect();
        Err(self.no_run(name.as_str(), &of_name))
    }

    fn publish_end(&self, row: &RunRow) -> Result<(), CliError> {
        unpublished::publish(&self.paths, row, self.now, &output::note)
    }

    fn no_run(&self, name: &str, elsewhere: &[RunLine]) -> CliError {
        let kind = self.kind;
        if let Some(entry) = view::manual_entry(self, name) {
            let status = text::headline(&entry.status, 30);
            let message = format!("{kind} {name} was entered by hand ({status}) and has no run");
            let hint = format!("`steadfast {kind} status {name}` shows the entry; it cannot be attached to or resumed");
            return CliError::new(code::NOT_FOUND, message, hint);
        }
        let project = self.project_dir();
        let message = format!("no {kind} named {name} in {project}");
        let of_other_kind = elsewhere.iter().find(|line| line.project_dir == project && line.kind != kind);
        let places: BTreeSet<&str> =
            elsewhere.iter().filter(|line| line.kind == kind).map(|line| line.project_dir.as_str()).collect();
        let hint = if let Some(line) = of_other_kind {
            format!("a {0} has that name: `steadfast {0} status {name}`", line.kind)
        } else if places.is_empty() {
            format!("`steadfast {kind} list` lists the {kind}s of this project{}", self.project_above_hint())
        } else {
            let places: Vec<&str> = places.into_iter().take(MOST_PLACES).collect();
            format!("one of that name is in {}: run the command there", places.join(", "))
        };
        CliError::new(code::NOT_FOUND, message, hint)
    }

    fn is_driven(&self, run_id: &str) -> Result<bool, CliError> {
        Ok(RunLock::is_held(&self.paths.home, run_id)?)
    }

    /// Whether an engine drives the run now, or is about to.
    fn is_live(&self, row: &RunRow) -> Result<bool, CliError> {
        let (status, engine) = (row.run.status, row.engine);
        if status != RunStatus::Running {
            return Ok(false);
        }
        Ok(is_starting(status, engine, row.updated_at_ms, clock::now()) || self.is_driven(&row.run_id)?)
    }
}

/// Without symbolic links.
fn current_dir() -> Result<PathBuf, std::io::Error> {
    fs_err::canonicalize(std::env::current_dir()?)
}

pub(super) fn on_run(context: &RunContext, verb: &RunVerb) -> CommandResult {
    let reads_registry = match verb {
        RunVerb::List { .. } | RunVerb::Status { .. } | RunVerb::Report(_) => true,
        RunVerb::Cleanup(arguments) => !arguments.dry_run,
        _ => false,
    };
    if reads_registry {
        control::apply_registry_kills(context);
    }
    match verb {
        RunVerb::List { all } => view::list(context, *all),
        RunVerb::Status { name } => view::status(context, name),
        RunVerb::Report(arguments) => report::report(context, arguments),
        RunVerb::Logs(arguments) => logs::logs(context, arguments),
        RunVerb::Attach { name } => background::attach(context, name),
        RunVerb::Cancel { name } => appointments::cancel(context, name),
        RunVerb::Say(arguments) => say::say(context, arguments),
        RunVerb::Kill { name } => control::kill(context, name),
        RunVerb::Resume(arguments) => control::resume(context, arguments),
        RunVerb::Cleanup(arguments) => cleanup::cleanup(context, arguments),
        RunVerb::Import { dry_run, trust } => importing::import(context, *dry_run, *trust),
    }
}

/// `__engine`: drives a run in the background. It reads everything from the run and its arguments, because its
/// environment may be that of another terminal.
pub(crate) fn engine(home: PathBuf, store: PathBuf, run_id: &str) -> CommandResult {
    driving::in_background(&Paths::at(home, store, "engine")?, run_id)
}

/// The current row of a run that existed a moment ago.
fn stored(store: &Store, run_id: &str) -> Result<RunRow, CliError> {
    let missing = || CliError::new(code::NOT_FOUND, format!("no run {run_id}"), "run `steadfast doctor`");
    store.read().run(run_id)?.ok_or_else(missing)
}
