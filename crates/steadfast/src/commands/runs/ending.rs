//! `kill`: the engine is asked to end its run and waited for. Where the engine is gone, its work is done here: agents
//! that it left behind are stopped, and store, registry and state files say the same thing afterwards.

use std::time::{Duration, Instant};

use steadfast_core::run::{RunStatus, Stopping};
use steadfast_core::store::{RunRow, Store};

use super::finding::called;
use super::{Here, driving};
use crate::failure::{Failure, code};
use crate::output::Done;

const KILLED: &str = "killed";
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Beyond what the agent itself may take to end.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) fn kill(here: &Here, name: &str) -> Result<Done, Failure> {
    let (mut store, row) = here.find(name)?;
    let (kind, name) = (row.plan.kind, row.plan.name.as_str());
    if row.run.status != RunStatus::Running {
        let reason = row.run.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        return Err(Failure::new(
            code::WRONG_STATE,
            format!("{} is over ({}{reason})", called(kind, name), row.run.status),
            format!("`steadfast {kind} list` shows what is running"),
        ));
    }
    let stopping = Stopping { status: RunStatus::Killed, reason: KILLED.to_owned() };
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
