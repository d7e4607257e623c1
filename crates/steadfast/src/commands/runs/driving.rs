//! Driving a run in this process, with the public files and whoever looks on; and what its end means for the exit code.

use std::path::Path;
use std::time::Duration;

use steadfast_core::paths::Paths;
use steadfast_core::run::machine::{BUDGET_TOKENS, BUDGET_USD, COST_CAP, MAX_HOURS, MAX_ITERATIONS, NO_PROGRESS};
use steadfast_core::run::{Run, RunKind, RunStatus};
use steadfast_core::store::{RunRow, Store};
use steadfast_core::text;
use steadfast_engine::dispatcher::{self, DriveError, Engine};
use steadfast_engine::files::{self, Address, Holder};
use steadfast_engine::goal_link::{self, GoalLink};
use steadfast_engine::observer::Observer;
use steadfast_engine::publish::Publisher;
use steadfast_engine::{notify, process};

use super::finding::{called, stored};
use super::progress::Progress;
use super::{Here, fence, view};
use crate::failure::{Failure, code};
use crate::output::{self, Done};

/// A run that took longer may have been forgotten by whoever started it.
const LONG_MS: i64 = 60_000;

/// What the engine needs to know about this machine.
pub(super) fn engine_of(paths: &Paths) -> Result<Engine, Failure> {
    Ok(Engine {
        home: paths.home.clone(),
        program: std::env::current_exe()?,
        grace: Duration::from_millis(paths.config.runs.grace_ms),
        config: paths.config.clone(),
    })
}

/// Drives a run to its end in this process. Each step is saved, then shown by the public files, the goal and the
/// terminal, in this order.
pub(super) fn drive(paths: &Paths, row: &RunRow) -> Result<Run, Failure> {
    let mut store = Store::open_existing(&paths.store)?;
    let mut publisher = Publisher::open(&paths.home, &paths.store, row)?;
    let mut goal = GoalLink::of_run(&paths.home, &paths.store, row)?;
    let mut progress = Progress::new();
    let mut observers: Vec<&mut dyn Observer> = vec![&mut publisher];
    observers.extend(goal.as_mut().map(|goal| goal as &mut dyn Observer));
    observers.push(&mut progress);
    // Held until this process is gone.
    let _address = hold_name(row)?;
    dispatcher::drive(&mut store, &engine_of(paths)?, &row.run_id, &mut observers).map_err(|error| refused(row, error))
}

/// Takes the name of a run in its project: an engine with another store or home knows nothing of the run's own lock.
/// Where there can be no such lock, the state files cannot be written either, and that is told by whoever writes them.
pub(super) fn hold_name(row: &RunRow) -> Result<Option<Address>, Failure> {
    match files::hold(Path::new(&row.project_dir), row.plan.kind, &row.plan.name, &row.run_id) {
        Ok(Ok(address)) => Ok(Some(address)),
        Ok(Err(holder)) => Err(taken(row, &holder)),
        Err(_) => Ok(None),
    }
}

/// Why a run is refused whose name another engine has in hand.
fn taken(row: &RunRow, holder: &Holder) -> Failure {
    if holder.run_id.as_ref().is_none_or(|run_id| *run_id == row.run_id) {
        return refused(row, DriveError::Driven { name: row.plan.name.clone(), pid: holder.pid });
    }
    running_elsewhere(row.plan.kind, &row.plan.name, holder)
}

/// A run of that name goes on, and this store does not have it.
pub(super) fn running_elsewhere(kind: RunKind, name: &str, holder: &Holder) -> Failure {
    let pid = holder.pid.map_or_else(|| "PID".to_owned(), |pid| pid.to_string());
    Failure::new(
        code::WRONG_STATE,
        format!("{} is running already, from another store (pid {pid})", called(kind, name)),
        format!("use the STEADFAST_HOME or STEADFAST_DB it was started with, or `kill {pid}`; or choose another name"),
    )
}

