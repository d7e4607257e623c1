//! Removes what runs leave that were over long ago: first what their agents printed, later their folders, worktrees and
//! rows. A run whose engine died long ago ends before that, when it was saved last. A run with unsaved work in a worktree
//! stays, and so does one whose end no public file shows yet. The outputs of agents that `steadfast watch` started are
//! bounded too. Files and rows that cannot be read or removed hold up only their own run, until the next walk.

use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use steadfast_model::clock::{DAY, Millis};
use steadfast_model::run::{RunKind, RunStatus};
use steadfast_model::text;
use steadfast_store::{ExpiredRun, RunFilter, RunLine, Store, StoreError};
use steadfast_system::config::RetentionConfig;
use steadfast_system::process::ProcessId;

use crate::attempt::{Attempt, AttemptState};
use crate::goal_link::GoalLink;
use crate::lock::RunLock;
use crate::publish::Publisher;
use crate::run_folder::RunFolder;
use crate::worktree;

/// A row counts to what was spent in a week, and a clock may be wrong by days.
const LEAST_DAYS_OF_ROWS: u32 = 14;
/// The output of an agent that `steadfast watch` started begins anew beyond this.
const HEADLESS_MAX: u64 = 8 << 20;
/// Runs that one step looks at.
const WALKED: usize = 20;

/// How the names of those outputs begin.
const HEADLESS: &str = "headless-";

/// The walks through the runs, as the store names them.
const DEAD: &str = "dead_runs";
const OUTPUTS: &str = "run_outputs";
const RUNS: &str = "runs";

#[derive(Debug, thiserror::Error)]
enum OldRunsError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What a step did.
#[derive(Debug, Default)]
pub struct Stepped {
    /// Whether there may be more to do now.
    pub is_more: bool,
    /// Files that could not be read or removed.
    pub problems: Vec<io::Error>,
}

/// Removes outputs or one run, if that is due.
pub fn step(home: &Path, store: &mut Store, keep: &RetentionConfig, now: Millis) -> Result<Stepped, StoreError> {
    let mut stepped = Stepped::default();
    if let Err(error) = bound_headless_outputs(home, keep.output_days, store.read().aged_now(now)?) {
        stepped.problems.push(error);
    }
    if store.read().walk_position(DEAD, now)?.is_some() {
        let days = if keep.output_days == 0 { keep.runs_days } else { keep.output_days };
        let ended = if days == 0 { None } else { end_dead_run(home, store, days, now, &mut stepped.problems)? };
        store.write(|db| db.put_walk(DEAD, ended.as_deref(), now))?;
        if ended.is_some() {
            stepped.is_more = true;
            return Ok(stepped);
        }
    }
    let walks: [(&str, u32, Remove); 2] =
        [(OUTPUTS, keep.output_days, remove_outputs), (RUNS, days_of_rows(keep), remove_run)];
    for (walk, days, remove) in walks {
        let Some(position) = store.read().walk_position(walk, now)? else { continue };
        let before = store.read().aged_now(now)?.saturating_sub(Millis::from(days) * DAY);
        let position =
            if days == 0 { None } else { walk_on(home, store, &position, before, remove, &mut stepped.problems)? };
        store.write(|db| db.put_walk(walk, position.as_deref(), now))?;
        if position.is_some() {
            stepped.is_more = true;
            break;
        }
    }
    Ok(stepped)
}

/// Notes a problem with the files or the row of a run; a store that fails ends the step.
fn unless_store_fails(
    done: Result<bool, OldRunsError>,
    run_id: &str,
    problems: &mut Vec<io::Error>,
) -> Result<bool, StoreError> {
    match done {
        Ok(done) => Ok(done),
        Err(OldRunsError::Store(error)) if error.is_of_row() => {
            problems.push(io::Error::other(format!("run {run_id}: {error}")));
            Ok(false)
        }
        Err(OldRunsError::Store(error)) => Err(error),
        Err(OldRunsError::Io(error)) => {
            problems.push(error);
            Ok(false)
        }
    }
}

/// How long the rows of a run are kept after its end; 0 is for ever.
pub fn days_of_rows(keep: &RetentionConfig) -> u32 {
    if keep.runs_days == 0 { 0 } else { keep.runs_days.max(LEAST_DAYS_OF_ROWS) }
}

/// Ends one run whose engine died so long ago that what it left is removed. Returns its id.
fn end_dead_run(
    home: &Path,
    store: &mut Store,
    days: u32,
    now: Millis,
    problems: &mut Vec<io::Error>,
) -> Result<Option<String>, StoreError> {
    let before = store.read().aged_now(now)?.saturating_sub(Millis::from(days) * DAY);
    let running = RunFilter { status: Some(RunStatus::Running), ..RunFilter::default() };
    for line in store.read().runs(running, usize::MAX)? {
        let folder = RunFolder::at(home, &line.run_id);
        // A run of another home has no folder here. `steadfast watch` starts the engines of detached runs again.
        let may_live = !folder.path().is_dir() && line.engine.and_then(ProcessId::is_alive).unwrap_or(false);
        let is_left = line.updated_at_ms < before && !folder.is_detached() && !may_live;
        if is_left && unless_store_fails(end_if_dead(home, store, &line), &line.run_id, problems)? {
            return Ok(Some(line.run_id));
        }
    }
    Ok(None)
}

