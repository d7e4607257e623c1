//! Drives a run: the only writer of its state while it holds the run's lock. Everything that happens (an attempt ended,
//! a check finished, a timer, a request to stop, a signal) becomes an event, one after the other. The state machine
//! decides what follows; that is saved in one transaction, shown to the observers, and only then carried out.

mod approvals;
mod ceilings;
mod conditions;
mod entry;
mod interruptions;
mod leaving;
mod merging;
mod records;
mod sleep;
mod spending;
mod starting;
mod threads;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use steadfast_model::clock::{self, Millis};
use steadfast_model::limit::Spend;
use steadfast_model::run::machine;
use steadfast_model::run::{
    Act, AttemptId, AttemptUsage, Outcome, Phase, Plan, Record, Run, RunEvent, RunStatus, Stopping,
};
use steadfast_store::{Store, StoreError};
use steadfast_system::process::ProcessId;

pub use self::entry::{DriveError, drive, reopen};
pub use crate::work::Engine;

use self::sleep::Sleep;
use self::spending::Looks;
use crate::attempt::{Attempt, RunKey};
use crate::crash;
use crate::observer::{Observers, SavedStep};
use crate::outage::{self, PendingSignals};
use crate::process::Cancel;
use crate::run_folder::RunFolder;
use crate::work::{cannot_start, without_agent};

/// How often requests to stop are checked.
const CHECK_EVERY: Duration = Duration::from_millis(300);

/// What threads report to the dispatcher.
enum EngineMessage {
    /// The supervisor of an attempt was started.
    Started(AttemptId),
    Ended {
        id: AttemptId,
        outcome: Box<Outcome>,
    },
    Checked {
        id: AttemptId,
        facts: Vec<steadfast_model::run::Checked>,
    },
    /// The condition of a stage was tested.
    Decided {
        stage: u32,
        holds: Option<bool>,
        detail: String,
    },
    /// What the running attempts used so far, in all.
    Using {
        ids: Vec<AttemptId>,
        used: Spend,
    },
    /// A message for the user.
    Note(String),
    Signal,
}

/// An attempt that a thread waits for.
struct WaitedAttempt {
    attempt: Attempt,
    /// When its supervisor counts as hanging, once it was started.
    deadline: Option<Instant>,
    /// Set once the deadline has passed.
    overdue: Cancel,
}

struct Dispatcher<'a, 'b> {
    store: &'a mut Store,
    engine: &'a Engine,
    observers: Observers<'a, 'b>,
    run_id: String,
    folder: RunFolder,
    project: PathBuf,
    plan: Arc<Plan>,
    run: Run,
    version: i64,
    in_worktree: bool,
    sender: mpsc::Sender<EngineMessage>,
    /// Attempts that threads wait for.
    waited: BTreeMap<AttemptId, WaitedAttempt>,
    /// Set once running attempts are being stopped.
    stopping: Cancel,
    /// Ends running checks.
    cancel: Cancel,
    /// Threads that stop attempts or make checks; they end soon once they are cancelled. Threads that wait for attempts
    /// are not in this list.
    threads: Vec<JoinHandle<()>>,
    /// Notes of threads that were passed on, so that each is shown once.
    noted: BTreeSet<String>,
    /// Held by a thread that calls git for any of the run's worktrees.
    git: Arc<Mutex<()>>,
    wake: Option<Millis>,
    pending: PendingSignals,
    signals: u32,
    is_over: bool,
    /// What supervisors seal their records with.
    key: Option<RunKey>,
    /// Attempts of a version whose supervisors sealed nothing.
    unsealed: BTreeSet<AttemptId>,
    looks: Looks,
    slept: Sleep,
}

