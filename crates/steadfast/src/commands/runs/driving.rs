//! Driving a run in this process, with the public files and whoever looks on; and what its end means for the exit code.

use std::path::Path;
use std::time::Duration;

use steadfast_core::paths::Paths;
use steadfast_core::run::{Run, RunKind, RunReason, RunStatus, Stopping};
use steadfast_core::store::{RunRow, Store};
use steadfast_core::text;
use steadfast_engine::dispatcher::{self, DriveError, Engine, Saved};
use steadfast_engine::files::{self, Address, Holder};
use steadfast_engine::publish::{Publisher, Watch};
use steadfast_engine::pursuit::Pursuit;
use steadfast_engine::{notify, processes};

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
        // Kept with the run when it was made.
    })
}

/// Who looks on: a person's terminal, and the goal that the run pursues, if it does.
struct Onlookers {
    progress: Progress,
    pursuit: Option<Pursuit>,
}

impl Watch for Onlookers {
    fn stepped(&mut self, saved: &Saved<'_>) {
        if let Some(trouble) = self.pursuit.as_mut().and_then(|pursuit| pursuit.stepped(saved).err()) {
            self.progress.line(&format!("the goal cannot be kept up to date: {trouble}"));
        }
        self.progress.stepped(saved);
    }

    fn idle(&mut self) {
        self.progress.draw();
    }

    fn note(&mut self, message: &str) {
        self.progress.line(&text::printable(message));
    }

    fn stop_requested(&mut self) -> Option<Stopping> {
        self.pursuit.as_mut().and_then(Pursuit::stop_requested)
    }

    fn objective(&self) -> String {
        self.pursuit.as_ref().map(Pursuit::objective).unwrap_or_default()
    }
}

/// Drives a run to its end in this process.
pub(super) fn drive(paths: &Paths, row: &RunRow) -> Result<Run, Failure> {
    let pursuit = Pursuit::of_run(&paths.home, &paths.store, row)?;
    let mut onlookers = Onlookers { progress: Progress::new(), pursuit };
    let mut store = Store::open_existing(&paths.store)?;
    let engine = engine_of(paths)?;
    let mut publisher = Publisher::open(&paths.home, &paths.store, row, &mut onlookers)?;
    // Until this process is gone, however it goes.
    let _address = hold_name(row)?;
    dispatcher::drive(&mut store, &engine, &row.run_id, &mut publisher).map_err(|error| refused(row, error))
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
    processes::begin_session();
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

fn exit_code(row: &RunRow) -> u8 {
    let run = &row.run;
    match run.status {
        RunStatus::Completed if run.is_limited() => code::LIMIT,
        RunStatus::Completed => 0,
        RunStatus::Killed => code::INTERRUPTED,
        // A goal that got nowhere although its checks were still failing.
        RunStatus::Failed
            if run.end_reason() == Some(RunReason::NoProgress) && Pursuit::is_verified_goal(&row.plan) =>
        {
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
