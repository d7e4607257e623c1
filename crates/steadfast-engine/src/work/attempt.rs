//! One attempt from its start to its outcome. It blocks until the agent has ended.

use std::path::{Path, PathBuf};
use std::process::Child;

use steadfast_model::clock::{self, Millis};
use steadfast_model::run::{AttemptId, FailureKind, Outcome, Plan, RunKind, StagePlan};

use super::merging::Merging;
use super::starting::{Launch, limit_of};
use super::{AgentEnded, Engine, Workplace, cannot_start};
use crate::agent::{self, EndedAttempt};
use crate::attempt::Attempt;
use crate::footprint::{self, ProgressTree};
use crate::process::Cancel;
use crate::run_folder::RunFolder;
use crate::{crash, durable, outage};

/// What happens meanwhile.
pub(crate) enum AttemptNews {
    /// The supervisor was started.
    Started,
    /// A message for the user.
    Note(String),
}

/// One attempt: starts it, unless an earlier engine did, and waits for it.
pub(crate) struct AttemptWork {
    pub(crate) id: AttemptId,
    pub(crate) run: String,
    pub(crate) stage: StagePlan,
    pub(crate) attempt: Attempt,
    pub(crate) workplace: Workplace,
    pub(crate) project: PathBuf,
    pub(crate) kind: RunKind,
    pub(crate) merging: Option<Merging>,
    pub(crate) progress: Option<PathBuf>,
    /// It did not start before.
    pub(crate) since: Millis,
    /// Whether iterations without progress end the stage.
    pub(crate) counts_idle: bool,
    pub(crate) stopping: Cancel,
    pub(crate) overdue: Cancel,
    /// Whether the agent ends with this process.
    pub(crate) bound: bool,
    pub(crate) engine: Engine,
    pub(crate) folder: RunFolder,
    pub(crate) tell: Box<dyn Fn(AttemptNews) + Send + Sync>,
    pub(crate) agent_ended: AgentEnded,
}

impl AttemptWork {
    /// Whether iterations without progress end a stage.
    pub(crate) fn counts_idle(plan: &Plan, stage: &StagePlan) -> bool {
        plan.limits.idle > 0 && !stage.parallel && !stage.completion.only_counts()
    }

    pub(crate) fn carry_out(&self, launch: Option<Launch>) -> Outcome {
        let started = launch.map(|launch| self.start(launch)).transpose();
        started.map_or_else(|outcome| *outcome, |supervisor| self.outcome(supervisor))
    }

    fn outcome(&self, supervisor: Option<Child>) -> Outcome {
        let adopted = || Some(self.attempt.supervisor().ok()??.identity.pid.cast_unsigned());
        let pid = supervisor.as_ref().map(Child::id).or_else(adopted);
        if let Some(mut supervisor) = supervisor {
            // A supervisor that is bound to this process ends its agent once this is closed.
            let _life = supervisor.stdin.take();
            (self.tell)(AttemptNews::Started);
            crash::panic_once("attempt.wait");
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
        let ended = self.agent_ended.call();
        let looks = self.counts_idle && ended.is_ok();
        let directory = looks.then(|| self.workplace.inside()).transpose().unwrap_or_else(|error| {
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
        let outcome = match (ended, report.outcome) {
            (Ok(()), outcome) => self.with_artifacts(self.with_merge(outcome)),
            (Err(message), Outcome::Succeeded(success)) => success.but_failed(FailureKind::Transient, message),
            (Err(_), failed @ Outcome::Failed(_)) => failed,
        };
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
        (self.tell)(AttemptNews::Note(message));
    }

    pub(super) fn log(&self, message: &str) {
        self.folder.log(&format!("{}: {message}", self.attempt.directory().display()));
    }
}
