//! `cleanup`: marks runs whose engine died, stops processes they left running, and removes old registry entries, outputs,
//! worktrees and state files. `--dry-run` only lists what would be done.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use steadfast_app::overview::runs::is_starting;
use steadfast_engine::attempt::{Attempt, AttemptState};
use steadfast_engine::files::{self, Expiry, FilesError, RegistryEntry, Tidy};
use steadfast_engine::lock::RunLock;
use steadfast_engine::process::LimitedCommand;
use steadfast_engine::publish::Publisher;
use steadfast_engine::run_folder::RunFolder;
use steadfast_engine::{checks, old_runs, worktree};
use steadfast_model::clock::{self, Millis};
use steadfast_model::run::{Phase, RunKind, RunStatus};
use steadfast_store::{RunFilter, RunLine, RunRow, Store, StoreError};
use steadfast_system::process;

use super::{RunContext, unpublished};
use crate::cli::RunCleanupArgs;
use crate::error::CliError;
use crate::output::{self, CommandOutput, CommandResult};

/// How long finished entries stay in the registry.
const REGISTRY_DAYS: Millis = 7;
/// Old runs that one cleanup removes.
const OLD_RUNS: usize = 50;
const TMUX_LIMIT: Duration = Duration::from_secs(5);

/// What was done, or would be with `--dry-run`.
#[derive(Default, Serialize)]
struct Cleaned {
    dry_run: bool,
    /// Registry keys of runs that were marked because their engine died.
    zombies: Vec<String>,
    stopped: Vec<String>,
    /// Registry keys of old entries that were removed.
    pruned: Vec<String>,
    /// Directories of runs whose outputs were removed.
    removed: Vec<PathBuf>,
    /// State files of old runs that the store no longer has.
    files: Vec<PathBuf>,
    worktrees: Vec<PathBuf>,
    /// Branches whose work is merged, with `--branches`.
    branches: Vec<String>,
    /// Branches that stay, and why.
    kept_branches: BTreeMap<String, String>,
    /// The exclude file of git from which our lines were removed, because no state file is left.
    exclude: Option<PathBuf>,
    /// The ignore file of ours that was removed, because no state file is left.
    ignore: Option<PathBuf>,
}

struct Cleanup<'a> {
    context: &'a RunContext,
    arguments: &'a RunCleanupArgs,
    done: Cleaned,
    /// The ids of the newest run of each name.
    newest: BTreeSet<String>,
}

pub(super) fn cleanup(context: &RunContext, arguments: &RunCleanupArgs) -> CommandResult {
    let done = Cleaned { dry_run: arguments.dry_run, ..Cleaned::default() };
    let mut cleanup = Cleanup { context, arguments, done, newest: BTreeSet::new() };
    let mut store = context.existing_store()?;
    if let Some(store) = &mut store {
        let project = context.project_dir();
        let filter = RunFilter { project_dir: Some(&project), kind: Some(context.kind), status: None };
        let lines = store.read().runs(filter, usize::MAX)?;
        let mut names = BTreeSet::new();
        cleanup.newest = lines.iter().filter(|line| names.insert(&line.name)).map(|line| line.run_id.clone()).collect();
        for line in &lines {
            // A row that cannot be read holds up no other run.
            match store.read().run(&line.run_id) {
                Err(error) if error.is_of_row() => note_left(&format!("run {}: {error}", line.run_id)),
                _ => cleanup.clean_run(store, line)?,
            }
        }
    }
    if let Some(store) = store.as_mut().filter(|_| !arguments.dry_run) {
        // What is old in all projects; the rest of it is left to `steadfast watch` and the next cleanup.
        for _ in 0..OLD_RUNS {
            let keep = &context.paths.config.retention;
            let stepped = old_runs::step(&context.paths.home, store, keep, context.now)?;
            stepped.problems.iter().for_each(note_left);
            if !stepped.is_more {
                break;
            }
        }
    }
    let how = Tidy {
        is_alive: &|entry| entry.kind != Some(context.kind) || is_alive(context, store.as_ref(), entry),
        before_ms: before(context, store.as_ref(), REGISTRY_DAYS)?,
        now: context.now,
        dry_run: arguments.dry_run,
    };
    let tidied = files::tidy(&context.project, how)?;
    let mut done = cleanup.done;
    for key in tidied.marked {
        if !done.zombies.contains(&key) {
            done.zombies.push(key);
        }
    }
    done.pruned = tidied.pruned;
    done.files =
        store.as_ref().map(|store| remove_files(context, store, arguments.dry_run)).transpose()?.unwrap_or_default();
    (done.exclude, done.ignore) = stop_excluding(context, store.as_ref(), arguments.dry_run)?;
    Ok(report(&done, arguments.branches))
}

/// The moment before which something is older than these days.
fn before(context: &RunContext, store: Option<&Store>, days: Millis) -> Result<Millis, StoreError> {
    let (age, now) = (days * clock::DAY, context.now);
    store.map_or(Ok(now - age), |store| store.read().moment_before(age, now))
}

