//! Removes what is older than the configuration says, one step in each call. What fails is logged and tried again later.

use steadfast_app::upkeep;
use steadfast_engine::old_runs;
use steadfast_model::clock::Millis;
use steadfast_store::Store;
use steadfast_system::paths::Paths;

pub(crate) use steadfast_app::upkeep::step as remove_old_rows;

/// The folders, worktrees and rows of runs.
pub(crate) fn remove_old_runs(store: &mut Store, paths: &Paths, now: Millis) {
    match old_runs::step(&paths.home, store, &paths.config.retention, now) {
        Ok(stepped) => stepped.problems.iter().for_each(|problem| upkeep::log_failure(paths, problem)),
        Err(error) => upkeep::log_failure(paths, &error),
    }
}
