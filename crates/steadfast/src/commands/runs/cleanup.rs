//! `cleanup`: runs that died unseen are marked and what they left running is stopped; entries and outputs that nobody
//! needs any more go. Says what it did, and only that with `--dry-run`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use steadfast_core::clock::{self, Millis};
use steadfast_core::run::{Phase, RunKind, RunStatus};
use steadfast_core::store::{RunFilter, RunLine, RunRow, Store};
use steadfast_engine::attempt::{Attempt, Sighting, run_directory};
use steadfast_engine::checks;
use steadfast_engine::dispatcher;
use steadfast_engine::files::{self, RegistryEntry, Tidy};
use steadfast_engine::process;
use steadfast_engine::processes;
use steadfast_engine::publish::Publisher;
use steadfast_engine::worktree;

use super::finding::{ENGINE_GONE, called, is_starting};
use super::{Here, logs};
use crate::cli::RunCleanupArgs;
use crate::failure::Failure;
use crate::output::{self, Done};

/// How long finished entries stay in the registry.
const REGISTRY_DAYS: Millis = 7;
const TMUX_LIMIT: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Report {
    zombies: Vec<String>,
    stopped: Vec<String>,
    marked: Vec<String>,
    pruned: Vec<String>,
    removed: Vec<PathBuf>,
    worktrees: Vec<PathBuf>,
}

pub(super) fn cleanup(here: &Here, arguments: &RunCleanupArgs) -> Result<Done, Failure> {
    let mut report = Report::default();
    let mut store = here.existing_store()?;
    if let Some(store) = &mut store {
        let project = here.project_dir();
        let filter = RunFilter { project_dir: Some(&project), kind: Some(here.kind), status: None };
        for line in &store.read().runs(filter, usize::MAX)? {
            clean_run(here, store, line, arguments, &mut report)?;
        }
    }
    let how = Tidy {
        is_alive: &|entry| entry.kind != Some(here.kind) || is_alive(here, store.as_ref(), entry),
        before_ms: here.now - REGISTRY_DAYS * clock::DAY,
        now: here.now,
        dry_run: arguments.dry_run,
    };
    let tidied = files::tidy(&here.project, how)?;
    report.marked = tidied.marked.into_iter().filter(|key| !report.zombies.iter().any(|name| key == name)).collect();
    report.pruned = tidied.pruned;
    Ok(told(&report, arguments.dry_run))
}

fn clean_run(
    here: &Here,
    store: &mut Store,
    line: &RunLine,
    arguments: &RunCleanupArgs,
    report: &mut Report,
) -> Result<(), Failure> {
    if here.is_driven(&line.run_id)? || is_held(here, line.kind, &line.name, &line.run_id) {
        return Ok(());
    }
    if matches!(line.status, RunStatus::Running | RunStatus::UnknownTermination) {
        clean_orphan(here, store, line, arguments.dry_run, report)?;
    }
    if line.status != RunStatus::Running
        && !arguments.dry_run
        && let Some(row) = store.read().newest_run(&line.project_dir, line.kind, &line.name)?
        && row.run_id == line.run_id
    {
        here.catch_up(&row)?;
    }
    if line.status == RunStatus::Running { Ok(()) } else { remove_what_is_over(here, store, line, arguments, report) }
}

/// What a run that is over does not need any more: worktrees without work in them, and outputs once they are old.
fn remove_what_is_over(
    here: &Here,
    store: &Store,
    line: &RunLine,
    arguments: &RunCleanupArgs,
    report: &mut Report,
) -> Result<(), Failure> {
    let home = &here.paths.home;
    if !run_directory(home, &line.run_id).is_dir() {
        return Ok(());
    }
    // As long as it is held, no engine goes on with what is being removed here.
    let Some(_lock) = dispatcher::hold(home, &line.run_id)? else { return Ok(()) };
    // Somebody may have gone on with it before the lock was ours.
    if store.read().run(&line.run_id)?.is_none_or(|row| row.updated_at_ms != line.updated_at_ms) {
        return Ok(());
    }
    match worktree::remove_clean(home, Path::new(&line.project_dir), &line.run_id, &line.name, arguments.dry_run) {
        Ok(removed) => report.worktrees.extend(removed),
        Err(error) => output::note(&format!("{}: {error}", called(line.kind, &line.name))),
    }
    let before = here.now - Millis::from(arguments.older_than) * clock::DAY;
    if line.completed_at_ms.is_some_and(|ended| ended < before) {
        remove_attempts(home, &line.run_id, arguments.dry_run, report)?;
    }
    Ok(())
}

/// A run whose engine may be gone.
fn clean_orphan(
    here: &Here,
    store: &mut Store,
    line: &RunLine,
    dry_run: bool,
    report: &mut Report,
) -> Result<(), Failure> {
    // As long as it is held, no engine begins with what is being stopped and marked here.
    let Some(_lock) = dispatcher::hold(&here.paths.home, &line.run_id)? else { return Ok(()) };
    // Much may have happened before the lock was ours.
    let Some(row) = store.read().run(&line.run_id)? else { return Ok(()) };
    if row.run.status != line.status || is_starting(row.run.status, row.engine, row.updated_at_ms, clock::now()) {
        return Ok(());
    }
    stop_agents(here, &row, dry_run, report)?;
    if line.status == RunStatus::Running {
        report.zombies.push(files::registry_key(line.kind, &line.name));
        if !dry_run {
            let row = store.write(|db| db.mark_orphan(&row, ENGINE_GONE, clock::now()))?;
            show(here, &row)?;
        }
    }
    Ok(())
}

