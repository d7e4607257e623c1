//! Starting an attempt. The dispatcher's thread renders the prompt; the attempt's own thread creates the worktree, which
//! may take git minutes, and starts the supervisor, so that requests to stop and limits are seen meanwhile. The attempt
//! is saved before: an engine that finds it not started abandons it, and a supervisor that comes late starts nothing.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use steadfast_model::clock;
use steadfast_model::run::{AttemptId, FailureKind, Outcome, StagePlan, machine, template};
use steadfast_system::{env_vars, paths};

use super::context::ContextFile;
use super::merging::Placeholders;
use super::threads::AttemptThread;
use super::{Dispatcher, cannot_start, without_agent};
use crate::agent::{self, AgentCall};
use crate::attempt;
use crate::environment::StageEnvironment;
use crate::process::Cancel;
use crate::worktree::{self, Worktree, WorktreeError};
use crate::{crash, outage};

/// Where an iteration works.
pub(super) struct Workplace {
    project: PathBuf,
    pub(super) worktree: Option<Worktree>,
    /// Two git processes at the same time fail on each other's locks.
    git: Arc<Mutex<()>>,
}

impl Workplace {
    /// The directory to work in, created if it does not exist.
    pub(super) fn enter(&self, cancel: &Cancel) -> Result<PathBuf, WorktreeError> {
        let Some(worktree) = &self.worktree else { return Ok(self.project.clone()) };
        let _one_at_a_time = self.git.lock();
        worktree.enter(cancel)
    }

    pub(super) fn project(&self) -> &Path {
        &self.project
    }

    /// The directory that was worked in, whether or not it still exists.
    pub(super) fn inside(&self) -> Result<PathBuf, WorktreeError> {
        self.worktree.as_ref().map_or_else(|| Ok(self.project.clone()), Worktree::inside)
    }

    /// Commits what the agent left uncommitted in a worktree. A worktree of its own is removed then, unless work would be
    /// lost with it. Returns notes for the user.
    pub(super) fn keep(&self, message: &str, is_own: bool) -> Result<Vec<String>, (PathBuf, WorktreeError)> {
        let Some(worktree) = &self.worktree else { return Ok(Vec::new()) };
        let _one_at_a_time = self.git.lock();
        let kept = if is_own { worktree.leave(message) } else { worktree.commit(message) };
        kept.map_err(|error| (worktree.path().to_owned(), error))
    }
}

/// What an attempt is started with once its workplace exists.
pub(super) struct Launch {
    prompt: String,
    context: Option<ContextFile>,
    /// What stands in the prompt for the conflicts of a merge.
    placeholders: Option<Placeholders>,
    environment: StageEnvironment,
    /// When the run's time is over.
    deadline: Option<Instant>,
    ordinal: u32,
}

impl Dispatcher<'_, '_> {
    pub(super) fn workplace(&self, stage: &StagePlan, id: AttemptId) -> Workplace {
        let shared = self.shared_workplace(stage);
        if !stage.parallel {
            return shared;
        }
        let own = self.worktree(&worktree::part_of(stage, id));
        // The work of earlier stages is in the worktree of the lane or run, not in the project.
        let own = match shared.worktree.clone() {
            Some(from) => own.starting_from(from),
            None => own,
        };
        Workplace { worktree: Some(own), ..shared }
    }

    /// Where a stage works, or where its parallel iterations start from.
    pub(super) fn shared_workplace(&self, stage: &StagePlan) -> Workplace {
        let of_run = self.in_worktree.then(|| self.worktree(worktree::OF_RUN));
        let of_lane = stage.lane.as_ref().map(|lane| self.worktree(&worktree::part_of_lane(lane)));
        let worktree = match (of_lane, of_run) {
            (Some(lane), Some(run)) => Some(lane.starting_from(run)),
            (lane, run) => lane.or(run),
        };
        Workplace { project: self.project.clone(), worktree, git: self.git.clone() }
    }

    fn worktree(&self, part: &str) -> Worktree {
        Worktree::new(&self.engine.home, &self.project, &self.run_id, &self.plan.name, part)
    }

    /// The environment of a stage's agents and checks.
    pub(super) fn environment(stage: &StagePlan, iteration: u32) -> Result<StageEnvironment, String> {
        StageEnvironment::of(stage, iteration, env_vars::all()).map_err(|error| error.to_string())
    }

