//! Verification of a goal: runs its commands, stores the evidence, and returns what it proves.

use std::time::Duration;

use steadfast_app::action::{self, ActionError};
use steadfast_engine::verify;
use steadfast_model::clock;
use steadfast_model::goal::Goal;
use steadfast_model::goal::proof::{Evidence, Verified};
use steadfast_store::{Origin, Store, StoreError};
use steadfast_system::config::GoalConfig;

/// Runs the commands of a goal and stores the evidence. Returns what it proves, or that one of them failed, and how each
/// command went.
pub(crate) fn verify_goal(
    store: &mut Store,
    goal: &Goal,
    config: &GoalConfig,
    origin: Origin,
) -> Result<(Result<Verified, ActionError>, Vec<Evidence>), ActionError> {
    let limit = Duration::from_secs(config.verify_timeout_seconds);
    let environment = store.read().environment(&goal.goal_id)?;
    let evidence = verify::run_for_goal(goal, limit, environment.as_ref()).map_err(StoreError::Io)?;
    let verified = action::add_evidence(store, goal, &evidence, origin, clock::now());
    Ok((verified, evidence))
}
