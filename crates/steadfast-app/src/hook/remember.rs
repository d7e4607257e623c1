//! Keeping what a hook call saw: events, tasks and stated goals, within the transaction of the call.

use super::session::session_record;
use super::{Call, HookError, steering};
use steadfast_memory::extract;
use steadfast_model::directive::{Directive, Form};
use steadfast_model::hook::{HookEvent, HookReply};
use steadfast_model::memory::Findings;
use steadfast_model::memory::observation::Observation;
use steadfast_model::memory::stated::{self, StatedChange};
use steadfast_model::text;
use steadfast_store::{Db, Store, StoreError};

/// What the call gives to remember; worked out before any transaction begins.
pub(super) fn findings(observations: &[Observation], enabled: bool) -> Findings {
    if enabled { extract::findings(observations) } else { Findings::default() }
}

/// A hook that is only there to be remembered.
pub(super) fn seen(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    if call.found == Findings::default() {
        return Ok(HookReply::default());
    }
    store.write(|db| keep_registered(call, db))?;
    Ok(HookReply::default())
}

/// Writes down what the call saw, where nobody else takes care that the session is known: hooks may be installed in
/// the middle of one.
pub(super) fn keep_registered(call: &Call<'_>, db: Db<'_>) -> Result<(), StoreError> {
    if call.found != Findings::default() && db.session(call.session_id())?.is_none() {
        db.put_session(&session_record(call))?;
    }
    keep(call, db)
}

/// Writes down what the call saw, in the transaction of whoever handles it.
pub(super) fn keep(call: &Call<'_>, db: Db<'_>) -> Result<(), StoreError> {
    if call.found == Findings::default() {
        return Ok(());
    }
    db.remember(call.session_id(), &call.found, call.now)
}

/// Follows a prompt that is about a goal, and gives the words for the user, if any are needed.
pub(super) fn keep_stated(call: &Call<'_>, db: Db<'_>) -> Result<Option<String>, StoreError> {
    // A command is no statement.
    if matches!(call.input.event, HookEvent::Command { .. }) {
        return Ok(None);
    }
    let Some((form, directive)) = &call.found.steering else {
        return Ok(None);
    };
    let live = db.goal(call.session_id())?.filter(|goal| goal.status.is_live());
    let holding = db.stated_goal(call.session_id())?;
    let change = stated::decide(holding.as_ref(), directive);
    db.apply_stated(call.session_id(), &change, live.as_ref().map(|goal| goal.goal_id.as_str()), call.now)?;
    if *form == Form::Slash && !matches!(directive, Directive::State(_)) {
        return Ok(steering::outcome(holding.as_ref(), directive, &change));
    }
    let StatedChange::Set(objective) = change else {
        return Ok(None);
    };
    if *form == Form::Slash && steering::is_taken_by_client(call, db, &objective)? {
        return Ok(None);
    }
    Ok(match live {
        Some(goal) if goal.objective.trim() == objective.trim() => None,
        Some(goal) => Some(call.host().spell(&format!(
            "steadfast: noted beside the goal of this session, which stays: {}\n/goal-edit TEXT changes what is pursued.",
            text::headline(&goal.objective, 80)
        ))),
        None if call.host().capabilities().marker_starts_goal && *form == Form::Marker => None,
        None => Some(call.host().spell(
            "steadfast: noted as the goal of this session; it comes back after compaction and resume.\n\
             /goal-start TEXT makes it a durable goal, with a budget and checks.",
        )),
    })
}
