//! How a dispatcher begins: takes the lock of a run, drives the run to its end or opens it again, and why that fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};

use steadfast_model::clock;
use steadfast_model::run::Run;
use steadfast_model::run::machine::{self, ReopenError};
use steadfast_store::{Store, StoreError};

use super::sleep::Sleep;
use super::spending::Looks;
use super::{Dispatcher, Engine, EngineMessage};
use crate::interrupt;
use crate::lock::{LOCK_HINT, RunLock};
use crate::observer::{Observer, Observers};
use crate::outage::PendingSignals;
use crate::process::Cancel;
use crate::run_folder::{RunFolder, SealedTextGone};

#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    #[error("there is no run {0}")]
    NoRun(String),
    #[error("run {name} is already driven by another process{}", pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Driven { name: String, pid: Option<i64> },
    #[error("{0}")]
    Refused(#[from] ReopenError),
    #[error(transparent)]
    SealedTextGone(#[from] SealedTextGone),
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
            Self::SealedTextGone(gone) => gone.hint(),
            Self::Io(error) if error.kind() == std::io::ErrorKind::Unsupported => LOCK_HINT,
            Self::Store(_) | Self::Io(_) => "run `steadfast doctor`",
        }
    }
}

/// Drives a run until it ends, and returns its last state. Observers see each step in the order of the list. A second
/// engine is refused.
pub fn drive(
    store: &mut Store,
    engine: &Engine,
    run_id: &str,
    observers: &mut [&mut dyn Observer],
) -> Result<Run, DriveError> {
    let _lock = lock_run(store, engine, run_id)?;
    let row = store.read().run(run_id)?.ok_or_else(|| DriveError::NoRun(run_id.to_owned()))?;
    let folder = RunFolder::at(&engine.home, run_id);
    let plan = folder.unseal(&row)?;
    let (sender, messages) = mpsc::channel();
    let pending = PendingSignals::default();
    let (on_signal, received) = (sender.clone(), pending.clone());
    let listening = interrupt::listen(interrupt::requests_to_end(), move |_| {
        received.add();
        on_signal.send(EngineMessage::Signal).is_ok()
    })?;
    let mut dispatcher = Dispatcher {
        store,
        engine,
        observers: Observers::new(observers, folder.clone()),
        run_id: run_id.to_owned(),
        project: PathBuf::from(&row.project_dir),
        plan: Arc::new(plan),
        run: row.run,
        version: row.version,
        in_worktree: folder.is_in_worktree()?,
        folder,
        sender,
        waited: BTreeMap::new(),
        stopping: Cancel::default(),
        cancel: Cancel::default(),
        threads: Vec::new(),
        noted: BTreeSet::new(),
        git: Arc::new(Mutex::new(())),
        wake: None,
        pending,
        signals: 0,
        is_over: false,
        key: None,
        unsealed: BTreeSet::new(),
        looks: Looks::default(),
        slept: Sleep::until_now(),
    };
    let driven = dispatcher.drive(&messages);
    // Asked to end while the store cannot record it: the next engine finds the run as it is there.
    let gave_up = driven.is_err() && dispatcher.pending.any();
    dispatcher.wait_for_threads();
    let released = if gave_up { Ok(()) } else { dispatcher.record_engine(None) };
    listening.close();
    driven?;
    released?;
    Ok(dispatcher.run)
}

/// Opens a run that has ended, so that [`drive`] continues it; `max` is its new maximum of iterations.
pub fn reopen(store: &mut Store, engine: &Engine, run_id: &str, max: Option<u32>) -> Result<(), DriveError> {
    let _lock = lock_run(store, engine, run_id)?;
    let now = clock::now();
    store.write(|db| {
        let row = db.run(run_id)?.ok_or_else(|| DriveError::NoRun(run_id.to_owned()))?;
        let step = machine::reopen(&row.plan, &row.run, max, now)?;
        db.save_step(run_id, row.version, &step, now)?;
        Ok(())
    })
}

/// Takes the lock of a run; an error if an engine has it.
fn lock_run(store: &Store, engine: &Engine, run_id: &str) -> Result<RunLock, DriveError> {
    let row = store.read().run(run_id)?.ok_or_else(|| DriveError::NoRun(run_id.to_owned()))?;
    let driven = || DriveError::Driven { name: row.plan.name, pid: row.engine.map(|engine| engine.pid) };
    RunLock::take(&engine.home, run_id)?.ok_or_else(driven)
}
