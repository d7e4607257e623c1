//! Starting an attempt. What the prompt is made of is collected where the run's state is; the rest (making the worktree,
//! which may take git minutes, and starting the keeper) happens on the attempt's own thread, so that requests to stop
//! and limits are seen meanwhile. The attempt is in the store long before: whoever finds it never begun gives it up, and
//! a keeper that comes late starts nothing.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use steadfast_model::clock;
use steadfast_model::run::machine;
use steadfast_model::run::{AttemptId, FailureKind, Outcome, StagePlan, template};
use steadfast_system::config::AgentsConfig;
use steadfast_system::paths;

use super::workers::Follower;
use super::{Dispatcher, cannot_start, without_agent};
use crate::agent::{self, Call};
use crate::process::Cancel;
use crate::shim::Spec;
use crate::worktree::{Worktree, WorktreeError};
use crate::{crash, durable};

/// Where the run works, in its directory.
const PLACE: &str = "place";

/// Says before the first start that all iterations of the run work in one worktree. Nobody changes that half-way.
pub(crate) fn choose_worktree(run: &Path) -> std::io::Result<()> {
    durable::replace(&run.join(PLACE), b"worktree\n")
}

pub(super) fn in_worktree(run: &Path) -> std::io::Result<bool> {
    match fs_err::read_to_string(run.join(PLACE)) {
        Ok(text) => Ok(text.trim() == "worktree"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Where an iteration works.
pub(super) struct Place {
    project: PathBuf,
    worktree: Option<Worktree>,
    /// Git does not like to be called twice at the same time in one repository.
    git: Arc<Mutex<()>>,
}

impl Place {
    /// The directory to work in, made if it is not there.
    pub(super) fn enter(&self, cancel: &Cancel) -> Result<PathBuf, WorktreeError> {
        let Some(worktree) = &self.worktree else { return Ok(self.project.clone()) };
        let _one_at_a_time = self.git.lock();
        worktree.enter(cancel)
    }

    /// The directory that was worked in, whether or not it is still there.
    pub(super) fn inside(&self) -> Result<PathBuf, WorktreeError> {
        self.worktree.as_ref().map_or_else(|| Ok(self.project.clone()), Worktree::inside)
    }

    /// Commits what the agent left uncommitted, where that is ours to do; a worktree of its own goes then, unless anything
    /// would be lost with it. Returns what people should know.
    pub(super) fn keep(&self, message: &str, is_own: bool) -> Result<Vec<String>, (PathBuf, WorktreeError)> {
        let Some(worktree) = &self.worktree else { return Ok(Vec::new()) };
        let _one_at_a_time = self.git.lock();
        let kept = if is_own { worktree.leave(message) } else { worktree.commit(message) };
        kept.map_err(|error| (worktree.path().to_owned(), error))
    }
}

/// An attempt that is to be started once its place is there.
pub(super) struct Launch {
    prompt: String,
    config: AgentsConfig,
    program: PathBuf,
    /// What is left of the run's time, and since when it runs out.
    left: Option<Duration>,
    asked: Instant,
    ordinal: u32,
}

impl Dispatcher<'_> {
    pub(super) fn place(&self, stage: &StagePlan, id: AttemptId) -> Place {
        let of_part = |part: &str| Worktree::new(&self.engine.home, &self.project, &self.run_id, &self.plan.name, part);
        let of_iteration = || of_part(&format!("{}-{}", id.stage, id.iteration));
        let worktree = match (stage.parallel, self.in_worktree) {
            // What earlier stages did is there, and not in the project.
            (true, true) => Some(of_iteration().starting_from(of_part("run"))),
            (true, false) => Some(of_iteration()),
            (false, true) => Some(of_part("run")),
            (false, false) => None,
        };
        Place { project: self.project.clone(), worktree, git: self.git.clone() }
    }

    pub(super) fn try_start(&mut self, id: AttemptId) -> Result<(), String> {
        let plan = self.plan.clone();
        let stage = plan.stage(id.stage).ok_or("the plan has no such stage")?;
        let attempt = self.attempt(id);
        // One that began already may have left its output.
        if attempt.keeper().map_err(|error| error.to_string())?.is_none() {
            self.observer.starting(&plan, &self.run, id)?;
        }
        let variables = self.variables(stage, id, &attempt);
        let rendered = template::render(&stage.prompt, &variables);
        if !rendered.unknown.is_empty() {
            self.note(&format!("stage {}: unknown variables: {}", stage.name, rendered.unknown.join(", ")));
        }
        // Attempts that begin at the same time are told apart by their directories.
        paths::create_private_dir(attempt.directory()).map_err(|error| error.to_string())?;
        let left = machine::time_left(&plan, &self.run, clock::now()).and_then(|left| u64::try_from(left).ok());
        let launch = Launch {
            prompt: rendered.text,
            config: self.engine.config.agents.clone(),
            program: self.engine.program.clone(),
            left: left.map(Duration::from_millis),
            asked: Instant::now(),
            ordinal: crash::ordinal(attempt.directory()),
        };
        self.follow(id, Some(launch));
        Ok(())
    }
}

impl Follower {
    /// Starts the keeper of the attempt; otherwise how it ended.
    pub(super) fn start(&self, launch: &Launch) -> Result<Child, Outcome> {
        let failed = |message: String| cannot_start(format!("the attempt cannot be started: {message}"));
        let stopped = || without_agent(FailureKind::Stopped, "stopped before it began".to_owned());
        let directory = match self.place.enter(&self.stopping) {
            Ok(directory) => directory,
            Err(WorktreeError::Ending) => return Err(stopped()),
            Err(error) => return Err(cannot_start(error.to_string())),
        };
        if self.stopping.is_cancelled() {
            return Err(stopped());
        }
        self.keep_tree_before(&directory);
        let promises: Vec<String> = self.stage.completion.promises().map(str::to_owned).collect();
        let invoked = agent::invocation(&Call {
            agent: &self.stage.agent,
            run: &self.run,
            stage: &self.stage.name,
            iteration: self.id.iteration,
            prompt: &launch.prompt,
            asks_for_result: true,
            wants_vote: self.stage.completion.needs_vote() && self.stage.judge.is_none(),
            promises: &promises,
            directory: &directory,
            attempt: &self.attempt,
            config: &launch.config,
        })
        .map_err(|error| cannot_start(error.to_string()))?;
        let left = launch.left.map_or(Duration::MAX, |left| left.saturating_sub(launch.asked.elapsed()));
        let spec = Spec::of(&invoked, &directory, left.min(limit_of(&self.stage)), self.grace, launch.ordinal);
        let prepared = self.attempt.prepare(&spec, &invoked.prompt, &invoked.files);
        prepared.map_err(|error| failed(error.to_string()))?;
        crash::point(crash::Point::Prepared);
        let keeper = self.attempt.start(&launch.program).map_err(|error| failed(error.to_string()))?;
        crash::point(crash::Point::Started);
        Ok(keeper)
    }
}

/// The time limit of an attempt; 0 stands for none.
pub(super) fn limit_of(stage: &StagePlan) -> Duration {
    match u64::try_from(stage.timeout_ms) {
        Ok(0) | Err(_) => Duration::MAX,
        Ok(limit) => Duration::from_millis(limit),
    }
}
