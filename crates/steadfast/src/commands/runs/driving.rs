//! Drives a run in this process, with its observers, and turns its end into an exit code.

use std::path::Path;
use std::time::Duration;

use steadfast_engine::dispatcher::{self, DriveError, Engine};
use steadfast_engine::files::{self, Address, Holder};
use steadfast_engine::goal_link::{self, GoalLink};
use steadfast_engine::nesting::NestedRun;
use steadfast_engine::observer::Observer;
use steadfast_engine::process;
use steadfast_engine::publish::Publisher;
use steadfast_model::run::{Run, RunKind, RunReason, RunStatus};
use steadfast_store::{RunRow, Store};
use steadfast_system::paths::Paths;

use super::approval::Messenger;
use super::progress::Progress;
use super::{RunContext, control, stored, view};
use crate::error::{CliError, code};
use crate::outbox::{self, Audience};
use crate::output::{self, CommandOutput, CommandResult};

/// A desktop notification is sent for foreground runs that took longer: the user may have left.
const LONG_MS: i64 = 60_000;

pub(super) fn engine_of(paths: &Paths) -> Result<Engine, CliError> {
    Ok(Engine {
        home: paths.home.clone(),
        program: std::env::current_exe()?,
        grace: Duration::from_millis(paths.config.runs.grace_ms),
        config: paths.config.clone(),
    })
}

/// Drives a run to its end in this process. Each step is saved, then shown by the public files, the goal and the
/// terminal, in this order.
pub(super) fn drive(paths: &Paths, row: &RunRow) -> Result<Run, CliError> {
    let mut store = Store::open_existing(&paths.store)?;
    let mut publisher = Publisher::open(&paths.home, &paths.store, row)?;
    publisher.hold(hold_name(row)?);
    let mut goal = GoalLink::of_run(&paths.home, &paths.store, row)?;
    let mut nested = NestedRun::of_run(&paths.store, row)?;
    let mut messenger = Messenger { paths };
    let mut progress = Progress::new();
    let mut observers: Vec<&mut dyn Observer> = vec![&mut publisher];
    observers.extend(goal.as_mut().map(|goal| goal as &mut dyn Observer));
    observers.extend(nested.as_mut().map(|nested| nested as &mut dyn Observer));
    observers.push(&mut messenger);
    observers.push(&mut progress);
    dispatcher::drive(&mut store, &engine_of(paths)?, &row.run_id, &mut observers).map_err(|error| refused(row, error))
}

/// Locks the name of a run in its project: an engine with another store or home does not see the run's own lock. An I/O
/// error is ignored here, because writing the state files beside the lock then fails and reports it.
pub(super) fn hold_name(row: &RunRow) -> Result<Option<Address>, CliError> {
    let (kind, name) = (row.plan.kind, &row.plan.name);
    match files::hold(Path::new(&row.project_dir), kind, name, &row.run_id) {
        Ok(Ok(address)) => Ok(Some(address)),
        Ok(Err(holder)) if holder.run_id.as_ref().is_none_or(|run_id| *run_id == row.run_id) => {
            Err(refused(row, DriveError::Driven { name: name.clone(), pid: holder.pid }))
        }
        Ok(Err(holder)) => Err(running_elsewhere(kind, name, &holder)),
        Err(_) => Ok(None),
    }
}

/// The error for a name that a run in another store holds.
pub(super) fn running_elsewhere(kind: RunKind, name: &str, holder: &Holder) -> CliError {
    let pid = holder.pid.map_or_else(|| "PID".to_owned(), |pid| pid.to_string());
    CliError::new(
        code::WRONG_STATE,
        format!("{kind} {name} is already running, from another store (pid {pid})"),
        format!("use the STEADFAST_HOME or STEADFAST_DB it was started with, or `kill {pid}`; or choose another name"),
    )
}

pub(super) fn refused(row: &RunRow, error: DriveError) -> CliError {
    let (kind, name) = (row.plan.kind, &row.plan.name);
    match error {
        DriveError::Driven { .. } => CliError::new(
            code::WRONG_STATE,
            error.to_string(),
            format!("`steadfast {kind} attach {name}` watches it, `kill {name}` ends it"),
        ),
        DriveError::Refused(refusal) => {
            CliError::new(code::WRONG_STATE, format!("{kind} {name}: {refusal}"), refusal.hint())
        }
        DriveError::NoRun(_) => CliError::new(code::NOT_FOUND, error.to_string(), error.hint()),
        DriveError::SealedTextGone(gone) => {
            CliError::new(code::WRONG_STATE, format!("cannot resume {kind} {name}: {gone}"), gone.hint())
        }
        DriveError::Store(error) => error.into(),
        DriveError::Io(error) => error.into(),
    }
}

pub(super) fn in_foreground(context: &RunContext, row: &RunRow) -> CommandResult {
    let run = drive(&context.paths, row)?;
    notify_end(&context.paths, &run, false);
    if run.status == RunStatus::Killed {
        output::note(&format!("hint: `steadfast {} resume {}` resumes it", row.plan.kind, row.plan.name));
    }
    ended(context, &row.run_id)
}

/// Shows a run that no engine drives any more.
pub(super) fn ended(context: &RunContext, run_id: &str) -> CommandResult {
    let store = Store::open_existing(&context.paths.store)?;
    let row = stored(&store, run_id)?;
    view::show_status(context, store.read(), &row, false, exit_code(&row))
}

pub(super) fn in_background(paths: &Paths, run_id: &str) -> CommandResult {
    process::begin_session();
    let mut store = Store::open_existing(&paths.store)?;
    let row = stored(&store, run_id)?;
    // Checked when the run was started, but not if an agent calls `__engine` itself.
    control::refuse_agent(&mut store, &row, None)?;
    drop(store);
    let run = drive(paths, &row)?;
    notify_end(paths, &run, true);
    Ok(CommandOutput { code: exit_code(&RunRow { run, ..row }), ..CommandOutput::default() })
}

fn exit_code(row: &RunRow) -> u8 {
    let run = &row.run;
    match run.status {
        RunStatus::Completed if run.is_limited() => code::LIMIT,
        RunStatus::Completed => 0,
        RunStatus::Killed => code::INTERRUPTED,
        // The goal made no progress while its checks failed.
        RunStatus::Failed
            if run.end_reason() == Some(RunReason::NoProgress) && goal_link::is_verified_goal(&row.plan) =>
        {
            code::VERIFICATION
        }
        RunStatus::Failed | RunStatus::UnknownTermination | RunStatus::Running => code::USAGE,
    }
}

/// Sends the message about the end of a run, on the desktop if the user is probably not watching.
fn notify_end(paths: &Paths, run: &Run, was_detached: bool) {
    let took = run.completed_at_ms.map_or(0, |ended| ended - run.started_at_ms);
    let audience = if was_detached || took > LONG_MS { Audience::Away } else { Audience::Watching };
    if let Ok(mut store) = Store::open_existing(&paths.store) {
        outbox::send(paths, &mut store, audience);
    }
}
