//! One look at what a goal waits for. The processes that wake goals call it whenever `Goal::next_check` is due.

use std::time::Duration;

use steadfast_app::action::wait;
use steadfast_engine::wait as looker;
use steadfast_model::clock;
use steadfast_model::goal::Goal;
use steadfast_model::goal::wait::Seen;
use steadfast_store::{Store, StoreError};
use steadfast_system::paths::Paths;

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Looked {
    /// It is not time, or another process looks.
    NotDue,
    NotYet,
    /// The condition is met, and the goal is due now.
    Met,
    /// The goal no longer waits, or another process recorded the same.
    TooLate,
}

/// Looks once, if it is time. A command may take as long as `wait_timeout_seconds`.
pub(crate) fn look(paths: &Paths, store: &mut Store, goal: &Goal) -> Result<Looked, StoreError> {
    let limit = Duration::from_secs(paths.config.goal.wait_timeout_seconds);
    let Some(wait) = &goal.wait else { return Ok(Looked::NotDue) };
    let takes = looker::longest_look(wait, limit);
    let Some(wait) = wait::begin_check(store, goal, takes, clock::now())? else { return Ok(Looked::NotDue) };
    let seen = looker::look(goal, &wait, limit);
    let noted = wait::note_check(store, &goal.session_id, &wait, seen, clock::now())?;
    Ok(match noted {
        None => Looked::TooLate,
        Some(_) if seen == Seen::Met => Looked::Met,
        Some(_) => Looked::NotYet,
    })
}