/// Removes the state files of runs that the store no longer has, if runs are not kept for ever.
fn remove_files(context: &RunContext, store: &Store, dry_run: bool) -> Result<Vec<PathBuf>, CliError> {
    let days = old_runs::days_of_rows(&context.paths.config.retention);
    if days == 0 {
        return Ok(Vec::new());
    }
    let expiry = Expiry {
        kind: context.kind,
        before_ms: before(context, Some(store), Millis::from(days))?,
        // A run that cannot be read is there.
        store_id: &store.read().file_id(),
        is_known: &|run_id| store.read().run(run_id).map_or(true, |row| row.is_some()),
        dry_run,
    };
    let (removed, problems) = files::remove_expired(&context.project, expiry)?;
    problems.iter().for_each(note_left);
    Ok(removed)
}

fn note_left(problem: &impl Display) {
    output::note(&format!("not removed: {problem}"));
}

impl Cleanup<'_> {
    fn clean_run(&mut self, store: &mut Store, line: &RunLine) -> Result<(), CliError> {
        let (context, is_running) = (self.context, line.status == RunStatus::Running);
        if context.is_driven(&line.run_id)? || is_held(context, line.kind, &line.name, &line.run_id) {
            return Ok(());
        }
        if is_running || line.status == RunStatus::UnknownTermination {
            self.clean_orphan(store, line)?;
        }
        if is_running {
            return Ok(());
        }
        if !self.arguments.dry_run && !self.newest.contains(&line.run_id) {
            unpublished::publish_earlier(&context.paths, store, line, &output::note)?;
        } else if !self.arguments.dry_run
            && let Some(row) = store.read().run(&line.run_id)?
        {
            context.publish_end(&row)?;
        }
        self.remove_leftovers(store, line)
    }

    /// Removes what a finished run no longer needs: worktrees without unsaved work, and outputs once they are old.
    fn remove_leftovers(&mut self, store: &Store, line: &RunLine) -> Result<(), CliError> {
        let (home, dry_run) = (&self.context.paths.home, self.arguments.dry_run);
        let folder = RunFolder::at(home, &line.run_id);
        let directory = folder.path();
        if !directory.is_dir() {
            return Ok(());
        }
        // While this lock is held, no engine can resume the run.
        let Some(_lock) = RunLock::try_take(home, &line.run_id)? else { return Ok(()) };
        // It may have been resumed before the lock was taken.
        if store.read().run(&line.run_id)?.is_none_or(|row| row.updated_at_ms != line.updated_at_ms) {
            return Ok(());
        }
        match worktree::remove_clean(home, Path::new(&line.project_dir), &line.run_id, &line.name, dry_run) {
            Ok(removed) => self.done.worktrees.extend(removed),
            Err(error) => output::note(&format!("{} {}: {error}", line.kind, line.name)),
        }
        if self.arguments.branches {
            match worktree::remove_merged(home, Path::new(&line.project_dir), &line.run_id, &line.name, dry_run) {
                Ok(branches) => {
                    self.done.branches.extend(branches.deleted);
                    self.done.kept_branches.extend(branches.kept);
                }
                Err(error) => output::note(&format!("{} {}: {error}", line.kind, line.name)),
            }
        }
        let before = before(self.context, Some(store), Millis::from(self.arguments.older_than))?;
        let outputs = folder.attempts();
        // Outputs of pipelines are written from the answers of their agents.
        let is_owed = line.kind == RunKind::Pipeline && !folder.is_end_published(line.completed_at_ms);
        if line.completed_at_ms.is_some_and(|ended| ended < before) && !outputs.is_empty() && !is_owed {
            if !dry_run {
                outputs.iter().try_for_each(fs_err::remove_dir_all)?;
            }
            self.done.removed.push(directory.to_owned());
        }
        Ok(())
    }

    /// Stops what a dead engine left running, and marks its run.
    fn clean_orphan(&mut self, store: &mut Store, line: &RunLine) -> Result<(), CliError> {
        let paths = &self.context.paths;
        // While this lock is held, no engine can start with this run.
        let Some(_lock) = RunLock::try_take(&paths.home, &line.run_id)? else { return Ok(()) };
        // The run may have changed before the lock was taken.
        let Some(row) = store.read().run(&line.run_id)? else { return Ok(()) };
        if row.run.status != line.status || is_starting(row.run.status, row.engine, row.updated_at_ms, clock::now()) {
            return Ok(());
        }
        self.stop_processes(&row)?;
        if line.status == RunStatus::Running {
            self.done.zombies.push(files::registry_key(line.kind, &line.name));
            if !self.arguments.dry_run {
                let row = store.write(|db| db.mark_orphan(&row, clock::now()))?;
                let warnings = Publisher::open(&paths.home, &paths.store, &row)?.show(&row)?;
                for warning in warnings {
                    output::note(&format!("note: {warning}"));
                }
            }
        }
        Ok(())
    }

    /// Stops the agents and checks of a run without an engine.
    fn stop_processes(&mut self, row: &RunRow) -> Result<(), CliError> {
        let grace = Duration::from_millis(self.context.paths.config.runs.grace_ms);
        for active in &row.run.active {
            let attempt = Attempt::at(&self.context.paths.home, &row.run_id, active.id);
            let is_agent = active.phase == Phase::Running;
            let is_running = if is_agent {
                attempt.directory().is_dir()
                    && matches!(attempt.inspect()?, AttemptState::Supervised | AttemptState::Orphaned { .. })
            } else {
                checks::are_under_way(&attempt)?
            };
            if !is_running {
                continue;
            }
            let what = if is_agent { "iteration" } else { "test of iteration" };
            let (kind, name) = (row.plan.kind, &row.plan.name);
            self.done.stopped.push(format!("{kind} {name}, {what} {}", active.id.iteration));
            if self.arguments.dry_run {
                continue;
            }
            if is_agent {
                attempt.stop(grace)?;
            } else {
                checks::stop(&attempt, grace)?;
            }
        }
        Ok(())
    }
}

