//! The loop of a run's workflow: one event, one recorded step, then its records and acts. Records are written in order
//! by an activity; an act waits until the end of the attempt before it is written, as on one machine.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, UNIX_EPOCH};

use futures_util::FutureExt;
use steadfast_model::clock::Millis;
use steadfast_model::run::{AttemptId, Checked, Outcome, Phase, Record, Run, RunEvent, RunReason, RunStatus, Stopping};
use temporalio_common::MemoValue;
use temporalio_workflow::{
    ActivityCancellationType, ActivityExecutionError, ActivityOptions, ContinueAsNewOptions, LocalActivityOptions,
    RetryPolicy, TimerOptions, WaitConditionOptions, WorkflowCancellationToken, WorkflowContext, WorkflowResult,
};

use super::{REPO_MEMO, RunWorkflow, STATUS_MEMO, outcome, run_name};
use crate::activities::{Agents, Checks, Drive};
use crate::wire::{
    AttemptInput, AttemptReport, AttemptShas, Carried, CheckInput, CheckReport, ConditionInput, ConditionReport,
    Decided, Face, FinishInput, FleetAct, ForkInput, Heads, Question, RUN_PLACE, RecordInput, RunInput, RunRef,
    SaveInput, Spent, Status, attempt_key,
};

/// For the repository besides the agent: fetch and push.
const SLACK: Duration = Duration::from_mins(15);
const LONGEST_CHECK: Duration = Duration::from_hours(2);
const LONGEST_STEP: Duration = Duration::from_secs(60);

type Context<'a> = &'a WorkflowContext<RunWorkflow>;
type Flight<'a> = Pin<Box<dyn Future<Output = News> + 'a>>;
type Answer<T> = Result<T, ActivityExecutionError>;

/// What the workflow waits for.
enum News {
    Attempted(AttemptId, Answer<AttemptReport>),
    Checked(AttemptId, Vec<steadfast_model::run::Check>, Answer<CheckReport>),
    Condition(u32, Answer<ConditionReport>),
    /// The records before this number are written.
    Saved(u64, Answer<()>),
    /// The timer with this number fired.
    Woke(u64),
    Finished(Answer<()>),
}

struct Host<'a> {
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
    Host::new(ctx, input, carried).drive().await
}

/// The run that a schedule started gets its own name and branches.
async fn forked(ctx: Context<'_>, from: &RunRef) -> WorkflowResult<RunRef> {
    let input = ForkInput { from: from.clone(), name: run_name(ctx.workflow_id()), run_id: ctx.uuid4() };
    Ok(ctx.execute_activity(Drive::fork, input, upkeep("fork")).await?)
}

