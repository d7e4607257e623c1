//! Deletes what is older than the configuration says, a little at a time: one small step in some hook calls and in each
//! round of `steadfast watch`, a few steps while a task is not through.

use std::fmt::Display;
use std::time::Duration;

use steadfast_model::clock::Millis;
use steadfast_store::{Keep, Store};
use steadfast_system::log;
use steadfast_system::paths::Paths;

/// A fault that stays is logged again after this time.
const LOGGED_EVERY: Duration = Duration::from_hours(1);

/// Steps of one call while a task is not through. A turn of hours ends with one call, and its rows must not outnumber
/// those that calls delete.
const MOST_STEPS: usize = 8;

/// Does one step if one is due, and more if that is not enough. What fails is logged, and a later call tries it again.
pub fn step(store: &mut Store, paths: &Paths, now: Millis) {
    let keep = Keep { details: &paths.config.retention, memory_days: paths.config.memory.retention_days };
    if let Err(error) = store.upkeep_some(&keep, MOST_STEPS, now) {
        log_failure(paths, &error);
    }
}

/// Logs why upkeep failed. The log has nothing else in it, so its age says when that was logged last.
pub fn log_failure(paths: &Paths, error: &dyn Display) {
    let file = paths.upkeep_log();
    let logged = fs_err::metadata(&file).and_then(|found| found.modified());
    if !logged.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < LOGGED_EVERY)) {
        log::line(&file, &format!("upkeep: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    #[test]
    fn a_failure_is_logged_once_an_hour() {
        let world = World::new();
        let paths = world.paths();
        let lines = || fs_err::read_to_string(paths.upkeep_log()).unwrap().lines().count();
        log_failure(&paths, &"disk full");
        log_failure(&paths, &"disk full");
        assert_eq!(lines(), 1);
        let log = std::fs::File::options().append(true).open(paths.upkeep_log()).unwrap();
        let now = log.metadata().unwrap().modified().unwrap();
        for at in [now - LOGGED_EVERY, now + LOGGED_EVERY] {
            log.set_modified(at).unwrap();
            log_failure(&paths, &"disk full");
        }
        assert_eq!(lines(), 3, "a clock that was wrong does not silence it");
    }
}
