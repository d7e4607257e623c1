//! What the hosts' session files say: which responses the model gave and what they cost, and a few facts that
//! decide whether a goal goes on. Files are read forward from a cursor; the ledger in the store makes reading
//! a line twice harmless.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::clock::Millis;

/// One response of the model, however many lines told of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    pub id: String,
    pub model: String,
    pub input: i64,
    pub output: i64,
    pub cache_creation: i64,
    /// The part of `cache_creation` that is kept for an hour, which costs more.
    pub cache_creation_1h: i64,
    pub cache_read: i64,
    /// 0 when the line tells no time.
    pub at_ms: Millis,
}

impl Response {
    /// The tokens a budget is charged with. Cache reads are shown, not charged.
    pub fn counted(&self) -> i64 {
        self.input + self.cache_creation + self.output
    }

    /// Whether this record of a response is later than another one of the same response.
    pub fn supersedes(&self, other: &Self) -> bool {
        self.output >= other.output
    }
}

/// A token field of a real response that is no whole number.
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
    /// The client's words, which tell when to try again.
    pub message: String,
}

/// The longest limits are monthly ones, of a plan or of what is spent; some days are added because the message may be
/// old. A time that is farther away is a misreading.
pub const FARTHEST_RESET: Millis = 40 * 24 * 3_600_000;

/// What a pass over new bytes found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    pub responses: Vec<Response>,
    by_id: HashMap<String, usize>,
    pub broken_lines: i64,
    pub invalid: Option<InvalidField>,
    pub tool_calls: i64,
    pub last_text: Option<String>,
    pub last_uuid: Option<String>,
    /// Prompts the user typed ahead, minus those the client took up.
    pub queued: i64,
    /// The client gave all typed-ahead prompts back, so that `queued` counts from zero.
    pub queue_emptied: bool,
    pub native_goal: Option<NativeGoal>,
    pub interrupted_at: Option<Millis>,
    /// The first directory that a line of the file names, where the host's reader looked for it.
    pub cwd: Option<String>,
    /// The newest failure of its kind in these bytes, where the host's file tells it.
    pub usage_limit: Option<UsageLimit>,
    /// The bytes read before are no longer there, so the file was read from its start.
    pub rewritten: bool,
    pub position: Position,
}

/// How far a file was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub offset: u64,
    pub anchor: Vec<u8>,
    /// What the host's reader must remember between two readings; empty if nothing.
    pub carry: String,
}

impl Reading {
    /// A reading that found nothing.
    pub fn nothing_new(position: Position) -> Self {
        Self { position, ..Self::default() }
    }

    /// Adds one record of a response; of several of one response, the last and largest counts, at the time of
    /// the first.
    pub fn add(&mut self, response: Response) {
        let Some(&at) = self.by_id.get(&response.id) else {
            self.by_id.insert(response.id.clone(), self.responses.len());
            self.responses.push(response);
            return;
        };
        let known = &mut self.responses[at];
        if response.supersedes(known) {
            let at_ms = known.at_ms.min(response.at_ms);
            *known = Response { at_ms, ..response };
        }
    }

    /// Like [`add`](Self::add), but makes the record only if it can count: most lines repeat what is known.
    pub fn add_counts(&mut self, id: &str, output: i64, record: impl FnOnce() -> Response) {
        let known = self.by_id.get(id).and_then(|at| self.responses.get(*at));
        if known.is_none_or(|known| output >= known.output) {
            self.add(record());
        }
    }

    /// Whether what was queued before this reading no longer matters.
    pub fn counts_queue_anew(&self) -> bool {
        self.rewritten || self.queue_emptied
    }

    /// Joins a later reading of the same file to this one.
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
        self.queued += later.queued;
        self.invalid = self.invalid.take().or(later.invalid);
        self.last_text = later.last_text.or(self.last_text.take());
        self.last_uuid = later.last_uuid.or(self.last_uuid.take());
        self.native_goal = later.native_goal.or(self.native_goal.take());
        self.interrupted_at = later.interrupted_at.or(self.interrupted_at);
        self.cwd = self.cwd.take().or(later.cwd);
        self.usage_limit = later.usage_limit.or(self.usage_limit.take());
        self.position = later.position;
    }
}
