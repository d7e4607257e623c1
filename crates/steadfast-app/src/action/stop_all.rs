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

/// How often it looks again for goals that began to move while it paused the others.
const PASSES: usize = 3;

/// Pauses all goals as the user and asks all runs to end, a few in each transaction. An agent may not.
pub fn pause_all(store: &mut Store, origin: Origin, now: Millis) -> Result<StoppedAll, ActionError> {
    if origin.actor != Actor::User {
        return Err(ActionError::NotForAgents("pause --all"));
    }
    let mut done = StoppedAll::default();
    // Runs first: they start agents of their own.
    let running = RunFilter { status: Some(RunStatus::Running), ..RunFilter::default() };
    let runs = store.read().runs(running, usize::MAX)?;
    let stopping = Stopping { status: RunStatus::Killed, reason: RunReason::Killed.to_string() };
    store.write_in_steps(&runs, |db, run| db.request_stop(&run.run_id, Some(&stopping)).map(|_| ()))?;
    done.stopped = runs;
    done.paused = pause_moving(store, &moving, origin, now)?;
    Ok(done)
}

/// Pauses all goals as the user, and leaves runs and the goals that wait in queues as they are.
pub fn pause_goals(store: &mut Store, origin: Origin, now: Millis) -> Result<Vec<Goal>, ActionError> {
    pause_moving(store, &with_moving_goal, origin, now)
}

/// Pauses what `find` finds, a few sessions in each transaction.
fn pause_moving(
    store: &mut Store,
    find: &dyn Fn(Db<'_>) -> Result<Vec<String>, StoreError>,
    origin: Origin,
    now: Millis,
) -> Result<Vec<Goal>, ActionError> {
    let mut paused = Vec::new();
    for _ in 0..PASSES {
        let sessions = find(store.read())?;
        if sessions.is_empty() {
            break;
        }
        for goal in sessions.iter().map(|id| store.read().goal(id)).collect::<Result<Vec<_>, _>>()?.iter().flatten() {
            // An unreadable session file must not keep the goal running; the next hook reports it.
            let _ = refresh(store, goal, origin, now);
        }
        store.write_in_steps(&sessions, |db, session_id| {
            hold_queue(db, session_id, origin, now)?;
            if let Some(goal) = db.goal(session_id)?
                && would_move(db, &goal)?
            {
                let change = pause_by_user(&goal, json!({"reason": "user", "all": true}), now);
                paused.push(db.save(&goal, change, origin)?);
            }
            Ok::<_, ActionError>(())
        })?;
    }
    Ok(paused)
}

/// The sessions of goals that move or would, and of queues whose next goal would start, the newest goal first.
fn moving(db: Db<'_>) -> Result<Vec<String>, StoreError> {
    let mut sessions = with_moving_goal(db)?;
    sessions.extend(db.sessions_with_next_goal()?);
    Ok(sessions)
}

fn with_moving_goal(db: Db<'_>) -> Result<Vec<String>, StoreError> {
    let mut sessions = Vec::new();
    for goal in db.goals()? {
        if would_move(db, &goal)? {
            sessions.push(goal.session_id);
        }
    }
    Ok(sessions)
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

/// A queue without a live goal would start its next one. Starts it here, so that it is paused in the same transaction.
fn hold_queue(db: Db<'_>, session_id: &str, origin: Origin, now: Millis) -> Result<(), ActionError> {
    let place = match (db.session(session_id)?, db.goal(session_id)?) {
        (Some(session), _) => Place::from(&session),
        (None, Some(goal)) => {
            Place { session_id: goal.session_id, host: goal.host, project_dir: goal.project_dir, transcript: None }
        }
        (None, None) => return Ok(()),
    };
    // No file is read here: the goal is paused at once, so that nothing before its resumption is charged to it.
    start_next_with(db, &place, &[], origin, now)?;
    Ok(())
}
