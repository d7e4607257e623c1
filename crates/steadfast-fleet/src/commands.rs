//! The commands of `steadfast fleet`, one file each, and what they share: the connection and the run that a name means.

mod answer;
mod caps;
mod doctor;
mod follow;
mod key;
mod kill;
mod list;
mod logs;
mod pull;
mod resume;
mod schedules;
mod status;
mod submit;
mod worker;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser as _;
use steadfast_model::run::{Plan, Run, RunReason, RunStatus};
use steadfast_system::config::{Config, FleetConfig};
use steadfast_system::paths::{self, Paths};
use temporalio_client::WorkflowExecutionStatus;
use tokio::sync::OnceCell;

use crate::cli::{FleetCli, FleetVerb, NamedRunArgs, SchedulesVerb};
use crate::client::{Described, Fleet};
use crate::connect::FleetError;
use crate::output::{self, CommandError, CommandResult, Output, code};
use crate::work::{RunDirectory, WorkError};

/// Parses the arguments, carries out the command and returns its exit code.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let is_json = arguments.iter().any(|argument| argument == "--json" || argument == "-j");
    match FleetCli::try_parse_from(&arguments) {
        Ok(cli) => output::finish(run(cli), is_json),
        Err(error) => output::usage(&error, is_json),
    }
}

fn run(cli: FleetCli) -> CommandResult {
    let json = cli.json;
    match cli.verb {
        FleetVerb::Exec { directory } => {
            steadfast_engine::interrupt::survive_size_limit();
            steadfast_engine::supervisor::exec(&directory).map_err(|error| {
                CommandError::new(
                    code::USAGE,
                    error.to_string(),
                    "this command is for workers: `steadfast fleet worker`",
                )
            })?;
            Ok(Output::default())
        }
        FleetVerb::Key => key::new(),
        FleetVerb::Worker(arguments) => worker::run(&Here::find(json)?, &arguments),
        FleetVerb::Drain { no_wait } => worker::drain(&Here::find(json)?, !no_wait),
        verb => {
            let here = Here::find(json)?;
            crate::worker::block_on(on_fleet(&here, verb))?
        }
    }
}

async fn on_fleet(here: &Here, verb: FleetVerb) -> CommandResult {
    match verb {
        FleetVerb::Submit => submit::submit(here).await,
        FleetVerb::List { running, all } => list::list(here, running, all).await,
        FleetVerb::Status { run, watch } => status::status(here, &run, watch).await,
        FleetVerb::Logs(arguments) => logs::logs(here, &arguments).await,
        FleetVerb::Attach(run) => follow::attach(here, &run).await,
        FleetVerb::Kill { name, force: true, .. } => kill::end_at_once(here, &name).await,
        FleetVerb::Kill { name, no_wait, .. } => kill::kill(here, &name, !no_wait).await,
        FleetVerb::Resume { run, changes, detach } => resume::resume(here, &run, &changes, detach).await,
        FleetVerb::Pull(run) => pull::pull(here, &run).await,
        FleetVerb::Approve(arguments) => answer::answer(here, &arguments, true).await,
        FleetVerb::Reject(arguments) => answer::answer(here, &arguments, false).await,
        FleetVerb::Say { name, text } => answer::say(here, &name, &text.join(" ")).await,
        FleetVerb::Caps(arguments) => caps::caps(here, &arguments).await,
        FleetVerb::Doctor { repo } => doctor::doctor(here, repo.as_deref()).await,
        FleetVerb::Schedules { verb } => match verb.unwrap_or(SchedulesVerb::List) {
            SchedulesVerb::List => schedules::list(here).await,
            SchedulesVerb::Delete { name } => schedules::delete(here, &name).await,
        },
        FleetVerb::History { name } => {
            let bytes = here.connect().await?.history(&name).await?;
            let json = serde_json::from_slice(&bytes).map_err(std::io::Error::from)?;
            Ok(Output { text: String::from_utf8_lossy(&bytes).into_owned(), json, code: 0 })
        }
        FleetVerb::Worker(_) | FleetVerb::Drain { .. } | FleetVerb::Key | FleetVerb::Exec { .. } => {
            Ok(Output::default())
        }
    }
}

/// The installation that a command works for.
pub(crate) struct Here {
    pub(crate) home: PathBuf,
    pub(crate) config: Config,
    pub(crate) project: PathBuf,
    pub(crate) json: bool,
    /// Made once, when it is first needed.
    connection: OnceCell<Fleet>,
}

impl Here {
    fn find(json: bool) -> Result<Self, CommandError> {
        steadfast_system::clock::begin();
        let paths = Paths::find(None)?;
        let project = fs_err::canonicalize(std::env::current_dir()?)?;
        Ok(Self { home: paths.home, config: paths.config, project, json, connection: OnceCell::new() })
    }

    pub(crate) fn fleet(&self) -> &FleetConfig {
        &self.config.fleet
    }

    /// Files of the fleet below the home.
    pub(crate) fn folder(&self) -> Result<PathBuf, CommandError> {
        let folder = self.home.join("fleet");
        paths::create_private_dir(&folder)?;
        Ok(folder)
    }

    pub(crate) async fn connect(&self) -> Result<Fleet, FleetError> {
        let identity = crate::worker::identity();
        self.connection.get_or_try_init(|| Fleet::connect(self.fleet(), &identity)).await.cloned()
    }

