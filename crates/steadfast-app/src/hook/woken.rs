//! Our own message that wakes an idle session from outside. It may come late: after Esc, after a restart of the client,
//! or beside another wake-up. It reaches the model only if the goal still waits for it.

use super::session::session_record;
use super::{Call, HookError, restore};
use steadfast_model::goal::change;
use steadfast_model::goal::{Goal, GoalStatus};
use steadfast_model::hook::HookReply;
use steadfast_model::prompt;
use steadfast_store::{Db, Store};

const NOT_DUE: &str = "steadfast: this wake-up is no longer due, so nothing was done.";

pub(super) fn woken(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    let session = store.read().session(call.session_id())?;
    if call.input.turn_id.is_some() && session.is_some_and(|known| known.activity.turn_id == call.input.turn_id) {
        // The turn that it wakes runs already; a block would end it.
        return Ok(HookReply::default());
    }
    let woken = store.write(|db| {
        db.put_session(&session_record(call))?;
        let woken = wake(call, db)?;
        if woken.is_some() {
            db.begin_turn(call.session_id(), call.input.turn_id.as_deref(), call.now)?;
        }
        Ok::<_, HookError>(woken)
    })?;
    let Some(goal) = woken else {
        return Ok(HookReply { block: Some(NOT_DUE.to_owned()), ..HookReply::default() });
    };
    let wording = restore::wording(call, store.read(), &goal)?;
    let context = prompt::continuation(&goal, wording, &[], call.now)?;
    Ok(HookReply { context: Some(context), ..HookReply::default() })
}

/// The goal that this message wakes, with the wake-up done.
fn wake(call: &Call<'_>, db: Db<'_>) -> Result<Option<Goal>, HookError> {
    let Some(goal) = db.goal(call.session_id())? else {
        return Ok(None);
    };
    Ok(match change::woken(&goal, call.now) {
        Some(change) => Some(db.save(&goal, change, call.origin)?).filter(|goal| goal.status == GoalStatus::Active),
        None => None,
    })
}
