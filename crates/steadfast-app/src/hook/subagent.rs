//! Hooks of subagents: their tokens count, and nothing they do drives the goal.

use super::turn::{message_only, pause_notice};
use super::{Call, HookError, remember};
use crate::accounting::{self, FileReading};
use steadfast_hosts::adapter;
use steadfast_model::hook::{Agent, HookReply};
use steadfast_store::{Store, StoreError};

/// A subagent called tools or ended: its tokens count, its turn is its own.
pub(super) fn worked(call: &Call<'_>, store: &mut Store, agent: &Agent) -> Result<HookReply, HookError> {
    let Some(readings) = readings(call, store, agent)? else {
        return remember::seen(call, store);
    };
    let notice = store.write(|db| {
        remember::keep_registered(call, db)?;
        let Some(goal) = db.goal(call.session_id())? else {
            return Ok(None);
        };
        let (_, seen) = accounting::record(db, goal, &readings, call.origin, call.now)?;
        Ok::<_, StoreError>(pause_notice(call.host(), &seen))
    })?;
    Ok(notice.map(message_only).unwrap_or_default())
}

/// What the subagent's file says that is new; none while no goal's time is running, or if nobody knows the file.
fn readings(call: &Call<'_>, store: &Store, agent: &Agent) -> Result<Option<Vec<FileReading>>, HookError> {
    let Some(goal) = store.read().goal(call.session_id())? else {
        return Ok(None);
    };
    if !store.read().has_open_span(&goal.goal_id)? {
        return Ok(None);
    }
    let told = agent.transcript.clone();
    // Inside a subagent, a batch names only the agent; its file is beside the session's.
    let beside = || {
        let files = (adapter(call.host()).subagent_files)(call.input.transcript.as_ref()?)?;
        files.into_iter().find(|(id, _)| *id == agent.id).map(|(_, path)| path)
    };
    match told.or_else(beside) {
        Some(path) => Ok(Some(accounting::read_subagent(store, call.host(), &path, &agent.id)?)),
        None => Ok(None),
    }
}

/// A subagent begins: its file is remembered, since only hooks tell where Codex keeps it.
pub(super) fn started(call: &Call<'_>, store: &mut Store, agent: &Agent) -> Result<HookReply, HookError> {
    let Some(path) = &agent.transcript else {
        return remember::seen(call, store);
    };
    store.write(|db| {
        remember::keep_registered(call, db)?;
        db.remember_subagent_file(call.session_id(), &agent.id, path, call.now)
    })?;
    Ok(HookReply::default())
}
