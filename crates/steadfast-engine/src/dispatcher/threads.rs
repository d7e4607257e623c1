//! The threads of the dispatcher: they start attempts, wait for them and read their outcomes, make checks, and stop
//! attempts. Each thread for an attempt or a check sends its result once, as a message.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc;
use std::time::Duration;

use steadfast_model::clock::{self, Millis};
use steadfast_model::run::{ActiveAttempt, AgentPlan, AttemptId, Check, Outcome, Phase, RunKind, StagePlan};

use super::merging::Merging;
use super::starting::{Launch, Workplace, limit_of};
use super::{Dispatcher, DriveError, Engine, EngineMessage, WaitedAttempt, cannot_start, leaving};
use crate::agent::{self, EndedAttempt};
use crate::attempt::{self, Attempt};
use crate::checks::judge::JudgeRequest;
use crate::checks::{self, CheckContext};
use crate::footprint::{self, ProgressTree};
use crate::process::Cancel;
use crate::run_folder::RunFolder;
use crate::{durable, outage};

/// The time limit of a judge, unless that of its stage is shorter.
const JUDGE_LIMIT: Duration = Duration::from_mins(15);
/// How many earlier iterations a judge sees.
const EARLIER: usize = 5;

impl Dispatcher<'_, '_> {
    pub(super) fn attempt(&self, id: AttemptId) -> Attempt {
        let is_sealed = !self.unsealed.contains(&id);
        Attempt::at(&self.engine.home, &self.run_id, id).with_key(self.key.clone().filter(|_| is_sealed))
    }

    /// Starts an attempt, or waits for one of an earlier engine, and reads its outcome.
    pub(super) fn wait_for(&mut self, id: AttemptId, launch: Option<Launch>) {
        let plan = self.plan.clone();
        let Some(stage) = plan.stage(id.stage) else { return };
        let attempt = self.attempt(id);
        let merging = self.merging(stage, id);
        let overdue = Cancel::default();
        self.waited.insert(id, WaitedAttempt { attempt: attempt.clone(), deadline: None, overdue: overdue.clone() });
        if launch.is_none() {
            self.set_deadline(id);
        }
        let thread = AttemptThread {
            id,
            run: plan.name.clone(),
            stage: stage.clone(),
            folder: self.folder.clone(),
            attempt,
            project: self.project.clone(),
            kind: plan.kind,
            merging,
            workplace: self.workplace(stage, id),
            progress: self.observers.prompt_values(&plan, &self.run, id).progress,
            since: if launch.is_some() { clock::now() } else { self.run.started_at_ms },
            counts_idle: plan.limits.idle > 0 && !stage.parallel && !stage.completion.only_counts(),
            stopping: self.stopping.clone(),
            overdue,
            engine: self.engine.clone(),
            sender: self.sender.clone(),
        };
        let spawned = std::thread::Builder::new().spawn(move || {
            let work = || {
                let started = launch.map(|launch| thread.start(launch)).transpose();
                started.map_or_else(|outcome| *outcome, |supervisor| thread.outcome(supervisor))
            };
            let outcome = Box::new(leaving::outcome_of(&thread.attempt, thread.engine.grace, work));
            thread.send(EngineMessage::Ended { id, outcome });
        });
        if let Err(error) = spawned {
            // It may be an agent of an earlier engine.
            self.stop(&[id]);
            let outcome = Box::new(cannot_start(format!("cannot start a thread: {error}")));
            // The receiver lives as long as the dispatcher.
            let _ = self.sender.send(EngineMessage::Ended { id, outcome });
        }
    }

    /// Sets when the supervisor of an attempt, which runs now, counts as hanging.
    pub(super) fn set_deadline(&mut self, id: AttemptId) {
        if let (Some(waited), Some(stage)) = (self.waited.get_mut(&id), self.plan.stage(id.stage)) {
            waited.deadline = attempt::supervisor_deadline(limit_of(stage), self.engine.grace);
        }
    }

    pub(super) fn stop(&mut self, ids: &[AttemptId]) {
        self.end_each(ids, Attempt::stop);
    }

    pub(super) fn end_each(&mut self, ids: &[AttemptId], end: fn(&Attempt, Duration) -> std::io::Result<()>) {
        self.stopping.cancel();
        for id in ids {
            let (attempt, grace) = (self.attempt(*id), self.engine.grace);
            let folder = self.folder.clone();
            let stop = move || {
                if let Err(error) = end(&attempt, grace) {
                    folder.log(&format!("stopping {}: {error}", attempt.directory().display()));
                }
            };
            match std::thread::Builder::new().spawn(stop.clone()) {
                Ok(thread) => self.threads.push(thread),
                // Too many threads: stop one after the other.
                Err(_) => stop(),
            }
        }
    }

