//! Stops everything: every goal that moves or would move by itself, and every run, in all projects.

use serde_json::json;

use super::{ActionError, Place, refresh, start_next_with};
use steadfast_model::clock::Millis;
use steadfast_model::goal::change::pause_by_user;
use steadfast_model::goal::{Actor, Goal, GoalStatus, PausedReason};
use steadfast_model::run::{RunReason, RunStatus, Stopping};
use steadfast_store::{Db, Origin, RunFilter, RunLine, Store, StoreError};

/// What [`pause_all`] stopped.
#[derive(Debug, Default)]
pub struct StoppedAll {
    pub paused: Vec<Goal>,
    /// Runs whose engines were asked to end them.
    pub stopped: Vec<RunLine>,
}

/// Pauses all goals as the user and asks all runs to end, in one transaction. An agent may not.
pub fn pause_all(store: &mut Store, origin: Origin, now: Millis) -> Result<StoppedAll, ActionError> {
    if origin.actor != Actor::User {
        return Err(ActionError::NotForAgents("pause --all"));
    }
    for goal in store.read().goals()? {
        if would_move(store.read(), &goal)? {
            // An unreadable session file must not keep the goal running; the next hook reports it.
            let _ = refresh(store, &goal, origin, now);
        }
    }
    store.write(|db| {
        hold_queues(db, origin, now)?;
        let mut done = StoppedAll::default();
        for goal in db.goals()? {
            if would_move(db, &goal)? {
                let change = pause_by_user(&goal, json!({"reason": "user", "all": true}), now);
                done.paused.push(db.save(&goal, change, origin)?);
            }
        }
        let running = RunFilter { status: Some(RunStatus::Running), ..RunFilter::default() };
        let stopping = Stopping { status: RunStatus::Killed, reason: RunReason::Killed.to_string() };
        for run in db.runs(running, usize::MAX)? {
            db.request_stop(&run.run_id, Some(&stopping))?;
            done.stopped.push(run);
        }
        Ok(done)
    })
}

/// Whether a turn, a wake-up or the user's next prompt would continue the goal, or a limit still grants it a turn.
fn would_move(db: Db<'_>, goal: &Goal) -> Result<bool, StoreError> {
    Ok(match (goal.status, goal.paused_reason) {
        (GoalStatus::Active, _) | (GoalStatus::Paused, Some(PausedReason::Interrupted)) => true,
        (GoalStatus::Paused, Some(reason)) => reason.wakes_by_itself(),
        (GoalStatus::BudgetLimited, _) => db.has_open_span(&goal.goal_id)?,
        _ => false,
    })
}

/// A queue without a live goal would start its next one. Starts it here, so that it is paused with the others.
fn hold_queues(db: Db<'_>, origin: Origin, now: Millis) -> Result<(), ActionError> {
    for session_id in db.sessions_with_next_goal()? {
        let place = match (db.session(&session_id)?, db.goal(&session_id)?) {
            (Some(session), _) => Place::from(&session),
            (None, Some(goal)) => {
                Place { session_id, host: goal.host, project_dir: goal.project_dir, transcript: None }
            }
            (None, None) => continue,
        };
        // No file is read here: the goal is paused at once, so that nothing before its resumption is charged to it.
        start_next_with(db, &place, &[], origin, now)?;
    }
    Ok(())
}
