//! What an engine saved and could not publish: the end of a run, its entry in the completions file, outputs of stages. The
//! commands that look at runs, a later run and `steadfast watch` publish it.

use std::collections::BTreeSet;
use std::path::Path;

use steadfast_engine::files;
use steadfast_engine::goal_link::GoalLink;
use steadfast_engine::lock::RunLock;
use steadfast_engine::publish::{PublishError, Publisher, publish_aside};
use steadfast_engine::run_folder::RunFolder;
use steadfast_model::clock::{self, Millis};
use steadfast_model::run::{RunKind, RunStatus};
use steadfast_store::{RunFilter, RunLine, RunRow, Store};
use steadfast_system::paths::Paths;

use crate::error::CliError;

/// How many runs of a project are searched for earlier ones of a name.
const MOST_EARLIER: usize = 1_000;

/// Publishes what the dead engine of a run left, without starting another. That the files cannot be written is only a
/// note: reading commands work without them.
pub(super) fn publish(paths: &Paths, row: &RunRow, now: Millis, note: &dyn Fn(&str)) -> Result<(), CliError> {
    if RunLock::is_held(&paths.home, &row.run_id)? {
        return Ok(());
    }
    match publish_files(paths, row) {
        Ok(warnings) => warnings.iter().for_each(|warning| note(&format!("note: {warning}"))),
        Err(error) => note(&format!("note: the state files of {} are not up to date: {error}", row.plan.name)),
    }
    publish_earlier_of(paths, row, note)?;
    if row.run.status != RunStatus::Running
        && let Some(mut goal) = GoalLink::of_run(&paths.home, &paths.store, row)?
    {
        goal.show(row, now)?;
    }
    Ok(())
}

/// Returns what the user has to hear of it.
fn publish_files(paths: &Paths, row: &RunRow) -> Result<Vec<String>, PublishError> {
    let mut publisher = Publisher::open(&paths.home, &paths.store, row)?;
    if row.run.status == RunStatus::Running {
        return publisher.save_outputs(row).map(|()| Vec::new());
    }
    if publisher.is_behind(row)? {
        return publisher.show(row);
    }
    publisher.set_complete(row);
    Ok(Vec::new())
}

/// Publishes what the earlier runs of a name still owe.
fn publish_earlier_of(paths: &Paths, row: &RunRow, note: &dyn Fn(&str)) -> Result<(), CliError> {
    if row.plan.kind != RunKind::Pipeline {
        return Ok(());
    }
    let store = Store::open_existing(&paths.store)?;
    let filter = RunFilter { project_dir: Some(&row.project_dir), kind: Some(row.plan.kind), status: None };
    let lines = store.read().runs(filter, MOST_EARLIER)?;
    let of_name = lines.iter().filter(|line| line.name == row.plan.name && line.run_id != row.run_id);
    of_name.into_iter().try_for_each(|line| publish_earlier(paths, &store, line, note))
}

/// Publishes what an earlier run of a name still owes, in the folder that it was moved to.
pub(super) fn publish_earlier(
    paths: &Paths,
    store: &Store,
    line: &RunLine,
    note: &dyn Fn(&str),
) -> Result<(), CliError> {
    let is_published = RunFolder::at(&paths.home, &line.run_id).is_end_published(line.completed_at_ms);
    if line.kind != RunKind::Pipeline || line.status == RunStatus::Running || is_published {
        return Ok(());
    }
    if !RunLock::is_held(&paths.home, &line.run_id)?
        && let Some(row) = store.read().run(&line.run_id)?
        && let Err(error) = publish_aside(&paths.home, &paths.store, &row)
    {
        note(&format!("note: the files of an earlier run of {} are not up to date: {error}", line.name));
    }
    Ok(())
}

/// Publishes the ends that are not published completely: in one project, or in all.
pub(in crate::commands) fn publish_owed(
    paths: &Paths,
    store: &Store,
    project: Option<&Path>,
    most: usize,
    note: &dyn Fn(&str),
) -> Result<(), CliError> {
    let project_dir = project.map(|project| project.to_string_lossy().into_owned());
    let filter = RunFilter { project_dir: project_dir.as_deref(), ..RunFilter::default() };
    // An entry may say `running` after the end: an edit by hand that began before it brought it back.
    let listed = project.and_then(|project| files::registry(project).ok()).unwrap_or_default();
    let is_shown_running =
        |run_id: &str| listed.iter().any(|entry| entry.run_id.as_deref() == Some(run_id) && entry.status == "running");
    let mut seen = BTreeSet::new();
    for line in store.read().runs(filter, most)? {
        let is_newest = seen.insert((line.project_dir.clone(), line.kind.to_string(), line.name.clone()));
        if !is_newest && Path::new(&line.project_dir).is_dir() {
            publish_earlier(paths, store, &line, note)?;
        }
        if !is_newest || line.status == RunStatus::Running {
            continue;
        }
        let is_published = RunFolder::at(&paths.home, &line.run_id).is_end_published(line.completed_at_ms);
        if is_published && !is_shown_running(&line.run_id) {
            continue;
        }
        if Path::new(&line.project_dir).is_dir()
            && let Some(row) = store.read().run(&line.run_id)?
        {
            publish(paths, &row, clock::now(), note)?;
        }
    }
    Ok(())
}
