//! What the dispatcher does on other threads: waiting for attempts and reading what came of them, looking things up,
//! stopping. Each of them reports once, by a message.

use std::path::PathBuf;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast_core::clock;
use steadfast_core::log;
use steadfast_core::run::machine;
use steadfast_core::run::{AgentPlan, AttemptId, Check, Outcome, Rule, StagePlan, template};

use super::{Dispatcher, DriveError, Flying, News, cannot_start};
use crate::agent::{self, Call, Ended};
use crate::attempt::{self, Attempt};
use crate::checks::judge;
use crate::checks::{self, Surroundings};
use crate::crash;
use crate::footprint::Tree;
use crate::process::Cancel;
use crate::shim::Spec;
use crate::worktree::Worktree;

/// How long a judge may think, if its stage does not say.
const JUDGE_LIMIT: Duration = Duration::from_mins(15);
/// How many earlier iterations a judge hears of.
const EARLIER: usize = 5;

impl Dispatcher<'_> {
    fn attempt(&self, id: AttemptId) -> Attempt {
        Attempt::at(&self.engine.home, &self.run_id, id)
    }

    /// The worktree an iteration works in, if it has one.
    fn worktree(&self, stage: &StagePlan, id: AttemptId) -> Option<Worktree> {
        let part = match (stage.parallel, self.in_worktree) {
            (true, _) => format!("{}-{}", id.stage, id.iteration),
            (false, true) => "run".to_owned(),
            (false, false) => return None,
        };
        Some(Worktree::new(&self.engine.home, &self.project, &self.run_id, &self.plan.name, &part))
    }

    /// Where an iteration works.
    fn directory(&self, stage: &StagePlan, id: AttemptId) -> Result<PathBuf, String> {
        let Some(worktree) = self.worktree(stage, id) else { return Ok(self.project.clone()) };
        let _one_at_a_time = self.git.lock();
        worktree.enter().map_err(|error| error.to_string())
    }

    pub(super) fn try_start(&mut self, id: AttemptId) -> Result<(), String> {
        let plan = self.plan.clone();
        let stage = plan.stage(id.stage).ok_or("the plan has no such stage")?;
        let attempt = self.attempt(id);
        let directory = self.directory(stage, id)?;
        // One that began already may have left its output.
        if attempt.keeper().map_err(|error| error.to_string())?.is_none() {
            self.observer.starting(&plan, &self.run, id)?;
        }
        let variables = self.variables(stage, id, &attempt);
        let rendered = template::render(&stage.prompt, &variables);
        if !rendered.unknown.is_empty() {
            self.note(&format!("stage {}: unknown variables: {}", stage.name, rendered.unknown.join(", ")));
        }
        let promises = promises_of(&stage.completion);
        let invoked = agent::invocation(&Call {
            agent: &stage.agent,
            run: &plan.name,
            stage: &stage.name,
            iteration: id.iteration,
            prompt: &rendered.text,
            asks_for_result: true,
            wants_vote: stage.completion.needs_vote() && stage.judge.is_none(),
            promises: &promises,
            directory: &directory,
            attempt: &attempt,
            config: &self.engine.config.agents,
        })
        .map_err(|error| error.to_string())?;
        let ordinal = crash::ordinal(attempt.directory());
        let left = machine::time_left(&plan, &self.run, clock::now()).and_then(|left| u64::try_from(left).ok());
        let limit = left.map_or(Duration::MAX, Duration::from_millis).min(limit_of(stage));
        let spec = Spec::of(&invoked, &directory, limit, self.engine.grace, ordinal);
        let failed = |error: std::io::Error| format!("the attempt cannot be started: {error}");
        attempt.prepare(&spec, &invoked.prompt, &invoked.files).map_err(failed)?;
        crash::point(crash::Point::Prepared);
        let keeper = attempt.start(&self.engine.program).map_err(failed)?;
        crash::point(crash::Point::Started);
        self.follow(id, Some(keeper));
        Ok(())
    }

    /// Waits for an attempt, ours or an earlier engine's, and reads what came of it.
    pub(super) fn follow(&mut self, id: AttemptId, keeper: Option<Child>) {
        let plan = self.plan.clone();
        let Some(stage) = plan.stage(id.stage) else { return };
        let attempt = self.attempt(id);
        let overdue = Cancel::default();
        let patience = attempt::patience(limit_of(stage), self.engine.grace);
        self.flying.insert(id, Flying { attempt: attempt.clone(), patience, overdue: overdue.clone() });
        let worktree = self.worktree(stage, id);
        let place = worktree.as_ref().and_then(|worktree| worktree.inside().ok());
        let follower = Follower {
            id,
            run: plan.name.clone(),
            stage: stage.clone(),
            log: attempt.directory().with_file_name("engine.log"),
            attempt,
            directory: place.unwrap_or_else(|| self.project.clone()),
            worktree,
            progress: self.observer.places(&plan, &self.run, id).progress,
            is_watched: plan.limits.idle > 0 && !stage.parallel && !stage.completion.only_counts(),
            stopping: self.stopping.clone(),
            overdue,
            grace: self.engine.grace,
            git: self.git.clone(),
        };
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            let outcome = Box::new(follower.outcome(keeper));
            // Nobody listens any more once the engine gave up.
            let _ = sender.send(News::Ended { id, outcome });
        });
    }

    pub(super) fn stop(&mut self, ids: &[AttemptId]) {
        self.stopping.cancel();
        for id in ids {
            let (attempt, grace) = (self.attempt(*id), self.engine.grace);
            let log = attempt.directory().with_file_name("engine.log");
            self.threads.push(std::thread::spawn(move || {
                if let Err(error) = attempt.stop(grace) {
                    log::line(&log, &format!("stopping {}: {error}", attempt.directory().display()));
                }
            }));
        }
    }

    pub(super) fn check(&mut self, id: AttemptId, wanted: Vec<Check>) -> Result<(), DriveError> {
        let plan = self.plan.clone();
        let Some(stage) = plan.stage(id.stage) else { return Ok(()) };
        let directory = self.directory(stage, id).unwrap_or_else(|_| self.project.clone());
        let judge = match &stage.judge {
            Some(agent) if wanted.contains(&Check::Judge) => Some(self.judge(stage, agent, id)?),
            _ => None,
        };
        let limit = Duration::from_secs(self.engine.config.goal.verify_timeout_seconds);
        let evidence = self.attempt(id).evidence();
        let here = Surroundings { directory, limit, cancel: self.cancel.clone(), judge, evidence };
        let sender = self.sender.clone();
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.push(std::thread::spawn(move || {
            let facts = wanted.iter().map(|check| checks::carry_out(check, &here)).collect();
            // Nobody listens any more once the run is over.
            let _ = sender.send(News::Checked { id, facts });
        }));
        Ok(())
    }

    fn judge(&self, stage: &StagePlan, agent: &AgentPlan, id: AttemptId) -> Result<judge::Request, DriveError> {
        let attempt = self.attempt(id);
        let mut earlier = self.store.read().last_iterations(&self.run_id, EARLIER)?;
        earlier.reverse();
        let earlier: Vec<String> = earlier
            .iter()
            .filter(|row| row.id.stage == id.stage)
            .map(|row| format!("Iteration {}: {}", row.id.iteration, row.summary.as_deref().unwrap_or("(no summary)")))
            .collect();
        Ok(judge::Request {
            agent: agent.clone(),
            config: self.engine.config.agents.clone(),
            run: self.plan.name.clone(),
            stage: stage.name.clone(),
            iteration: id.iteration,
            asked: attempt.read_prompt().unwrap_or_default(),
            answer: attempt.read_answer().unwrap_or_default(),
            earlier: earlier.join("\n"),
            judged: attempt.directory().to_owned(),
            program: self.engine.program.clone(),
            limit: limit_of(stage).min(JUDGE_LIMIT),
            grace: self.engine.grace,
        })
    }
}

