//! The queue of a session: goals that the user lined up behind the live one. The next one starts when that one is over.

use serde_json::json;

use super::{ActionError, Place, read_before_start, refuse_agent, settle, start_with};
use crate::accounting::FileEnd;
use steadfast_model::clock::Millis;
use steadfast_model::goal::change::{Change, Span};
use steadfast_model::goal::event::{Event, EventKind};
use steadfast_model::goal::{Actor, Goal, NewGoal};
use steadfast_model::run::name;
use steadfast_store::{Db, Origin, QueuedGoal, Store};

/// What became of a goal that was to be queued.
#[derive(Debug)]
pub struct Enqueued {
    /// The live goal of the session.
    pub goal: Goal,
    /// Whether this call started it.
    pub started: bool,
    /// The place of the new goal in the queue; `None` if it is the live one.
    pub number: Option<usize>,
}

/// Lines a goal up behind the live one. Without a live goal, the first one of the queue starts at once.
pub fn enqueue(
    store: &mut Store,
    place: &Place,
    new: NewGoal,
    origin: Origin,
    now: Millis,
) -> Result<Enqueued, ActionError> {
    if origin.actor != Actor::User {
        refuse_agent(store, &place.session_id, "start --queue", origin, now)?;
    }
    if name::is_of_goal(&place.session_id) {
        return Err(ActionError::NoQueueOfRun);
    }
    let ends = read_before_start(store, place, origin, now)?;
    store.write(|db| {
        let live = db.goal(&place.session_id)?.filter(|goal| goal.status.is_live());
        if live.is_none() && !db.has_queue(&place.session_id)? {
            let goal = start_with(db, place, new, &ends, origin, now)?;
            return Ok(Enqueued { goal, started: true, number: None });
        }
        let id = db.enqueue(&place.session_id, &new, now)?;
        let next = start_next_with(db, place, &ends, origin, now)?;
        let started = next.is_some();
        let Some(goal) = live.or(next) else { return Err(ActionError::NoGoal(place.session_id.clone())) };
        let number = db.queue(&place.session_id)?.into_iter().find(|entry| entry.id == id).map(|entry| entry.number);
        let payload = json!({
            "queue_id": id, "number": number, "objective": new.objective, "limits": new.budget.limits.describe(),
        });
        let event = Event::new(EventKind::GoalQueued, payload);
        let after = Goal { updated_at_ms: now, ..goal.clone() };
        let goal = db.save(&goal, Change { goal: after, events: vec![event], span: Span::Keep }, origin)?;
        Ok(Enqueued { goal, started, number })
    })
}

/// Starts the next goal of the queue if the session's goal is over. Of concurrent callers one starts it. An agent starts
/// nothing: the rest of its turn belongs to the goal that it ended.
pub fn start_next(store: &mut Store, place: &Place, origin: Origin, now: Millis) -> Result<Option<Goal>, ActionError> {
    let db = store.read();
    let is_live = db.goal(&place.session_id)?.is_some_and(|goal| goal.status.is_live());
    if is_live || origin.actor.is_agent() || !db.has_queue(&place.session_id)? {
        return Ok(None);
    }
    let ends = read_before_start(store, place, origin, now)?;
    store.write(|db| start_next_with(db, place, &ends, origin, now))
}

/// The same in the caller's transaction; see [`start_with`].
pub fn start_next_with(
    db: Db<'_>,
    place: &Place,
    ends: &[FileEnd],
    origin: Origin,
    now: Millis,
) -> Result<Option<Goal>, ActionError> {
    let is_live = db.goal(&place.session_id)?.is_some_and(|goal| goal.status.is_live());
    if is_live || origin.actor.is_agent() {
        return Ok(None);
    }
    let Some(next) = db.queue(&place.session_id)?.into_iter().next() else { return Ok(None) };
    let (mut goal, old) = place.new_goal(db, next.goal, ends, now)?;
    settle(db, &mut goal, now, now)?;
    Ok(Some(db.start_queued_goal(next.id, &goal, old.as_ref(), origin)?))
}

/// Moves an entry to another place. Returns it as it was.
pub fn move_queued(
    store: &mut Store,
    session_id: &str,
    number: usize,
    to: usize,
    origin: Origin,
    now: Millis,
) -> Result<QueuedGoal, ActionError> {
    if origin.actor != Actor::User {
        refuse_agent(store, session_id, "queue move", origin, now)?;
    }
    store.write(|db| {
        let mut queue = db.queue(session_id)?;
        let (from, to) = (index(&queue, number)?, index(&queue, to)?);
        let entry = queue.remove(from);
        queue.insert(to, entry.clone());
        db.order_queue(&queue)?;
        Ok(entry)
    })
}

/// Removes an entry and returns it.
pub fn drop_queued(
    store: &mut Store,
    session_id: &str,
    number: usize,
    origin: Origin,
    now: Millis,
) -> Result<QueuedGoal, ActionError> {
    if origin.actor != Actor::User {
        refuse_agent(store, session_id, "queue drop", origin, now)?;
    }
    store.write(|db| {
        let mut queue = db.queue(session_id)?;
        let entry = queue.remove(index(&queue, number)?);
        db.drop_queued(entry.id)?;
        Ok(entry)
    })
}

/// The index of a number that `goal queue list` shows.
fn index(queue: &[QueuedGoal], number: usize) -> Result<usize, ActionError> {
    let found = queue.iter().position(|entry| entry.number == number);
    found.ok_or(ActionError::NotQueued { number, count: queue.len() })
}

#[cfg(test)]
mod tests;
