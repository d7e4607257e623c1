//! Waiting for news, and what they mean for the machine.

use std::future::poll_fn;
use std::task::Poll;

use steadfast_model::clock::Millis;
use steadfast_model::run::{AttemptId, Check, Checked, Outcome, RunEvent, RunReason, RunStatus, Stopping};
use temporalio_workflow::{ActivityExecutionError, WaitConditionOptions, WorkflowCancellationToken};

use super::{Answer, FlightResult, RunHost};
use crate::wire::{AttemptResult, AttemptShas, CheckReport, ConditionReport, RUN_PLACE, attempt_key};
use crate::workflow::outcome;

impl RunHost<'_> {
    /// Waits for the next news; `None` if a signal came.
    pub(super) async fn news(&mut self) -> Option<FlightResult> {
        let (ctx, is_cancelled) = (self.ctx, self.is_cancelled);
        let options = WaitConditionOptions::builder().cancellation_token(WorkflowCancellationToken::new()).build();
        let mut signalled = Box::pin(ctx.wait_condition_with_options(|state| !state.inbox.is_empty(), options));
        let mut cancelled = Box::pin(ctx.cancelled());
        let flights = &mut self.flights;
        let (news, asked) = poll_fn(|waker| {
            if !is_cancelled && cancelled.as_mut().poll(waker).is_ready() {
                return Poll::Ready((None, true));
            }
            for index in 0..flights.len() {
                let polled = flights.get_mut(index).map(|flight| flight.as_mut().poll(waker));
                if let Some(Poll::Ready(news)) = polled {
                    drop(flights.remove(index));
                    return Poll::Ready((Some(news), false));
                }
            }
            signalled.as_mut().poll(waker).map(|_| (None, false))
        })
        .await;
        drop((signalled, cancelled));
        if asked {
            self.is_cancelled = true;
            let stopping = Stopping { status: RunStatus::Killed, reason: RunReason::Killed.to_string() };
            self.events.push_back(RunEvent::StopRequested(stopping));
        }
        news
    }

    pub(super) fn hear(&mut self, news: FlightResult) {
        let now = self.now();
        let event = match news {
            FlightResult::Attempted(id, result) => RunEvent::Ended { id, outcome: self.ended(id, result, now) },
            FlightResult::Checked(id, checks, result) => {
                RunEvent::Checked { id, facts: self.checked(id, checks, result) }
            }
            FlightResult::Condition(stage, result) => {
                self.working = self.working.saturating_sub(1);
                let cannot = |error: ActivityExecutionError| ConditionReport { holds: None, detail: error.to_string() };
                let ConditionReport { holds, detail } = result.unwrap_or_else(cannot);
                RunEvent::Decided { stage, holds, detail }
            }
            FlightResult::Woke(number) if number == self.timers && self.timer.take().is_some() => RunEvent::Woke,
            FlightResult::Woke(_) | FlightResult::Saved(..) | FlightResult::Finished(_) => return,
        };
        self.events.push_back(event);
    }

    fn ended(&mut self, id: AttemptId, result: Answer<AttemptResult>, now: Millis) -> Outcome {
        let key = attempt_key(id);
        self.working = self.working.saturating_sub(1);
        self.tokens.remove(&key);
        self.ctx.state_mut(|state| state.using.remove(&key));
        let place = self.places.remove(&key).unwrap_or_else(|| RUN_PLACE.to_owned());
        match result {
            Ok(AttemptResult { outcome, sha, files, branch }) => {
                self.shas.insert(key, AttemptShas { place, sha, files, branch });
                outcome
            }
            Err(error) => outcome::of_error(&error, now),
        }
    }

    fn checked(&mut self, id: AttemptId, checks: Vec<Check>, result: Answer<CheckReport>) -> Vec<Checked> {
        self.working = self.working.saturating_sub(1);
        match result {
            Ok(report) => {
                if let (Some(files), Some(shas)) = (report.files, self.shas.get_mut(&attempt_key(id))) {
                    shas.files = Some(files);
                }
                report.facts
            }
            Err(error) => {
                let detail = error.cause().map_or_else(|| error.to_string(), ToString::to_string);
                let undecided = |check| Checked { check, holds: None, detail: detail.clone(), usage: None };
                checks.into_iter().map(undecided).collect()
            }
        }
    }
}
