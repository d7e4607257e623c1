//! The loop of a run's workflow: one event, one recorded step, then its records and acts. Records are written in order
//! by an activity; an act waits until the end of the attempt before it is written, as on one machine.

mod cutting;
mod hearing;
mod launching;
mod saving;

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::time::{Duration, UNIX_EPOCH};

use steadfast_model::clock::Millis;
use steadfast_model::run::{AttemptId, Check, Phase, Record, Run, RunEvent};
use temporalio_workflow::{
    ActivityCloseTimeouts, ActivityExecutionError, ActivityOptions, LocalActivityOptions, RetryPolicy,
    WorkflowCancellationToken, WorkflowContext, WorkflowResult,
};

use super::{RunWorkflow, outcome, run_name};
use crate::calls::Calls;
use crate::wire::{
    AttemptResult, AttemptShas, Carried, CheckReport, ConditionReport, Decided, Face, FleetAct, ForkInput, Heads,
    RUN_PLACE, RunInput, RunRef, Status, StepRequest, attempt_key,
};

const LONGEST_STEP: Duration = Duration::from_mins(1);

type Context<'a> = &'a WorkflowContext<RunWorkflow>;
type Flight<'a> = Pin<Box<dyn Future<Output = FlightResult> + 'a>>;
type Answer<T> = Result<T, ActivityExecutionError>;

/// What the workflow waits for.
enum FlightResult {
    Attempted(AttemptId, Answer<AttemptResult>),
    Checked(AttemptId, Vec<Check>, Answer<CheckReport>),
    Condition(u32, Answer<ConditionReport>),
    /// The records before this number are written.
    Saved(u64, Answer<()>),
    /// The timer with this number fired.
    Woke(u64),
    Finished(Answer<()>),
}

struct RunHost<'a> {
    ctx: Context<'a>,
    input: RunInput,
    run: Option<Run>,
    heads: Heads,
    shas: BTreeMap<String, AttemptShas>,
    /// Places by `S-I-A` of what is active.
    places: BTreeMap<String, String>,
    /// Records so far, and how many of them are written.
    seq: u64,
    saved: u64,
    unsaved: Vec<Record>,
    is_saving: bool,
    /// Acts wait until this many records are written.
    barrier: u64,
    acts: VecDeque<(u64, FleetAct)>,
    events: VecDeque<RunEvent>,
    flights: Vec<Flight<'a>>,
    /// Attempts, checks and conditions under way.
    working: u32,
    tokens: BTreeMap<String, WorkflowCancellationToken>,
    timer: Option<WorkflowCancellationToken>,
    timers: u64,
    steps: u32,
    face: Option<Face>,
    told: Option<Status>,
    /// Tokens and cost that the ledger knows.
    spent: Option<(i64, i64)>,
    /// What was spent when this history began.
    spent_before: (i64, i64),
    is_cancelled: bool,
    is_finishing: bool,
}

pub(super) async fn drive(ctx: Context<'_>) -> WorkflowResult<Status> {
    let mut input = ctx.state(|state| state.input.clone());
    let carried = input.carried.take();
    if input.options.scheduled && carried.is_none() {
        input.run = forked(ctx, &input.run).await?;
    }
    RunHost::new(ctx, input, carried).drive().await
}

/// The run that a schedule started gets its own name and branches.
async fn forked(ctx: Context<'_>, from: &RunRef) -> WorkflowResult<RunRef> {
    let input = ForkInput { from: from.clone(), name: run_name(ctx.workflow_id()), run_id: ctx.uuid4() };
    let heartbeat = ctx.state(|state| state.input.options.heartbeat());
    Ok(ctx.execute_activity(Calls::fork, input, upkeep("fork", heartbeat)).await?)
}

impl<'a> RunHost<'a> {
    fn new(ctx: Context<'a>, input: RunInput, carried: Option<Carried>) -> Self {
        let is_new = carried.is_none();
        let carried = carried.unwrap_or_default();
        let mut heads = carried.heads;
        if heads.get(RUN_PLACE).is_none() {
            heads.set(RUN_PLACE, &input.run.repo.base);
        }
        let seq = carried.seq.saturating_add(u64::try_from(carried.records.len()).unwrap_or(0));
        let spent_before = (carried.run.tokens, carried.run.cost_micros);
        let mut host = Self {
            ctx,
            input,
            run: (!is_new).then_some(carried.run),
            heads,
            shas: carried.shas,
            places: BTreeMap::new(),
            seq,
            saved: carried.seq,
            unsaved: carried.records,
            is_saving: false,
            barrier: seq,
            acts: carried.held.into_iter().map(|act| (seq, act)).collect(),
            events: VecDeque::new(),
            flights: Vec::new(),
            working: 0,
            tokens: BTreeMap::new(),
            timer: None,
            timers: 0,
            steps: 0,
            face: None,
            told: None,
            spent: None,
            spent_before,
            is_cancelled: false,
            is_finishing: false,
        };
        host.begin(carried.continued);
        host
    }

