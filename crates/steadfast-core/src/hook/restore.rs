//! What is lost to the model comes back: the goal after a resume or a compaction, and the text of Codex's own goal.

use serde_json::json;

use super::session::account;
use super::{Call, HookError, turn};
use crate::accounting;
use crate::config::OnCompact;
use crate::goal::change::{self, Change, Event, Span};
use crate::goal::{Goal, GoalStatus};
use crate::host::Host;
use crate::host::hook::HookReply;
use crate::native;
use crate::prompt;
use crate::store::{Session, Store};

const UNCERTAIN: &str =
    "⚠ /compact event detected: token accounting is uncertain. Run /goal-reconcile --accept-reset to go on.";

pub(super) fn resumed(call: &Call<'_>, store: &mut Store, known: Option<&Session>) -> Result<HookReply, HookError> {
    let goal = store.write(|db| {
        let Some(goal) = db.goal(call.session_id())? else {
            return Ok(None);
        };
        // A goal from before the upgrade was last seen when it was last written.
        let last_seen = known.map_or(goal.updated_at_ms, |session| session.last_seen_ms);
        let last_seen = last_seen.min(call.now);
        match change::session_resumed(&goal, last_seen, call.now) {
            Some(change) => db.save(&goal, change, call.origin).map(Some),
            None => Ok(Some(goal)),
        }
    })?;
    let reply = restore(call, goal.as_ref(), " and resumed with this session")?;
    if let Some(goal) = goal.filter(|_| call.host() == Host::Codex && reply.context.is_some()) {
        note(call, store, &goal, RESTORED)?;
    }
    Ok(reply)
}

/// The goal was put before the model when its session was resumed.
const RESTORED: &str = "goal_restored";
const COMPACTING: &str = "compaction_started";

/// Writes an event that changes nothing.
fn note(call: &Call<'_>, store: &mut Store, goal: &Goal, kind: &'static str) -> Result<(), HookError> {
    store.write(|db| {
        let Some(goal) = db.goal(&goal.session_id)? else {
            return Ok(());
        };
        let mut after = goal.clone();
        after.updated_at_ms = call.now;
        let change = Change { goal: after, events: vec![Event::new(kind, json!({}))], span: Span::Keep };
        db.save(&goal, change, call.origin)?;
        Ok::<(), HookError>(())
    })
}

/// Codex may announce a resumed session twice, as resumed and then as compacted: what the first start injected
/// after the compaction is still there.
fn was_just_restored(call: &Call<'_>, store: &Store, goal: &Goal) -> Result<bool, HookError> {
    const SAME_START: i64 = 60_000;
    let Some(restored) = store.read().last_event(&goal.goal_id, RESTORED)? else {
        return Ok(false);
    };
    let compacting = store.read().last_event(&goal.goal_id, COMPACTING)?.map_or(0, |event| event.id);
    Ok(restored.id > compacting && compacting > 0 && call.now - restored.created_at_ms < SAME_START)
}

pub(super) fn compacted(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    let Some((mut goal, facts)) = account(call, store)? else {
        return restore_native(call, store);
    };
    if call.host() == Host::Codex && was_just_restored(call, store, &goal)? {
        return Ok(HookReply::default());
    }
    if !goal.status.is_live() {
        return restore_native(call, store);
    }
    let mut became_uncertain = facts.became_uncertain;
    let running = matches!(goal.status, GoalStatus::Active | GoalStatus::BudgetLimited);
    if call.paths.config.accounting.on_compact == OnCompact::Pause && running && !goal.accounting_uncertain {
        goal = store.write(|db| accounting::flag_uncertain(db, &goal, "compact", call.origin, call.now))?;
        became_uncertain = true;
    }
    let mut reply = restore(call, Some(&goal), "; the conversation was just compacted")?;
    reply.message = turn::pause_notice(call.host(), &facts);
    if became_uncertain {
        reply.message = Some(call.host().spell(UNCERTAIN));
    }
    Ok(reply)
}

fn restore(call: &Call<'_>, goal: Option<&Goal>, after: &str) -> Result<HookReply, HookError> {
    let Some(goal) = goal.filter(|goal| goal.status.is_live()) else {
        return Ok(HookReply::default());
    };
    Ok(HookReply { context: Some(prompt::restore(goal, after, call.now)?), ..HookReply::default() })
}

/// Codex's own goal loses its text when a turn is compacted in the middle; it is put back.
fn restore_native(call: &Call<'_>, store: &Store) -> Result<HookReply, HookError> {
    if call.host() != Host::Codex {
        return Ok(HookReply::default());
    }
    let Some(objective) = native::of_session(store.read(), call.session_id())? else {
        return Ok(HookReply::default());
    };
    Ok(HookReply { context: Some(prompt::restore_native(call.host(), &objective)?), ..HookReply::default() })
}

pub(super) fn before_compaction(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    let accounted = account(call, store)?;
    if let Some((goal, _)) = accounted.as_ref().filter(|(goal, _)| call.host() == Host::Codex && goal.status.is_live())
    {
        note(call, store, goal, COMPACTING)?;
    }
    if accounted.is_some()
        && let Some(transcript) = &call.input.transcript
    {
        store
            .write(|db| accounting::mark_before_compaction(db, call.host(), call.session_id(), transcript, call.now))?;
    }
    Ok(HookReply::default())
}
