//! The threads of the dispatcher: they start attempts, wait for them and read their outcomes, make checks, and stop
//! attempts. Each thread for an attempt or a check sends its result once, as a message.

use std::time::Duration;

use steadfast_model::clock;
use steadfast_model::run::{ActiveAttempt, AttemptId, Check, Phase};

use super::{Dispatcher, DriveError, EngineMessage, WaitedAttempt, cannot_start};
use crate::attempt::{self, Attempt};
use crate::checks;
use crate::process::Cancel;
use crate::work::{AgentEnded, AttemptNews, AttemptWork, CheckWork, Checking, Launch, Merging, limit_of};

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
        let (workplace, run, at) = (self.workplace(stage, id), self.run.clone(), self.paths());
        let merging = Merging::of(&at.view(&plan, &run), stage, id, &workplace, self);
        let overdue = Cancel::default();
        self.waited.insert(id, WaitedAttempt { attempt: attempt.clone(), deadline: None, overdue: overdue.clone() });
        if launch.is_none() {
            self.set_deadline(id);
        }
        let sender = self.sender.clone();
        let tell = move |news: AttemptNews| {
            // The receiver is gone once the engine has given up.
            let _ = sender.send(match news {
                AttemptNews::Started => EngineMessage::Started(id),
                AttemptNews::Note(message) => EngineMessage::Note(message),
            });
        };
        let work = AttemptWork {
            id,
            run: plan.name.clone(),
            stage: stage.clone(),
            folder: self.folder.clone(),
            attempt,
            project: self.project.clone(),
            kind: plan.kind,
            merging,
            workplace,
            progress: self.observers.prompt_values(&plan, &self.run, id).progress,
            since: if launch.is_some() { clock::now() } else { self.run.started_at_ms },
            counts_idle: AttemptWork::counts_idle(&plan, stage),
            stopping: self.stopping.clone(),
            overdue,
            bound: false,
            engine: self.engine.clone(),
            tell: Box::new(tell),
            agent_ended: AgentEnded::default(),
        };
        let sender = self.sender.clone();
        let spawned = std::thread::Builder::new().spawn(move || {
            let outcome = Box::new(work.carry_out(launch));
            // The receiver is gone once the engine has given up.
            let _ = sender.send(EngineMessage::Ended { id, outcome });
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
        let (plan, run, at) = (self.plan.clone(), self.run.clone(), self.paths());
        let Some(stage) = plan.stage(id.stage) else { return Ok(()) };
        let checked = Checking {
            engine: self.engine,
            stage,
            id,
            attempt: self.attempt(id),
            workplace: self.workplace(stage, id),
            bound: false,
        };
        let work = CheckWork::of(&at.view(&plan, &run), checked, wanted, self)?;
        let (cancel, sender) = (self.cancel.clone(), self.sender.clone());
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.push(std::thread::spawn(move || {
            let note = |message| drop(sender.send(EngineMessage::Note(message)));
            let facts = work.carry_out(&cancel, note);
            // The receiver is gone once the run has ended.
            let _ = sender.send(EngineMessage::Checked { id, facts });
        }));
        Ok(())
    }
}