impl Dispatcher<'_, '_> {
    fn run_to_end(&mut self, messages: &mpsc::Receiver<EngineMessage>) -> Result<(), DriveError> {
        self.show(&[]);
        // Honour stop requests made while no engine was running before starting another agent.
        if let Some(stopping) = self.stop_request()?
            && self.run.status == RunStatus::Running
        {
            self.stop_checks()?;
            self.apply(RunEvent::StopRequested(stopping))?;
        }
        self.abort_merges_of_ended();
        let unfinished: Vec<AttemptId> =
            self.run.active.iter().filter(|active| active.phase == Phase::Running).map(|active| active.id).collect();
        self.check_caps(&AttemptUsage::default())?;
        self.count_nested()?;
        self.apply(RunEvent::Started)?;
        if !self.is_over {
            for id in unfinished {
                self.wait_for(id, None);
            }
        }
        let mut checked = Instant::now();
        while !self.is_over {
            // Also while messages arrive all the time.
            let until_check = CHECK_EVERY.saturating_sub(checked.elapsed());
            if until_check.is_zero() {
                checked = Instant::now();
                self.check_interruptions()?;
                continue;
            }
            let now = clock::now();
            if self.wake.is_some_and(|wake| wake <= now) {
                self.wake = None;
                self.apply(RunEvent::Woke)?;
                continue;
            }
            let until_wake = self.wake.map(|wake| Duration::from_millis(u64::try_from(wake - now).unwrap_or(0)));
            match messages.recv_timeout(until_wake.map_or(until_check, |wait| wait.min(until_check))) {
                Ok(EngineMessage::Started(id)) => self.set_deadline(id),
                Ok(EngineMessage::Note(message)) => {
                    if self.noted.insert(message.clone()) {
                        self.observers.note(&message);
                    }
                }
                Ok(EngineMessage::Ended { id, outcome }) => {
                    crash::point(crash::CrashPoint::AttemptEnded);
                    self.waited.remove(&id);
                    self.note_details(id, &outcome)?;
                    self.check_caps(outcome.usage())?;
                    self.count_nested()?;
                    self.apply(RunEvent::Ended { id, outcome: *outcome })?;
                }
                Ok(EngineMessage::Checked { id, facts }) => {
                    crash::point(crash::CrashPoint::Checked);
                    let mut used = AttemptUsage::default();
                    facts.iter().filter_map(|fact| fact.usage).for_each(|usage| used += usage);
                    self.check_caps(&used)?;
                    self.apply(RunEvent::Checked { id, facts })?;
                }
                Ok(EngineMessage::Decided { stage, holds, detail }) => {
                    crash::point(crash::CrashPoint::Decided);
                    self.apply(RunEvent::Decided { stage, holds, detail })?;
                }
                Ok(EngineMessage::Using { ids, used }) => self.used_so_far(&ids, used)?,
                Ok(EngineMessage::Signal) => {
                    crash::panic_once("dispatcher.signal");
                    self.signalled()?;
                }
                // A time-out: the dispatcher holds a sender itself, so the channel is never closed.
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn apply(&mut self, event: RunEvent) -> Result<(), DriveError> {
        // Before anything that looks at the limits.
        if let Some(slept_ms) = self.slept.more() {
            self.step(RunEvent::Slept { slept_ms })?;
        }
        self.step(event)
    }

    /// One step: decide, save, show, carry out.
    fn step(&mut self, event: RunEvent) -> Result<(), DriveError> {
        leaving::park_after_panic();
        let now = clock::now();
        let step = machine::step(&self.plan, self.run.clone(), event.without_secrets(), now);
        if step.run != self.run || !step.records.is_empty() {
            crash::point(crash::CrashPoint::BeforeSave);
            let (run_id, version) = (self.run_id.clone(), self.version);
            self.version = self.with_store(|store| store.write(|db| db.save_step(&run_id, version, &step, now)))?;
            crash::point(crash::CrashPoint::Saved);
            self.run = step.run;
            self.show(&step.records);
            crash::point(crash::CrashPoint::Shown);
            for record in &step.records {
                if let Record::StageEnded { stage, .. } = record {
                    self.abort_merge(*stage);
                }
            }
        }
        for act in step.acts {
            leaving::park_after_panic();
            match act {
                Act::Start(id) => self.start(id),
                Act::Check { id, checks } => self.check(id, checks)?,
                Act::Stop(ids) => self.stop(&ids),
                Act::Decide(stage) => self.decide(stage)?,
                Act::WakeAt(at) => self.wake = Some(at),
                Act::Finish => self.is_over = true,
            }
        }
        Ok(())
    }

    /// Uses the store, and waits while it is busy or full.
    fn with_store<T>(&mut self, mut work: impl FnMut(&mut Store) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let (store, observers) = (&mut *self.store, &mut self.observers);
        let mut is_busy = false;
        let attempt = || {
            // If this process itself holds a lock that the system did not release, waiting alone does not help.
            if is_busy {
                store.reconnect()?;
            }
            let done = work(store);
            is_busy = matches!(done, Err(StoreError::Busy(_)));
            done
        };
        outage::wait_for_store(|| self.pending.any(), |message| observers.note(message), attempt)
    }

    fn record_engine(&mut self, engine: Option<ProcessId>) -> Result<(), StoreError> {
        let run_id = self.run_id.clone();
        self.with_store(|store| store.write(|db| db.set_engine(&run_id, engine)).map(|_| ()))
    }

    /// Reads the key of the run, or makes it. Attempts that are under way without one were started by an earlier version.
    fn load_key(&mut self) -> Result<(), StoreError> {
        let (run_id, new) = (self.run_id.clone(), format!("{}{}", uuid::Uuid::new_v4(), uuid::Uuid::new_v4()));
        let (key, is_new) = self.with_store(|store| store.write(|db| db.supervisor_key(&run_id, &new)))?;
        self.key = Some(RunKey::new(&key));
        if is_new {
            self.unsealed = self.run.active.iter().map(|active| active.id).collect();
        }
        Ok(())
    }

    fn stop_request(&mut self) -> Result<Option<Stopping>, StoreError> {
        let run_id = self.run_id.clone();
        self.with_store(|store| store.read().stop_request(&run_id))
    }

    fn show(&mut self, records: &[Record]) {
        self.observers.saved(&SavedStep {
            store: self.store,
            run_id: &self.run_id,
            project: &self.project,
            plan: &self.plan,
            run: &self.run,
            records,
            now: clock::now(),
            home: &self.engine.home,
            pending: &self.pending,
        });
    }

    /// Starts an attempt. A failure becomes the outcome of the attempt.
    fn start(&mut self, id: AttemptId) {
        if let Some(outcome) = self.held_by_plan(id) {
            let _ = self.sender.send(EngineMessage::Ended { id, outcome: Box::new(outcome) });
            return;
        }
        if let Err(message) = self.try_start(id) {
            // The receiver lives as long as the dispatcher.
            let _ = self.sender.send(EngineMessage::Ended { id, outcome: Box::new(cannot_start(message)) });
        }
    }

    fn wait_for_threads(&mut self) {
        self.cancel.cancel();
        // Nothing may be started any more.
        self.stopping.cancel();
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended as well.
            let _ = thread.join();
        }
    }
}
