//! What the dispatcher does on other threads: starting attempts, waiting for them and reading what came of them, looking
//! things up, stopping. Each of them reports its end once, by a message.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc;
use std::time::Duration;

use steadfast_model::clock;
use steadfast_system::log;
use steadfast_model::run::{ActiveAttempt, AgentPlan, AttemptId, Check, Outcome, Phase, StagePlan};

use super::starting::{Launch, Place, limit_of};
use super::{Dispatcher, DriveError, Flying, News, cannot_start};
use crate::agent::{self, Ended};
use crate::attempt::{self, Attempt};
use crate::checks::judge;
use crate::checks::{self, Surroundings};
use crate::durable;
use crate::footprint::{self, Tree};
use crate::process::{Cancel, Watch};
use crate::processes::Family;

/// How long a judge may think, if its stage does not say.
const JUDGE_LIMIT: Duration = Duration::from_mins(15);
/// How many earlier iterations a judge hears of.
const EARLIER: usize = 5;

impl Dispatcher<'_> {
    pub(super) fn attempt(&self, id: AttemptId) -> Attempt {
        Attempt::at(&self.engine.home, &self.run_id, id)
    }

    /// Starts an attempt, or waits for one of an earlier engine, and reads what came of it.
    pub(super) fn follow(&mut self, id: AttemptId, launch: Option<Launch>) {
        let plan = self.plan.clone();
        let Some(stage) = plan.stage(id.stage) else { return };
        let attempt = self.attempt(id);
        let overdue = Cancel::default();
        self.flying.insert(id, Flying { attempt: attempt.clone(), patience: None, overdue: overdue.clone() });
        if launch.is_none() {
            self.began(id);
        }
        let follower = Follower {
            id,
            run: plan.name.clone(),
            stage: stage.clone(),
            log: attempt.directory().with_file_name("engine.log"),
            before: attempt.directory().with_file_name(format!("before-{}", id.stage)),
            attempt,
            place: self.place(stage, id),
            progress: self.observer.places(&plan, &self.run, id).progress,
            is_watched: plan.limits.idle > 0 && !stage.parallel && !stage.completion.only_counts(),
            stopping: self.stopping.clone(),
            overdue,
            grace: self.engine.grace,
            sender: self.sender.clone(),
        };
        std::thread::spawn(move || {
            let outcome = match launch.map(|launch| follower.start(&launch)) {
                Some(Err(outcome)) => outcome,
                Some(Ok(keeper)) => {
                    follower.tell(News::Began(id));
                    follower.outcome(Some(keeper))
                }
                None => follower.outcome(None),
            };
            follower.tell(News::Ended { id, outcome: Box::new(outcome) });
        });
    }

    /// From now on the keeper of an attempt is believed in, for as long as it may take.
    pub(super) fn began(&mut self, id: AttemptId) {
        if let (Some(flying), Some(stage)) = (self.flying.get_mut(&id), self.plan.stage(id.stage)) {
            flying.patience = attempt::patience(limit_of(stage), self.engine.grace);
        }
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

    /// Ends the tests of an engine that was killed: nobody wants to know any more.
    pub(super) fn stop_tests(&self) -> std::io::Result<()> {
        let is_tested = |attempt: &&ActiveAttempt| matches!(attempt.phase, Phase::Checking(_) | Phase::CheckingBefore);
        for attempt in self.run.active.iter().filter(is_tested) {
            checks::stop(&self.attempt(attempt.id), self.engine.grace)?;
        }
        Ok(())
    }

    pub(super) fn check(&mut self, id: AttemptId, wanted: Vec<Check>) -> Result<(), DriveError> {
        let plan = self.plan.clone();
        let Some(stage) = plan.stage(id.stage) else { return Ok(()) };
        let place = self.place(stage, id);
        let judge = match &stage.judge {
            Some(agent) if wanted.contains(&Check::Judge) => Some(self.judge(stage, agent, id)?),
            _ => None,
        };
        let limit = Duration::from_secs(self.engine.config.goal.verify_timeout_seconds);
        let (attempt, grace) = (self.attempt(id), self.engine.grace);
        let (cancel, sender) = (self.cancel.clone(), self.sender.clone());
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.push(std::thread::spawn(move || {
            // An engine that was killed may have left the same test running.
            checks::end_commands(&attempt, grace);
            let facts = match place.enter(&cancel) {
                Ok(directory) => {
                    let watch = Watch { cancel, mark: Some(checks::mark_of(&attempt)) };
                    let here = Surroundings { directory, limit, watch, judge, evidence: attempt.evidence() };
                    wanted.iter().map(|check| checks::carry_out(check, &here)).collect()
                }
                // What holds in another directory says nothing about this one.
                Err(error) => {
                    let why = format!("its place cannot be entered: {error}");
                    let _ = sender.send(News::Note(format!("the rule cannot be tested: {error} ({})", error.hint())));
                    wanted.iter().map(|check| checks::not_known(check, &why)).collect()
                }
            };
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

/// Starts one attempt, if it is not under way, and waits for it.
pub(super) struct Follower {
    pub(super) id: AttemptId,
    pub(super) run: String,
    pub(super) stage: StagePlan,
    pub(super) attempt: Attempt,
    pub(super) place: Place,
    progress: Option<PathBuf>,
    /// Whether iterations without progress end the stage.
    is_watched: bool,
    pub(super) stopping: Cancel,
    overdue: Cancel,
    pub(super) grace: Duration,
    sender: mpsc::Sender<News>,
    log: PathBuf,
    /// What the tree looked like before the stage's first attempt.
    before: PathBuf,
}

impl Follower {
    fn outcome(&self, keeper: Option<Child>) -> Outcome {
        if let Some(mut keeper) = keeper {
            // Whatever it tells, the directory knows better.
            let _ = keeper.wait();
        }
        let tell = |family: &Family| self.tell_of_orphan(family);
        let exit = match self.attempt.wait_and_tell(limit_of(&self.stage), self.grace, tell) {
            Ok(exit) => exit,
            // Its agent may be alive; to start another one now would be worse than to stop here.
            Err(error) => return cannot_start(format!("what became of the attempt cannot be told: {error}")),
        };
        let directory = if self.is_watched { self.watched() } else { None };
        let before = self.tree_before();
        let (progress, before) = (self.progress.as_deref(), before.as_deref());
        let tree = directory.as_deref().map(|directory| Tree { directory, progress, before });
        let report = agent::report(&Ended {
            agent: &self.stage.agent,
            markers: &self.stage.output_parse,
            attempt: &self.attempt,
            exit: exit.as_ref(),
            stopping: self.stopping.is_cancelled(),
            overdue: self.overdue.is_cancelled(),
            tree: tree.as_ref(),
            now: clock::now(),
        });
        self.attempt.tidy(&agent::PRIVATE_FILES);
        if let Err(error) = self.attempt.keep_answer(&report.to_keep(&self.attempt)) {
            self.log(&format!("the answer cannot be kept: {error}"));
        }
        if let Outcome::Succeeded(_) = &report.outcome {
            let message = format!("{}: {} iteration {}", self.run, self.stage.name, self.id.iteration);
            match self.place.keep(&message, self.stage.parallel) {
                Ok(told) => {
                    for message in told {
                        self.tell(News::Note(format!("{} {}: {message}", self.stage.name, self.id.iteration)));
                    }
                }
                // A shared place fails for every iteration. It is told once, so the words name none of them.
                Err((place, error)) => {
                    let (place, hint) = (place.display(), error.hint());
                    self.tell(News::Note(format!("the work in {place} is not committed: {error} ({hint})")));
                }
            }
        }
        report.outcome
    }

    /// Writes down what the tree looks like before the first attempt of a stage. Later attempts leave that as it is, and
    /// so does whoever goes on after a crash.
    pub(super) fn keep_tree_before(&self, directory: &Path) {
        if !self.is_watched || self.id.iteration != 1 || self.before.exists() {
            return;
        }
        let tree = footprint::of_tree(&Tree { directory, progress: self.progress.as_deref(), before: None });
        if let Err(error) = durable::replace(&self.before, tree.as_bytes()) {
            self.log(&format!("what the tree looks like cannot be kept: {error}"));
        }
    }

    fn tree_before(&self) -> Option<String> {
        if self.id.iteration == 1 { fs_err::read_to_string(&self.before).ok() } else { None }
    }

    /// Who waits for processes of an agent that is gone should know for what. The message is told once.
    fn tell_of_orphan(&self, family: &Family) {
        let Some(pid) = family.session.first() else { return };
        let (run, iteration) = (&self.run, self.id.iteration);
        self.tell(News::Note(format!(
            "waiting for process {pid} of iteration {iteration}, whose keeper is gone; `kill {run}` ends it"
        )));
    }

    /// The directory whose changes count as progress. Another one would say that nothing moves.
    fn watched(&self) -> Option<PathBuf> {
        match self.place.inside() {
            Ok(directory) => Some(directory),
            Err(error) => {
                self.tell(News::Note(format!("whether anything moves cannot be told: {error} ({})", error.hint())));
                None
            }
        }
    }

    fn tell(&self, news: News) {
        // Nobody listens any more once the engine gave up.
        let _ = self.sender.send(news);
    }

    fn log(&self, message: &str) {
        log::line(&self.log, &format!("{}: {message}", self.attempt.directory().display()));
    }
}
