//! Activities: what workers do, as thin asynchronous wrappers of the blocking calls in `work.rs`. They beat every second,
//! pass cancellation on, hand on what this worker cannot take, and turn errors into what the workflow understands.
#![expect(dead_code, reason = "the macro names each activity once more; workflows use the names in `calls.rs`")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use steadfast_engine::process::Cancel;
use steadfast_model::clock;
use steadfast_model::limit::Axis;
use steadfast_model::run::{AttemptUsage, Failure, FailureKind, Outcome, Plan};
use temporalio_client::WorkflowSignalOptions;
use temporalio_common::error::ApplicationFailure;
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tokio::sync::Semaphore;

use crate::ledger::{self, LedgerWorkflow};
use crate::wire::{
    AttemptInput, AttemptResult, CheckInput, CheckReport, ConditionInput, ConditionReport, Decided, FinishInput,
    ForkInput, LedgerState, RunRef, SaveInput, Spent, StepRequest, Using, WorkerProgress,
};
use crate::work::{self, WorkError, WorkerContext};
use crate::workflow::{RunWorkflow, acts};

const BEAT: Duration = Duration::from_secs(1);
/// Between two reports of what a running attempt used.
const USING: Duration = Duration::from_secs(10);
const SHORTEST_HAND_ON: Duration = Duration::from_millis(500);
const LONGEST_HAND_ON: Duration = Duration::from_secs(10);
/// How often the branches of attempts are deleted at the end of a run before they are left.
const CLEAN_TRIES: u32 = 3;
/// The type of failures that another worker may not have.
pub(crate) const BUSY: &str = "busy";

/// What all queues of a worker share.
pub(crate) struct Worker {
    pub(crate) context: WorkerContext,
    /// Agents at once, over all queues.
    pub(crate) slots: Semaphore,
    pub(crate) check_slots: Semaphore,
    /// The worker shuts down: agents are stopped, which is no fault of theirs.
    pub(crate) is_draining: AtomicBool,
}

impl Worker {
    /// Takes nothing more. What runs is cancelled by the SDK after a while.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }
}

/// Runs agents.
pub(crate) struct Agents(pub(crate) Arc<Worker>);

/// Runs checks and conditions.
pub(crate) struct Checks(pub(crate) Arc<Worker>);

/// What the workflows do by themselves: decisions, records, branches.
pub(crate) struct DriverActivities(pub(crate) Arc<Worker>);

#[activities]
impl Agents {
    #[activity(name = "attempt")]
    pub(crate) async fn attempt(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: AttemptInput,
    ) -> Result<AttemptResult, ActivityError> {
        let worker = Arc::clone(&self.0);
        if worker.is_draining() {
            return Err(handed_on(&ctx, "this worker shuts down"));
        }
        let Ok(_slot) = worker.slots.try_acquire() else {
            return Err(handed_on(&ctx, "no free slot"));
        };
        let id = input.id;
        let progress =
            Arc::new(Mutex::new(WorkerProgress { worker: worker.context.name.clone(), ..WorkerProgress::default() }));
        let has_budget = Arc::new(AtomicBool::new(false));
        let cancel = Cancel::default();
        let blocking = {
            let (worker, progress) = (Arc::clone(&worker), Arc::clone(&progress));
            let (cancel, has_budget) = (cancel.clone(), Arc::clone(&has_budget));
            tokio::task::spawn_blocking(move || {
                let plan = work::plan_of(&worker.context, &input.run_ref)?;
                has_budget.store(counts_usage(&plan), Ordering::Relaxed);
                let mut beat = |seen: &WorkerProgress| {
                    let mut shared = progress.lock().unwrap_or_else(PoisonError::into_inner);
                    let name = std::mem::take(&mut shared.worker);
                    *shared = WorkerProgress { worker: name, ..seen.clone() };
                };
                work::attempt(&worker.context, &input, &cancel, &mut beat)
            })
        };
        let mut blocking = std::pin::pin!(blocking);
        let mut beats = tokio::time::interval(BEAT);
        let (mut told, mut told_at) = (AttemptUsage::default(), tokio::time::Instant::now());
        let mut was_cancelled = false;
        let mut is_drained = false;
        let result = loop {
            tokio::select! {
                result = &mut blocking => break result,
                () = ctx.cancelled(), if !was_cancelled => {
                    was_cancelled = true;
                    is_drained = worker.is_draining();
                    cancel.cancel();
                }
                _ = beats.tick() => {
                    let seen = progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    let usage = seen.usage;
                    ctx.record_heartbeat(seen).await?;
                    let is_due = told_at.elapsed() >= USING && usage != told && has_budget.load(Ordering::Relaxed);
                    if is_due && let Some(handle) = ctx.workflow_handle::<RunWorkflow>() {
                        (told, told_at) = (usage, tokio::time::Instant::now());
                        let sent = handle.signal(RunWorkflow::using, Using { id, usage }, WorkflowSignalOptions::default());
                        // The next heartbeat and the end of the attempt report it again.
                        if let Err(error) = sent.await {
                            tracing::debug!("usage of {id:?} was not reported: {error}");
                        }
                    }
                }
            }
        };
        let seen = progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match result {
            Ok(Ok(mut report)) => {
                if is_drained {
                    as_drained(&mut report.outcome);
                }
                Ok(report)
            }
            Ok(Err(error)) if seen.started_at_ms.is_none() && !was_cancelled && error.is_transient() => {
                Err(not_now(&ctx, &error))
            }
            Ok(Err(error)) => Ok(failed(&error, &seen, was_cancelled, is_drained)),
            Err(panic) => Err(ActivityError::application(ApplicationFailure::non_retryable(panic))),
        }
    }
}

