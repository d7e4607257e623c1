//! Goals whose session is gone: found, listed, deleted, or adopted by another session.

use serde_json::json;

use super::{ActionError, Place};
use crate::accounting;
use steadfast_model::clock::{DAY, Millis};
use steadfast_model::goal::change::{Change, Refusal, Span};
use steadfast_model::goal::event::{Event, EventKind};
use steadfast_model::goal::{Goal, GoalStatus};
use steadfast_model::text;
use steadfast_store::{Db, Origin, Session, Store, StoreError};

/// Finds a goal by its id or the beginning of it.
pub fn find_goal(db: Db<'_>, id: &str) -> Result<Goal, ActionError> {
    only(id, if id.is_empty() { Vec::new() } else { db.goals_by_id(id)? })
}

/// The same, with the goals that others replaced.
pub fn find_goal_ever(db: Db<'_>, id: &str) -> Result<Goal, ActionError> {
    if id.is_empty() {
        return only(id, Vec::new());
    }
    let mut found = db.goals_by_id(id)?;
    found.extend(db.replaced_by_id(id)?);
    only(id, found)
}

fn only(id: &str, mut found: Vec<Goal>) -> Result<Goal, ActionError> {
    match found.len() {
        0 => Err(ActionError::UnknownGoal(id.to_owned())),
        1 => Ok(found.remove(0)),
        _ => Err(ActionError::AmbiguousGoal(id.to_owned())),
    }
}

/// Whether no client drives the goal's session any more.
pub fn is_orphaned(db: Db<'_>, goal: &Goal) -> Result<bool, StoreError> {
    Ok(!db.session(&goal.session_id)?.is_some_and(|session| session.is_alive()))
}

/// Moves an orphaned goal to this session, with its budget, history and events.
pub fn adopt(
    store: &mut Store,
    goal_id: &str,
    place: &Place,
    origin: Origin,
    now: Millis,
) -> Result<Goal, ActionError> {
    let ends = place.find_ends(store.read())?;
    store.write(|db| {
        let goal = find_goal(db, goal_id)?;
        if goal.session_id == place.session_id {
            return Ok(goal);
        }
        if !goal.status.is_live() {
            let hint = "it is over; start a new one with `/goal-start`".to_owned();
            return Err(Refusal::WrongState { status: goal.status, reason: goal.paused_reason, hint }.into());
        }
        if !is_orphaned(db, &goal)? {
            return Err(ActionError::NotOrphaned(goal.session_id));
        }
        if let Some(own) = db.goal(&place.session_id)? {
            if own.status.is_live() {
                return Err(ActionError::GoalExists {
                    status: own.status,
                    objective: text::headline(&own.objective, 80),
                });
            }
            db.archive_goal(&own)?;
        }
        db.move_span(&goal, Span::Close, now)?;
        let is_active = goal.status == GoalStatus::Active;
        let mut after = Goal {
            updated_at_ms: now,
            session_id: place.session_id.clone(),
            host: place.host,
            project_dir: place.project_dir.clone().or(goal.project_dir.clone()),
            resume_at_ms: None,
            wake_at_ms: goal.wake_at_ms.filter(|_| !is_active),
            woken_at_ms: None,
            briefed_hash: None,
            idle_continuations: 0,
            blocks_in_row: 0,
            ..goal.clone()
        };
        super::settle(db, &mut after, now + super::PROMPT_FOLLOWS, now)?;
        if let Some(offset) = accounting::skip_to(db, place.host, &place.session_id, &ends, now)? {
            after.last_accounted_byte_offset = offset;
            after.last_accounted_uuid = None;
        }
        let span = if is_active { Span::Open } else { Span::Keep };
        let event =
            Event::new(EventKind::GoalAdopted, json!({"from_session": goal.session_id, "from_host": goal.host}));
        Ok(db.save(&goal, Change { goal: after, events: vec![event], span }, origin)?)
    })
}

/// A hook of the session may have run this long ago, whatever its client looks like now.
const JUST_SEEN: Millis = 60_000;

/// Goals whose session is gone and that were not touched for a while, oldest first, at most this many.
pub fn orphans(db: Db<'_>, older_than: Millis, most: usize, now: Millis) -> Result<Vec<Goal>, StoreError> {
    Ok(find(db, older_than, most, now)?.into_iter().map(|(goal, _)| goal).collect())
}

/// The same with their sessions, as they were seen.
fn find(db: Db<'_>, older_than: Millis, most: usize, now: Millis) -> Result<Vec<(Goal, Option<Session>)>, StoreError> {
    // Without an age, only what runs now counts.
    let now = if older_than == 0 { now } else { db.aged_now(now)? };
    let mut orphans = Vec::new();
    for at in db.oldest_live_goals()? {
        if orphans.len() == most {
            break;
        }
        let Some(goal) = db.goal_at_row(&at)? else { continue };
        let session = db.session(&goal.session_id)?;
        let age = match &session {
            // No hook showed whether its client runs, so a short age is no sign that it is gone.
            None if older_than > 0 => older_than.max(DAY),
            _ => older_than,
        };
        let is_old = now - goal.updated_at_ms >= age;
        if is_old && session.as_ref().is_none_or(|session| is_gone(session, older_than, now)) {
            orphans.push((goal, session));
        }
    }
    Ok(orphans)
}

/// Whether the client of a session is gone: it said so, or it is no longer there and no hook of it ran lately.
fn is_gone(session: &Session, older_than: Millis, now: Millis) -> bool {
    let is_silent = now - session.last_seen_ms >= older_than.max(JUST_SEEN);
    !session.is_alive() && (session.ended_at_ms.is_some() || is_silent)
}

/// Deletes orphans in short transactions. Processes are looked at before; a goal or session that changed in between
/// stays.
pub fn delete_orphans(store: &mut Store, older_than: Millis, now: Millis) -> Result<Vec<Goal>, ActionError> {
    let found = find(store.read(), older_than, usize::MAX, now)?;
    // Events of the goals are in there, too.
    store.drop_replaced_tables()?;
    let deleted = store.delete_goals(&found, |db, (goal, session)| {
        let same =
            db.goal(&goal.session_id)?.is_some_and(|now| now == *goal) && db.session(&goal.session_id)? == *session;
        Ok(same.then_some(goal))
    })?;
    Ok(deleted.into_iter().cloned().collect())
}