/// Agents whose engine is gone and that nobody will wait for.
fn stop_agents(here: &Here, row: &RunRow, dry_run: bool, report: &mut Report) -> Result<(), Failure> {
    let grace = Duration::from_millis(here.paths.config.runs.grace_ms);
    for flight in &row.run.flights {
        let attempt = Attempt::at(&here.paths.home, &row.run_id, flight.id);
        if flight.phase != Phase::Running {
            if checks::are_under_way(&attempt)? {
                let iteration = flight.id.iteration;
                report
                    .stopped
                    .push(format!("{}, test of iteration {iteration}", called(row.plan.kind, &row.plan.name)));
                if !dry_run {
                    checks::stop(&attempt, grace)?;
                }
            }
            continue;
        }
        if !attempt.directory().is_dir() {
            continue;
        }
        if matches!(attempt.look()?, Sighting::Kept | Sighting::Orphaned { .. }) {
            let iteration = flight.id.iteration;
            report.stopped.push(format!("{}, iteration {iteration}", called(row.plan.kind, &row.plan.name)));
            if !dry_run {
                attempt.stop(grace)?;
            }
        }
    }
    Ok(())
}

fn show(here: &Here, row: &RunRow) -> Result<(), Failure> {
    Publisher::open(&here.paths.home, &here.paths.store, row, &mut ())?.show(row)?;
    Ok(())
}

/// Whether an engine has a run in hand that was started with another home than this one.
fn is_held(here: &Here, kind: RunKind, name: &str, run_id: &str) -> bool {
    // What could not be found out counts as alive.
    files::holder(&here.project, kind, name)
        .map_or(true, |holder| holder.is_some_and(|holder| holder.run_id.is_none_or(|id| id == run_id)))
}

/// Whether anything is behind an entry that says `running`: our engine, whichever store it writes to, the process that
/// an entry by hand names, or a tmux session of an older tool. The store is asked now: a run may have begun since its
/// list was read.
fn is_alive(here: &Here, store: Option<&Store>, entry: &RegistryEntry) -> bool {
    if let Some(run_id) = &entry.run_id {
        if let Some(name) = name_of(here, entry)
            && is_held(here, here.kind, name, run_id)
        {
            return true;
        }
        match store.map(|store| store.read().run(run_id)) {
            // What could not be found out counts as alive.
            Some(Err(_)) => return true,
            Some(Ok(Some(row))) => return here.is_live(&row).unwrap_or(true),
            Some(Ok(None)) | None => {}
        }
    } else if entry.pid.is_some_and(processes::is_there) {
        return true;
    }
    let session = format!("={}", entry.key);
    let found = process::run(&["tmux", "has-session", "-t", &session], Path::new("/"), TMUX_LIMIT);
    found.is_ok_and(|outcome| outcome.exit_code == Some(0))
}

fn name_of<'a>(here: &Here, entry: &'a RegistryEntry) -> Option<&'a str> {
    entry.key.strip_prefix(here.kind.to_string().as_str())?.strip_prefix('-')
}

fn remove_attempts(home: &Path, run_id: &str, dry_run: bool, report: &mut Report) -> Result<(), Failure> {
    let directories = logs::directories(home, run_id);
    if directories.is_empty() {
        return Ok(());
    }
    if !dry_run {
        for directory in directories {
            fs_err::remove_dir_all(directory)?;
        }
    }
    report.removed.push(run_directory(home, run_id));
    Ok(())
}

fn told(report: &Report, dry_run: bool) -> Done {
    let would = if dry_run { "would be " } else { "" };
    let mut lines = Vec::new();
    for key in report.zombies.iter().chain(&report.marked) {
        lines.push(format!("{key}: {would}marked unknown_termination (nothing runs behind it)"));
    }
    lines.extend(report.stopped.iter().map(|what| format!("{what}: orphan agent {would}stopped")));
    lines.extend(report.pruned.iter().map(|key| format!("{key}: {would}removed from the registry (ended long ago)")));
    lines.extend(report.removed.iter().map(|path| format!("{}: outputs {would}removed", path.display())));
    let worktrees = report.worktrees.iter();
    lines.extend(worktrees.map(|path| format!("{}: worktree {would}removed (its branch stays)", path.display())));
    if lines.is_empty() {
        lines.push("nothing to clean up".into());
    }
    let zombies: Vec<&String> = report.zombies.iter().chain(&report.marked).collect();
    let json = json!({
        "dry_run": dry_run, "zombies": zombies, "stopped": report.stopped, "pruned": report.pruned,
        "removed": report.removed, "worktrees": report.worktrees,
    });
    if dry_run {
        output::note("nothing was changed (--dry-run)");
    }
    Done { text: lines.join("\n"), json, code: 0 }
}