#[activities]
impl Checks {
    #[activity(name = "check")]
    pub(crate) async fn check(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: CheckInput,
    ) -> Result<CheckReport, ActivityError> {
        let worker = Arc::clone(&self.0);
        let call = move |cancel: &Cancel| work::check(&worker.context, &input, cancel);
        self.0.look(&ctx, call).await
    }

    #[activity(name = "condition")]
    pub(crate) async fn condition(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: ConditionInput,
    ) -> Result<ConditionReport, ActivityError> {
        let worker = Arc::clone(&self.0);
        let call = move |cancel: &Cancel| work::condition(&worker.context, &input, cancel);
        self.0.look(&ctx, call).await
    }
}

impl Worker {
    /// Runs a check: on a worker that shuts down it is left to another one.
    async fn look<T: Send + 'static>(
        &self,
        ctx: &ActivityContext,
        call: impl FnOnce(&Cancel) -> Result<T, WorkError> + Send + 'static,
    ) -> Result<T, ActivityError> {
        if self.is_draining() {
            return Err(handed_on(ctx, "this worker shuts down"));
        }
        let Ok(_slot) = self.check_slots.try_acquire() else {
            return Err(handed_on(ctx, "no free slot"));
        };
        let cancel = Cancel::default();
        let blocking = {
            let cancel = cancel.clone();
            tokio::task::spawn_blocking(move || call(&cancel))
        };
        let mut blocking = std::pin::pin!(blocking);
        let mut beats = tokio::time::interval(BEAT);
        let mut was_cancelled = false;
        let result = loop {
            tokio::select! {
                result = &mut blocking => break result,
                () = ctx.cancelled(), if !was_cancelled => {
                    was_cancelled = true;
                    cancel.cancel();
                }
                _ = beats.tick() => ctx.record_heartbeat(WorkerProgress::default()).await?,
            }
        };
        if was_cancelled && self.is_draining() {
            return Err(handed_on(ctx, "this worker shuts down"));
        }
        finish(ctx, result)
    }
}

#[activities]
impl DriverActivities {
    /// One step of the machine.
    #[activity(name = "decide")]
    pub(crate) async fn decide(
        self: Arc<Self>,
        ctx: ActivityContext,
        question: StepRequest,
    ) -> Result<Decided, ActivityError> {
        let plan = self.plan(&ctx, question.run_ref.clone()).await?;
        Ok(acts::decide(&plan, question))
    }

    /// Writes records and reports what the run spent.
    #[activity(name = "record")]
    pub(crate) async fn record(self: Arc<Self>, ctx: ActivityContext, input: SaveInput) -> Result<(), ActivityError> {
        let SaveInput { record, spent } = input;
        let worker = Arc::clone(&self.0);
        beating(&ctx, move || work::record(&worker.context, &record)).await?;
        match spent {
            Some(spent) => account(&ctx, spent).await,
            None => Ok(()),
        }
    }

    /// The end of a run: its branch, its attempts' branches, the ledger.
    #[activity(name = "finish")]
    pub(crate) async fn finish(self: Arc<Self>, ctx: ActivityContext, input: FinishInput) -> Result<(), ActivityError> {
        let FinishInput { run_ref, head, spent } = input;
        let worker = Arc::clone(&self.0);
        let tries = ctx.info().attempt;
        let end = move || {
            work::publish(&worker.context, &run_ref, &head)?;
            match work::clean(&worker.context, &run_ref) {
                // A repository that refuses deletions must not keep the run from its end.
                Err(error) if tries >= CLEAN_TRIES => {
                    tracing::warn!("branches of attempts of {} are left in the repository: {error}", run_ref.name);
                    Ok(())
                }
                cleaned => cleaned,
            }
        };
        beating(&ctx, end).await?;
        account(&ctx, spent).await
    }

