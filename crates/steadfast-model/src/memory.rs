//! What a session did, kept for when its context is gone: what is worth remembering, how much it matters, and how
//! long it stays. Hooks see things happen ([`observation`], in our own words), [`extract`] makes findings of them, the
//! store keeps those within bounds, and [`snapshot`] tells a model what it must know to go on.
//!
//! Everything in here is text from outside: redacted before it is stored, bounded, escaped when it is shown.

pub mod observation;
pub mod stated;

use serde::Serialize;
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

use crate::clock::Millis;
use crate::directive::{Directive, Form};
use crate::host::Host;
use stated::StatedGoal;

/// The most events a session keeps.
pub const EVENTS_KEPT: usize = 1_000;

/// How much an event matters. When a session has too many, the least important go first, the oldest of them first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Display, EnumString, EnumIter, IntoStaticStr, Serialize,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Importance {
    Low,
    Normal,
    High,
    Critical,
}

/// What an event is about.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Display, EnumString, EnumIter, IntoStaticStr, Serialize,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// A goal stated in a prompt. The goal itself is a record of its own; the event only tells when.
    Goal,
    /// The coarse mode of a prompt: to look into something, or to build something.
    Intent,
    Prompt,
    Decision,
    Rule,
    File,
    Task,
    Error,
    /// An error that went away, and what was done in between.
    Fix,
    Git,
    Cwd,
    Environment,
    Subagent,
    Skill,
}

impl Category {
    /// The heading people see.
    pub fn label(self) -> &'static str {
        match self {
            Self::Goal => "Session goal",
            Self::Intent => "Session intent",
            Self::Prompt => "User prompts",
            Self::Decision => "Decisions",
            Self::Rule => "Rules",
            Self::File => "Files",
            Self::Task => "Tasks",
            Self::Error => "Errors",
            Self::Fix => "Errors fixed",
            Self::Git => "Git operations",
            Self::Cwd => "Working directories",
            Self::Environment => "Environment",
            Self::Subagent => "Subagents",
            Self::Skill => "Skills",
        }
    }
}

/// One thing worth remembering, redacted and bounded, not stored yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub category: Category,
    /// What happened, within the category: `read`, `edit`, `commit`.
    pub kind: &'static str,
    pub importance: Importance,
    /// What it is about, to find it again: a path, a task's id, the command that failed. May be empty.
    pub subject: String,
    pub text: String,
}

/// What hooks tell about the client's own list of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskChange {
    /// A task appeared or changed. What is `None` stays as it was.
    Put { id: String, subject: Option<String>, status: Option<TaskStatus> },
    /// The client replaced its whole list, in this order; such tasks have no ids of their own.
    Replace(Vec<(String, TaskStatus)>),
}

/// The kind of the event that counts open tasks, by its repeats, for which there was no room.
pub const TASKS_LEFT_OUT: &str = "left_out";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, EnumIter, IntoStaticStr, Serialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    Pending,
    InProgress,
    Completed,
    Deleted,
}

impl TaskStatus {
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }
}

/// Everything one hook call gives to remember.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    pub findings: Vec<Finding>,
    pub tasks: Vec<TaskChange>,
    /// Subjects of errors ([`Finding::subject`]) that would be over if there was one: the same thing worked now.
    pub worked: Vec<String>,
    /// What a prompt that is about a goal asks for, with as much of its text as is kept.
    pub steering: Option<(Form, Directive<String>)>,
}

/// One event as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remembered {
    pub id: i64,
    pub session_id: String,
    pub category: Category,
    pub kind: String,
    pub importance: Importance,
    pub subject: String,
    pub text: String,
    /// How many times in a row the same thing was seen.
    pub repeats: i64,
    /// For errors: the same thing worked later.
    pub resolved: bool,
    pub created_at_ms: Millis,
}

/// A task of the client's own list, as it stands now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Task {
    pub id: String,
    pub subject: String,
    pub status: TaskStatus,
}

/// The goal of a session, as far as memory needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptGoal {
    pub objective: String,
    /// One line about where it stands: status, usage, time.
    pub standing: String,
    /// Whether the model should work on it now.
    pub active: bool,
    /// When it was set.
    pub set_at_ms: Millis,
}

/// All that is known about a session and those it continues, ready to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recollection {
    pub session_id: String,
    pub host: Host,
    /// The durable goal of the session, if it is live.
    pub goal: Option<KeptGoal>,
    /// What the user stated as the goal in a prompt, if it still holds.
    pub stated: Option<StatedGoal>,
    /// Oldest first, ancestors' before the session's own.
    pub events: Vec<Remembered>,
    /// In the client's order.
    pub tasks: Vec<Task>,
    pub compactions: i64,
}
