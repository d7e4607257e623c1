//! The calls of a worker that has no store: they block until the attempt, the checks or the condition are over. Agents
//! end with this process.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use steadfast_model::clock::{self, Millis};
use steadfast_model::run::{AgentKind, AgentPlan, AttemptId, AttemptUsage, Check, Checked, Outcome};
use steadfast_system::paths;

use super::checking::{CheckWork, Checking};
use super::starting::{limit_of, prepare};
use super::{AttemptNews, AttemptWork, Deciding, Engine, Merging, RunRecords, RunView, Workplace, cannot_start};
use crate::agent;
use crate::attempt::{Attempt, RunKey, supervisor_deadline};
use crate::process::Cancel;
use crate::run_folder::RunFolder;

/// How often a worker hears of a running attempt. What it heard last is charged if the worker is lost.
const BEAT_EVERY: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Reading long session files takes a while, so a look at them is followed by a rest of many times its length.
const REST_FACTOR: u32 = 20;

/// Called once the agent of an attempt has ended, before the engine looks at what it left. After an error the engine
/// does not look at it: the attempt has failed.
#[derive(Clone, Default)]
pub struct AgentEnded(Option<Arc<dyn Fn() -> Result<(), String> + Send + Sync>>);

impl AgentEnded {
    pub fn new(call: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(call)))
    }

    pub(super) fn call(&self) -> Result<(), String> {
        self.0.as_ref().map_or(Ok(()), |call| call())
    }
}

impl std::fmt::Debug for AgentEnded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AgentEnded").field(&self.0.is_some()).finish()
    }
}

/// What a worker calls for.
#[derive(Debug, Clone, Copy)]
pub struct WorkCall<'a> {
    pub engine: &'a Engine,
    pub view: RunView<'a>,
    /// The directory to work in.
    pub directory: &'a Path,
    pub cancel: &'a Cancel,
    pub agent_ended: Option<&'a AgentEnded>,
}

/// The attempt of a call, whose records only its own supervisor can write.
fn attempt_of(call: &WorkCall<'_>, id: AttemptId) -> Attempt {
    let key = RunKey::new(&format!("{}{}", uuid::Uuid::new_v4(), uuid::Uuid::new_v4()));
    Attempt::at(call.view.home, call.view.run_id, id).with_key(Some(key))
}

/// Carries out one attempt. `beat` is called twice a second with what it used so far and when its agent started.
pub fn attempt<R: RunRecords>(
    call: &WorkCall<'_>,
    id: AttemptId,
    records: &mut R,
    beat: &mut dyn FnMut(&AttemptUsage, Option<Millis>),
) -> Outcome {
    let WorkCall { engine, view, .. } = *call;
    let Some(stage) = view.plan.stage(id.stage) else {
        return cannot_start("the plan has no such stage".to_owned());
    };
    let attempt = attempt_of(call, id);
    let workplace = Workplace::at(call.directory.to_owned());
    let launch = prepare(&view, id, &attempt, records, |_| paths::create_private_dir(attempt.directory()));
    let launch = match launch {
        Ok(launch) => launch,
        Err(message) => return cannot_start(message),
    };
    let (sender, news) = mpsc::channel();
    let overdue = Cancel::default();
    let work = AttemptWork {
        id,
        run: view.plan.name.clone(),
        stage: stage.clone(),
        folder: RunFolder::at(view.home, view.run_id),
        attempt: attempt.clone(),
        project: view.project.to_owned(),
        kind: view.plan.kind,
        merging: Merging::of(&view, stage, id, &workplace, records),
        workplace,
        progress: records.prompt_values(id).progress,
        since: clock::now(),
        counts_idle: AttemptWork::counts_idle(view.plan, stage),
        stopping: call.cancel.clone(),
        overdue: overdue.clone(),
        bound: true,
        engine: engine.clone(),
        // The receiver lives until the attempt is over.
        tell: Box::new(move |news| drop(sender.send(news))),
        agent_ended: call.agent_ended.cloned().unwrap_or_default(),
    };
    let watched = Watched { agent: stage.agent_of(id.iteration), attempt: &attempt, cancel: call.cancel, overdue };
    let limits = (limit_of(stage), engine.grace);
    std::thread::scope(|scope| {
        let working = scope.spawn(|| work.carry_out(Some(launch)));
        watched.watch(scope, || working.is_finished(), limits, &news, records, beat);
        // Only where a panic unwinds; else the worker has ended, and the agent with it.
        working.join().unwrap_or_else(|_| {
            let left = attempt.stop(engine.grace).err().map(|error| format!("; its agent may still run: {error}"));
            cannot_start(format!("a thread of the worker failed{}", left.unwrap_or_default()))
        })
    })
}

