//! Whose call it is. The environment's session id goes stale after `/clear` and `--continue`, so the note that
//! the `PreToolUse` hook of this very call left in the store comes first. Codex names the session with every call.

use std::time::{Duration, Instant};

use steadfast_core::clock::{self, Millis};
use steadfast_core::env_vars;
use steadfast_core::goal::Actor;
use steadfast_core::host::{Host, ToolCallOrigin, adapter};
use steadfast_core::session;
use steadfast_core::store::{Origin, ToolCall};

use super::desk::{Desk, Failure};

/// The hook runs before the call, yet its write may land a moment later.
const NOTE_WAIT: Duration = Duration::from_millis(300);
const NOTE_STEP: Duration = Duration::from_millis(10);

/// The host that made a call and what its metadata identifies, if any.
pub(super) type CallMeta = Option<(Host, ToolCallOrigin)>;

/// The session a call belongs to, and who in it made the call.
pub(super) struct Caller {
    pub(super) host: Host,
    pub(super) session_id: String,
    pub(super) origin: Origin,
    pub(super) now: Millis,
}

impl Caller {
    pub(super) fn is_evaluator(&self) -> bool {
        self.origin.actor == Actor::Evaluator
    }
}

pub(super) fn find(desk: &Desk, call: &CallMeta) -> Result<Caller, Failure> {
    let (host, note) = match call {
        Some((host, ToolCallOrigin::Session(id))) => {
            let session_id = session::checked(id).map_err(|error| Failure::said(error.to_string(), error.hint()))?;
            let origin = Origin { actor: Actor::Worker, place: "mcp" };
            return Ok(Caller { host: *host, session_id, origin, now: clock::now() });
        }
        Some((host, ToolCallOrigin::ToolUse(id))) => (*host, wait_for_note(desk, id)?),
        None => (Host::default(), None),
    };
    let is_evaluator = note.as_ref().is_some_and(|note| (adapter(host).is_evaluator)(&note.agent_type));
    let session_id = match note {
        Some(note) => note.session_id,
        None => session_without_note(desk, host)?,
    };
    let actor = if is_evaluator { Actor::Evaluator } else { Actor::Worker };
    Ok(Caller { host, session_id, origin: Origin { actor, place: "mcp" }, now: clock::now() })
}

fn wait_for_note(desk: &Desk, tool_use_id: &str) -> Result<Option<ToolCall>, Failure> {
    let deadline = Instant::now() + NOTE_WAIT;
    loop {
        // The store is released between two looks, and a hook leaves no note in a store that does not exist.
        let looked = desk.look_up(|store| Ok(Some(store.read().tool_call(tool_use_id)?)))?;
        match looked {
            Some(None) if Instant::now() < deadline => std::thread::sleep(NOTE_STEP),
            found => return Ok(found.flatten()),
        }
    }
}

/// What the client itself notes about the session it runs now, else what it told us when it started us.
fn session_without_note(desk: &Desk, host: Host) -> Result<String, Failure> {
    let unknown = || Failure::said("no session is known for this call", "run `steadfast doctor`");
    let client = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get());
    let id = match client.and_then(|pid| (adapter(host).session_of_client)(pid)) {
        Some(id) => id,
        None => session_at_start(desk, host)?.ok_or_else(unknown)?,
    };
    session::checked(&id).map_err(|error| Failure::said(error.to_string(), error.hint()))
}

fn session_at_start(desk: &Desk, host: Host) -> Result<Option<String>, Failure> {
    let Some(id) = host.capabilities().session_variables.iter().find_map(|name| env_vars::text(name)) else {
        return Ok(None);
    };
    let known = desk.look_up(|store| Ok(store.read().session(&id)?))?;
    let has_ended = known.is_some_and(|session| session.ended_at_ms.is_some());
    Ok((!has_ended).then_some(id))
}
