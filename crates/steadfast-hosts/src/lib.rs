//! The interactive agents we hook into. What differs between them is data here and wire types in the modules
//! below; foreign JSON never leaves those.

mod activity;
mod backwards;
pub mod claude;
pub mod codex;
mod context;
pub mod hook;
pub mod install;
mod observe;
pub mod process;
mod repair;
mod skim;
pub mod stream;
pub mod tree;
pub mod trouble;

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};
use strum::{Display, EnumString, IntoStaticStr};

use crate::usage::{Position, Reading};

pub use activity::worked_since;
pub use context::{Since, holds_text};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display, EnumString, IntoStaticStr, Serialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Host {
    Claude,
    Codex,
}

/// How much text a host takes at the start of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    /// As Claude Code counts them: UTF-16 units.
    Characters(usize),
    /// As Codex counts them without asking the model: four bytes each.
    Tokens(usize),
}

impl Cap {
    pub fn fits(self, text: &str) -> bool {
        self.measure(text) <= self.room()
    }

    /// How much fits, in the unit of [`Cap::measure`].
    pub fn room(self) -> usize {
        match self {
            Self::Characters(most) => most,
            Self::Tokens(most) => most.saturating_mul(4),
        }
    }

    /// How much of the room a text takes. The measures of pieces add up to that of the whole.
    pub fn measure(self, text: &str) -> usize {
        match self {
            Self::Characters(_) => text.encode_utf16().count(),
            Self::Tokens(_) => text.len(),
        }
    }

    /// A length in characters that fits whatever the characters are.
    pub fn safe_characters(self) -> usize {
        match self {
            Self::Characters(most) => most / 2,
            Self::Tokens(most) => most,
        }
    }
}

impl Host {
    /// How its users begin the name of one of our commands.
    pub fn command_prefix(self) -> &'static str {
        match self {
            Self::Claude => "/goal-",
            Self::Codex => "$goal-",
        }
    }

    /// A sentence of ours that names commands as Claude Code's users type them, for the users of this host.
    pub fn spell(self, sentence: &str) -> String {
        sentence.replace(Self::Claude.command_prefix(), self.command_prefix())
    }

    pub fn product(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
        }
    }

    /// Whether the client proves that the evaluator subagent made a call. Any subagent of Codex can call itself so.
    pub fn has_evaluator(self) -> bool {
        self == Self::Claude
    }

    /// What must stand before the names of our tools so that the model does not take the client's own: Codex has
    /// tools of the same names.
    pub fn tool_prefix(self) -> &'static str {
        match self {
            Self::Claude => "",
            Self::Codex => codex::hook::OWN_TOOLS,
        }
    }

    /// The whole name of the tool that searches session memory, as the model must call it.
    pub fn recall_tool(self) -> &'static str {
        match self {
            Self::Claude => claude::RECALL_TOOL,
            Self::Codex => codex::hook::RECALL_TOOL,
        }
    }

    /// How many Stop blocks in a row without a tool call the client accepts; `None` for no cap.
    pub fn block_cap(self) -> Option<i64> {
        match self {
            Self::Claude => claude::block_cap(),
            Self::Codex => None,
        }
    }

    /// Whether a hook that runs in the background can wake the client.
    pub fn can_rewake(self) -> bool {
        match self {
            Self::Claude => claude::can_rewake(),
            Self::Codex => false,
        }
    }

    /// The most text injected when a session starts: Claude Code drops more than 10,000 characters, Codex more
    /// than 2,500 tokens.
    pub fn start_cap(self) -> Cap {
        match self {
            Self::Claude => Cap::Characters(9_500),
            Self::Codex => Cap::Tokens(2_400),
        }
    }

    /// Reads a hook's stdin. `None` is a well-formed event that is not for us.
    pub fn read_hook(self, stdin: &[u8]) -> Result<Option<hook::HookInput>, serde_json::Error> {
        match self {
            Self::Claude => claude::read_hook(stdin),
            Self::Codex => codex::hook::read_hook(stdin),
        }
    }

    /// Writes the reply as the client knows it for this event; `None` when there is nothing to say.
    pub fn write_reply(self, event_name: &str, reply: &hook::HookReply) -> Option<String> {
        match self {
            Self::Claude => claude::write_reply(event_name, reply),
            Self::Codex => codex::hook::write_reply(event_name, reply),
        }
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
