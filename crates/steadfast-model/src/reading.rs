//! What is read from the hosts' session files: the responses of the model with their tokens, and a few facts that decide
//! whether a goal continues. Files are read forward from a cursor; the ledger in the store makes reading a line twice
//! harmless.

mod anchor;

use std::collections::HashMap;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use strum::{Display, EnumString, IntoStaticStr};

use crate::clock::{self, DAY, Millis};
use crate::quota::Quota;
use crate::text;
pub use anchor::Anchor;

/// Token counts by kind. Sums saturate: a foreign file can contain any number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    #[serde(rename = "input_tokens")]
    pub input: i64,
    #[serde(rename = "output_tokens")]
    pub output: i64,
    #[serde(rename = "cache_creation_tokens")]
    pub cache_creation: i64,
    /// The part of `cache_creation` that is kept for an hour, which costs more.
    #[serde(rename = "cache_creation_1h_tokens")]
    pub cache_creation_1h: i64,
    #[serde(rename = "cache_read_tokens")]
    pub cache_read: i64,
}

impl Tokens {
    /// The tokens a budget is charged with: cache reads are shown, not charged.
    pub fn charged(&self) -> i64 {
        self.input.saturating_add(self.cache_creation).saturating_add(self.output)
    }

    /// All tokens, cache reads included.
    pub fn total(&self) -> i64 {
        self.charged().saturating_add(self.cache_read)
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_creation = self.cache_creation.saturating_add(other.cache_creation);
        self.cache_creation_1h = self.cache_creation_1h.saturating_add(other.cache_creation_1h);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
    }
}

/// The speed and service tier of a response, as far as they decide its price.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, Serialize, Deserialize,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    #[default]
    Standard,
    Fast,
    Priority,
    Batch,
    Flex,
    /// One that this program does not know.
    Unknown,
}

/// What a session file says about a response that decides its price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bill<'a> {
    pub model: &'a str,
    pub tier: Tier,
    pub tokens: &'a Tokens,
}

/// One response of the model, which a file may record on several lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    pub id: String,
    pub model: String,
    pub tier: Tier,
    pub tokens: Tokens,
    /// The skill or MCP server that the client says the response was for; empty if it says nothing.
    pub tool: String,
    /// The kind of subagent that the client says gave the response; empty if it says nothing.
    pub agent_type: String,
    /// 0 when the line has no time.
    pub at_ms: Millis,
}

impl Response {
    /// What decides its price.
    pub fn bill(&self) -> Bill<'_> {
        Bill { model: &self.model, tier: self.tier, tokens: &self.tokens }
    }

    /// Whether this record of a response is later than another one of the same response.
    pub fn supersedes(&self, other: &Self) -> bool {
        self.tokens.output >= other.tokens.output
    }
}

/// A token field of a real response that is not a whole number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidField {
    pub field: &'static str,
    pub response_id: String,
    pub offset: u64,
}

/// The client's own goal feature, as the transcript shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NativeGoal {
    Active(String),
    Over,
}

/// A turn that failed because the account's usage limit was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageLimit {
    pub at_ms: Millis,
    /// The client's message, which names the time of the reset.
    pub message: String,
}

/// The longest limits are monthly ones, of a plan or of what is spent; some days are added because the message may be
/// old. A time that is farther away is a misreading.
pub const FARTHEST_RESET: Millis = 40 * DAY;

/// A call of a tool or its answer, as fingerprints; `id` is that of the call. Two passes may read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolLine {
    Called { id: String, call: String },
    Answered { id: String, answer: String },
}

/// What one pass over new bytes found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    pub responses: Vec<Response>,
    by_id: HashMap<String, usize>,
    pub broken_lines: i64,
    pub invalid: Option<InvalidField>,
    pub tool_calls: i64,
    /// What tools did, in order.
    pub calls: Vec<ToolLine>,
    pub last_text: Option<String>,
    pub last_uuid: Option<String>,
    /// Prompts the user typed ahead, minus those the client has started.
    pub queued: i64,
    /// The client gave all typed-ahead prompts back, so that `queued` counts from zero.
    pub queue_emptied: bool,
    pub native_goal: Option<NativeGoal>,
    pub interrupted_at: Option<Millis>,
    /// The first working directory in the file, if the host's reader looks for it.
    pub cwd: Option<String>,
    /// The session that a subagent's file belongs to, if the file says so.
    pub parent: Option<String>,
    /// The kind of subagent whose file this is, if it is told once for the whole file.
    pub agent_type: Option<String>,
    /// The newest such failure in these bytes, if the host's file records it.
    pub usage_limit: Option<UsageLimit>,
    /// The newest numbers about the user's plan, if the host's file has them.
    pub quotas: Vec<Quota>,
    /// The bytes that were read before changed, so the file was read from its start.
    pub rewritten: bool,
    pub position: Position,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub offset: u64,
    pub anchor: Anchor,
    /// What the host's reader remembers between two readings; empty if nothing.
    pub carry: String,
}

