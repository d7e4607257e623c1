//! Drives a run: the only writer of its state while it holds the run's lock. Everything that happens — an attempt
//! ended, a check came back, the clock, a request to stop, a signal — becomes an event in one order; the machine says
//! what follows; that is saved in one transaction, shown to the observer, and only then acted upon.

mod attention;
mod hold;
mod inputs;
mod observer;
mod signals;
mod starting;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use steadfast_model::clock;
use steadfast_model::clock::Millis;
use steadfast_system::config::Config;
use steadfast_system::process::ProcessId;
use steadfast_system::log;
use steadfast_model::run::machine;
use steadfast_model::run::machine::ReopenError;
use steadfast_model::run::{Act, AttemptId, AttemptUsage, Failure, FailureKind, Outcome, Phase, Plan, Record, Run, RunEvent, RunStatus};
use steadfast_store::{Store, StoreError};
use steadfast_system::config::Config;
use steadfast_system::log;
use steadfast_system::process::ProcessId;

use crate::attempt::{Attempt, run_directory};
use crate::crash;
use crate::process::Cancel;
use crate::processes::Identity;

pub use crate::durable::LOCK_HINT;

pub use self::hold::{hold, is_driven, reopen};
pub(crate) use self::inputs::MOST_READ;
pub use self::observer::{KeptOutput, Observer, Places, Saved};
pub(crate) use self::starting::choose_worktree;

/// How often requests to stop are looked for.
const LOOK_AROUND: Duration = Duration::from_millis(300);

/// What the engine needs to know about this machine.
#[derive(Debug, Clone)]
pub struct Engine {
    /// `$STEADFAST_HOME`.
    pub home: PathBuf,
    /// Ourselves, to be started as the keepers of attempts.
    pub program: PathBuf,
    pub config: Config,
    /// Between TERM and KILL.
    pub grace: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    #[error("there is no run {0}")]
    NoRun(String),
    #[error("the run {name} is driven by another process{}", pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Driven { name: String, pid: Option<i64> },
    #[error("{0}")]
    Refused(#[from] ReopenError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl DriveError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoRun(_) => "list the runs with `steadfast loop list` and `steadfast pipeline list`",
            Self::Driven { .. } => "watch it with `attach`, or end it with `kill`",
            Self::Refused(refusal) => refusal.hint(),
            Self::Io(error) if error.kind() == std::io::ErrorKind::Unsupported => LOCK_HINT,
            Self::Store(_) | Self::Io(_) => "run `steadfast doctor`",
        }
    }
}

/// What comes in.
enum News {
    /// The keeper of an attempt was started.
    Began(AttemptId),
    Ended {
        id: AttemptId,
        outcome: Box<Outcome>,
    },
    Checked {
        id: AttemptId,
        facts: Vec<steadfast_model::run::Checked>,
    },
    /// Something that people should know.
    Note(String),
    Signal,
}

/// Drives a run until it is over, and says how it stands then. A second engine is refused.
pub fn drive(store: &mut Store, engine: &Engine, run_id: &str, observer: &mut dyn Observer) -> Result<Run, DriveError> {
    // Until this process is gone, however it goes.
    let _lock = hold::take_lock(store, engine, run_id)?;
    let row = store.read().run(run_id)?.ok_or_else(|| DriveError::NoRun(run_id.to_owned()))?;
    let own = Identity::own();
    let own = ProcessId { pid: i64::from(own.pid), started: own.started.parse().unwrap_or(0) };
    store.write(|db| db.set_engine(run_id, Some(own)))?;
    crash::point(crash::Point::Locked);
    let (sender, news) = mpsc::channel();
    let listening = signals::listen(sender.clone())?;
    let mut dispatcher = Dispatcher {
        store,
        engine,
        observer,
        run_id: run_id.to_owned(),
        project: PathBuf::from(&row.project_dir),
        plan: Arc::new(row.plan),
        run: row.run,
        version: row.version,
        in_worktree: starting::in_worktree(&run_directory(&engine.home, run_id))?,
        sender,
        flying: BTreeMap::new(),
        stopping: Cancel::default(),
        cancel: Cancel::default(),
        threads: Vec::new(),
        told: BTreeSet::new(),
        git: Arc::new(Mutex::new(())),
        wake: None,
        signals: 0,
        is_over: false,
    };
    let driven = dispatcher.run_to_its_end(&news);
    dispatcher.wait_for_threads();
    let run = dispatcher.run.clone();
    listening.close();
    let released = store.write(|db| db.set_engine(run_id, None));
    driven?;
    released?;
    Ok(run)
}

fn cannot_start(message: String) -> Outcome {
    without_agent(FailureKind::CannotStart, message)
}

/// How an attempt ended whose agent did not begin.
fn without_agent(kind: FailureKind, message: String) -> Outcome {
    Outcome::Failed(Failure {
        kind,
        message,
        exit_code: None,
        usage: AttemptUsage::default(),
        started_at_ms: None,
        ended_at_ms: clock::now(),
    })
}

/// An attempt that somebody waits for.
struct Flying {
    attempt: Attempt,
    /// Until when its keeper is believed in, once there is one.
    patience: Option<Instant>,
    /// Set once it is not any more.
    overdue: Cancel,
}

