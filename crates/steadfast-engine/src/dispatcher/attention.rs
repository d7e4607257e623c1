//! What the dispatcher pays attention to while its agents work: requests to end the run, signals, what everybody has
//! spent together, and attempts whose keepers do not do their duty.

use std::time::Instant;

use steadfast_core::goal::limit::SharedSpend;
use steadfast_core::run::{AttemptUsage, RunEvent, RunStatus, Stopping};
use steadfast_core::spend::{self, Spend};
use steadfast_core::{clock, log};

use super::{Dispatcher, DriveError, INTERRUPTED};

impl Dispatcher<'_> {
    /// What all goals and runs spend together counts before the next agent starts, with what this attempt used.
    pub(super) fn look_at_caps(&mut self, usage: &AttemptUsage) -> Result<(), DriveError> {
        let more = Spend { tokens: usage.tokens.charged(), cost_micros: usage.cost_micros };
        let shared = spend::shared_with(self.store.read(), &self.engine.config.limits, more, clock::now())?;
        if shared == SharedSpend::Reached && !self.run.capped {
            self.apply(RunEvent::CapReached)?;
        }
        Ok(())
    }

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