impl Reading {
    /// Session files are stamped by the wall clock; everything that is compared with the store's times is converted here.
    #[must_use]
    pub fn in_steady_time(mut self) -> Self {
        let ahead = clock::ahead_exactly();
        if ahead == 0 {
            return self;
        }
        let steady = |at: Millis| at.saturating_sub(ahead);
        for response in self.responses.iter_mut().filter(|response| response.at_ms != 0) {
            response.at_ms = steady(response.at_ms);
        }
        self.interrupted_at = self.interrupted_at.map(steady);
        for quota in &mut self.quotas {
            quota.seen_at_ms = steady(quota.seen_at_ms);
            quota.resets_at_ms = quota.resets_at_ms.map(steady);
        }
        if let Some(limit) = &mut self.usage_limit {
            limit.at_ms = steady(limit.at_ms);
        }
        self
    }

    pub fn nothing_new(position: Position) -> Self {
        Self { position, ..Self::default() }
    }

    /// Adds one record of a response. Of several, the last and largest counts, with the time of the first.
    pub fn add(&mut self, response: Response) {
        let Some(known) = self.by_id.get(&response.id).and_then(|at| self.responses.get_mut(*at)) else {
            self.by_id.insert(response.id.clone(), self.responses.len());
            self.responses.push(response);
            return;
        };
        if response.supersedes(known) {
            let at_ms = known.at_ms.min(response.at_ms);
            *known = Response { at_ms, ..response };
        }
    }

    /// Like [`add`](Self::add), but builds the record only if it counts: most lines repeat an earlier one.
    pub fn add_counts(&mut self, id: &str, output: i64, record: impl FnOnce() -> Response) {
        let known = self.by_id.get(id).and_then(|at| self.responses.get(*at));
        if known.is_none_or(|known| output >= known.tokens.output) {
            self.add(record());
        }
    }

    /// A tool is called. Its text must not have anything in it that differs between two equal calls.
    pub fn call(&mut self, id: &str, name: &str, input: &str) {
        let call = text::fingerprint(&format!("{name}\n{input}"));
        self.calls.push(ToolLine::Called { id: text::fingerprint(id), call });
    }

    /// A tool has answered the call with this id.
    pub fn answer(&mut self, id: &str, output: &str) {
        self.calls.push(ToolLine::Answered { id: text::fingerprint(id), answer: text::fingerprint(output) });
    }

    /// Whether what was queued before this reading no longer matters.
    pub fn counts_queue_anew(&self) -> bool {
        self.rewritten || self.queue_emptied
    }

    /// Appends a later reading of the same file.
    pub fn extend(&mut self, later: Self) {
        if later.counts_queue_anew() {
            self.queued = 0;
        }
        self.rewritten |= later.rewritten;
        self.queue_emptied |= later.queue_emptied;
        for response in later.responses {
            self.add(response);
        }
        self.broken_lines += later.broken_lines;
        self.tool_calls += later.tool_calls;
        self.calls.extend(later.calls);
        self.queued += later.queued;
        self.invalid = self.invalid.take().or(later.invalid);
        self.last_text = later.last_text.or(self.last_text.take());
        self.last_uuid = later.last_uuid.or(self.last_uuid.take());
        self.native_goal = later.native_goal.or(self.native_goal.take());
        self.interrupted_at = later.interrupted_at.or(self.interrupted_at);
        self.cwd = self.cwd.take().or(later.cwd);
        self.parent = self.parent.take().or(later.parent);
        self.agent_type = self.agent_type.take().or(later.agent_type);
        self.usage_limit = later.usage_limit.or(self.usage_limit.take());
        if !later.quotas.is_empty() {
            self.quotas = later.quotas;
        }
        self.position = later.position;
    }
}