fn end_if_dead(home: &Path, store: &mut Store, line: &RunLine) -> Result<bool, OldRunsError> {
    // While this lock is held, no engine can resume the run. A run of another home has no folder here, and gets none:
    // with one, it would count as a run of this home.
    let is_here = RunFolder::at(home, &line.run_id).path().is_dir();
    let lock = if is_here { RunLock::try_take(home, &line.run_id)? } else { None };
    if is_here && lock.is_none() {
        return Ok(false);
    }
    let Some(row) = store.read().run(&line.run_id)?.filter(|row| row.updated_at_ms == line.updated_at_ms) else {
        return Ok(false);
    };
    for active in &row.run.active {
        let attempt = Attempt::at(home, &row.run_id, active.id);
        if attempt.directory().is_dir()
            && matches!(attempt.inspect()?, AttemptState::Supervised | AttemptState::Orphaned { .. })
        {
            return Ok(false);
        }
    }
    let row = store.write(|db| db.mark_orphan(&row, row.updated_at_ms))?;
    // Best effort: the commands that look at the run do both again.
    let _ = Publisher::open(home, store.path(), &row).and_then(|mut publisher| publisher.show(&row));
    if let Ok(Some(mut goal)) = GoalLink::of_run(home, store.path(), &row) {
        let _ = goal.show(&row, row.updated_at_ms);
    }
    Ok(true)
}

/// Removes a run or a part of it. Returns whether it did something.
type Remove = fn(&Path, &mut Store, &ExpiredRun) -> Result<bool, OldRunsError>;

/// Goes to the next runs; ends after the first that something was removed of. Returns where to continue.
fn walk_on(
    home: &Path,
    store: &mut Store,
    position: &str,
    before: Millis,
    remove: Remove,
    problems: &mut Vec<io::Error>,
) -> Result<Option<String>, StoreError> {
    let runs = store.read().runs_over(before, position, WALKED)?;
    for run in &runs {
        if unless_store_fails(remove_if_free(home, store, run, remove), &run.run_id, problems)? {
            return Ok(Some(run.run_id.clone()));
        }
    }
    Ok(runs.last().filter(|_| runs.len() == WALKED).map(|run| run.run_id.clone()))
}

fn remove_if_free(home: &Path, store: &mut Store, run: &ExpiredRun, remove: Remove) -> Result<bool, OldRunsError> {
    // While this lock is held, no engine can resume the run.
    let is_free = !RunFolder::at(home, &run.run_id).path().is_dir() || !RunLock::is_held(home, &run.run_id)?;
    Ok(is_free && remove(home, store, run)?)
}

/// Where `steadfast watch` puts what an agent without a terminal prints.
pub fn headless_output(home: &Path, goal_id: &str) -> PathBuf {
    home.join("log").join(format!("{HEADLESS}{}.log", text::head(goal_id, 8)))
}

/// Empties outputs that are too large, and removes those of agents that ended long ago. Their agents append to them.
fn bound_headless_outputs(home: &Path, days: u32, now: Millis) -> io::Result<()> {
    let Ok(entries) = fs_err::read_dir(home.join("log")) else { return Ok(()) };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(HEADLESS)) {
        let Ok(found) = entry.metadata() else { continue };
        let written = found.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let written = written.and_then(|at| Millis::try_from(at.as_millis()).ok()).unwrap_or(Millis::MAX);
        if days > 0 && written < now.saturating_sub(Millis::from(days) * DAY) {
            fs_err::remove_file(entry.path())?;
        } else if found.is_file() && found.len() > HEADLESS_MAX {
            fs_err::OpenOptions::new().write(true).open(entry.path())?.set_len(0)?;
        }
    }
    Ok(())
}

/// Removes the folders of attempts: what agents printed, word for word.
fn remove_outputs(home: &Path, _store: &mut Store, run: &ExpiredRun) -> Result<bool, OldRunsError> {
    let folder = RunFolder::at(home, &run.run_id);
    let outputs = folder.attempts();
    if outputs.is_empty() || is_owed(&folder, run) {
        return Ok(false);
    }
    let Some(_lock) = RunLock::try_take(home, &run.run_id)? else { return Ok(false) };
    outputs.iter().try_for_each(fs_err::remove_dir_all)?;
    Ok(true)
}

fn remove_run(home: &Path, store: &mut Store, run: &ExpiredRun) -> Result<bool, OldRunsError> {
    let folder = RunFolder::at(home, &run.run_id);
    if folder.path().is_dir() {
        if is_owed(&folder, run) || has_work(home, run) {
            return Ok(false);
        }
        let Some(_lock) = RunLock::try_take(home, &run.run_id)? else { return Ok(false) };
        // It may have been resumed before the lock was taken.
        if store.read().run(&run.run_id)?.is_none_or(|row| row.updated_at_ms != run.updated_at_ms) {
            return Ok(false);
        }
        // The row leads here again if this ends half-way.
        fs_err::remove_dir_all(folder.path())?;
    } else if has_work(home, run) {
        return Ok(false);
    }
    remove_if_there(&home.join("worktrees").join(&run.run_id))?;
    while !store.write(|db| db.delete_some_of_run(run))? {}
    Ok(true)
}

/// Outputs of pipelines are published from the answers of their agents, unless their project is gone.
fn is_owed(folder: &RunFolder, run: &ExpiredRun) -> bool {
    let is_published = folder.is_end_published(run.completed_at_ms);
    run.kind == RunKind::Pipeline && !is_published && Path::new(&run.project_dir).is_dir()
}

/// Removes the worktrees whose work is committed. Returns whether one stays.
fn has_work(home: &Path, run: &ExpiredRun) -> bool {
    // A worktree that cannot be removed is found again below.
    let _ = worktree::remove_clean(home, Path::new(&run.project_dir), &run.run_id, &run.name, false);
    let Ok(entries) = fs_err::read_dir(home.join("worktrees").join(&run.run_id)) else { return false };
    entries.flatten().any(|entry| entry.path().join(".git").exists())
}

fn remove_if_there(path: &PathBuf) -> io::Result<()> {
    match fs_err::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