    /// The branches of a run that a schedule started.
    #[activity(name = "fork")]
    pub(crate) async fn fork(self: Arc<Self>, ctx: ActivityContext, input: ForkInput) -> Result<RunRef, ActivityError> {
        let worker = Arc::clone(&self.0);
        beating(&ctx, move || work::fork(&worker.context, &input)).await
    }
}

impl DriverActivities {
    async fn plan(&self, ctx: &ActivityContext, run: RunRef) -> Result<Arc<Plan>, ActivityError> {
        let worker = Arc::clone(&self.0);
        let plan = tokio::task::spawn_blocking(move || work::plan_of(&worker.context, &run)).await;
        finish(ctx, plan)
    }
}

/// Beats meanwhile, so that another driver takes it over soon if this one dies.
async fn beating<T: Send + 'static>(
    ctx: &ActivityContext,
    call: impl FnOnce() -> Result<T, WorkError> + Send + 'static,
) -> Result<T, ActivityError> {
    let mut blocking = std::pin::pin!(tokio::task::spawn_blocking(call));
    let mut beats = tokio::time::interval(BEAT);
    loop {
        tokio::select! {
            result = &mut blocking => return finish(ctx, result),
            _ = beats.tick() => ctx.record_heartbeat(WorkerProgress::default()).await?,
        }
    }
}

/// Whether what a running attempt uses may end the run.
fn counts_usage(plan: &Plan) -> bool {
    let limits = &plan.limits.limits;
    limits.get(Axis::Tokens).is_some() || limits.get(Axis::Usd).is_some()
}

async fn account(ctx: &ActivityContext, spent: Spent) -> Result<(), ActivityError> {
    let client = ctx.client();
    let options = ledger::start_options();
    let state = LedgerState::default();
    client.signal_with_start_workflow(LedgerWorkflow::run, state, LedgerWorkflow::spent, spent, options).await?;
    Ok(())
}

fn finish<T>(
    ctx: &ActivityContext,
    result: Result<Result<T, WorkError>, tokio::task::JoinError>,
) -> Result<T, ActivityError> {
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) if error.is_transient() => Err(not_now(ctx, &error)),
        Ok(Err(error)) => Err(ActivityError::application(ApplicationFailure::non_retryable(in_words(&error)))),
        Err(panic) => Err(ActivityError::application(ApplicationFailure::non_retryable(panic))),
    }
}

fn in_words(error: &WorkError) -> String {
    format!("{error}; {}", error.hint())
}

/// Another worker, or this one later, takes it.
fn handed_on(ctx: &ActivityContext, why: &str) -> ActivityError {
    let tries = ctx.info().attempt.min(16);
    let delay = SHORTEST_HAND_ON.saturating_mul(tries).min(LONGEST_HAND_ON);
    let failure = ApplicationFailure::builder(why).type_name(BUSY.to_owned()).next_retry_delay(delay);
    ActivityError::application(failure.build())
}

fn not_now(ctx: &ActivityContext, error: &WorkError) -> ActivityError {
    if error.is_busy() {
        return handed_on(ctx, &in_words(error));
    }
    ActivityError::application(ApplicationFailure::new(in_words(error)))
}

/// The report of an attempt that ended in an error outside of its agent.
fn failed(error: &WorkError, seen: &WorkerProgress, was_cancelled: bool, is_drained: bool) -> AttemptResult {
    let kind = match () {
        () if is_drained => FailureKind::Drained,
        () if was_cancelled => FailureKind::Stopped,
        () if error.is_transient() => FailureKind::Transient,
        () => FailureKind::CannotStart,
    };
    let WorkerProgress { usage, started_at_ms, .. } = seen.clone();
    let (message, ended_at_ms) = (in_words(error), clock::now());
    let failure = Failure { kind, message, exit_code: None, usage, started_at_ms, ended_at_ms };
    AttemptResult { outcome: Outcome::Failed(failure), sha: None, files: None, branch: None }
}

/// An agent that was stopped because its worker shuts down is no agent that the run stopped.
fn as_drained(outcome: &mut Outcome) {
    if let Outcome::Failed(failure) = outcome
        && failure.kind == FailureKind::Stopped
    {
        failure.kind = FailureKind::Drained;
        "its worker was shut down".clone_into(&mut failure.message);
    }
}
