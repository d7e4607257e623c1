//! What a worker does for a run: attempts, checks and conditions in worktrees of a mirror, and the upkeep of the run's
//! branches. Every call blocks; none of them knows of Temporal.

mod attempting;
mod earlier;
mod records;
mod starting;
mod upkeep;

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use steadfast_engine::process::Cancel;
use steadfast_model::clock;
use steadfast_model::run::Plan;
use steadfast_system::config::Config;

use crate::checkout;
use crate::git::Refs;
use crate::git::mirror::{Mirror, pruning};
use crate::wire::{
    AttemptInput, AttemptResult, CheckInput, CheckReport, ConditionInput, ConditionReport, ForkInput, RecordInput,
    RunRef, WorkerProgress,
};

pub use crate::git::WorkError;
pub use crate::git::directory::{RunDirectory, RunState};

/// Days without use until a mirror is deleted, unless the configuration says otherwise.
const MIRRORS_DAYS: u32 = 30;

/// The mirror of a run's repository, and the run's refs there. What came from outside does not become a path or an
/// option, and the owner of the worker must have allowed the repository.
fn repository(cx: &WorkerContext, run: &RunRef) -> Result<(Mirror, Refs), WorkError> {
    let is_plain = |text: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        !text.is_empty() && text.len() <= 200 && text.bytes().all(is_part) && !text.starts_with(['-', '.'])
    };
    let wrong = |what: &str| WorkError::Damaged(what.to_owned(), "it is not one of a run".to_owned());
    if !is_plain(&run.run_id) {
        return Err(wrong("the id"));
    }
    if !run.repo.branch.strip_prefix("steadfast/").is_some_and(|name| is_plain(name) && !name.contains("..")) {
        return Err(wrong("the branch"));
    }
    let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_));
    if !Path::new(&run.repo.subdirectory).components().all(is_inside) {
        return Err(wrong("the directory"));
    }
    if !cx.allowed.repos.is_empty() && !cx.allowed.repos.contains(&run.repo.url) {
        return Err(WorkError::NotAllowed(format!("work on {}", run.repo.url)));
    }
    Ok((Mirror::open(&cx.home, &run.repo.url)?, Refs::of(run)))
}

/// What the owner of a worker lets it run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Repositories by their address; empty for all.
    pub repos: Vec<String>,
    /// `claude`, `codex`, `command`; empty for all.
    pub agents: Vec<String>,
}

/// The installation that a worker works for.
#[derive(Debug, Clone)]
pub struct WorkerContext {
    /// `$STEADFAST_HOME`.
    pub home: PathBuf,
    /// This program, which is started as the supervisor of attempts.
    pub program: PathBuf,
    pub config: Config,
    /// Between TERM and KILL.
    pub grace: Duration,
    /// How the worker is called in heartbeats.
    pub name: String,
    pub allowed: Allowed,
}

/// Removes what a killed worker of this home left, worktrees and agents that outlived it, and mirrors that were not used
/// for `[fleet] mirrors_days`. Called when a worker starts and every day; what another worker of the same home works on
/// is kept.
pub fn tidy(cx: &WorkerContext) -> Result<(), WorkError> {
    checkout::tidy(&cx.home, cx.grace)?;
    let days = cx.config.fleet.mirrors_days.unwrap_or(MIRRORS_DAYS);
    let deleted = pruning::prune(&cx.home, days, clock::now())?;
    if deleted > 0 {
        tracing::info!("deleted {deleted} mirrors that were not used for {days} days");
    }
    Ok(())
}

/// Carries out one attempt: renders the prompt, runs the agent, commits and pushes its work. What the agent did wrong is
/// in the outcome; an error means that nothing came of the attempt for reasons outside of it. Calls `beat` at least every
/// second.
pub fn attempt(
    cx: &WorkerContext,
    input: &AttemptInput,
    cancel: &Cancel,
    beat: &mut dyn FnMut(&WorkerProgress),
) -> Result<AttemptResult, WorkError> {
    attempting::attempt(cx, input, cancel, beat)
}

/// Makes the checks of an attempt on its commit.
pub fn check(cx: &WorkerContext, input: &CheckInput, cancel: &Cancel) -> Result<CheckReport, WorkError> {
    attempting::check(cx, input, cancel)
}

/// Tests the condition of a stage on the commit that it would start from.
pub fn condition(cx: &WorkerContext, input: &ConditionInput, cancel: &Cancel) -> Result<ConditionReport, WorkError> {
    attempting::condition(cx, input, cancel)
}

/// The plan of a run, from the mirror; cached.
pub fn plan_of(cx: &WorkerContext, run: &RunRef) -> Result<Arc<Plan>, WorkError> {
    upkeep::plan_of(cx, run)
}

/// Adds records to the run directory and moves the branches of the run to its heads. Repeating it changes nothing.
pub fn record(cx: &WorkerContext, input: &RecordInput) -> Result<(), WorkError> {
    upkeep::record(cx, input)
}

/// Moves the run's branch to its head.
pub fn publish(cx: &WorkerContext, run: &RunRef, head: &str) -> Result<(), WorkError> {
    upkeep::publish(cx, run, head)
}

/// Deletes the attempt branches of a run.
pub fn clean(cx: &WorkerContext, run: &RunRef) -> Result<(), WorkError> {
    upkeep::clean(cx, run)
}

/// A run to start.
#[derive(Debug, Clone, Copy)]
pub struct NewFleetRun<'a> {
    /// `$STEADFAST_HOME`.
    pub home: &'a Path,
    pub project: &'a Path,
    /// The repository that the workers reach; `None` for the remote `origin` of the project.
    pub repo_url: Option<&'a str>,
    pub run_id: &'a str,
    pub plan: &'a Plan,
    /// The input of the first stage.
    pub inputs: Option<&'a str>,
    /// What a goal run pursues.
    pub objective: &'a str,
    /// The text of the pipeline file.
    pub definition: Option<&'a str>,
    /// Start without the uncommitted changes.
    pub allow_dirty: bool,
}

/// A run whose branches are in the repository.
#[derive(Debug, Clone)]
pub struct StartedRun {
    pub run_ref: RunRef,
    /// The new name of an earlier run that had the name.
    pub earlier: Option<String>,
}

/// Pushes the code and the run directory of a new run. An earlier run of the name that is over gets another one.
pub fn start_run(new: &NewFleetRun<'_>) -> Result<StartedRun, WorkError> {
    starting::start_run(new)
}

/// Gives a run that is over another plan, before it is resumed.
pub fn change_plan(home: &Path, directory: &RunDirectory, plan: &Plan) -> Result<RunRef, WorkError> {
    earlier::change_plan(home, directory, plan)
}

/// Begins a run that a schedule starts, from the newest commit of the scheduled run's branch.
pub fn fork(cx: &WorkerContext, input: &ForkInput) -> Result<RunRef, WorkError> {
    starting::fork(cx, input)
}
