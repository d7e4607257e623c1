//! What a failed activity means for the machine.

use steadfast_model::clock::Millis;
use steadfast_model::run::{AttemptUsage, Failure, FailureKind, Outcome};
use temporalio_workflow::{ActivityExecutionError, TimeoutType};

use crate::wire::WorkerProgress;

/// The outcome of an attempt whose activity failed. What its last heartbeat says it used is charged.
pub(super) fn of_error(error: &ActivityExecutionError, now: Millis) -> Outcome {
    let timeout = error.as_timeout();
    let progress = timeout.and_then(|timeout| timeout.last_heartbeat_details::<WorkerProgress>().ok().flatten());
    let began = progress.as_ref().is_some_and(|progress| progress.started_at_ms.is_some());
    let kind = match timeout.map(temporalio_common::error::TimeoutError::timeout_type) {
        Some(TimeoutType::Heartbeat) if began => FailureKind::Lost,
        Some(TimeoutType::Heartbeat) => FailureKind::NeverBegan,
        Some(TimeoutType::StartToClose) => FailureKind::TimedOut,
        _ if error.as_cancelled().is_some() => FailureKind::Stopped,
        _ => FailureKind::CannotStart,
    };
    let message = match (kind, &progress) {
        (FailureKind::Lost, Some(progress)) => format!("the worker {} was not heard from any more", progress.worker),
        (FailureKind::NeverBegan, _) => "the worker that took it did not begin".to_owned(),
        (FailureKind::TimedOut, _) => "it ran past its time limit".to_owned(),
        (FailureKind::Stopped, _) => "stopped".to_owned(),
        _ => error.cause().map_or_else(|| error.to_string(), ToString::to_string),
    };
    let (usage, started_at_ms) = progress.map(|progress| (progress.usage, progress.started_at_ms)).unwrap_or_default();
    Outcome::Failed(Failure { kind, message, exit_code: None, usage, started_at_ms, ended_at_ms: now })
}

/// The outcome of an attempt whose activity is gone with an earlier history.
pub(super) fn lost(now: Millis) -> Outcome {
    let message = "its worker was not heard from any more".to_owned();
    let usage = AttemptUsage::default();
    let (exit_code, started_at_ms) = (None, None);
    Outcome::Failed(Failure { kind: FailureKind::Lost, message, exit_code, usage, started_at_ms, ended_at_ms: now })
}

/// The outcome of an attempt that was stopped before it was sent to a worker.
pub(super) fn stopped(now: Millis) -> Outcome {
    let message = "stopped before it began".to_owned();
    let usage = AttemptUsage::default();
    let (exit_code, started_at_ms) = (None, None);
    Outcome::Failed(Failure { kind: FailureKind::Stopped, message, exit_code, usage, started_at_ms, ended_at_ms: now })
}
