//! Session memory as JSON Lines, for another machine: the lines of the format, and [`ExportReader`], which reads them. The first
//! line names the format, then come sessions, each followed by what is remembered of it, and the last line counts them,
//! so that a file that was cut off is noticed. What is read is text from outside: it gets the bounds of captured text.

mod additions;
mod fault;
mod lines;

use serde::{Deserialize, Serialize};
use steadfast_model::clock::Millis;
use steadfast_model::host::Host;
use steadfast_model::memory::stated::StatedStatus;
use steadfast_model::memory::{Category, Importance, MemoryEvent, TaskStatus};
use steadfast_model::redact::redact;

pub use additions::{Additions, KnownMemory, MovedGoal, additions};
pub use fault::{ExportError, LineFault};
pub use lines::{ExportReader, ExportedSession, LONGEST_LINE};

pub const FORMAT: &str = "steadfast-session-memory";
/// A later version may add fields to lines; everything else gets a new number.
pub const VERSION: u64 = 1;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    pub format: String,
    pub version: u64,
    #[serde(default)]
    pub exported_at_ms: Millis,
}

impl Heading {
    pub fn new(now: Millis) -> Self {
        Self { format: FORMAT.to_owned(), version: VERSION, exported_at_ms: now }
    }
}

/// Every other line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ExportLine {
    Session(SessionEntry),
    /// Of the session before it, as are tasks and events; oldest first.
    StatedGoal(StatedEntry),
    /// In the client's order.
    Task(TaskEntry),
    /// Oldest first.
    Event(EventEntry),
    /// The last line.
    End(ExportCounts),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEntry {
    pub session_id: String,
    pub host: Host,
    #[serde(default)]
    pub project: String,
    #[serde(default)]
    pub cwd: String,
    pub parent_session_id: Option<String>,
    pub parent_link: Option<SessionLink>,
    /// Unknown if only memory is left of the session.
    pub started_at_ms: Option<Millis>,
    pub last_seen_ms: Option<Millis>,
    #[serde(default)]
    pub compactions: i64,
}

/// How a session came from its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionLink {
    Fork,
    Clear,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatedEntry {
    pub objective: String,
    pub status: StatedStatus,
    pub set_at_ms: Millis,
    pub changed_at_ms: Millis,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEntry {
    pub id: String,
    pub subject: String,
    pub status: TaskStatus,
    pub changed_at_ms: Millis,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventEntry {
    pub category: Category,
    pub kind: String,
    pub importance: Importance,
    #[serde(default)]
    pub subject: String,
    pub text: String,
    #[serde(default = "once")]
    pub repeats: i64,
    #[serde(default)]
    pub resolved: bool,
    pub created_at_ms: Millis,
}

fn once() -> i64 {
    1
}

/// How many lines of each kind there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportCounts {
    pub sessions: u64,
    pub stated_goals: u64,
    pub tasks: u64,
    pub events: u64,
}

impl ExportCounts {
    pub fn note(&mut self, line: &ExportLine) {
        match line {
            ExportLine::Session(_) => self.sessions += 1,
            ExportLine::StatedGoal(_) => self.stated_goals += 1,
            ExportLine::Task(_) => self.tasks += 1,
            ExportLine::Event(_) => self.events += 1,
            ExportLine::End(_) => {}
        }
    }
}

impl ExportLine {
    /// The line of a stored event. Stored text has no secrets that were known when it was stored; here is another look.
    pub fn of_event(event: MemoryEvent) -> Self {
        Self::Event(EventEntry {
            category: event.category,
            kind: event.kind,
            importance: event.importance,
            subject: redact(&event.subject).into_owned(),
            text: redact(&event.text).into_owned(),
            repeats: event.repeats,
            resolved: event.resolved,
            created_at_ms: event.created_at_ms,
        })
    }
}
