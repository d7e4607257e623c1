//! What the dispatcher pays attention to while its agents work: requests to end the run, signals, and attempts whose
//! keepers do not do their duty.

use std::time::Instant;

use steadfast_core::log;
use steadfast_core::run::{RunEvent, RunStatus, Stopping};

use super::{Dispatcher, DriveError, INTERRUPTED};

impl Dispatcher<'_> {
    pub(super) fn look_around(&mut self) -> Result<(), DriveError> {
        self.end_overdue();
        if self.run.cut_short {
            return Ok(());
        }
        let asked = self.store.read().stop_request(&self.run_id)?.or_else(|| self.observer.stop_requested());
        match asked {
            Some(stopping) => self.apply(RunEvent::StopRequested(stopping)),
            None => Ok(()),
        }
    }

    /// Ends attempts whose keepers should have done that long ago.
    fn end_overdue(&mut self) {
        let now = Instant::now();
        for flying in self.flying.values_mut() {
            if flying.patience.take_if(|until| *until <= now).is_some() {
                flying.overdue.cancel();
                let attempt = flying.attempt.clone();
                let log = attempt.directory().with_file_name("engine.log");
                self.threads.push(std::thread::spawn(move || {
                    let done = attempt.kill().map_or_else(|error| error.to_string(), |()| "ended".to_owned());
                    log::line(&log, &format!("the keeper of {} hangs: {done}", attempt.directory().display()));
                }));
            }
        }
    }

    /// The first signal asks for an orderly end, the next one ends everything at once.
    pub(super) fn signalled(&mut self) -> Result<(), DriveError> {
        self.signals += 1;
        if self.signals > 1 {
            self.stopping.cancel();
            for flying in self.flying.values() {
                flying.attempt.kill()?;
            }
            return Ok(());
        }
        let stopping = Stopping { status: RunStatus::Killed, reason: INTERRUPTED.to_owned() };
        self.apply(RunEvent::StopRequested(stopping))
    }
}
