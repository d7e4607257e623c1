//! Hooks of subagents: their tokens count, and nothing they do drives the goal.

use super::turn::{message_only, pause_notice};
use super::{Call, HookError, remember};
use crate::accounting;
use crate::host::hook::{Agent, HookReply};
use crate::store::{Store, StoreError};

/// A subagent called tools or ended: its tokens count, its turn is its own.
pub(super) fn worked(call: &Call<'_>, store: &mut Store, agent: &Agent) -> Result<HookReply, HookError> {
    remember::seen(call, store)?;
    let Some(goal) = store.read().goal(call.session_id())? else {
        return Ok(HookReply::default());
    };
    if !store.read().has_open_span(&goal.goal_id)? {
        return Ok(HookReply::default());
    }
    let told = agent.transcript.clone();
    // Inside a subagent, a batch names only the agent; its file is beside the session's.
    let beside = || {
        let files = accounting::subagent_files(call.input.transcript.as_ref()?);
        files.into_iter().find(|(id, _)| *id == agent.id).map(|(_, path)| path)
    };
    let Some(path) = told.or_else(beside) else {
        return Ok(HookReply::default());
    };
    let readings = accounting::read_subagent(store, call.host(), &path, &agent.id)?;
    let notice = store.write(|db| match db.goal(call.session_id())? {
        Some(goal) => {
            let (_, seen) = accounting::record(db, goal, &readings, call.origin, call.now)?;
            Ok::<_, StoreError>(pause_notice(call.host(), &seen))
        }
        None => Ok(None),
    })?;
    Ok(notice.map(message_only).unwrap_or_default())
}

/// A subagent begins: its file is remembered, since only hooks tell where Codex keeps it.
pub(super) fn started(call: &Call<'_>, store: &mut Store, agent: &Agent) -> Result<HookReply, HookError> {
    remember::seen(call, store)?;
    if let Some(path) = &agent.transcript {
        store.write(|db| db.remember_subagent_file(call.session_id(), &agent.id, path, call.now))?;
    }
    Ok(HookReply::default())
}