    /// Ends the checks that a killed engine left running.
    pub(super) fn stop_checks(&self) -> std::io::Result<()> {
        let is_checked = |active: &&ActiveAttempt| matches!(active.phase, Phase::Checking(_) | Phase::CheckingBefore);
        for active in self.run.active.iter().filter(is_checked) {
            checks::stop(&self.attempt(active.id), self.engine.grace)?;
        }
        Ok(())
    }

    pub(super) fn check(&mut self, id: AttemptId, wanted: Vec<Check>) -> Result<(), DriveError> {
        let plan = self.plan.clone();
        let Some(stage) = plan.stage(id.stage) else { return Ok(()) };
        let (workplace, branches) = (self.workplace(stage, id), self.branches_to_merge(stage));
        let environment = Self::environment(stage, id.iteration);
        let judge = match &stage.judge {
            Some(agent) if wanted.contains(&Check::Judge) => Some(self.judge(stage, agent, id)?),
            _ => None,
        };
        let limit = Duration::from_secs(self.engine.config.goal.verify_timeout_seconds);
        let (attempt, grace) = (self.attempt(id), self.engine.grace);
        let (cancel, sender) = (self.cancel.clone(), self.sender.clone());
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.push(std::thread::spawn(move || {
            // A killed engine may have left the same check running.
            checks::end_commands(&attempt, grace);
            let entered = environment.map_err(|why| (why.clone(), why)).and_then(|environment| {
                let entered = workplace.enter(&cancel).map(|directory| (directory, environment));
                entered.map_err(|error| {
                    (format!("cannot enter the worktree: {error}"), format!("{error} ({})", error.hint()))
                })
            });
            let facts = match entered {
                Ok((directory, environment)) => {
                    let (mark, evidence) = (Some(checks::mark_of(&attempt)), attempt.evidence());
                    let context =
                        CheckContext { directory, limit, cancel, mark, judge, environment, branches, evidence };
                    wanted.iter().map(|check| checks::carry_out(check, &context)).collect()
                }
                // The result in another directory or environment would be wrong for this one.
                Err((why, note)) => {
                    let _ = sender.send(EngineMessage::Note(format!("cannot check the rule: {note}")));
                    wanted.iter().map(|check| checks::checked(check, None, &why)).collect()
                }
            };
            // The receiver is gone once the run has ended.
            let _ = sender.send(EngineMessage::Checked { id, facts });
        }));
        Ok(())
    }

    fn judge(&mut self, stage: &StagePlan, agent: &AgentPlan, id: AttemptId) -> Result<JudgeRequest, DriveError> {
        let run_id = self.run_id.clone();
        let mut earlier = self.with_store(|store| store.read().last_iterations(&run_id, EARLIER))?;
        earlier.reverse();
        let earlier: Vec<String> = earlier
            .iter()
            .filter(|row| row.id.stage == id.stage)
            .map(|row| format!("Iteration {}: {}", row.id.iteration, row.summary.as_deref().unwrap_or("(no summary)")))
            .collect();
        Ok(JudgeRequest {
            agent: agent.clone(),
            config: self.engine.config.agents.clone(),
            run: self.plan.name.clone(),
            stage: stage.name.clone(),
            iteration: id.iteration,
            earlier: earlier.join("\n"),
            judged: self.attempt(id),
            program: self.engine.program.clone(),
            limit: limit_of(stage).min(JUDGE_LIMIT),
            grace: self.engine.grace,
            output_bytes: self.engine.config.runs.output_bytes(),
        })
    }
}

/// The thread of one attempt: starts it, unless an earlier engine did, and waits for it.
pub(super) struct AttemptThread {
    pub(super) id: AttemptId,
    pub(super) run: String,
    pub(super) stage: StagePlan,
    pub(super) attempt: Attempt,
    pub(super) workplace: Workplace,
    pub(super) project: PathBuf,
    pub(super) kind: RunKind,
    pub(super) merging: Option<Merging>,
    progress: Option<PathBuf>,
    /// It did not start before.
    since: Millis,
    /// Whether iterations without progress end the stage.
    counts_idle: bool,
    pub(super) stopping: Cancel,
    overdue: Cancel,
    pub(super) engine: Engine,
    sender: mpsc::Sender<EngineMessage>,
    folder: RunFolder,
}