    /// The repository of a run that the server does not know: as given, configured, or the remote `origin` here.
    pub(crate) fn repo(&self, given: Option<&str>) -> Option<String> {
        let configured = || self.fleet().repo.clone();
        given.map(ToOwned::to_owned).or_else(configured).or_else(|| origin(&self.project))
    }

    /// What the server and the repository know of a run. One of both is enough.
    pub(crate) async fn find_run(&self, arguments: &NamedRunArgs) -> Result<FoundRun, CommandError> {
        let name = arguments.name.as_str();
        let described = match self.connect().await {
            Ok(fleet) => match fleet.describe(name).await {
                Ok(described) => Ok((fleet, described)),
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        let (server, missing) = match described {
            Ok(found) => (Some(found), None),
            Err(error) => (None, Some(error)),
        };
        let of_server = server.as_ref().map(|(_, described)| described.repo.clone()).filter(|repo| !repo.is_empty());
        let known: Option<String> = arguments.repo.clone().or(of_server);
        let Some(repo) = known.or_else(|| self.repo(None)) else {
            return Err(missing.map_or_else(|| no_repository(name), CommandError::from));
        };
        let directory = match (self.open(&repo, name).await, &missing) {
            (Ok(directory), _) => directory,
            (Err(error), None) => {
                self.last_seen(&repo, name, &error).await.ok_or_else(|| without(error, server.as_ref()))?
            }
            // What the server says comes first: without it, the repository was only a guess.
            (Err(error), Some(_)) => return Err(missing.map_or_else(|| error.into(), CommandError::from)),
        };
        let is_out_of_reach = match missing {
            None | Some(FleetError::NotFound(_)) => false,
            Some(error) if error.is_transient() => {
                output::note(&format!("note: {error}; this is what the repository says"));
                true
            }
            Some(error) => return Err(error.into()),
        };
        Ok(FoundRun { server, repo, directory, is_out_of_reach })
    }

    /// The run directory as this machine saw it last, of a run whose repository cannot be reached.
    async fn last_seen(&self, repo: &str, name: &str, error: &WorkError) -> Option<RunDirectory> {
        let (home, repo, name) = (self.home.clone(), repo.to_owned(), name.to_owned());
        let found = tokio::task::spawn_blocking(move || RunDirectory::last_seen(&home, &repo, &name)).await;
        let found = found.ok()?.ok()??;
        output::note(&format!("note: {error}; this is what this machine saw last"));
        Some(found)
    }

    /// Fetches the run directory, on a thread that may block.
    pub(crate) async fn open(&self, repo: &str, name: &str) -> Result<RunDirectory, WorkError> {
        let (home, repo, name) = (self.home.clone(), repo.to_owned(), name.to_owned());
        let opened = tokio::task::spawn_blocking(move || RunDirectory::open(&home, &repo, &name)).await;
        opened.unwrap_or_else(|error| Err(std::io::Error::other(error.to_string()).into()))
    }
}

/// A run that a name means.
pub(crate) struct FoundRun {
    /// `None` if the server is out of reach or has forgotten the run.
    pub(crate) server: Option<(Fleet, Described)>,
    pub(crate) repo: String,
    pub(crate) directory: RunDirectory,
    /// The server did not answer, so only the repository says how the run is.
    is_out_of_reach: bool,
}

impl FoundRun {
    /// Whether the server still has work for it.
    pub(crate) fn is_live(&self) -> bool {
        match &self.server {
            Some((_, described)) => described.server_status == WorkflowExecutionStatus::Running,
            None => self.is_out_of_reach && self.directory.state.run.status == RunStatus::Running,
        }
    }
}

/// The error of a repository that cannot be reached, with what keeps the run from going on.
fn without(error: WorkError, server: Option<&(Fleet, Described)>) -> CommandError {
    let error = CommandError::from(error);
    let pending = server.iter().flat_map(|(_, described)| &described.pending);
    let failures: Vec<String> =
        pending.filter_map(|it| Some(format!("{} failed: {}", it.kind, it.failure.as_ref()?))).collect();
    let message = [&[error.message][..], &failures].concat().join("; ");
    CommandError::new(error.code, message, error.hint)
}

fn no_repository(name: &str) -> CommandError {
    let hint = "run the command in a clone, or add --repo URL";
    CommandError::new(code::NOT_FOUND, format!("the repository of run {name} is not known"), hint)
}

/// The address of the remote `origin`.
pub(crate) fn origin(project: &Path) -> Option<String> {
    let output = std::process::Command::new("git")
        .args(["remote", "get-url", "origin"])
        .current_dir(project)
        .stderr(std::process::Stdio::null())
        .output()
        .ok()?;
    let url = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !url.is_empty()).then_some(url)
}

/// The exit code of a run that is over, as of a run on this machine.
pub(crate) fn exit_code(plan: &Plan, run: &Run) -> u8 {
    match run.status {
        RunStatus::Completed if run.is_limited() => code::LIMIT,
        RunStatus::Completed => 0,
        RunStatus::Killed => code::INTERRUPTED,
        RunStatus::Failed
            if run.end_reason() == Some(RunReason::NoProgress)
                && steadfast_engine::goal_link::is_verified_goal(plan) =>
        {
            code::VERIFICATION
        }
        RunStatus::Failed | RunStatus::UnknownTermination | RunStatus::Running => code::USAGE,
    }
}
