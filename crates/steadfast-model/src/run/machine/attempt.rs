//! The end of an attempt, and what follows: a commit, another attempt now or later, or the end of the run.

use super::{Machine, attempt_time_left};
use crate::clock::{HOUR, Millis};
use crate::reading::FARTHEST_RESET;
use crate::run::{
    Act, ActiveAttempt, AgentDecision, AttemptId, AttemptUsage, Failure, FailureKind, Outcome, Phase, Record,
    RunReason, StagePlan, Success, Then, Undecided, Wait, WaitReason,
};

const MINUTE: Millis = 60_000;
/// How long to wait for a reset whose time the agent does not report: the first time, the second, and so on.
const UNKNOWN_RESETS: [Millis; 4] = [5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR];
const LONGEST_BACK_OFF: Millis = 5 * MINUTE;

impl Machine<'_> {
    pub(super) fn ended(&mut self, id: AttemptId, outcome: Outcome) {
        if !self.run.active.iter().any(|attempt| attempt.id == id && attempt.phase == Phase::Running) {
            return;
        }
        let outcome = self.reviewed(id.stage, outcome);
        self.charge(id.stage, outcome.usage());
        self.records.push(Record::AttemptEnded { id, outcome: outcome.clone() });
        match outcome {
            Outcome::Succeeded(success) => self.succeeded(id, success),
            Outcome::Failed(failure) => self.failed(id, &failure),
        }
        self.advance();
    }

    pub(super) fn charge(&mut self, stage: u32, usage: &AttemptUsage) {
        let (tokens, cost_micros) = (usage.tokens.charged().max(0), usage.cost_micros.max(0));
        let run = &mut self.run;
        run.tokens = run.tokens.saturating_add(tokens);
        run.cost_micros = run.cost_micros.saturating_add(cost_micros);
        run.most_tokens = run.most_tokens.max(tokens);
        run.most_cost_micros = run.most_cost_micros.max(cost_micros);
        run.cost_unknown |= usage.cost_unknown;
        run.cost_unknown_now |= usage.cost_unknown;
        run.tokens_unknown |= usage.tokens_unknown;
        run.tokens_unknown_now |= usage.tokens_unknown;
        if let Some(current) = self.state_mut(stage) {
            current.tokens = current.tokens.saturating_add(tokens);
            current.cost_micros = current.cost_micros.saturating_add(cost_micros);
            current.cost_unknown_now |= usage.cost_unknown;
            current.tokens_unknown_now |= usage.tokens_unknown;
        }
    }

    /// Turns a success into a failure if the agent reports an error, or gives no vote where the rule needs one: a missing
    /// vote must never count.
    fn reviewed(&self, stage: u32, outcome: Outcome) -> Outcome {
        let mut success = match outcome {
            Outcome::Succeeded(success) => success,
            failed @ Outcome::Failed(_) => return failed,
        };
        let wants_vote = self.plan.stage(stage).is_some_and(|stage| {
            !stage.parallel && stage.completion.needs_vote() && !stage.completion.is_judged(stage.judge.as_ref())
        });
        let (kind, message) = if success.result.decision == Some(AgentDecision::Error) {
            let words = success.result.reasoning.as_deref().or(success.result.summary.as_deref());
            (FailureKind::Reported, words.unwrap_or("the agent reported an error").to_owned())
        } else if wants_vote && success.result.vote().is_none() {
            (FailureKind::NoResult, "the agent did not say whether anything is left to improve".to_owned())
        } else {
            if let Some(stage) = self.plan.stage(stage).filter(|stage| stage.stop_is_promise)
                && success.says_stop()
            {
                success.promises.extend(stage.completion.promises().map(str::to_owned));
            }
            return Outcome::Succeeded(success);
        };
        Outcome::Failed(Failure {
            kind,
            message,
            exit_code: Some(success.exit_code),
            usage: success.usage,
            started_at_ms: Some(success.started_at_ms),
            ended_at_ms: success.ended_at_ms,
        })
    }

    fn succeeded(&mut self, id: AttemptId, success: Box<Success>) {
        let checks = self.checks_after(id.stage, &success);
        // A promise and a `stop` end the stage only in the step that commits them, so they cannot be committed without a
        // decision.
        let is_decisive = !checks.is_empty() || !success.promises.is_empty() || success.says_stop();
        if self.run.cut_short && is_decisive {
            self.leave_undecided(id, success);
        } else if checks.is_empty() {
            self.commit(id, success, &[]);
        } else if let Some(attempt) = self.active_mut(id) {
            attempt.phase = Phase::Checking(success);
            self.acts.push(Act::Check { id, checks });
        }
    }

    /// Keeps a success whose rule is not tested yet, because the run is being stopped.
    pub(super) fn leave_undecided(&mut self, id: AttemptId, success: Box<Success>) {
        self.run.active.retain(|attempt| attempt.id != id);
        if let Some(stage) = self.state_mut(id.stage) {
            stage.undecided.push(Undecided { id, success });
        }
    }

    fn failed(&mut self, id: AttemptId, failure: &Failure) {
        if self.run.stopping.is_some() {
            self.leave(id);
            return;
        }
        let (now, limits) = (self.now, &self.plan.limits);
        let retries = self.plan.stage(id.stage).and_then(|stage| stage.retries);
        let most_errors = retries.map_or(limits.errors.max(1), |retries| retries.saturating_add(1));
        let back_off = limits.back_off_ms;
        let is_time_over = attempt_time_left(self.plan, &self.run, id.stage, now) == Some(0);
        let Some(attempt) = self.active_mut(id) else { return };
        let was_lost = std::mem::replace(&mut attempt.lost, false);
        match failure.kind {
            FailureKind::CannotStart => {
                self.give_up(id, RunReason::CannotStart, &failure.message);
            }
            FailureKind::UsageLimit { until_ms } => {
                let until = reset_at(until_ms, attempt.usage_waits, now);
                attempt.usage_waits = attempt.usage_waits.saturating_add(1);
                attempt.rest(until, WaitReason::UsageLimit);
            }
            // The time limit of the run or the stage ended it, which is not an error of the agent.
            FailureKind::TimedOut if is_time_over => attempt.rest(now, WaitReason::BackOff),
            // The machine where it ran is the reason, not the agent.
            FailureKind::NeverBegan | FailureKind::Drained => {
                attempt.lost = was_lost;
                attempt.rest(now, WaitReason::BackOff);
            }
            // This run did not stop it, so another process did.
            FailureKind::Lost | FailureKind::Stopped if !was_lost => {
                attempt.lost = true;
                attempt.rest(now, WaitReason::BackOff);
            }
            kind => {
                attempt.lost = matches!(kind, FailureKind::Lost | FailureKind::Stopped);
                attempt.errors = attempt.errors.saturating_add(1);
                let errors = attempt.errors;
                attempt.rest(now.saturating_add(rest_after(errors, back_off)), WaitReason::BackOff);
                if errors >= most_errors {
                    self.give_up(id, RunReason::Errors, &failure.message);
                }
            }
        }
    }

    /// Ends an iteration that failed for good, and its stage with it. In a parallel stage that may fail the other
    /// iterations go on.
    fn give_up(&mut self, id: AttemptId, reason: RunReason, message: &str) {
        let goes_on = |plan: &StagePlan| plan.parallel && plan.on_fail == Then::Continue;
        if !self.plan.stage(id.stage).is_some_and(goes_on) {
            self.leave(id);
            self.fail_stage(id.stage, reason, message);
            return;
        }
        self.run.active.retain(|attempt| attempt.id != id);
        let Some(current) = self.state_mut(id.stage) else { return };
        current.given_up = current.given_up.saturating_add(1);
        current.reason = Some(reason.with_detail(message));
    }

    /// Ends the attempt without a commit. Resuming the run starts the iteration's next attempt.
    pub(super) fn leave(&mut self, id: AttemptId) {
        self.run.active.retain(|attempt| attempt.id != id);
        if id.attempt > 0
            && let Some(stage) = self.state_mut(id.stage)
        {
            stage.left.push(id);
            stage.left.sort_unstable();
        }
    }
}

impl ActiveAttempt {
    fn rest(&mut self, until_ms: Millis, why: WaitReason) {
        self.phase = Phase::Resting;
        self.wait = Some(Wait { until_ms, why });
    }
}

/// A reset time in the past counts as unknown; otherwise the attempt would be repeated at once, again and again.
fn reset_at(named: Option<Millis>, waits: u32, now: Millis) -> Millis {
    let wait = match named {
        Some(until) if until > now => FARTHEST_RESET.min(until - now),
        _ => UNKNOWN_RESETS.get(waits as usize).copied().unwrap_or(HOUR),
    };
    now.saturating_add(wait)
}

/// Half of the base after the first error, because most errors pass at once; then doubled with each error.
fn rest_after(errors: u32, base: Millis) -> Millis {
    let rest = match errors {
        0 | 1 => base / 2,
        more => base.saturating_mul(1_i64.checked_shl(more - 1).filter(|factor| *factor > 0).unwrap_or(Millis::MAX)),
    };
    rest.clamp(0, LONGEST_BACK_OFF)
}
