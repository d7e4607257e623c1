//! What is known about the client of a goal and about the processes that can wake it.

use steadfast_app::native;
use steadfast_hosts::adapter;
use steadfast_model::goal::Goal;
use steadfast_model::goal::liveness::Facts;
use steadfast_store::{Db, Session, StoreError};
use steadfast_system::config::ClosedSessions;
use steadfast_system::paths::Paths;
use steadfast_system::process::ProcessId;

pub(super) fn gather(db: Db<'_>, goal: &Goal, session: Option<&Session>, paths: &Paths) -> Result<Facts, StoreError> {
    let client_runs = session.is_some_and(Session::is_alive);
    let Some(session) = session else { return Ok(Facts { headless_allowed: false, ..Facts::default() }) };
    let activity = &session.activity;
    Ok(Facts {
        client_runs,
        turn_runs: activity.turn_since_ms.is_some(),
        interrupted: false,
        asks_permission: activity.asked_at_ms.is_some(),
        background_work: activity.background_since_ms.is_some(),
        native_goal: client_runs && native::of_session(db, &session.session_id)?.is_some(),
        waker_waits: activity.waker.is_some_and(is_alive),
        supervisor_runs: true,
        wakes_from_outside: (adapter(goal.host).wake_command)(&goal.session_id, "").is_some(),
        headless_allowed: paths.config.watch.closed_sessions == ClosedSessions::Headless,
    })
}

/// Where the system does not show processes, a waker counts as alive until it is late.
fn is_alive(process: ProcessId) -> bool {
    process.is_alive().unwrap_or(true)
}