/// An attempt that another thread carries out.
struct Watched<'a> {
    agent: &'a AgentPlan,
    attempt: &'a Attempt,
    cancel: &'a Cancel,
    overdue: Cancel,
}

impl<'a> Watched<'a> {
    /// Reports what the attempt uses, and ends it when it is cancelled or its supervisor hangs.
    fn watch<'scope>(
        &self,
        scope: &'scope std::thread::Scope<'scope, '_>,
        is_over: impl Fn() -> bool,
        (limit, grace): (Duration, Duration),
        news: &mpsc::Receiver<AttemptNews>,
        records: &mut impl RunRecords,
        beat: &mut dyn FnMut(&AttemptUsage, Option<Millis>),
    ) where
        'a: 'scope,
    {
        let (mut usage, mut started_at_ms) = (AttemptUsage::default(), None);
        let (mut next_beat, mut next_read) = (Instant::now(), Instant::now());
        let (mut is_stopped, mut deadline) = (false, None);
        while !is_over() {
            match news.recv_timeout(LOOK_EVERY) {
                Ok(AttemptNews::Note(message)) => records.note(&message),
                Ok(AttemptNews::Started) => {
                    started_at_ms = Some(clock::now());
                    deadline = supervisor_deadline(limit, grace);
                }
                Err(_) => {}
            }
            if next_beat <= Instant::now() {
                let began = Instant::now();
                if started_at_ms.is_some() && next_read <= began {
                    usage = used_so_far(self.agent, self.attempt);
                    next_read = Instant::now() + began.elapsed() * REST_FACTOR;
                }
                next_beat = began + BEAT_EVERY;
                beat(&usage, started_at_ms);
            }
            if self.cancel.is_cancelled() && !is_stopped {
                is_stopped = true;
                let attempt = self.attempt;
                // The thread that waits for the attempt reports what could not be stopped.
                scope.spawn(move || attempt.stop(grace));
            }
            if deadline.take_if(|deadline| *deadline <= Instant::now()).is_some() {
                self.overdue.cancel();
                let attempt = self.attempt;
                scope.spawn(move || attempt.kill());
            }
        }
        for message in news.try_iter() {
            if let AttemptNews::Note(message) = message {
                records.note(&message);
            }
        }
    }
}

/// What an agent that runs used so far; what it did not say is unknown.
fn used_so_far(agent: &AgentPlan, attempt: &Attempt) -> AttemptUsage {
    match &agent.kind {
        AgentKind::Host(host) => agent::used_in_session(*host, attempt).unwrap_or_else(AttemptUsage::unknown),
        AgentKind::Command(_) => agent::used_by_command(attempt, agent.model.as_deref()),
    }
}

/// Makes the checks of an attempt.
pub fn check<R: RunRecords>(
    call: &WorkCall<'_>,
    id: AttemptId,
    wanted: Vec<Check>,
    records: &mut R,
) -> Result<Vec<Checked>, R::Error> {
    let Some(stage) = call.view.plan.stage(id.stage) else { return Ok(Vec::new()) };
    let checking = Checking {
        engine: call.engine,
        stage,
        id,
        attempt: attempt_of(call, id),
        workplace: Workplace::at(call.directory.to_owned()),
        bound: true,
    };
    let work = CheckWork::of(&call.view, checking, wanted, records)?;
    let (sender, notes) = mpsc::channel();
    // The receiver lives until the checks are made.
    let facts = work.carry_out(call.cancel, |note| drop(sender.send(note)));
    for note in notes.try_iter() {
        records.note(&note);
    }
    Ok(facts)
}

/// Tests the condition of a stage: whether it holds, if that can be said, and a detail for people.
pub fn decide<R: RunRecords>(
    call: &WorkCall<'_>,
    stage: u32,
    records: &mut R,
) -> Result<(Option<bool>, String), R::Error> {
    let Some(planned) = call.view.plan.stage(stage) else { return Ok((None, "the plan has no such stage".to_owned())) };
    let deciding = Deciding::of(&call.view, planned, records)?;
    Ok(deciding.map_or((Some(true), String::new()), |deciding| deciding.decide(call.directory)))
}
