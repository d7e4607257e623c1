//! What an agent may not do with runs: give one more room, or go on with a goal that was stopped on purpose. Going on
//! with what only crashed is no privilege.

use steadfast_core::action::{self, ActionError};
use steadfast_core::clock;
use steadfast_core::goal::change;
use steadfast_core::run::RunStatus;
use steadfast_core::store::{Origin, RunRow, Store};
use steadfast_engine::goal_link;

use crate::commands;
use crate::failure::Failure;

/// Refuses an agent that wants to go on with a run, `with_limits` of its own choice or although it was stopped; the
/// attempt is written on the goal, if the run has one.
pub(super) fn refuse_agent(store: &mut Store, row: &RunRow, with_limits: bool) -> Result<(), Failure> {
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
