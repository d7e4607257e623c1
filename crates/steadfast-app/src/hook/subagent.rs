//! Hooks of subagents: their tokens count, and nothing they do drives the goal.

use std::path::Path;

use super::turn::pause_notice;
use super::{Call, HookError, caps, remember};
use crate::accounting::{self, FileReading};
use steadfast_hosts::adapter;
use steadfast_model::hook::{Agent, HookReply};
use steadfast_store::{Store, StoreError};

/// A subagent called tools or ended: its tokens count, its turn is its own.
pub(super) fn worked(call: &Call<'_>, store: &mut Store, agent: &Agent) -> Result<HookReply, HookError> {
    let Some(readings) = readings(call, store, agent)? else {
        return caps::worked(call, store, Some(agent));
    };
    let message = store.write(|db| {
        remember::keep_registered(call, db)?;
        let recorded = call.record(db, &readings)?;
        Ok::<_, StoreError>(recorded.and_then(|(_, facts)| pause_notice(call.host(), &facts)))
    })?;
    Ok(HookReply { message, ..HookReply::default() })
}

/// What is new in the subagent's file; `None` while no goal is charged, or if the file is not known.
fn readings(call: &Call<'_>, store: &Store, agent: &Agent) -> Result<Option<Vec<FileReading>>, HookError> {
    let Some(goal) = store.read().goal(call.session_id())? else {
        return Ok(None);
    };
    if !store.read().has_open_span(&goal.goal_id)? {
        return Ok(None);
    }
    // Inside a subagent, a batch names only the agent; its file is beside the session's.
    let beside = || {
        let files = (adapter(call.host()).subagent_files)(call.input.transcript.as_ref()?)?;
        files.into_iter().find(|(id, _)| *id == agent.id).map(|(_, path)| path)
    };
    match agent.transcript.clone().or_else(beside) {
        Some(path) => Ok(Some(accounting::read_subagent(store, call.host(), &path, &agent.id)?)),
        None => Ok(None),
    }
}

/// A subagent begins: its file is stored, because only hooks name the file of a Codex subagent.
pub(super) fn started(call: &Call<'_>, store: &mut Store, agent: &Agent) -> Result<HookReply, HookError> {
    let hiding = if call.host().is_evaluator(&agent.agent_type) {
        (adapter(call.host()).evaluator_hidden_by)(Path::new(&call.input.cwd))
    } else {
        None
    };
    store.write(|db| {
        remember::keep_registered(call, db)?;
        if let Some(file) = &hiding {
            db.hide_evaluator(call.session_id(), file)?;
        }
        db.note_subagent(call.session_id(), &agent.id, &agent.agent_type, call.now)?;
        match &agent.transcript {
            Some(path) => db.remember_subagent_file(call.session_id(), &agent.id, path, call.now),
            None => Ok(()),
        }
    })?;
    Ok(HookReply::default())
}