/// Waits for one attempt.
struct Follower {
    id: AttemptId,
    run: String,
    stage: StagePlan,
    attempt: Attempt,
    directory: PathBuf,
    worktree: Option<Worktree>,
    progress: Option<PathBuf>,
    /// Whether iterations without progress end the stage.
    is_watched: bool,
    stopping: Cancel,
    overdue: Cancel,
    grace: Duration,
    git: Arc<Mutex<()>>,
    log: PathBuf,
}

impl Follower {
    fn outcome(&self, keeper: Option<Child>) -> Outcome {
        if let Some(mut keeper) = keeper {
            // Whatever it tells, the directory knows better.
            let _ = keeper.wait();
        }
        let exit = match self.attempt.wait(limit_of(&self.stage), self.grace) {
            Ok(exit) => exit,
            // Its agent may be alive; to start another one now would be worse than to stop here.
            Err(error) => return cannot_start(format!("what became of the attempt cannot be told: {error}")),
        };
        let tree = Tree { directory: &self.directory, progress: self.progress.as_deref() };
        let report = agent::report(&Ended {
            agent: &self.stage.agent,
            markers: &self.stage.output_parse,
            attempt: &self.attempt,
            exit: exit.as_ref(),
            stopping: self.stopping.is_cancelled(),
            overdue: self.overdue.is_cancelled(),
            tree: self.is_watched.then_some(&tree),
            now: clock::now(),
        });
        self.attempt.tidy(&agent::PRIVATE_FILES);
        if let Err(error) = self.attempt.keep_answer(&report.to_keep(&self.attempt)) {
            self.log(&format!("the answer cannot be kept: {error}"));
        }
        if let (Outcome::Succeeded(_), Some(worktree)) = (&report.outcome, &self.worktree) {
            let message = format!("{}: {} iteration {}", self.run, self.stage.name, self.id.iteration);
            let _one_at_a_time = self.git.lock();
            let left = if self.stage.parallel { worktree.leave(&message) } else { worktree.commit(&message) };
            if let Err(error) = left {
                self.log(&error.to_string());
            }
        }
        report.outcome
    }

    fn log(&self, message: &str) {
        log::line(&self.log, &format!("{}: {message}", self.attempt.directory().display()));
    }
}

/// The time limit of an attempt; 0 stands for none.
fn limit_of(stage: &StagePlan) -> Duration {
    match u64::try_from(stage.timeout_ms) {
        Ok(0) | Err(_) => Duration::MAX,
        Ok(limit) => Duration::from_millis(limit),
    }
}

/// What the agent has to promise for its stage to end.
fn promises_of(rule: &Rule) -> Vec<String> {
    match rule {
        Rule::Promise(promise) => vec![promise.clone()],
        Rule::Any(rules) | Rule::All(rules) => rules.iter().flat_map(promises_of).collect(),
        _ => Vec::new(),
    }
}
