//! Finds the session and actor of a tool call. The session id in the environment goes stale after `/clear` and
//! `--continue`, so the note that the call's `PreToolUse` hook left in the store comes first. Codex sends the session id
//! with every call.

use std::time::{Duration, Instant};

use steadfast_app::caller::{self, CheckError, NotTheClient};
use steadfast_app::session;
use steadfast_hosts::{ToolCallOrigin, adapter};
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::Actor;
use steadfast_model::host::Host;
use steadfast_store::{Origin, ToolCall};
use steadfast_system::env_vars;

use super::evaluator;
use super::store_handle::{StoreHandle, ToolError};

/// The hook starts before the call, but its write may finish later.
const NOTE_WAIT: Duration = Duration::from_millis(300);
const NOTE_STEP: Duration = Duration::from_millis(10);

/// The host that made a call and what its metadata identifies, if any.
pub(super) type CallMeta = Option<(Host, ToolCallOrigin)>;

/// The session of a call, and the actor that made it.
pub(super) struct ToolCaller {
    pub(super) host: Host,
    pub(super) session_id: String,
    pub(super) origin: Origin,
    pub(super) now: Millis,
}

/// Finds the caller, and checks that the client of its session started this server. An agent may start one in its shell,
/// with metadata and an environment of its own making.
pub(super) fn find(handle: &StoreHandle, call: &CallMeta) -> Result<ToolCaller, ToolError> {
    let hint = "use the tools that your client offers";
    let refused = |doubt: NotTheClient| ToolError::new(format!("this tool server is not the session's: {doubt}"), hint);
    let client = handle.client().map_err(refused)?;
    let caller = identify(handle, call)?;
    let checked = handle.look_up(|store| match caller::check(store.read(), &caller.session_id, client) {
        Err(CheckError::NotTheClient(doubt)) => Err(refused(doubt)),
        Err(CheckError::Store(error)) => Err(error.into()),
        Ok(()) => Ok(Some(())),
    });
    checked.map(|_| caller)
}

fn identify(handle: &StoreHandle, call: &CallMeta) -> Result<ToolCaller, ToolError> {
    let (host, note) = match call {
        Some((host, ToolCallOrigin::Session { session_id, agent })) => {
            let session_id =
                session::checked(session_id).map_err(|error| ToolError::new(error.to_string(), error.hint()))?;
            let actor = evaluator::actor(handle, *host, &session_id, agent.as_ref())?;
            let origin = Origin { actor, place: "mcp" };
            return Ok(ToolCaller { host: *host, session_id, origin, now: clock::now() });
        }
        Some((host, ToolCallOrigin::ToolUse(id))) => (*host, wait_for_note(handle, id)?),
        None => (Host::default(), None),
    };
    let is_evaluator = note.as_ref().is_some_and(|note| (adapter(host).is_evaluator)(&note.agent_type));
    let session_id = match note {
        Some(note) => note.session_id,
        None => session_without_note(handle, host)?,
    };
    let is_hidden = || handle.look_up(|store| Ok(Some(store.read().is_evaluator_hidden(&session_id)?)));
    let actor = if is_evaluator && is_hidden()? != Some(true) { Actor::Evaluator } else { Actor::Worker };
    Ok(ToolCaller { host, session_id, origin: Origin { actor, place: "mcp" }, now: clock::now() })
}

pub(super) fn wait_for_note(handle: &StoreHandle, tool_use_id: &str) -> Result<Option<ToolCall>, ToolError> {
    let deadline = Instant::now() + NOTE_WAIT;
    loop {
        // Release the store between two reads. Without a store there is no note to wait for.
        let looked = handle.look_up(|store| Ok(Some(store.read().tool_call(tool_use_id)?)))?;
        match looked {
            Some(None) if Instant::now() < deadline => std::thread::sleep(NOTE_STEP),
            found => return Ok(found.flatten()),
        }
    }
}

/// The session that the client's own files name, else the one in the server's environment.
fn session_without_note(handle: &StoreHandle, host: Host) -> Result<String, ToolError> {
    let unknown = || ToolError::new("unknown session", "run `steadfast doctor`");
    let client = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get());
    let id = match client.and_then(|pid| (adapter(host).session_of_client)(pid)) {
        Some(id) => id,
        None => session_at_start(handle, host)?.ok_or_else(unknown)?,
    };
    session::checked(&id).map_err(|error| ToolError::new(error.to_string(), error.hint()))
}

fn session_at_start(handle: &StoreHandle, host: Host) -> Result<Option<String>, ToolError> {
    let Some(id) = host.capabilities().session_variables.iter().find_map(|name| env_vars::text(name)) else {
        return Ok(None);
    };
    let known = handle.look_up(|store| Ok(store.read().session(&id)?))?;
    let has_ended = known.is_some_and(|session| session.ended_at_ms.is_some());
    Ok((!has_ended).then_some(id))
}
