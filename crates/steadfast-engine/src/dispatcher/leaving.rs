//! An engine that leaves before its run is over, because of an error or because the store cannot record a request to end:
//! it stops its agents, and names what it could not stop. A panic stops them too. The run stays as the store has it, and
//! the next engine continues it.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use steadfast_model::run::AttemptId;
use steadfast_model::text;
use steadfast_system::process::ProcessId;

use super::{Dispatcher, DriveError, EngineMessage};
use crate::attempt::{Attempt, AttemptState};
use crate::crash;
use crate::process::Cancel;
use crate::run_folder::RunFolder;

/// Set while the agents are stopped after a panic, before the process ends.
static IS_PANICKING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread stops an agent after a panic.
    static STOPS_AGENT: Cell<bool> = const { Cell::new(false) };
}

impl Dispatcher<'_, '_> {
    /// Drives the run. Whatever the error or panic, no agent works on without an engine.
    pub(super) fn drive(&mut self, messages: &mpsc::Receiver<EngineMessage>) -> Result<(), DriveError> {
        stop_agents_on_panic(&self.folder, self.stopping.clone(), self.engine.grace);
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
fn stop_agents_on_panic(folder: &RunFolder, stopping: Cancel, grace: Duration) {
    let folder = folder.clone();
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if STOPS_AGENT.get() {
            // Stopping them fails. The hook of the process ends it.
            before(info);
            return;
        }
        if IS_PANICKING.swap(true, Ordering::Relaxed) {
            park();
        }
        // Attempts that are about to start end by themselves.
        stopping.cancel();
        let attempts: Vec<Attempt> = folder.attempts().into_iter().map(Attempt::in_directory).collect();
        thread::scope(|scope| {
            for attempt in &attempts {
                let stop = move || {
                    STOPS_AGENT.set(true);
                    // Best effort: the time limit of an attempt holds without an engine.
                    drop(attempt.stop_agent(grace));
                    STOPS_AGENT.set(false);
                };
                if thread::Builder::new().spawn_scoped(scope, stop).is_err() {
                    stop();
                }
            }
        });
        before(info);
    }));
}

/// After a panic on another thread, the engine decides and saves nothing more: that its agents were stopped is no outcome
/// of theirs.
pub(super) fn park_after_panic() {
    if IS_PANICKING.load(Ordering::Relaxed) {
        park();
    }
}

/// Waits for the end of the process.
fn park() -> ! {
    loop {
        thread::park();
    }
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
