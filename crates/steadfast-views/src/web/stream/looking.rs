//! Whether anything changed that a page shows: the store, and the output of agents that work now.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use steadfast_engine::attempt::Attempt;
use steadfast_model::run::RunStatus;
use steadfast_store::{RunFilter, Store, StoreStamp};
use steadfast_system::paths::Paths;

/// Runs whose output is looked at.
const MOST_RUNS: usize = 32;

pub(super) struct Looking<'a> {
    paths: &'a Paths,
    stamp: StoreStamp,
    outputs: Vec<(PathBuf, u64)>,
    /// Stays open: the last process that closes the store removes its log, which would look like a change.
    store: Option<Store>,
    /// The number of the file that is open.
    inode: Option<u64>,
}

impl<'a> Looking<'a> {
    pub(super) fn new(paths: &'a Paths) -> Self {
        let mut looking = Self { paths, stamp: StoreStamp::default(), outputs: Vec::new(), store: None, inode: None };
        looking.has_changed();
        looking
    }

    pub(super) fn has_changed(&mut self) -> bool {
        let stamp = StoreStamp::of(&self.paths.store);
        if stamp != self.stamp {
            self.reopen();
            // Opening may have created the log. What is written from here on is a change again.
            self.stamp = StoreStamp::of(&self.paths.store);
            self.outputs = self.outputs();
            return true;
        }
        let mut grew = false;
        for (path, size) in &mut self.outputs {
            let now = size_of(path);
            grew |= now != *size;
            *size = now;
        }
        grew
    }

    /// Another file may be in the place of the store.
    fn reopen(&mut self) {
        let inode = fs_err::metadata(&self.paths.store).ok().map(|meta| meta.ino());
        if self.store.is_none() || inode != self.inode {
            self.store = Store::open_if_there(&self.paths.store).ok().flatten();
            self.inode = inode;
        }
    }

    /// The output files of all agents that work now, with their sizes.
    fn outputs(&self) -> Vec<(PathBuf, u64)> {
        let Some(db) = self.store.as_ref().map(Store::read) else { return Vec::new() };
        // A store that cannot be read is a matter of the pages.
        let lines = db.runs(RunFilter { status: Some(RunStatus::Running), ..RunFilter::default() }, MOST_RUNS);
        let rows = lines.unwrap_or_default().into_iter().filter_map(|line| db.run(&line.run_id).ok().flatten());
        let attempts = rows.flat_map(|row| {
            let home = &self.paths.home;
            let of = |id| Attempt::at(home, &row.run_id, id);
            row.run.active.iter().map(|active| of(active.id)).collect::<Vec<_>>()
        });
        let files = attempts.flat_map(|attempt| [attempt.output(), attempt.errors()]);
        files.map(|path| (path.clone(), size_of(&path))).collect()
    }
}

fn size_of(path: &Path) -> u64 {
    fs_err::metadata(path).map_or(0, |meta| meta.len())
}
