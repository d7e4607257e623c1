//! What can interrupt running agents: requests to end the run, signals, caps on the spending of all goals and runs, and
//! supervisors that hang.

use std::time::Instant;

use steadfast_model::clock;
use steadfast_model::limit::Spend;
use steadfast_model::run::{AttemptUsage, RunEvent, RunReason, RunStatus, Stopping};
use steadfast_store::spend::{self, Spender};

use super::{Dispatcher, DriveError};

impl Dispatcher<'_, '_> {
    /// Applies the caps on the spending of all goals and runs before the next agent starts; `usage` is not saved yet.
    pub(super) fn check_caps(&mut self, usage: &AttemptUsage) -> Result<(), DriveError> {
        let unsaved = Spend { tokens: usage.tokens.charged(), cost_micros: usage.cost_micros };
        let spent = Spend {
            tokens: self.run.tokens.saturating_add(unsaved.tokens),
            cost_micros: self.run.cost_micros.saturating_add(unsaved.cost_micros),
        };
        let (caps, spender) = (&self.engine.config.limits.caps, Spender::Run { spent, unsaved });
        let near = self.with_store(|store| spend::standings(store.read(), caps, spender, clock::now()))?;
        if let Some(cap) = near.iter().find(|cap| cap.standing.is_reached()).filter(|_| !self.run.capped) {
            self.observers.note(&format!("cap reached: {}", cap.describe()));
            self.apply(RunEvent::CapReached)?;
        }
        Ok(())
    }

    pub(super) fn check_interruptions(&mut self) -> Result<(), DriveError> {
        self.observers.idle();
        self.end_overdue();
        if self.run.cut_short {
            return Ok(());
        }
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
