//! Brings the goals that a plugin without `setup` kept in its own store into the one that hooks use from now on.

use std::path::Path;

use steadfast_store::{ImportReport, Store, StoreError};
use steadfast_system::paths::Paths;

use super::SetupSummary;
use crate::commands::other_stores::{self, count};

/// After the clients are set up: no hook writes to the other store then, so that the copy is complete. A store that
/// cannot be read is only a note.
pub(super) fn import(is_dry_run: bool, summary: &mut SetupSummary) {
    // The store of the hooks, whatever `--db` says here.
    let Ok(paths) = Paths::find(None) else { return };
    for other in other_stores::with_goals(&paths) {
        let from = other.path.display();
        let taken = match (other.missing, is_dry_run) {
            (Ok(goals), true) => Ok(format!("import {} from {from}", count(goals))),
            (Ok(_), false) => take(&paths, &other.path).map(|report| {
                format!("imported {} from {from}; that file is unchanged", count(report.goals + report.to_history))
            }),
            (Err(error), _) => Err(error),
        };
        match taken {
            Ok(line) => summary.imports.push(line),
            Err(error) => summary.notes.push(format!("the goals in {from} are not imported: {error}")),
        }
    }
}

/// What the user deleted here stays deleted; `db import` brings it back.
fn take(paths: &Paths, from: &Path) -> Result<ImportReport, StoreError> {
    Store::open(&paths.store)?.import_new(from)
}
