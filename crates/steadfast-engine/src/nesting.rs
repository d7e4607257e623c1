//! Runs that agents start: which run is above this process, and the observer that ends a run with the goal or the run
//! that it counts to.

use std::path::{Path, PathBuf};

use steadfast_model::clock;
use steadfast_model::goal::nested_run;
use steadfast_model::run::{Stopping, nesting};
use steadfast_store::{Nesting, RunRow, Store, StoreError};
use steadfast_system::env_vars;

use crate::attempt::Attempt;
use crate::descendants;
use crate::observer::Observer;

/// The run whose agent, or a process below it, is this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunAbove {
    pub run_id: String,
    /// The home of its engine.
    pub home: PathBuf,
}

/// Finds the supervisor above this process. It stays above everything that its agent starts, whatever that does to its
/// environment; where the system does not show parents, the environment has to do.
pub fn run_above() -> Option<RunAbove> {
    let above = if cfg!(target_os = "linux") {
        supervisors_above().into_iter().next()
    } else {
        env_vars::path(env_vars::ATTEMPT)
    };
    let folder = above?.parent()?.to_owned();
    let run_id = folder.file_name()?.to_str()?.to_owned();
    Some(RunAbove { run_id, home: folder.parent()?.parent()?.to_owned() })
}

/// The directories of the attempts above this process, the nearest first. A process that only has the words of a
/// supervisor on its command line is not recorded as one.
fn supervisors_above() -> Vec<PathBuf> {
    let directory = |found: &descendants::FoundProcess| {
        let line = fs_err::read(format!("/proc/{}/cmdline", found.pid)).ok()?;
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        let directory = match words.as_slice() {
            [_, b"__exec", directory, ..] => PathBuf::from(String::from_utf8_lossy(directory).into_owned()),
            _ => return None,
        };
        let supervisor = Attempt::in_directory(directory.clone()).supervisor().ok().flatten()?;
        (supervisor.identity.pid == found.pid && supervisor.identity.started == found.started).then_some(directory)
    };
    descendants::above_this_process().iter().filter_map(directory).collect()
}

/// Ends a run with the goal or the run that it counts to.
pub struct NestedRun {
    store: Store,
    nesting: Nesting,
}

impl NestedRun {
    /// The observer of a run that an agent started.
    pub fn of_run(store: &Path, row: &RunRow) -> Result<Option<Self>, StoreError> {
        let store = Store::open_existing(store)?;
        let nesting = store.read().nesting(&row.run_id)?;
        Ok((nesting.level > 0).then_some(Self { store, nesting }))
    }
}

impl Observer for NestedRun {
    fn stop_requested(&mut self, _notes: &mut Vec<String>) -> Option<Stopping> {
        // A busy store answers at the next look.
        if let Some(goal_id) = &self.nesting.charged_goal_id {
            let goal = self.store.read().goal_with_id(goal_id).ok()?;
            if let Some(stopping) = nested_run::end_with_goal(goal.as_ref(), clock::now()) {
                return Some(stopping);
            }
        }
        let parent = self.nesting.parent_run_id.as_ref()?;
        let (status, stopping) = self.store.read().run_end(parent).ok()??;
        nesting::end_with_run(status, stopping.as_ref())
    }
}
