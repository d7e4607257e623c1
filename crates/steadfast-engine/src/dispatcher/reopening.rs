//! Reopening a run that has ended.

use steadfast_model::clock;
use steadfast_model::run::machine;
use steadfast_store::Store;

use super::{DriveError, Engine, lock_run};

/// Opens a run that has ended, so that [`super::drive`] continues it; `max` is its new maximum of iterations.
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
