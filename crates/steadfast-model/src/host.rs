//! The ids of the hosts, and what differs between them as plain facts. Reading and writing their formats is in
//! `steadfast-hosts`.

use serde::Serialize;
use strum::{Display, EnumString, IntoStaticStr};

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
            Self::Codex => "mcp__steadfast__",
        }
    }

    /// The whole name of the tool that searches session memory, as the model must call it.
    pub fn recall_tool(self) -> &'static str {
        match self {
            Self::Claude => "mcp__plugin_steadfast_steadfast__recall",
            Self::Codex => "mcp__steadfast__recall",
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
}
