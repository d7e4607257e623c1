//! What an agent may not do with runs: raise limits, or resume a goal that was stopped on purpose. Any caller may resume
//! a run that crashed.

use steadfast_core::action::{self, ActionError};
use steadfast_core::clock;
use steadfast_core::goal::change;
use steadfast_core::run::RunStatus;
use steadfast_core::store::{Origin, RunRow, Store};
use steadfast_engine::pursuit;

use crate::commands;
use crate::failure::Failure;

/// Refuses an agent that resumes a run with other limits, or one that was stopped. The attempt is recorded in the history
/// of the run's goal.
pub(super) fn refuse_agent(store: &mut Store, row: &RunRow, with_limits: bool) -> Result<(), Failure> {
    let actor = commands::caller();
    if !actor.is_agent() {
        return Ok(());
    }
    let session = pursuit::session_of(row);
    let goal = match &session {
        Some(session) => store.read().goal(session)?,
        None => None,
    };
    let is_to_end = row.stop_requested.as_ref().is_some_and(|stop| stop.status == RunStatus::Killed);
    let is_stopped = goal.is_some_and(|goal| is_to_end || !change::may_take_up(&goal, actor));
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
