//! Copies of the progress files, which belong to the agents: an agent that runs `git clean` removes its own notes with
//! them. The copy is in the folder of the run; a file that is gone is written again from it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::SystemTime;

use steadfast_model::run::Plan;
use steadfast_system::bounded;

use crate::durable;
use crate::files::{FilesError, PublicFiles};
use crate::run_folder::RunFolder;

/// A longer file is not copied.
const MAX_BYTES: u64 = 4 << 20;

#[derive(Debug)]
pub(super) struct ProgressNotes {
    folder: RunFolder,
    seen: BTreeMap<u32, SeenNotes>,
}

/// The progress file of a stage at the last look.
#[derive(Debug, Default)]
struct SeenNotes {
    copied: Option<(SystemTime, u64)>,
    is_gone: bool,
}

impl ProgressNotes {
    pub(super) fn new(folder: RunFolder) -> Self {
        Self { folder, seen: BTreeMap::new() }
    }

    /// Copies the progress file of a stage if it changed. One that is gone at the second look is written again; at the
    /// first, an editor may be about to replace it.
    pub(super) fn look(&mut self, files: &PublicFiles, plan: &Plan, stage: u32) -> Result<(), FilesError> {
        let path = files.progress_file(plan, stage)?;
        let seen = self.seen.entry(stage).or_default();
        let metadata = match path.metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            Err(_) if !std::mem::replace(&mut seen.is_gone, true) => return Ok(()),
            Err(_) => return self.restore(files, plan, stage),
        };
        seen.is_gone = false;
        let stamp = metadata.modified().ok().map(|at| (at, metadata.len()));
        if seen.copied != stamp && metadata.len() > 0 {
            if let Ok(text) = bounded::whole(&path, MAX_BYTES) {
                durable::hand_over(&self.folder.progress(stage), &text)?;
            }
            seen.copied = stamp;
        }
        Ok(())
    }

    /// Creates the progress file of a stage if it is missing.
    pub(super) fn restore(&self, files: &PublicFiles, plan: &Plan, stage: u32) -> Result<(), FilesError> {
        let kept = bounded::whole(&self.folder.progress(stage), MAX_BYTES).ok();
        files.ensure_progress(plan, stage, kept.as_deref())
    }
}