struct Dispatcher<'a> {
    store: &'a mut Store,
    engine: &'a Engine,
    observer: &'a mut dyn Observer,
    run_id: String,
    project: PathBuf,
    plan: Arc<Plan>,
    run: Run,
    version: i64,
    in_worktree: bool,
    sender: mpsc::Sender<News>,
    /// Attempts that somebody waits for.
    flying: BTreeMap<AttemptId, Flying>,
    /// Set once what runs is being stopped.
    stopping: Cancel,
    /// For checks, when nobody wants to know any more.
    cancel: Cancel,
    /// Those that stop or look up something. They end soon once they are asked to; who waits for an attempt does not.
    threads: Vec<JoinHandle<()>>,
    /// What threads wanted people to know: each of it is told once.
    told: BTreeSet<String>,
    /// Held while git is called for any of the run's worktrees.
    git: Arc<Mutex<()>>,
    wake: Option<Millis>,
    signals: u32,
    is_over: bool,
}

impl Dispatcher<'_> {
    fn run_to_its_end(&mut self, news: &mpsc::Receiver<News>) -> Result<(), DriveError> {
        self.show(&[]);
        // Who asked while nobody drove the run must not see it start one more agent.
        if let Some(stopping) = self.store.read().stop_request(&self.run_id)?
            && self.run.status == RunStatus::Running
        {
            self.stop_tests()?;
            self.apply(RunEvent::StopRequested(stopping))?;
        }
        let unfinished: Vec<AttemptId> = self
            .run
            .active
            .iter()
            .filter(|attempt| attempt.phase == Phase::Running)
            .map(|attempt| attempt.id)
            .collect();
        self.look_at_caps(&AttemptUsage::default())?;
        self.apply(RunEvent::Started)?;
        if !self.is_over {
            for id in unfinished {
                self.follow(id, None);
            }
        }
        let mut looked = Instant::now();
        while !self.is_over {
            // Also while there is news all the time.
            let until_look = LOOK_AROUND.saturating_sub(looked.elapsed());
            if until_look.is_zero() {
                looked = Instant::now();
                self.look_around()?;
                continue;
            }
            let now = clock::now();
            if self.wake.is_some_and(|wake| wake <= now) {
                self.wake = None;
                self.apply(RunEvent::Woke)?;
                continue;
            }
            let until_wake = self.wake.map(|wake| Duration::from_millis(u64::try_from(wake - now).unwrap_or(0)));
            match news.recv_timeout(until_wake.map_or(until_look, |wait| wait.min(until_look))) {
                Ok(News::Began(id)) => self.began(id),
                Ok(News::Note(message)) => {
                    if self.told.insert(message.clone()) {
                        self.note(&message);
                    }
                }
                Ok(News::Ended { id, outcome }) => {
                    crash::point(crash::Point::AttemptEnded);
                    self.flying.remove(&id);
                    self.look_at_caps(outcome.usage())?;
                    self.apply(RunEvent::Ended { id, outcome: *outcome })?;
                }
                Ok(News::Checked { id, facts }) => {
                    crash::point(crash::Point::Checked);
                    self.apply(RunEvent::Checked { id, facts })?;
                }
                Ok(News::Signal) => self.signalled()?,
                // We hold a sender ourselves, so this is only ever the time.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// One step: decided, saved, shown, acted upon.
    fn apply(&mut self, event: RunEvent) -> Result<(), DriveError> {
        let now = clock::now();
        let step = machine::step(&self.plan, self.run.clone(), event, now);
        if step.run != self.run || !step.records.is_empty() {
            crash::point(crash::Point::BeforeSave);
            let (run_id, version) = (&self.run_id, self.version);
            self.version = self.store.write(|db| db.save_step(run_id, version, &step, now))?;
            crash::point(crash::Point::Saved);
            self.run = step.run;
            self.show(&step.records);
            crash::point(crash::Point::Shown);
        }
        for act in step.acts {
            match act {
                Act::Start(id) => self.start(id),
                Act::Check { id, checks } => self.check(id, checks)?,
                Act::Stop(ids) => self.stop(&ids),
                Act::WakeAt(at) => self.wake = Some(at),
                Act::Finish => self.is_over = true,
            }
        }
        Ok(())
    }

    fn show(&mut self, records: &[Record]) {
        self.observer.saved(&Saved {
            store: self.store,
            run_id: &self.run_id,
            project: &self.project,
            plan: &self.plan,
            run: &self.run,
            records,
            now: clock::now(),
            home: &self.engine.home,
        });
    }

    /// Everything that a start needs may fail; the run is told then that its agent cannot be started.
    fn start(&mut self, id: AttemptId) {
        if let Err(message) = self.try_start(id) {
            // The receiver is there as long as the loop runs.
            let _ = self.sender.send(News::Ended { id, outcome: Box::new(cannot_start(message)) });
        }
    }

    fn note(&mut self, message: &str) {
        log::line(&run_directory(&self.engine.home, &self.run_id).join("engine.log"), message);
        self.observer.note(message);
    }

    fn wait_for_threads(&mut self) {
        self.cancel.cancel();
        // Nothing may begin any more, either.
        self.stopping.cancel();
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended, too.
            let _ = thread.join();
        }
    }
}
