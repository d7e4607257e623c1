//! What an agent may not do with runs: raise limits, or resume a goal that was stopped on purpose. Any caller may resume
//! a run that crashed.

use steadfast_app::action::{self, ActionError};
use steadfast_engine::goal_link;
use steadfast_model::clock;
use steadfast_model::goal::change;
use steadfast_model::run::RunStatus;
use steadfast_store::{Origin, RunRow, Store};

use crate::commands;
use crate::error::CliError;

/// Refuses an agent that resumes a run with other limits, or one that was stopped. The attempt is recorded in the history
/// of the run's goal.
pub(super) fn refuse_agent(store: &mut Store, row: &RunRow, with_limits: bool) -> Result<(), CliError> {
    let actor = commands::caller();
    if !actor.is_agent() {
        return Ok(());
    }
    let session = goal_link::session_of(row);
    let goal = match &session {
        Some(session) => store.read().goal(session)?,
        None => None,
    };
    let is_to_end = row.stop_requested.as_ref().is_some_and(|stop| stop.status == RunStatus::Killed);
    let is_stopped = goal.is_some_and(|goal| is_to_end || !change::can_resume(&goal, actor));
    let verb = match (with_limits, is_stopped) {
        (true, _) => "resume with other limits",
        (false, true) => "resume",
        (false, false) => return Ok(()),
    };
    if let Some(session) = session {
        action::refuse_agent(store, &session, verb, Origin { actor, place: "cli" }, clock::now())?;
    }
    Err(ActionError::NotForAgents(verb).into())
}
