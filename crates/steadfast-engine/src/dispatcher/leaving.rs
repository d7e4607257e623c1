//! An engine that leaves before its run is over, because of an error or because the store cannot record a request to end:
//! it stops its agents, and names what it could not stop. A panic stops them too. The run stays as the store has it, and
//! the next engine continues it.

use std::collections::BTreeSet;
use std::panic;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use steadfast_model::run::AttemptId;
use steadfast_model::text;
use steadfast_system::process::ProcessId;

use super::{Dispatcher, DriveError, EngineMessage};
use crate::attempt::{Attempt, AttemptState};
use crate::crash;
use crate::run_folder::RunFolder;

impl Dispatcher<'_, '_> {
    /// Drives the run. Whatever the error or panic, no agent works on without an engine.
    pub(super) fn drive(&mut self, messages: &mpsc::Receiver<EngineMessage>) -> Result<(), DriveError> {
        stop_agents_on_panic(&self.folder, self.engine.grace);
        let driven = self.run_as_engine(messages);
        if driven.is_err() {
            self.leave();
        }
        driven
    }

    fn run_as_engine(&mut self, messages: &mpsc::Receiver<EngineMessage>) -> Result<(), DriveError> {
        self.record_engine(Some(ProcessId::own()))?;
        self.load_key()?;
        crash::point(crash::CrashPoint::Locked);
        self.run_to_end(messages)
    }

    fn leave(&mut self) {
        let ids: BTreeSet<AttemptId> = self.running().into_iter().chain(self.waited.keys().copied()).collect();
        let ids: Vec<AttemptId> = ids.into_iter().collect();
        self.end_each(&ids, Attempt::stop_agent);
        self.wait_for_threads();
        if ids.is_empty() {
            return;
        }
        let left: Vec<String> = ids.iter().filter_map(|id| left_of(*id, &self.attempt(*id))).collect();
        let stopped = text::count(ids.len() - left.len(), "agent");
        let left = if left.is_empty() { String::new() } else { format!("; still there: {}", left.join(", ")) };
        self.observers.note(&format!("the engine leaves: {stopped} stopped{left}"));
    }
}

/// From now on, a panic stops the agents of a run before it is reported. The process ends then, and packages are built
/// without unwinding, so nothing else is left to do it.
fn stop_agents_on_panic(folder: &RunFolder, grace: Duration) {
    let folder = folder.clone();
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let attempts: Vec<Attempt> = folder.attempts().into_iter().map(Attempt::in_directory).collect();
        thread::scope(|scope| {
            for attempt in &attempts {
                // Best effort: the time limit of an attempt holds without an engine.
                let stop = move || drop(attempt.stop_agent(grace));
                if thread::Builder::new().spawn_scoped(scope, stop).is_err() {
                    stop();
                }
            }
        });
        before(info);
    }));
}

/// What still lives of an attempt that was stopped, in words.
fn left_of(id: AttemptId, attempt: &Attempt) -> Option<String> {
    let iteration = format!("stage {}, iteration {}", id.stage, id.iteration);
    let pid = |pid: Option<i32>| pid.map_or_else(|| "pid unknown".to_owned(), |pid| format!("pid {pid}"));
    let supervisor = || attempt.supervisor().ok().flatten().map(|record| record.identity.pid);
    match attempt.inspect() {
        Ok(AttemptState::Ended(_) | AttemptState::Gone | AttemptState::NeverStarted) => None,
        Ok(AttemptState::Supervised) => Some(format!("the supervisor of {iteration} ({})", pid(supervisor()))),
        Ok(AttemptState::Orphaned { descendants, .. }) => {
            Some(format!("{iteration} ({})", pid(descendants.all().first().map(|found| found.pid))))
        }
        Err(error) => Some(format!("perhaps {iteration} ({}): {error}", pid(supervisor()))),
    }
}
