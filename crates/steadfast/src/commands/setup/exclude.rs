//! Removes our lines from the exclude files of the repositories in which runs worked, and our ignore files.

use std::collections::BTreeSet;
use std::path::Path;

use steadfast_engine::files;
use steadfast_model::run::RunStatus;
use steadfast_store::{RunFilter, Store, StoreError};
use steadfast_system::paths::Paths;

use super::SetupSummary;
use crate::cli::SetupArgs;

const SHOWN_AS: &str = "git's exclude files";

/// A store or a repository that cannot be used is only a note: the rest is removed all the same.
pub(super) fn uninstall(paths: &Paths, arguments: &SetupArgs, summary: &mut SetupSummary) {
    let projects = match projects(paths) {
        Ok(projects) => projects,
        Err(error) => return summary.notes.push(format!("the exclude files of projects are unchanged: {error}")),
    };
    for project in projects {
        for stop in [files::stop_excluding, files::stop_ignoring] {
            match stop(Path::new(&project), arguments.dry_run) {
                Ok(None) => {}
                Ok(Some(file)) => {
                    summary.changes.push(format!("remove the lines of steadfast from {}", file.display()));
                    summary.products.push(SHOWN_AS);
                    summary.files.extend((!arguments.dry_run).then_some(file));
                }
                Err(error) => summary.notes.push(format!("the exclude file of {project} is unchanged: {error}")),
            }
        }
    }
}

/// The projects that had runs and have none now.
fn projects(paths: &Paths) -> Result<BTreeSet<String>, StoreError> {
    let Some(store) = Store::open_if_there(&paths.store)? else { return Ok(BTreeSet::new()) };
    let lines = store.read().runs(RunFilter::default(), usize::MAX)?;
    let with = |is_running: bool| {
        let lines = lines.iter().filter(move |line| (line.status == RunStatus::Running) == is_running);
        lines.map(|line| line.project_dir.clone()).collect::<BTreeSet<String>>()
    };
    Ok(with(false).difference(&with(true)).cloned().collect())
}
