//! `kill`: asks the engine to end its run and waits for it. If the engine died, this process ends the run instead: it
//! stops the agents that are still running and updates store, registry and state files.

use std::time::{Duration, Instant};

use steadfast_engine::files;
use steadfast_engine::publish::KILLED_IN_REGISTRY;
use steadfast_model::run::{RunStatus, Stopping};
use steadfast_store::{RunRow, Store};

use super::{RunContext, driving, view};
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput};

const KILLED: &str = "killed";
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long to wait for the engine, beyond the time its agents have to end.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) fn kill(context: &RunContext, name: &str) -> Result<CommandOutput, CliError> {
    let (mut store, row) = match context.find(name) {
        Ok(found) => found,
        Err(failure) if failure.code == code::NOT_FOUND => {
            let key = files::registry_key(context.kind, name);
            if !files::mark_killed(&context.project, &key, context.now)? {
                return Err(failure);
            }
            let entry = view::manual_entry(context, name);
            return entry.map_or_else(|| Ok(CommandOutput::default()), |entry| view::show_entry(context, entry));
        }
        Err(failure) => return Err(failure),
    };
    let (kind, name) = (row.plan.kind, row.plan.name.as_str());
    if row.run.status != RunStatus::Running {
        let reason = row.run.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        return Err(CliError::new(
            code::WRONG_STATE,
            format!("{kind} {name} is over ({}{reason})", row.run.status),
            format!("`steadfast {kind} list` shows what is running"),
        ));
    }
    let stopping = Stopping { status: RunStatus::Killed, reason: KILLED.to_owned() };
    store.write(|db| db.request_stop(&row.run_id, Some(&stopping)))?;
    let deadline = Instant::now() + Duration::from_millis(context.paths.config.runs.grace_ms) + PATIENCE;
    loop {
        if is_over(&store, &row)? && !context.is_driven(&row.run_id)? {
            break;
        }
        if !context.is_driven(&row.run_id)? {
            match driving::drive(&context.paths, &row) {
                Ok(_) => break,
                // Another engine has just locked it and sees the same request.
                Err(failure) if failure.code == code::WRONG_STATE => {}
                Err(failure) => return Err(failure),
            }
        }
        if Instant::now() > deadline {
            let pid = row.engine.map_or_else(|| "PID".to_owned(), |engine| engine.pid.to_string());
            return Err(CliError::new(
                code::USAGE,
                format!("the engine of {kind} {name} (pid {pid}) has not stopped yet"),
                format!("wait, or `kill -9 {pid}` and then `steadfast {kind} kill {name}` again"),
            ));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(CommandOutput { code: 0, ..driving::ended(context, &row.run_id)? })
}

fn is_over(store: &Store, row: &RunRow) -> Result<bool, CliError> {
    Ok(store.read().run(&row.run_id)?.is_none_or(|row| row.run.status != RunStatus::Running))
}

/// Ends runs whose registry entries were marked killed while no engine was running. Errors are printed; the next call
/// tries again.
pub(super) fn apply_registry_kills(context: &RunContext) {
    // An unreadable registry is reported when it has to be written.
    for entry in files::registry(&context.project).unwrap_or_default() {
        let is_marked = entry.kind == Some(context.kind) && entry.status == RunStatus::Killed.to_string();
        if let Some(run_id) = entry.run_id.filter(|_| is_marked)
            && let Err(failure) = end_if_orphaned(context, &run_id)
        {
            output::note(&format!("cannot end {}: {}", entry.key, failure.message));
        }
    }
}

fn end_if_orphaned(context: &RunContext, run_id: &str) -> Result<(), CliError> {
    let Some(mut store) = context.existing_store()? else { return Ok(()) };
    let row = store.read().run(run_id)?;
    let is_ours = |row: &RunRow| row.run.status == RunStatus::Running && row.project_dir == context.project_dir();
    let Some(row) = row.filter(is_ours) else { return Ok(()) };
    if context.is_live(&row)? {
        return Ok(());
    }
    let stopping = Stopping { status: RunStatus::Killed, reason: KILLED_IN_REGISTRY.to_owned() };
    store.write(|db| db.request_stop(run_id, Some(&stopping)))?;
    drop(store);
    driving::drive(&context.paths, &row)?;
    Ok(())
}
