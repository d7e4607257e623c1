//! Outputs that are owed by an earlier run of a name. Its folder was moved aside when the later run began, so they are
//! written there.

use std::path::Path;

use steadfast_model::run::{Plan, RunStatus};
use steadfast_store::{RunRow, Store};

use super::PublishError;
use super::outputs::PublicOutputs;
use crate::files::{Aside, FileView, PublicFiles};
use crate::run_folder::RunFolder;

/// Writes what an earlier run of a name still owes.
pub fn publish_aside(home: &Path, store: &Path, row: &RunRow) -> Result<(), PublishError> {
    let folder = RunFolder::at(home, &row.run_id);
    if row.run.status == RunStatus::Running || folder.is_end_published(row.run.completed_at_ms) {
        return Ok(());
    }
    let files = PublicFiles::open(Path::new(&row.project_dir), row.plan.kind, &row.plan.name)?;
    match files.aside(&row.run_id)? {
        // The later run has not moved it yet.
        Aside::InPlace => return Ok(()),
        Aside::Gone => {}
        Aside::Moved(mut files, name) => {
            if files.owes_aside()? {
                let plan = Plan { name, ..row.plan.clone() };
                let mut outputs = PublicOutputs::new(home.to_owned(), row.run_id.clone());
                outputs.add_all(&plan, Store::open_existing(store)?.read())?;
                let failed = outputs.save(&mut files, &plan, &row.run);
                let view = FileView { run_id: &row.run_id, plan: &row.plan, run: &row.run, pid: None };
                files.settle_aside(&view)?;
                if let Some((stage, error)) = failed {
                    return Err(PublishError::Output { stage, error });
                }
            }
        }
    }
    // Best effort: without it, the next command looks again.
    let _ = folder.set_published(row.run.completed_at_ms);
    Ok(())
}
