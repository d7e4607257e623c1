//! How an attempt ended, and what follows: the same iteration again at once, after a rest, or the end of the run.

use super::{Machine, RunStatus, time_left};
use crate::clock::Millis;
use crate::host::trouble::FARTHEST_RESET;
use crate::run::{
    Act, AgentDecision, AttemptId, AttemptUsage, Failure, FailureKind, Flight, Outcome, Phase, Record, Success,
    Undecided, Wait, WaitReason,
};
use crate::text;

const MINUTE: Millis = 60_000;
/// How long to wait for a reset that the agent does not name, the first time and after that.
const UNKNOWN_RESETS: [Millis; 4] = [5 * MINUTE, 15 * MINUTE, 30 * MINUTE, 60 * MINUTE];
const LONGEST_BACK_OFF: Millis = 5 * MINUTE;
const LONGEST_REASON: usize = 200;

impl Machine<'_> {
    pub(super) fn ended(&mut self, id: AttemptId, outcome: Outcome) {
        if !self.run.flights.iter().any(|flight| flight.id == id && flight.phase == Phase::Running) {
            return;
        }
        let outcome = self.looked_into(outcome);
        self.charge(match &outcome {
            Outcome::Succeeded(success) => &success.usage,
            Outcome::Failed(failure) => &failure.usage,
        });
        self.records.push(Record::AttemptEnded { id, outcome: outcome.clone() });
        match outcome {
            Outcome::Succeeded(success) => self.came_through(id, success),
            Outcome::Failed(failure) => self.failed(id, &failure),
        }
        self.advance();
    }

    fn charge(&mut self, usage: &AttemptUsage) {
        self.run.tokens = self.run.tokens.saturating_add(usage.tokens.charged().max(0));
        self.run.cost_micros = self.run.cost_micros.saturating_add(usage.cost_micros.max(0));
    }

    /// An agent that ended well has failed all the same if it says so itself, or if the rule needs a vote that it
    /// did not give: a forgotten vote must never count as one.
    fn looked_into(&self, outcome: Outcome) -> Outcome {
        let mut success = match outcome {
            Outcome::Succeeded(success) => success,
            failed @ Outcome::Failed(_) => return failed,
        };
        let wants_vote = self.stage_plan().is_some_and(|stage| {
            !stage.parallel && stage.completion.needs_vote() && !stage.completion.is_judged(stage.judge.as_ref())
        });
        if success.result.decision == Some(AgentDecision::Error) {
            let words = success.result.reasoning.as_deref().or(success.result.summary.as_deref());
            let message = words.unwrap_or("the agent reported an error").to_owned();
            Outcome::Failed(as_failure(&success, FailureKind::Reported, message))
        } else if wants_vote && success.result.vote().is_none() {
            let message = "the agent did not say whether anything is left to improve".to_owned();
            Outcome::Failed(as_failure(&success, FailureKind::NoResult, message))
        } else {
            if let Some(stage) = self.stage_plan().filter(|stage| stage.stop_is_promise)
                && success.result.decision == Some(AgentDecision::Stop)
            {
                success.promises.extend(stage.completion.promises().map(str::to_owned));
            }
            Outcome::Succeeded(success)
        }
    }

    fn came_through(&mut self, id: AttemptId, success: Box<Success>) {
        let checks = self.checks_after(&success);
        // A promise is told once: whether it ends the stage is decided together with the commit, or not at all.
        if self.run.cut_short && !(checks.is_empty() && success.promises.is_empty()) {
            self.leave_undecided(id, success);
        } else if checks.is_empty() {
            self.commit(id, success, &[]);
        } else if let Some(flight) = self.flight_mut(id) {
            flight.phase = Phase::Checking(success);
            self.acts.push(Act::Check { id, checks });
        }
    }

    /// The run is being stopped before anything was decided about this iteration. Its agent's work stays.
    pub(super) fn leave_undecided(&mut self, id: AttemptId, success: Box<Success>) {
        self.run.flights.retain(|flight| flight.id != id);
        if let Some(stage) = self.stage_state_mut() {
            stage.undecided.push(Undecided { id, success });
        }
    }

    fn failed(&mut self, id: AttemptId, failure: &Failure) {
        if self.run.stopping.is_some() {
            self.leave(id);
            return;
        }
        let (now, limits) = (self.now, &self.plan.limits);
        let (most_errors, back_off) = (limits.errors.max(1), limits.back_off_ms);
        let is_time_over = time_left(self.plan, &self.run, now) == Some(0);
        let Some(flight) = self.flight_mut(id) else { return };
        let was_lost = std::mem::replace(&mut flight.lost, false);
        match failure.kind {
            FailureKind::CannotStart => {
                self.leave(id);
                self.wind_down(RunStatus::Failed, reason("cannot_start", &failure.message));
            }
            FailureKind::UsageLimit { until_ms } => {
                let until = reset_at(until_ms, flight.usage_waits, now);
                flight.usage_waits = flight.usage_waits.saturating_add(1);
                flight.rest(until, WaitReason::UsageLimit);
            }
            // The run's time was over, which is no fault of the agent's.
            FailureKind::TimedOut if is_time_over => flight.rest(now, WaitReason::BackOff),
            // Nobody asked us to stop it, so somebody else did: that is as good as lost.
            FailureKind::Lost | FailureKind::Stopped if !was_lost => {
                flight.lost = true;
                flight.rest(now, WaitReason::BackOff);
            }
            kind => {
                flight.lost = matches!(kind, FailureKind::Lost | FailureKind::Stopped);
                flight.errors = flight.errors.saturating_add(1);
                let errors = flight.errors;
                flight.rest(now.saturating_add(rest_after(errors, back_off)), WaitReason::BackOff);
                if errors >= most_errors {
                    self.leave(id);
                    self.wind_down(RunStatus::Failed, reason("errors", &failure.message));
                }
            }
        }
    }

    /// The iteration is not under way any more; going on later begins with its next attempt.
    pub(super) fn leave(&mut self, id: AttemptId) {
        self.run.flights.retain(|flight| flight.id != id);
        if id.attempt > 0
            && let Some(stage) = self.stage_state_mut()
        {
            stage.left.push(id);
            stage.left.sort_unstable();
        }
    }
}