/// The errors of the engine, in words that name the run.
pub(super) fn refused(row: &RunRow, error: DriveError) -> Failure {
    let (kind, name) = (row.plan.kind, &row.plan.name);
    match error {
        DriveError::Driven { .. } => Failure::new(
            code::WRONG_STATE,
            error.to_string(),
            format!("`steadfast {kind} attach {name}` watches it, `kill {name}` ends it"),
        ),
        DriveError::Refused(refusal) => {
            let message = format!("{}: {refusal}", called(kind, name));
            Failure::new(code::WRONG_STATE, message, refusal.hint())
        }
        DriveError::NoRun(_) => Failure::new(code::NOT_FOUND, error.to_string(), error.hint()),
        DriveError::Store(error) => error.into(),
        DriveError::Io(error) => error.into(),
    }
}

/// Drives a run with somebody looking on, and says how it ended.
pub(super) fn in_foreground(here: &Here, row: &RunRow) -> Result<Done, Failure> {
    let run = drive(&here.paths, row)?;
    notify_end(&here.paths, row, &run, false);
    if run.status == RunStatus::Killed {
        output::note(&format!("hint: `steadfast {} resume {}` goes on", row.plan.kind, row.plan.name));
    }
    ended(here, &row.run_id)
}

/// How a run stands now that nobody drives it any more.
pub(super) fn ended(here: &Here, run_id: &str) -> Result<Done, Failure> {
    let store = Store::open_existing(&here.paths.store)?;
    let row = stored(&store, run_id)?;
    Ok(Done {
        text: view::status_text(here, store.read(), &row, false)?,
        json: view::status_json(here, store.read(), &row, false)?,
        code: exit_code(&row),
    })
}

pub(super) fn in_background(paths: &Paths, run_id: &str) -> Result<Done, Failure> {
    process::begin_session();
    let mut store = Store::open_existing(&paths.store)?;
    let missing = || Failure::new(code::NOT_FOUND, format!("there is no run {run_id}"), "run `steadfast doctor`");
    let row = store.read().run(run_id)?.ok_or_else(missing)?;
    // Whoever started this was let through; somebody who calls it by hand was not asked yet.
    fence::refuse_agent(&mut store, &row, false)?;
    drop(store);
    let run = drive(paths, &row)?;
    notify_end(paths, &row, &run, true);
    Ok(Done { code: exit_code(&RunRow { run, ..row }), ..Done::default() })
}

/// Whether a limit ended the run before its rule held.
pub(super) fn is_limited(run: &Run) -> bool {
    const LIMITS: [&str; 5] = [MAX_ITERATIONS, BUDGET_TOKENS, BUDGET_USD, MAX_HOURS, COST_CAP];
    run.status == RunStatus::Completed && run.reason.as_deref().is_some_and(|reason| LIMITS.contains(&reason))
}

fn exit_code(row: &RunRow) -> u8 {
    let run = &row.run;
    match run.status {
        RunStatus::Completed if is_limited(run) => code::LIMIT,
        RunStatus::Completed => 0,
        RunStatus::Killed => code::INTERRUPTED,
        // A goal that got nowhere although its checks were still failing.
        RunStatus::Failed if run.reason.as_deref() == Some(NO_PROGRESS) && goal_link::is_verified_goal(&row.plan) => {
            code::VERIFICATION
        }
        RunStatus::Failed | RunStatus::UnknownTermination | RunStatus::Running => code::USAGE,
    }
}

/// Tells the desktop, if nobody was looking. Failing to do so is no failure.
fn notify_end(paths: &Paths, row: &RunRow, run: &Run, was_detached: bool) {
    let took = run.completed_at_ms.map_or(0, |ended| ended - run.started_at_ms);
    let is_wanted = paths.config.notify.desktop.unwrap_or(was_detached || took > LONG_MS);
    let was_asked_to_end = run.status == RunStatus::Killed;
    if is_wanted && !was_asked_to_end {
        let reason = run.reason.as_deref().map(|reason| text::headline(reason, 120)).unwrap_or_default();
        let title = format!("{} {}", called(row.plan.kind, &row.plan.name), run.status);
        notify::desktop(&title, &format!("{reason} · {}", project_name(&row.project_dir)));
    }
}

fn project_name(project: &str) -> String {
    let name = Path::new(project).file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| project.to_owned())
}