fn report(done: &Cleaned, with_branches: bool) -> CommandOutput {
    let would = if done.dry_run { "would be " } else { "" };
    let mut lines = Vec::new();
    lines.extend(done.zombies.iter().map(|key| format!("{key}: {would}marked unknown_termination (not running)")));
    lines.extend(done.stopped.iter().map(|what| format!("{what}: orphaned process {would}stopped")));
    lines.extend(done.pruned.iter().map(|key| format!("{key}: {would}removed from the registry (old)")));
    lines.extend(done.removed.iter().map(|path| format!("{}: outputs {would}removed", path.display())));
    lines.extend(done.files.iter().map(|path| format!("{}: state file {would}removed (old)", path.display())));
    let worktrees = done.worktrees.iter();
    // With --branches, what happens to each branch is in the lines below.
    let stays = if with_branches { "" } else { " (its branch stays)" };
    lines.extend(worktrees.map(|path| format!("{}: worktree {would}removed{stays}", path.display())));
    lines.extend(done.branches.iter().map(|branch| format!("{branch}: branch {would}deleted (merged)")));
    lines.extend(done.kept_branches.iter().map(|(branch, why)| format!("{branch}: branch stays ({why})")));
    lines.extend(
        done.exclude
            .iter()
            .chain(&done.ignore)
            .map(|path| format!("{}: lines of steadfast {would}removed", path.display())),
    );
    if lines.is_empty() {
        lines.push("nothing to clean up".into());
    }
    if done.dry_run {
        output::note("nothing was changed (--dry-run)");
    }
    CommandOutput { text: lines.join("\n"), json: json!(done), code: 0 }
}

/// Removes what keeps state files out of commits if none is left: our lines in the exclude file of git, and our ignore
/// file.
fn stop_excluding(
    context: &RunContext,
    store: Option<&Store>,
    dry_run: bool,
) -> Result<(Option<PathBuf>, Option<PathBuf>), CliError> {
    let project = context.project_dir();
    let running = RunFilter { project_dir: Some(&project), kind: None, status: Some(RunStatus::Running) };
    let is_live = store.map(|store| store.read().runs(running, 1)).transpose()?.is_some_and(|lines| !lines.is_empty());
    if is_live || files::has_state_files(&context.project) {
        return Ok((None, None));
    }
    if !dry_run {
        files::remove_lock_file(&context.project);
    }
    let removed = |changed: Result<Option<PathBuf>, FilesError>, file: &str| {
        changed.unwrap_or_else(|error| {
            output::note(&format!("cannot remove the lines of steadfast from {file}: {error}"));
            None
        })
    };
    let excluded = removed(files::stop_excluding(&context.project, dry_run), "git's exclude file");
    Ok((excluded, removed(files::stop_ignoring(&context.project, dry_run), ".claude/.gitignore")))
}

/// Whether an engine with another home may hold the run. An error counts as yes.
fn is_held(context: &RunContext, kind: RunKind, name: &str, run_id: &str) -> bool {
    files::holder(&context.project, kind, name)
        .map_or(true, |holder| holder.is_some_and(|holder| holder.run_id.is_none_or(|id| id == run_id)))
}

/// Whether an entry that says `running` has a live engine with any store, the process that it names, or a tmux session of
/// an older tool. Reads the store again, because a run may have started since its list was read. An error counts as yes.
fn is_alive(context: &RunContext, store: Option<&Store>, entry: &RegistryEntry) -> bool {
    if let Some(run_id) = &entry.run_id {
        let name = entry.key.strip_prefix(&format!("{}-", context.kind));
        if name.is_some_and(|name| is_held(context, context.kind, name, run_id)) {
            return true;
        }
        match store.map(|store| store.read().run(run_id)) {
            Some(Err(_)) => return true,
            Some(Ok(Some(row))) => return context.is_live(&row).unwrap_or(true),
            Some(Ok(None)) | None => {}
        }
    } else if entry.pid.is_some_and(process::exists) {
        return true;
    }
    let session = format!("={}", entry.key);
    let tmux = LimitedCommand::new("tmux", Path::new("/"), TMUX_LIMIT).args(["has-session", "-t", &session]);
    tmux.run().is_ok_and(|outcome| outcome.exit_code == Some(0))
}
