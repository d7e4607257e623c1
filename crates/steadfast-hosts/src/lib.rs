//! The interactive agents we hook into. What differs between them is data here and wire types in the modules
//! below; foreign JSON never leaves those.

mod activity;
mod backwards;
pub mod claude;
pub mod codex;
mod context;
pub mod install;
pub mod lines;
mod observe;
mod repair;
mod skim;
pub mod stream;
pub mod tree;
pub mod trouble;

use std::path::Path;

use serde_json::{Map, Value};

use steadfast_model::hook;
use steadfast_model::host::Host;
use steadfast_model::reading::{Position, Reading};

pub use activity::worked_since;
pub use context::{Since, holds_text};

/// How many Stop blocks in a row without a tool call the client accepts; `None` for no cap.
pub fn block_cap(host: Host) -> Option<i64> {
    match host {
        Host::Claude => claude::block_cap(),
        Host::Codex => None,
    }
}

/// Whether a hook that runs in the background can wake the client.
pub fn can_rewake(host: Host) -> bool {
    match host {
        Host::Claude => claude::can_rewake(),
        Host::Codex => false,
    }
}

/// Reads a hook's stdin. `None` is a well-formed event that is not for us.
pub fn read_hook(host: Host, stdin: &[u8]) -> Result<Option<hook::HookInput>, serde_json::Error> {
    match host {
        Host::Claude => claude::read_hook(stdin),
        Host::Codex => codex::hook::read_hook(stdin),
    }
}

/// Writes the reply as the client knows it for this event; `None` when there is nothing to say.
pub fn write_reply(host: Host, event_name: &str, reply: &hook::HookReply) -> Option<String> {
    match host {
        Host::Claude => claude::write_reply(event_name, reply),
        Host::Codex => codex::hook::write_reply(event_name, reply),
    }
}

fn is_json_object(stdin: &[u8]) -> bool {
    serde_json::from_slice::<Map<String, Value>>(stdin).is_ok()
}

/// The session that a fork was made from, where its own file tells it.
pub fn fork_parent(host: Host, transcript: &Path) -> Option<String> {
    match host {
        Host::Claude => claude::transcript::forked_from(transcript),
        Host::Codex => codex::rollout::forked_from(transcript),
    }
}

/// Reads what is new in a session file of a host.
pub fn read_transcript(host: Host, path: &Path, from: &Position) -> std::io::Result<Reading> {
    match host {
        Host::Claude => claude::transcript::read(path, from),
        Host::Codex => codex::rollout::read(path, from),
    }
}

/// Reads the responses that are new in a session file; what else it tells may be left out.
pub fn read_counts(host: Host, path: &Path, from: &Position) -> std::io::Result<Reading> {
    match host {
        Host::Claude => claude::transcript::read_counts(path, from),
        Host::Codex => codex::rollout::read(path, from),
    }
}
