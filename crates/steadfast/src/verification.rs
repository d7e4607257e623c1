//! Verification of a goal: runs its commands and stores the evidence.

use std::path::Path;
use std::time::Duration;

use steadfast_app::action::{self, ActionError};
use steadfast_engine::verify;
use steadfast_model::clock;
use steadfast_model::goal::Goal;
use steadfast_store::{Origin, Store, StoreError, Verification};
use steadfast_system::config::GoalConfig;

/// Runs a goal's commands where the goal lives and stores the evidence; an error when one of them failed.
pub(crate) fn verify_goal(
    store: &mut Store,
    goal: &Goal,
    config: &GoalConfig,
    origin: Origin,
) -> Result<Vec<Verification>, ActionError> {
    let directory = goal.project_dir.as_deref().map_or_else(|| Path::new("."), Path::new);
    let limit = Duration::from_secs(config.verify_timeout_seconds);
    let runs = verify::run(&goal.verify, directory, limit).map_err(StoreError::Io)?;
    action::add_evidence(store, goal, &runs, origin, clock::now())?;
    Ok(runs)
}
