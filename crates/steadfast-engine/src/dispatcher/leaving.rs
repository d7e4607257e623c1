//! An engine that leaves before its run is over, because of an error or because the store cannot record a request to end:
//! it stops its agents, and names what it could not stop. The run stays as the store has it, and the next engine
//! continues it.

use std::collections::BTreeSet;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc;

use steadfast_model::run::AttemptId;
use steadfast_model::text;
use steadfast_system::process::ProcessId;

use super::{Dispatcher, DriveError, EngineMessage};
use crate::attempt::{Attempt, AttemptState};
use crate::crash;

impl Dispatcher<'_, '_> {
    /// Drives the run. Whatever the error, no agent works on without an engine.
    pub(super) fn drive(&mut self, messages: &mpsc::Receiver<EngineMessage>) -> Result<(), DriveError> {
        let driven = panic::catch_unwind(AssertUnwindSafe(|| {
            self.record_engine(Some(ProcessId::own()))?;
            self.load_key()?;
            crash::point(crash::CrashPoint::Locked);
            self.run_to_end(messages)
        }));
        match driven {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                self.leave();
                Err(error)
            }
            Err(panic) => {
                self.leave();
                panic::resume_unwind(panic)
            }
        }
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
        let stopped = text::count(i64::try_from(ids.len() - left.len()).unwrap_or(i64::MAX), "agent");
        let left = if left.is_empty() { String::new() } else { format!("; still there: {}", left.join(", ")) };
        self.observers.note(&format!("the engine leaves: {stopped} stopped{left}"));
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
