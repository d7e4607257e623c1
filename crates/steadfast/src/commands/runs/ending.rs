//! `kill`: the engine is asked to end its run and waited for. Where the engine is gone, its work is done here: agents
//! that it left behind are stopped, and store, registry and state files say the same thing afterwards.

use std::time::{Duration, Instant};

use steadfast_core::run::{RunReason, RunStatus, Stopping};
use steadfast_core::store::{RunRow, Store};
use steadfast_engine::files;

use super::finding::called;
use super::{Here, driving, view};
use crate::failure::{Failure, code};
use crate::output::{self, Done};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Beyond what the agent itself may take to end.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) fn kill(here: &Here, name: &str) -> Result<Done, Failure> {
    let (mut store, row) = match here.find(name) {
        Ok(found) => found,
        Err(failure) if failure.code == code::NOT_FOUND => {
            let key = files::registry_key(here.kind, name);
            if !files::mark_killed(&here.project, &key, here.now)? {
                return Err(failure);
            }
            return Ok(view::entry_by_hand(here, name).map(|entry| view::entry_page(here, &entry)).unwrap_or_default());
        }
        Err(failure) => return Err(failure),
    };
    let (kind, name) = (row.plan.kind, row.plan.name.as_str());
    if row.run.status != RunStatus::Running {
        let reason = row.run.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        return Err(Failure::new(
            code::WRONG_STATE,
            format!("{} is over ({}{reason})", called(kind, name), row.run.status),
            format!("`steadfast {kind} list` shows what is running"),
        ));
    }
    let stopping = Stopping { status: RunStatus::Killed, reason: RunReason::Killed.into() };
    store.write(|db| db.request_stop(&row.run_id, Some(&stopping)))?;
    let deadline = Instant::now() + Duration::from_millis(here.paths.config.runs.grace_ms) + PATIENCE;
    loop {
        if is_over(&store, &row)? && !here.is_driven(&row.run_id)? {
            break;
        }
        if !here.is_driven(&row.run_id)? {
            match driving::drive(&here.paths, &row) {
                Ok(_) => break,
                // Somebody took it in hand just now, and reads the same request.
                Err(failure) if failure.code == code::WRONG_STATE => {}
                Err(failure) => return Err(failure),
            }
        }
        if Instant::now() > deadline {
            let pid = row.engine.map_or_else(|| "PID".to_owned(), |engine| engine.pid.to_string());
            return Err(Failure::new(
                code::USAGE,
                format!("the engine of {} (pid {pid}) has not stopped yet", called(kind, name)),
                format!("wait, or `kill -9 {pid}` and then `steadfast {kind} kill {name}` again"),
            ));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(Done { code: 0, ..driving::ended(here, &row.run_id)? })
}

fn is_over(store: &Store, row: &RunRow) -> Result<bool, Failure> {
    Ok(store.read().run(&row.run_id)?.is_none_or(|row| row.run.status != RunStatus::Running))
}

/// Ends runs whose entries were marked as killed while no engine was there to see it. Trouble is told and changes
/// nothing: whoever comes next tries again.
pub(super) fn obey_marks(here: &Here) {
    // A registry that cannot be read is told by those who have to write it.
    for entry in files::registry(&here.project).unwrap_or_default() {
        let is_marked = entry.kind == Some(here.kind) && entry.status == RunStatus::Killed.to_string();
        if let Some(run_id) = entry.run_id.filter(|_| is_marked)
            && let Err(failure) = end_if_gone(here, &run_id)
        {
            output::note(&format!("{} cannot be ended: {}", entry.key, failure.message));
        }
    }
}

fn end_if_gone(here: &Here, run_id: &str) -> Result<(), Failure> {
    let Some(mut store) = here.existing_store()? else { return Ok(()) };
    let row = store.read().run(run_id)?;
    let is_ours = |row: &RunRow| row.run.status == RunStatus::Running && row.project_dir == here.project_dir();
    let Some(row) = row.filter(is_ours) else { return Ok(()) };
    if here.is_live(&row)? {
        return Ok(());
    }
    let stopping = Stopping { status: RunStatus::Killed, reason: RunReason::KilledInRegistry.into() };
    store.write(|db| db.request_stop(run_id, Some(&stopping)))?;
    drop(store);
    driving::drive(&here.paths, &row)?;
    Ok(())
}