impl<'a> Host<'a> {
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
                Some(News::Finished(result)) => {
                    result?;
                    return Ok(self.status());
                }
                Some(News::Saved(upto, result)) => {
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
        let question = Question {
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
        let decided: Decided = self.ctx.execute_local_activity(Drive::decide, question, options).await?;
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

    fn stop(&mut self, ids: &[AttemptId]) {
        for id in ids {
            if let Some(token) = self.tokens.get(&attempt_key(*id)) {
                token.cancel();
            }
        }
        // An attempt that is still held back has nothing to stop: it has ended.
        let is_held = |act: &FleetAct, id: AttemptId| matches!(act, FleetAct::Start { id: held, .. } if *held == id);
        let now = self.now();
        for id in ids {
            let before = self.acts.len();
            self.acts.retain(|(_, act)| !is_held(act, *id));
            if self.acts.len() < before {
                self.events.push_back(RunEvent::Ended { id: *id, outcome: outcome::stopped(now) });
            }
        }
    }

    fn wake_at(&mut self, at: Millis) {
        if let Some(timer) = self.timer.take() {
            timer.cancel();
        }
        self.timers = self.timers.saturating_add(1);
        let (number, token) = (self.timers, WorkflowCancellationToken::new());
        let left = u64::try_from(at.saturating_sub(self.now())).unwrap_or(0).max(1);
        let options = TimerOptions::builder(Duration::from_millis(left)).cancellation_token(token.clone()).build();
        self.timer = Some(token);
        self.fly(self.ctx.timer(options).map(move |_| News::Woke(number)));
    }

    fn fly(&mut self, future: impl Future<Output = News> + 'a) {
        self.flights.push(Box::pin(future));
    }

    /// Writes the records that are not written, one batch at a time.
    fn save(&mut self) {
        if self.is_saving || self.unsaved.is_empty() {
            return;
        }
        let Some(run) = self.run.clone() else { return };
        let files = |record: &Record| {
            let (Record::AttemptEnded { id, .. } | Record::Committed { id, .. }) = record else { return None };
            Some((*id, self.shas.get(&attempt_key(*id))?.files.clone()?))
        };
        let mut files: Vec<(AttemptId, String)> = self.unsaved.iter().filter_map(files).collect();
        files.dedup();
        let totals = (run.tokens, run.cost_micros);
        let spent = (self.spent != Some(totals)).then(|| self.spent_so_far(&run, false));
        self.spent = Some(totals);
        let record = RecordInput {
            run_ref: self.input.run.clone(),
            seq: self.saved,
            records: self.unsaved.clone(),
            run,
            heads: self.heads.clone(),
            files,
            shas: self.shas.clone(),
            options: self.input.options.clone(),
        };
        let upto = self.seq;
        self.is_saving = true;
        let saved = self.ctx.execute_activity(Drive::record, SaveInput { record, spent }, upkeep("record"));
        self.fly(saved.map(move |result| News::Saved(upto, result)));
    }

    fn spent_so_far(&self, run: &Run, left: bool) -> Spent {
        let workflow = self.ctx.workflow_id().to_owned();
        let run_id = self.input.run.run_id.clone();
        let (tokens_before, cost_micros_before) = self.spent_before;
        let (tokens, cost_micros) = (run.tokens, run.cost_micros);
        Spent { workflow, run_id, tokens, cost_micros, tokens_before, cost_micros_before, left }
    }

    fn was_saved(&mut self, upto: u64) {
        let written = usize::try_from(upto.saturating_sub(self.saved)).unwrap_or(0).min(self.unsaved.len());
        self.unsaved.drain(..written);
        self.saved = upto;
        self.is_saving = false;
        // Only work that is not committed, or whose record is still to be written, is looked up again.
        let run = self.run.as_ref();
        let mut needed: Vec<String> = self.unsaved.iter().filter_map(record_key).collect();
        needed.extend(run.iter().flat_map(|run| &run.active).map(|attempt| attempt_key(attempt.id)));
        let undecided = run.iter().flat_map(|run| &run.stages).flat_map(|stage| &stage.undecided);
        needed.extend(undecided.map(|undecided| attempt_key(undecided.id)));
        self.shas.retain(|key, _| needed.contains(key));
    }

    /// Starts what is due. While the history is about to be cut, nothing new starts.
    fn launch(&mut self) {
        let holds = self.holds();
        let mut later = VecDeque::new();
        while let Some((after, act)) = self.acts.pop_front() {
            let is_due = match &act {
                FleetAct::Finish => self.saved >= self.seq && !self.is_finishing,
                _ => self.saved >= after && !holds,
            };
            if is_due { self.act(act) } else { later.push_back((after, act)) }
        }
        self.acts = later;
    }

    fn act(&mut self, act: FleetAct) {
        let Some(run) = self.run.clone() else { return };
        let (run_ref, heads, seq) = (self.input.run.clone(), self.heads.clone(), self.saved);
        match act {
            FleetAct::Start { id, queue, timeout_ms, deadline_ms, place, base_place } => {
                let base = self.head_of(&place, &base_place);
                self.places.insert(attempt_key(id), place);
                let notes = self.ctx.state_mut(|state| std::mem::take(&mut state.notes));
                let input = AttemptInput { run_ref, id, base, heads, seq, timeout_ms, deadline_ms, notes, run };
                let options = self.attempt_options(id, queue, timeout_ms);
                let attempted = self.ctx.execute_activity(Agents::attempt, input, options);
                self.working = self.working.saturating_add(1);
                self.fly(attempted.map(move |result| News::Attempted(id, result)));
            }
            FleetAct::Check { id, checks, queue, place, base_place } => {
                let shas = self.shas.get(&attempt_key(id)).cloned().unwrap_or_default();
                let sha = shas.sha.unwrap_or_else(|| self.head_of(&place, &base_place));
                let asked = checks.clone();
                let input = CheckInput { run_ref, id, checks, sha, heads, seq, files: shas.files, run };
                let options = self.check_options(format!("check-{}", attempt_key(id)), queue);
                let checked = self.ctx.execute_activity(Checks::check, input, options);
                self.working = self.working.saturating_add(1);
                self.fly(checked.map(move |result| News::Checked(id, asked, result)));
            }
            FleetAct::Condition { stage, queue, place, base_place } => {
                let sha = self.head_of(&place, &base_place);
                let input = ConditionInput { run_ref, stage, sha, heads, seq, run };
                let options = self.check_options(format!("condition-{stage}"), queue);
                let decided = self.ctx.execute_activity(Checks::condition, input, options);
                self.working = self.working.saturating_add(1);
                self.fly(decided.map(move |result| News::Condition(stage, result)));
            }
            FleetAct::Finish => {
                self.is_finishing = true;
                let head = self.head_of(RUN_PLACE, RUN_PLACE);
                let input = FinishInput { run_ref, head, spent: self.spent_so_far(&run, true) };
                let finished = self.ctx.execute_activity(Drive::finish, input, upkeep("finish"));
                self.fly(finished.map(News::Finished));
            }
            FleetAct::Stop(_) | FleetAct::WakeAt(_) => {}
        }
    }

    fn head_of(&self, place: &str, base_place: &str) -> String {
        let head = self.heads.get(place).or_else(|| self.heads.get(base_place)).or_else(|| self.heads.get(RUN_PLACE));
        head.unwrap_or(&self.input.run.repo.base).to_owned()
    }

    fn heartbeat(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.input.options.heartbeat_ms).unwrap_or(0).max(1_000))
    }