impl AttemptThread {
    fn outcome(&self, supervisor: Option<Child>) -> Outcome {
        let adopted = || Some(self.attempt.supervisor().ok()??.identity.pid.cast_unsigned());
        let pid = supervisor.as_ref().map(Child::id).or_else(adopted);
        if let Some(mut supervisor) = supervisor {
            self.send(EngineMessage::Started(self.id));
            // The directory of the attempt says more than its exit code.
            let _ = supervisor.wait();
        }
        let (run, iteration) = (&self.run, self.id.iteration);
        let on_orphans = |pid: i32| {
            self.note(format!(
                "waiting for process {pid} of iteration {iteration}, whose supervisor is gone; `kill {run}` ends it"
            ));
        };
        let wait = || self.attempt.wait_with(limit_of(&self.stage), self.engine.grace, on_orphans);
        let exit = match self.wait_for_room(wait) {
            Ok(exit) => exit,
            // No other agent may be started beside it: stop it and end the run.
            Err(error) => {
                let left = self.attempt.stop(self.engine.grace).err().map(|_| {
                    let pid = pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
                    format!("; it may still be running (pid {pid})")
                });
                let left = left.unwrap_or_default();
                return cannot_start(format!("cannot read the state of the attempt: {error}{left}"));
            }
        };
        let directory = self.counts_idle.then(|| self.workplace.inside()).transpose().unwrap_or_else(|error| {
            self.note(format!("cannot check for progress: {error} ({})", error.hint()));
            None
        });
        let tree_before = self.folder.tree_before(self.id.stage);
        let before = if self.id.iteration == 1 { fs_err::read_to_string(tree_before).ok() } else { None };
        let (progress, before) = (self.progress.as_deref(), before.as_deref());
        let tree = directory.as_deref().map(|directory| ProgressTree { directory, progress, before });
        let report = agent::report(&EndedAttempt {
            agent: self.stage.agent_of(self.id.iteration),
            votes: self.stage.completion.needs_vote(),
            markers: &self.stage.output_parse,
            attempt: &self.attempt,
            exit: exit.as_ref(),
            stopping: self.stopping.is_cancelled(),
            overdue: self.overdue.is_cancelled(),
            tree: tree.as_ref(),
            since: self.since,
            now: clock::now(),
        });
        self.attempt.remove_files(&agent::PRIVATE_FILES);
        let answer = report.to_keep(&self.attempt);
        let keep = || durable::replace(&self.attempt.answer(), answer.as_bytes());
        if let Err(error) = self.wait_for_room(keep) {
            self.log(&format!("cannot keep the answer: {error}"));
        }
        let outcome = self.with_artifacts(self.with_merge(report.outcome));
        if let Outcome::Succeeded(_) = &outcome {
            let message = format!("{}: {} iteration {}", self.run, self.stage.name, self.id.iteration);
            match self.workplace.keep(&message, self.stage.parallel) {
                Ok(notes) => {
                    for note in notes {
                        self.note(format!("{} {}: {note}", self.stage.name, self.id.iteration));
                    }
                }
                // A shared worktree fails for every iteration. Without their numbers, the note is shown once.
                Err((worktree, error)) => {
                    let (worktree, hint) = (worktree.display(), error.hint());
                    self.note(format!("the work in {worktree} is not committed: {error} ({hint})"));
                }
            }
        }
        outcome
    }

    /// Saves the fingerprint of the tree before the first attempt of a stage, once.
    pub(super) fn save_tree_before(&self, directory: &Path) {
        let file = self.folder.tree_before(self.id.stage);
        if !self.counts_idle || self.id.iteration != 1 || file.exists() {
            return;
        }
        let tree = footprint::of_tree(&ProgressTree { directory, progress: self.progress.as_deref(), before: None });
        if let Err(error) = durable::replace(&file, tree.as_bytes()) {
            self.log(&format!("cannot save the fingerprint of the files: {error}"));
        }
    }

    /// Repeats `work` while the disk is full.
    pub(super) fn wait_for_room<T>(&self, work: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
        outage::wait_for_room(|| self.stopping.is_cancelled(), |message| self.note(message.to_owned()), work)
    }

    pub(super) fn note(&self, message: String) {
        self.send(EngineMessage::Note(message));
    }

    fn send(&self, message: EngineMessage) {
        // The receiver is gone once the engine has given up.
        let _ = self.sender.send(message);
    }

    pub(super) fn log(&self, message: &str) {
        self.folder.log(&format!("{}: {message}", self.attempt.directory().display()));
    }
}
