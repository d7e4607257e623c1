//! Stores what a hook call found: events, tasks and stated goals, in the transaction of the call.

use super::session::session_record;
use super::{Call, HookError, steering};
use steadfast_model::directive::{Directive, Form};
use steadfast_model::hook::{HookEvent, HookReply};
use steadfast_model::memory::Findings;
use steadfast_model::memory::stated::{self, StatedChange};
use steadfast_model::text;
use steadfast_store::{Db, Store, StoreError};

/// Handles a hook that has only findings.
pub(super) fn seen(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    if call.found == Findings::default() {
        return Ok(HookReply::default());
    }
    store.write(|db| keep_registered(call, db))?;
    Ok(HookReply::default())
}

/// Stores the findings, and the session if it is unknown: hooks may be installed in the middle of one.
pub(super) fn keep_registered(call: &Call<'_>, db: Db<'_>) -> Result<(), StoreError> {
    if call.found != Findings::default() && db.session(call.session_id())?.is_none() {
        db.put_session(&session_record(call))?;
    }
    db.remember(call.session_id(), &call.found, call.now)
}

/// Stores what a prompt states about a goal, and returns the message for the user, if one is needed. `native_goal` is
/// the objective of the client's own goal.
pub(super) fn keep_stated(
    call: &Call<'_>,
    db: Db<'_>,
    native_goal: Option<&str>,
) -> Result<Option<String>, StoreError> {
    // A command is no statement.
    if matches!(call.input.event, HookEvent::Command { .. } | HookEvent::Commands { .. }) {
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
    if *form == Form::Slash && native_goal.is_some_and(|native| stated::kept(native).trim() == objective.trim()) {
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
