//! Our own message that wakes an idle session, from outside or from a background hook. It may come late: after Esc, after a restart of the client,
//! or beside another wake-up. It reaches the model only if the goal still waits for it.

use super::session::session_record;
use super::{Call, HookError, restore, session};
use crate::{prompting, wake};
use steadfast_model::goal::change::{self, Change, Span};
use steadfast_model::goal::{Goal, GoalStatus};
use steadfast_model::hook::HookReply;
use steadfast_store::Store;

const NOT_DUE: &str = "◎ this wake-up is no longer due, so nothing was done.";

pub(super) fn woken(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    if call.host().capabilities().can_wake {
        return woken_inside(call, store);
    }
    let id = call.session_id();
    let turn_id = call.input.turn_id.as_deref();
    let known = store.read().session(id)?.and_then(|session| session.activity.turn_id);
    if turn_id.is_some() && known.as_deref() == turn_id {
        // The turn that it wakes runs already; a block would end it.
        return Ok(HookReply::default());
    }
    store.write(|db| {
        db.put_session(&session_record(call))?;
        // The client takes such a message only when no turn runs.
        db.end_turn(id, false, call.now)
    })?;
    // Whoever sent the message has claimed the wake-up. Without a claim it counts if it is due.
    let due = store.read().goal(id)?.as_ref().and_then(wake::moment).filter(|at| *at <= call.now);
    if let Some(wake_at) = due {
        wake::claim(store, call.paths, id, wake_at, call.now)?;
    }
    let woken = store.write(|db| {
        let Some(goal) = db.goal(id)?.filter(|goal| goal.woken_at_ms.is_some()) else {
            return Ok(None);
        };
        // A goal that winds down has no clock that begins to run.
        let mut change = change::turn_began(&goal, false, call.now).unwrap_or_else(|| Change {
            goal: Goal { woken_at_ms: None, updated_at_ms: call.now, ..goal.clone() },
            events: Vec::new(),
            span: Span::Keep,
        });
        // The message itself told the model nothing.
        change.goal.briefed_hash = None;
        let brief = prompting::brief(db, &mut change.goal)?;
        db.begin_turn(id, turn_id, call.now)?;
        Ok::<_, HookError>(Some((db.save(&goal, change, call.origin)?, brief)))
    })?;
    let Some((goal, brief)) = woken else {
        return Ok(HookReply { block: Some(NOT_DUE.to_owned()), ..HookReply::default() });
    };
    let context = brief.text(&goal, restore::wording(call, store.read(), &goal)?, call.now)?;
    Ok(HookReply { context: Some(context), ..HookReply::default() })
}

/// A background hook woke the client, and its text is the message. The goal may have been paused since.
fn woken_inside(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    let goal = store.read().goal(call.session_id())?;
    if goal.is_some_and(|goal| goal.status == GoalStatus::Active || goal.wind_down.is_some()) {
        return session::prompted(call, store, false);
    }
    Ok(HookReply { block: Some(NOT_DUE.to_owned()), ..HookReply::default() })
}