    /// The first events: of a history that was cut, only the timer is asked for again.
    fn begin(&mut self, continued: bool) {
        let now = self.now();
        match &self.run {
            Some(run) if continued => {
                if run.wait.is_some() || run.is_asking() {
                    self.events.push_back(RunEvent::Woke);
                }
            }
            Some(run) => {
                let running = run.active.iter().filter(|attempt| attempt.phase == Phase::Running);
                let lost = running.map(|attempt| RunEvent::Ended { id: attempt.id, outcome: outcome::lost(now) });
                self.events.push_back(RunEvent::Started);
                let lost: Vec<RunEvent> = lost.collect();
                self.events.extend(lost);
            }
            None => self.events.push_back(RunEvent::Started),
        }
    }

    async fn drive(mut self) -> WorkflowResult<Status> {
        loop {
            while let Some(event) = self.next_event() {
                self.step(event).await?;
            }
            self.save();
            self.launch();
            self.tell()?;
            if self.may_cut() {
                self.cut()?;
            }
            match self.news().await {
                Some(FlightResult::Finished(result)) => {
                    result?;
                    return Ok(self.status());
                }
                Some(FlightResult::Saved(upto, result)) => {
                    result?;
                    self.was_saved(upto);
                }
                Some(news) => self.hear(news),
                None => {}
            }
        }
    }

    fn now(&self) -> Millis {
        let time = self.ctx.workflow_time().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        time.and_then(|time| Millis::try_from(time.as_millis()).ok()).unwrap_or(0)
    }

    /// What people ask comes before what attempts report.
    fn next_event(&mut self) -> Option<RunEvent> {
        let asked = self.ctx.state(|state| !state.inbox.is_empty());
        let asked = if asked { self.ctx.state_mut(|state| state.inbox.pop_front()) } else { None };
        asked.or_else(|| self.events.pop_front())
    }

    async fn step(&mut self, event: RunEvent) -> WorkflowResult<()> {
        self.steps = self.steps.saturating_add(1);
        let question = StepRequest {
            run_ref: self.input.run.clone(),
            options: self.input.options.clone(),
            run: self.run.take(),
            event,
            now: self.now(),
        };
        let options = LocalActivityOptions::builder()
            .start_to_close_timeout(LONGEST_STEP)
            .schedule_to_close_timeout(Duration::from_hours(24 * 365))
            .retry_policy(RetryPolicy::builder().maximum_interval(Duration::from_secs(30)).build())
            .cancellation_token(WorkflowCancellationToken::new())
            .build();
        let decided: Decided = self.ctx.execute_local_activity(Calls::decide, question, options).await?;
        self.run = Some(decided.run);
        self.face = Some(decided.face);
        for record in decided.records {
            self.seq = self.seq.saturating_add(1);
            match &record {
                Record::Committed { id, .. } => self.committed(*id),
                Record::AttemptEnded { .. } | Record::StageEnded { .. } | Record::Finished { .. } => {}
                _ => {
                    self.unsaved.push(record);
                    continue;
                }
            }
            self.barrier = self.seq;
            self.unsaved.push(record);
        }
        for act in decided.acts {
            match act {
                FleetAct::Stop(ids) => self.stop(&ids),
                FleetAct::WakeAt(at) => self.wake_at(at),
                act => self.acts.push_back((self.barrier, act)),
            }
        }
        Ok(())
    }

    /// The head of its place moves to the work of a committed attempt.
    fn committed(&mut self, id: AttemptId) {
        let key = attempt_key(id);
        let Some(shas) = self.shas.get(&key) else { return };
        if let Some(sha) = &shas.sha {
            self.heads.set(&shas.place, sha);
        }
    }

    fn fly(&mut self, future: impl Future<Output = FlightResult> + 'a) {
        self.flights.push(Box::pin(future));
    }
}

/// What the run itself has to do: tried until it is done, or for a week. `status` shows why the last try failed. After
/// the week the workflow fails, and `resume` continues from the last records.
fn upkeep(id: &str, heartbeat: Duration) -> ActivityOptions {
    let (start_to_close, schedule_to_close) = (Duration::from_mins(10), Duration::from_hours(7 * 24));
    ActivityOptions::with_close_timeouts(ActivityCloseTimeouts::ScheduleAndStartToClose {
        schedule_to_close,
        start_to_close,
    })
    .summary(id)
    .heartbeat_timeout(heartbeat)
    .cancellation_token(WorkflowCancellationToken::new())
    .retry_policy(patient())
    .build()
}

fn patient() -> RetryPolicy {
    RetryPolicy::builder().maximum_interval(Duration::from_secs(30)).build()
}