    fn attempt_options(&mut self, id: AttemptId, queue: String, timeout_ms: Option<i64>) -> ActivityOptions {
        let key = attempt_key(id);
        let token = WorkflowCancellationToken::new();
        self.tokens.insert(key.clone(), token.clone());
        let timeout = timeout_ms.and_then(|timeout| u64::try_from(timeout).ok()).map(Duration::from_millis);
        let timeout = timeout.unwrap_or(Duration::from_hours(24)).saturating_add(SLACK);
        ActivityOptions::with_start_to_close_timeout(timeout)
            .activity_id(key)
            .task_queue(queue)
            .heartbeat_timeout(self.heartbeat())
            .cancellation_type(ActivityCancellationType::WaitCancellationCompleted)
            .cancellation_token(token)
            .retry_policy(handed_on())
            .build()
    }

    /// A check is repeated until it answers: it has no attempts of its own.
    fn check_options(&self, id: String, queue: String) -> ActivityOptions {
        ActivityOptions::with_start_to_close_timeout(LONGEST_CHECK)
            .activity_id(id)
            .task_queue(queue)
            .heartbeat_timeout(self.heartbeat())
            .cancellation_token(WorkflowCancellationToken::new())
            .retry_policy(patient())
            .build()
    }

    /// Waits for the next news; `None` if a signal came.
    async fn news(&mut self) -> Option<News> {
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

    fn hear(&mut self, news: News) {
        let now = self.now();
        let event = match news {
            News::Attempted(id, result) => RunEvent::Ended { id, outcome: self.ended(id, result, now) },
            News::Checked(id, checks, result) => RunEvent::Checked { id, facts: self.checked(id, checks, result) },
            News::Condition(stage, result) => {
                self.working = self.working.saturating_sub(1);
                let cannot = |error: ActivityExecutionError| ConditionReport { holds: None, detail: error.to_string() };
                let ConditionReport { holds, detail } = result.unwrap_or_else(cannot);
                RunEvent::Decided { stage, holds, detail }
            }
            News::Woke(number) if number == self.timers && self.timer.take().is_some() => RunEvent::Woke,
            News::Woke(_) | News::Saved(..) | News::Finished(_) => return,
        };
        self.events.push_back(event);
    }

    fn ended(&mut self, id: AttemptId, result: Answer<AttemptReport>, now: Millis) -> Outcome {
        let key = attempt_key(id);
        self.working = self.working.saturating_sub(1);
        self.tokens.remove(&key);
        self.ctx.state_mut(|state| state.using.remove(&key));
        let place = self.places.remove(&key).unwrap_or_else(|| RUN_PLACE.to_owned());
        match result {
            Ok(AttemptReport { outcome, sha, files, branch }) => {
                self.shas.insert(key, AttemptShas { place, sha, files, branch });
                outcome
            }
            Err(error) => outcome::of_error(&error, now),
        }
    }

    fn checked(
        &mut self,
        id: AttemptId,
        checks: Vec<steadfast_model::run::Check>,
        result: Answer<CheckReport>,
    ) -> Vec<Checked> {
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

    /// Whether the history is long enough to be cut.
    fn holds(&self) -> bool {
        self.steps >= self.input.options.cut_after.max(1) || self.ctx.continue_as_new_suggested()
    }

    /// Activities do not outlive their history, so it is cut only while none is under way.
    fn may_cut(&self) -> bool {
        let is_idle = self.working == 0 && !self.is_saving && self.unsaved.is_empty() && !self.is_finishing;
        let has_finish = self.acts.iter().any(|(_, act)| *act == FleetAct::Finish);
        let is_quiet = self.events.is_empty() && self.ctx.state(|state| state.inbox.is_empty());
        self.holds() && is_idle && is_quiet && !has_finish && self.run.is_some()
    }

    fn cut(&mut self) -> WorkflowResult<()> {
        let Some(run) = self.run.clone() else { return Ok(()) };
        let carried = Carried {
            run,
            heads: self.heads.clone(),
            seq: self.seq,
            held: self.acts.iter().map(|(_, act)| act.clone()).collect(),
            inbox: Vec::new(),
            shas: self.shas.clone(),
            notes: self.ctx.state(|state| state.notes.clone()),
            records: Vec::new(),
            continued: true,
        };
        let input = RunInput { carried: Some(carried), ..self.input.clone() };
        self.ctx.continue_as_new(input, ContinueAsNewOptions::default())?;
        Ok(())
    }

    fn status(&self) -> Status {
        let run = self.run.clone().unwrap_or_default();
        let asking = (1..).zip(&run.stages);
        let asking = asking.filter(|(_, stage)| stage.status == steadfast_model::run::StageStatus::AwaitingApproval);
        let asking = asking.map(|(number, _)| number).next();
        let face = self.face.clone().unwrap_or_default();
        let iteration = run.stage_state(run.stage).map_or(0, |stage| stage.iterations);
        Status {
            name: self.input.run.name.clone(),
            run_id: self.input.run.run_id.clone(),
            repo: self.input.run.repo.url.clone(),
            kind: face.kind,
            title: face.title,
            status: run.status,
            reason: run.reason,
            stage: run.stage,
            iteration,
            max_iterations: face.max_iterations,
            tokens: run.tokens,
            tokens_unknown: run.tokens_unknown,
            cost_micros: run.cost_micros,
            cost_unknown: run.cost_unknown,
            started_at_ms: run.started_at_ms,
            completed_at_ms: run.completed_at_ms,
            asking,
            seq: self.saved,
            head: self.head_of(RUN_PLACE, RUN_PLACE),
        }
    }

    /// Keeps what lists show in the memo.
    fn tell(&mut self) -> WorkflowResult<()> {
        if self.face.is_none() {
            return Ok(());
        }
        let status = self.status();
        let seen = |status: &Status| Status { seq: 0, ..status.clone() };
        if self.told.as_ref().map(seen) == Some(seen(&status)) {
            return Ok(());
        }
        let repo = MemoValue::new(status.repo.clone());
        self.ctx.upsert_memo([(STATUS_MEMO, Some(MemoValue::new(status.clone()))), (REPO_MEMO, Some(repo))])?;
        self.told = Some(status);
        Ok(())
    }
}

fn record_key(record: &Record) -> Option<String> {
    match record {
        Record::AttemptEnded { id, .. } | Record::Committed { id, .. } => Some(attempt_key(*id)),
        _ => None,
    }
}

/// What the run itself has to do: tried until it is done.
fn upkeep(id: &str) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_mins(10))
        .summary(id)
        .cancellation_token(WorkflowCancellationToken::new())
        .retry_policy(patient())
        .build()
}

fn patient() -> RetryPolicy {
    RetryPolicy::builder().maximum_interval(Duration::from_secs(30)).build()
}

/// A worker that cannot take an attempt hands it on; an attempt that was lost is the machine's business.
fn handed_on() -> RetryPolicy {
    RetryPolicy::builder()
        .maximum_interval(Duration::from_secs(30))
        .non_retryable_error_types(["TemporalTimeout:Heartbeat", "TemporalTimeout:StartToClose"])
        .build()
}