    pub(super) fn try_start(&mut self, id: AttemptId) -> Result<(), String> {
        let plan = self.plan.clone();
        let stage = plan.stage(id.stage).ok_or("the plan has no such stage")?;
        let attempt = self.attempt(id);
        // One that has started may have written its output.
        if attempt.supervisor().map_err(|error| error.to_string())?.is_none() {
            self.observers.starting(&plan, &self.run, id)?;
        }
        let environment = Self::environment(stage, id.iteration)?;
        let template = self.template(stage, id);
        let mut variables = self.variables(stage, id, &template, &attempt);
        let placeholders = stage.merge.is_some().then(|| Placeholders::new(&mut variables));
        let rendered = template::render(&template, &variables);
        if !rendered.unknown.is_empty() {
            self.observers.note(&format!("stage {}: unknown variables: {}", stage.name, rendered.unknown.join(", ")));
        }
        // Before counting: attempts that start at the same time are counted by their directories.
        let create = || paths::create_private_dir(attempt.directory());
        outage::wait_for_room(|| self.pending.any(), |message| self.observers.note(message), create)
            .map_err(|error| error.to_string())?;
        let left = machine::attempt_time_left(&plan, &self.run, id.stage, clock::now())
            .and_then(|left| u64::try_from(left).ok());
        let launch = Launch {
            prompt: self.with_notes(rendered.text, id)?,
            context: self.context_file(stage, id, &attempt, &variables),
            placeholders,
            environment,
            deadline: left.and_then(|left| Instant::now().checked_add(Duration::from_millis(left))),
            ordinal: crash::ordinal(attempt.directory()),
        };
        self.wait_for(id, Some(launch));
        Ok(())
    }
}

impl AttemptThread {
    /// Starts the supervisor of the attempt; otherwise returns the outcome.
    pub(super) fn start(&self, launch: Launch) -> Result<Child, Box<Outcome>> {
        let failed = |error: std::io::Error| Box::new(cannot_start(format!("cannot start the attempt: {error}")));
        let directory = match self.workplace.enter(&self.stopping) {
            Ok(directory) if !self.stopping.is_cancelled() => directory,
            Ok(_) | Err(WorktreeError::Ending) => {
                return Err(Box::new(stopped()));
            }
            Err(error) => return Err(Box::new(cannot_start(error.to_string()))),
        };
        self.save_tree_before(&directory);
        let prompt = self.merge(&directory, &launch.prompt, launch.placeholders.as_ref())?;
        if self.stopping.is_cancelled() {
            return Err(Box::new(stopped()));
        }
        let promises: Vec<String> = self.stage.completion.promises().map(str::to_owned).collect();
        let call = AgentCall {
            agent: self.stage.agent_of(self.id.iteration),
            run: &self.run,
            stage: &self.stage.name,
            iteration: self.id.iteration,
            prompt: &prompt,
            asks_for_result: true,
            says_result: agent::says_result(&self.stage.prompt),
            wants_vote: self.stage.completion.needs_vote(),
            promises: &promises,
            directory: &directory,
            attempt: &self.attempt,
            config: &self.engine.config.agents,
        };
        let mut invoked = agent::invocation(&call).map_err(|error| Box::new(cannot_start(error.to_string())))?;
        let context = launch.context.map(|context| context.text_for(self.workplace.project(), &directory));
        invoked.files.extend(context.map(|text| (attempt::CONTEXT, text)));
        let left = launch.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let limit = left.unwrap_or(Duration::MAX).min(limit_of(&self.stage));
        let output_bytes = self.engine.config.runs.output_bytes();
        let prepare = || invoked.prepare(&call, limit, self.engine.grace, output_bytes, launch.ordinal);
        self.wait_for_room(prepare).map_err(failed)?;
        crash::point(crash::Point::Prepared);
        let start = || self.attempt.start_in(&self.engine.program, &launch.environment);
        let supervisor = self.wait_for_room(start).map_err(failed)?;
        crash::point(crash::Point::Started);
        Ok(supervisor)
    }
}

fn stopped() -> Outcome {
    without_agent(FailureKind::Stopped, "stopped before it started".to_owned())
}

/// The time limit of an attempt; 0 means none.
pub(super) fn limit_of(stage: &StagePlan) -> Duration {
    match u64::try_from(stage.timeout_ms) {
        Ok(0) | Err(_) => Duration::MAX,
        Ok(limit) => Duration::from_millis(limit),
    }
}