impl Flight {
    fn rest(&mut self, until_ms: Millis, why: WaitReason) {
        self.phase = Phase::Resting;
        self.wait = Some(Wait { until_ms, why });
    }
}

fn as_failure(success: &Success, kind: FailureKind, message: String) -> Failure {
    Failure {
        kind,
        message,
        exit_code: Some(success.exit_code),
        usage: success.usage,
        started_at_ms: Some(success.started_at_ms),
        ended_at_ms: success.ended_at_ms,
    }
}

fn reason(kind: &str, message: &str) -> String {
    let message = text::headline(message.trim(), LONGEST_REASON);
    if message.is_empty() { kind.to_owned() } else { format!("{kind}: {message}") }
}

/// A moment that has passed already is as good as none: believing it would mean to ask again and again.
fn reset_at(named: Option<Millis>, waits: u32, now: Millis) -> Millis {
    match named {
        Some(until) if until > now => until.min(now.saturating_add(FARTHEST_RESET)),
        _ => {
            let wait = usize::try_from(waits).ok().and_then(|waits| UNKNOWN_RESETS.get(waits));
            now.saturating_add(*wait.unwrap_or(&(60 * MINUTE)))
        }
    }
}

/// Half the base after the first error, since most are over at once; then the base doubled with each one.
fn rest_after(errors: u32, base: Millis) -> Millis {
    let rest = match errors {
        0 | 1 => base / 2,
        more => base.saturating_mul(1_i64.checked_shl(more - 1).filter(|factor| *factor > 0).unwrap_or(Millis::MAX)),
    };
    rest.clamp(0, LONGEST_BACK_OFF)
}
