//! What can interrupt running agents: requests to end the run, signals, and supervisors that hang.

use std::time::Instant;

use steadfast_model::run::{RunEvent, RunReason, RunStatus, Stopping};

use super::{Dispatcher, DriveError};

impl Dispatcher<'_, '_> {
    pub(super) fn check_interruptions(&mut self) -> Result<(), DriveError> {
        self.observers.idle();
        self.end_overdue();
        if self.run.cut_short {
            return Ok(());
        }
        self.take_answers()?;
        self.look_at_spending()?;
        let requested = self.stop_request()?.or_else(|| self.observers.stop_requested());
        requested.map_or(Ok(()), |stopping| self.apply(RunEvent::StopRequested(stopping)))
    }

    /// Ends attempts whose supervisors did not end them in time.
    fn end_overdue(&mut self) {
        let now = Instant::now();
        for waited in self.waited.values_mut() {
            if waited.deadline.take_if(|deadline| *deadline <= now).is_some() {
                waited.overdue.cancel();
                let (attempt, folder) = (waited.attempt.clone(), self.folder.clone());
                self.threads.push(std::thread::spawn(move || {
                    let done = attempt.kill().map_or_else(|error| error.to_string(), |()| "killed".to_owned());
                    folder.log(&format!("the supervisor of {} hangs: {done}", attempt.directory().display()));
                }));
            }
        }
    }

    /// The first signal ends the run in order, the next one kills everything at once.
    pub(super) fn signalled(&mut self) -> Result<(), DriveError> {
        self.signals += 1;
        self.pending.take_one();
        if self.signals > 1 {
            self.stopping.cancel();
            for waited in self.waited.values() {
                waited.attempt.kill()?;
            }
            return Ok(());
        }
        let stopping = Stopping { status: RunStatus::Killed, reason: RunReason::Interrupted.into() };
        self.apply(RunEvent::StopRequested(stopping))
    }
}
