//! `fleet worker` runs a worker until a signal; `fleet drain` sends that signal to the workers of this home, which name
//! themselves in a folder.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use steadfast_model::host::Host;
use steadfast_system::env_vars;
use steadfast_system::process::ProcessIdentity;

use super::Here;
use crate::cli::WorkerArgs;
use crate::output::{self, CommandError, CommandResult, Output, code};
use crate::worker::{self, MOST_LABELS, WorkerArguments};

/// The agent that is a command of the run.
const COMMAND: &str = "command";
const SLOTS: u32 = 2;
/// How long agents may go on after a drain.
const DRAIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_mins(1);

pub(super) fn run(here: &Here, arguments: &WorkerArgs) -> CommandResult {
    worker::log_to_stderr();
    let wanted = wanted(here, arguments)?;
    let name = Registered::new(here)?;
    let done = worker::block_on(worker::run(wanted, &mut |line| output::note(line)))?;
    drop(name);
    done?;
    Ok(Output::default())
}

fn wanted(here: &Here, arguments: &WorkerArgs) -> Result<WorkerArguments, CommandError> {
    let config = here.fleet();
    let or = |given: &Vec<String>, configured: &Vec<String>| if given.is_empty() { configured } else { given }.clone();
    let slots = arguments.slots.or(config.slots).unwrap_or(SLOTS);
    if slots == 0 && !arguments.drive {
        let hint = "add --drive, or give it at least one slot";
        return Err(CommandError::new(code::USAGE, "a worker without slots and without --drive does nothing", hint));
    }
    let labels = or(&arguments.label, &config.labels);
    if labels.len() > MOST_LABELS {
        let message = format!("{} labels; the maximum is {MOST_LABELS}", labels.len());
        return Err(CommandError::new(code::USAGE, message, "start a second worker for the others"));
    }
    let repos = if arguments.any_repo { Vec::new() } else { or(&arguments.repo, &config.repos) };
    if repos.is_empty() && !arguments.any_repo && slots > 0 {
        let message = "no repository is allowed on this worker";
        let hint = "name them with --repo URL or `repos` under [fleet] in config.toml, or allow all with --any-repo";
        return Err(CommandError::new(code::USAGE, message, hint));
    }
    Ok(WorkerArguments {
        slots: usize::try_from(slots).unwrap_or(usize::MAX),
        agents: if slots == 0 { Vec::new() } else { agents(here, or(&arguments.agents, &config.agents))? },
        labels,
        drive: arguments.drive,
        repos,
        wait: arguments.wait,
        drain: DRAIN,
        grace: Duration::from_millis(here.config.runs.grace_ms),
        home: here.home.clone(),
        config: here.config.clone(),
    })
}

/// The agents that the owner named, or the clients that are installed. Commands of runs only if they are named.
fn agents(here: &Here, named: Vec<String>) -> Result<Vec<String>, CommandError> {
    if let Some(unknown) = named.iter().find(|agent| !is_known(agent)) {
        let known: Vec<&str> = Host::ALL.iter().map(|host| host.name()).chain([COMMAND]).collect();
        let message = format!("unknown agent `{unknown}`");
        return Err(CommandError::new(code::USAGE, message, format!("--agents takes {}", known.join(", "))));
    }
    if !named.is_empty() {
        return Ok(named);
    }
    let is_installed = |host: &&Host| is_on_path(here.config.agents.program(**host));
    let found: Vec<String> = Host::ALL.iter().filter(is_installed).map(|host| host.name().to_owned()).collect();
    if found.is_empty() {
        let hint = "install claude or codex, or allow commands of runs with --agents command";
        return Err(CommandError::new(code::ENVIRONMENT, "no agent is installed on this machine", hint));
    }
    Ok(found)
}

fn is_known(agent: &str) -> bool {
    agent == COMMAND || Host::ALL.iter().any(|host| host.name() == agent)
}

fn is_on_path(program: &str) -> bool {
    let is_file = |path: PathBuf| {
        use std::os::unix::fs::PermissionsExt as _;
        fs_err::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_file(program.into());
    }
    let search = env_vars::path(env_vars::PATH).unwrap_or_default();
    std::env::split_paths(&search).any(|folder| is_file(folder.join(program)))
}

/// The file by which `drain` finds a worker. Removed at its end.
struct Registered(PathBuf);

impl Registered {
    fn new(here: &Here) -> Result<Self, CommandError> {
        let own = ProcessIdentity::own();
        let file = folder(here)?.join(format!("{}.json", own.pid));
        fs_err::write(&file, serde_json::to_vec(&own).map_err(std::io::Error::from)?)?;
        Ok(Self(file))
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // A file that stays names a process that is gone, which `drain` sees.
        let _ = fs_err::remove_file(&self.0);
    }
}

fn folder(here: &Here) -> Result<PathBuf, CommandError> {
    let folder = here.folder()?.join("workers");
    steadfast_system::paths::create_private_dir(&folder)?;
    Ok(folder)
}

/// The workers of this home that live.
fn live(here: &Here) -> Result<Vec<ProcessIdentity>, CommandError> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(folder(here)?)? {
        let path = entry?.path();
        let id: Option<ProcessIdentity> = fs_err::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        match id.filter(ProcessIdentity::is_alive) {
            Some(id) => found.push(id),
            // Left by a worker that was killed.
            None => fs_err::remove_file(&path).or_else(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })?,
        }
    }
    Ok(found)
}

pub(super) fn drain(here: &Here, wait: bool) -> CommandResult {
    let workers = live(here)?;
    if workers.is_empty() {
        let hint = "`steadfast fleet doctor` lists the workers of all machines; drain one on its own machine";
        return Err(CommandError::new(code::NOT_FOUND, "no worker of this home is running", hint));
    }
    for worker in &workers {
        if let Some(pid) = Pid::from_raw(worker.pid) {
            // One that has just ended is what was asked for.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
    let pids: Vec<i32> = workers.iter().map(|worker| worker.pid).collect();
    let deadline = Instant::now() + PATIENCE;
    while wait && workers.iter().any(ProcessIdentity::is_alive) {
        if Instant::now() > deadline {
            let hint = "their agents are still running; look again, or `kill` the processes";
            return Err(CommandError::new(code::ENVIRONMENT, format!("workers still run: {pids:?}"), hint));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let text = if wait { "drained" } else { "draining" };
    let count = steadfast_model::text::count(pids.len(), "worker");
    Output::new(format!("{text}: {count}"), json!({"workers": pids, "done": wait}))
}
