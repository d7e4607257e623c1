//! Whether the evaluator made a call that names its session itself. All of these must agree: the thread of the call, the
//! note of the call's own `PreToolUse` hook, the subagent of that id which a hook saw begin, and the instructions in its
//! file.

use steadfast_hosts::{AgentCall, adapter};
use steadfast_model::goal::Actor;
use steadfast_model::host::Host;

use super::caller::wait_for_note;
use super::store_handle::{StoreHandle, ToolError};

pub(super) fn actor(
    handle: &StoreHandle,
    host: Host,
    session_id: &str,
    agent: Option<&AgentCall>,
) -> Result<Actor, ToolError> {
    // The session's own calls have no agent, and none of them waits for a note.
    let Some(agent) = agent else {
        return Ok(Actor::Worker);
    };
    let note = wait_for_note(handle, &agent.tool_use_id)?;
    let is_its_call = note.is_some_and(|note| {
        note.session_id == session_id && note.agent_id == agent.agent_id && host.is_evaluator(&note.agent_type)
    });
    if !is_its_call {
        return Ok(Actor::Worker);
    }
    let seen = handle.look_up(|store| {
        let began = store.read().subagent_type(session_id, &agent.agent_id)?;
        Ok(Some((began, store.read().subagent_files(session_id)?)))
    })?;
    let is_evaluator = seen.is_some_and(|(began, files)| {
        let mut own = files.iter().filter(|(agent_id, _)| *agent_id == agent.agent_id);
        began.is_some_and(|agent_type| host.is_evaluator(&agent_type))
            && own.any(|(_, file)| (adapter(host).has_evaluator_rules)(file))
    });
    Ok(if is_evaluator { Actor::Evaluator } else { Actor::Worker })
}
