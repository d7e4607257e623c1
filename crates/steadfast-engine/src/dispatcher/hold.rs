//! Who has a run in hand: its lock, for as long as an engine drives it or somebody keeps engines away, and opening a
//! run that is over. Rows only say who it was; the lock says whether anybody is.

use std::path::Path;
use std::time::{Duration, Instant};

use steadfast_model::clock;
use steadfast_model::run::machine;
use steadfast_store::Store;
use steadfast_system::paths;

use super::{DriveError, Engine};
use crate::attempt::run_directory;
use crate::durable;

/// Who only looks whether a run is driven holds its lock for an instant; an engine waits for that.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
const LOCK_PAUSE: Duration = Duration::from_millis(10);
const LOCK: &str = "lock";

/// Whether somebody drives the run now.
pub fn is_driven(home: &Path, run_id: &str) -> std::io::Result<bool> {
    let path = run_directory(home, run_id).join(LOCK);
    if !path.exists() {
        return Ok(false);
    }
    Ok(!durable::try_lock(&durable::open_lock(&path)?)?)
}

/// Keeps engines away from a run for as long as the value lives; `None` if one has it in hand.
pub fn hold(home: &Path, run_id: &str) -> std::io::Result<Option<std::fs::File>> {
    let directory = run_directory(home, run_id);
    paths::create_private_dir(&directory)?;
    let lock = durable::open_lock(&directory.join(LOCK))?;
    Ok(durable::try_lock(&lock)?.then_some(lock))
}

/// Opens a run that is over, so that [`super::drive`] goes on with it; `max` is its new maximum of iterations.
pub fn reopen(store: &mut Store, engine: &Engine, run_id: &str, max: Option<u32>) -> Result<(), DriveError> {
    let _lock = take_lock(store, engine, run_id)?;
    let now = clock::now();
    store.write(|db| {
        let row = db.run(run_id)?.ok_or_else(|| DriveError::NoRun(run_id.to_owned()))?;
        let step = machine::reopen(&row.plan, &row.run, max, now)?;
        db.save_step(run_id, row.version, &step, now)?;
        Ok(())
    })
}

pub(super) fn take_lock(store: &Store, engine: &Engine, run_id: &str) -> Result<std::fs::File, DriveError> {
    let row = store.read().run(run_id)?.ok_or_else(|| DriveError::NoRun(run_id.to_owned()))?;
    let patience = Instant::now() + LOCK_PATIENCE;
    loop {
        if let Some(lock) = hold(&engine.home, run_id)? {
            return Ok(lock);
        }
        if Instant::now() > patience {
            return Err(DriveError::Driven { name: row.plan.name, pid: row.engine.map(|engine| engine.pid) });
        }
        std::thread::sleep(LOCK_PAUSE);
    }
}
