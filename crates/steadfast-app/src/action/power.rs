//! Changes that the worker may make in some turns only, and what a goal that it creates inherits. The store holds the
//! facts; `model/goal/power` decides.

use super::{ActionError, Place, change, goal_of, refresh, save, still_the_goal};
use steadfast_model::clock::Millis;
use steadfast_model::goal::budget::BudgetSource;
use steadfast_model::goal::change::{Change, Refusal};
use steadfast_model::goal::power::{self, RunningTurn, TurnFacts, Verb};
use steadfast_model::goal::{Goal, NewGoal};
use steadfast_model::limit::Axis;
use steadfast_store::{Db, Origin, Session, Store, StoreError};
use steadfast_system::process;

/// How many generations of a session are looked at.
const GENERATIONS: usize = 16;

/// Replaces the objective.
pub fn edit(
    store: &mut Store,
    session_id: &str,
    objective: String,
    origin: Origin,
    now: Millis,
) -> Result<Goal, ActionError> {
    apply_verb(store, session_id, Verb::Edit, origin, now, |goal| change::edit(goal, objective, now))
}

pub fn abandon(store: &mut Store, session_id: &str, origin: Origin, now: Millis) -> Result<Goal, ActionError> {
    apply_verb(store, session_id, Verb::Abandon, origin, now, |goal| change::abandon(goal, now))
}

pub fn pause(store: &mut Store, session_id: &str, origin: Origin, now: Millis) -> Result<Goal, ActionError> {
    let pause = if origin.actor.is_agent() { change::pause_by_worker } else { change::pause };
    apply_verb(store, session_id, Verb::Pause, origin, now, |goal| pause(goal, now))
}

pub fn block(
    store: &mut Store,
    session_id: &str,
    reason: &str,
    origin: Origin,
    now: Millis,
) -> Result<Goal, ActionError> {
    apply_verb(store, session_id, Verb::Block, origin, now, |goal| change::block(goal, reason, now))
}

/// Like [`super::apply`], but a worker must be allowed to do it now; a refusal is recorded.
fn apply_verb(
    store: &mut Store,
    session_id: &str,
    verb: Verb,
    origin: Origin,
    now: Millis,
    change: impl FnOnce(&Goal) -> Result<Change, Refusal>,
) -> Result<Goal, ActionError> {
    let goal = goal_of(store.read(), session_id)?;
    refresh(store, &goal, origin, now)?;
    let done = store.write(|db| {
        let goal = still_the_goal(db, &goal)?;
        let wanted = change(&goal)?;
        if origin.actor.is_agent()
            && let Err(denial) = power::may(&goal, verb, facts(db, &goal)?)
        {
            db.save(&goal, change::refused(&goal, verb.into(), now), origin)?;
            return Ok(Err(denial));
        }
        save(db, &goal, wanted, origin).map(Ok)
    })?;
    Ok(done?)
}

fn facts(db: Db<'_>, goal: &Goal) -> Result<TurnFacts, StoreError> {
    let session = db.session(&goal.session_id)?.unwrap_or_default();
    let turn = RunningTurn { since: session.activity.turn_since_ms, prompted_at: session.user_prompt_ms };
    Ok(TurnFacts {
        is_users_turn: power::is_users_turn(goal, turn),
        is_workers_goal: db.is_created_by_agent(&goal.goal_id)?,
    })
}

/// A goal as an agent may start it: it inherits what is left of the limits of goals before it that no prompt of the user
/// came after. Otherwise the agent could get new limits by ending a goal.
pub(super) fn inherit(db: Db<'_>, place: &Place, new: NewGoal, now: Millis) -> Result<NewGoal, ActionError> {
    let own = db.session(&place.session_id)?.unwrap_or_default();
    let mut goal = new;
    for old in earlier_goals(db, place, &own)? {
        let over_since = db.over_since(&old.goal_id)?.unwrap_or(old.created_at_ms);
        let of_old = db.session(&old.session_id)?.and_then(|session| session.user_prompt_ms);
        if [own.user_prompt_ms, of_old].into_iter().flatten().any(|prompted_at| prompted_at > over_since) {
            continue;
        }
        let limits = power::inherited(&old, goal.budget.limits, now).map_err(ActionError::NothingLeft)?;
        if limits != goal.budget.limits {
            let is_limited = limits.get(Axis::Tokens).is_some();
            goal.budget.source = if is_limited { BudgetSource::Tokens } else { BudgetSource::None };
            goal.budget.profile = None;
        }
        goal.budget.limits = limits;
        goal.judge |= old.judge;
        goal.sign_off |= old.sign_off;
    }
    Ok(goal)
}

/// The last goals of this session, of those it follows, and of those that its client left or a client around it runs.
fn earlier_goals(db: Db<'_>, place: &Place, own: &Session) -> Result<Vec<Goal>, StoreError> {
    let mut ids = vec![place.session_id.clone()];
    let mut parent = own.parent_session_id.clone();
    while let Some(id) = parent.filter(|id| !ids.contains(id) && ids.len() < GENERATIONS) {
        parent = db.session(&id)?.and_then(|session| session.parent_session_id);
        ids.push(id);
    }
    for client in process::ancestors().map(|above| above.id).chain(own.client) {
        // One client may run several unrelated sessions at once.
        let is_around = own.client != Some(client);
        let sessions = db.sessions_of_client(client)?.into_iter();
        ids.extend(sessions.filter(|session| is_around || session.ended_at_ms.is_some()).map(|found| found.session_id));
    }
    ids.sort();
    ids.dedup();
    let mut goals = Vec::new();
    for id in ids {
        // A live goal of this session is refused elsewhere.
        goals.extend(db.goal(&id)?.filter(|goal| !goal.status.is_live() || id != place.session_id));
    }
    Ok(goals)
}

#[cfg(test)]
mod tests;
