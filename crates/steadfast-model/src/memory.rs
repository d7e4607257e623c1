//! Session memory: what a session did, stored to restore it when its context is lost. Hooks produce observations,
//! `steadfast-memory` turns them into findings and snapshots, the store keeps a bounded number of findings as events.
//! All of it is text from outside: redacted before it is stored, bounded, escaped when it is shown.

pub mod eviction;
pub mod observation;
pub mod stated;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

use crate::clock::Millis;
use crate::directive::{Directive, Form};
use crate::host::Host;
use stated::StatedGoal;

/// The most events a session keeps.
pub const EVENTS_KEPT: usize = 1_000;

/// How important an event is. When a session has too many, the least important are evicted first, the oldest of them first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Importance {
    Low,
    Normal,
    High,
    Critical,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Category {
    /// A goal stated in a prompt. The goal is a record of its own; the event records when.
    Goal,
    /// The coarse mode of a prompt: `investigate` or `implement`.
    Intent,
    Prompt,
    Decision,
    Rule,
    File,
    Task,
    Error,
    /// A resolved error and what was done in between.
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

/// Something to store, redacted and bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub category: Category,
    /// What happened, within the category: `read`, `edit`, `commit`.
    pub kind: &'static str,
    pub importance: Importance,
    /// A path, the id of a task, the name of a command that failed; may be empty.
    pub subject: String,
    pub text: String,
}

/// A change of the client's own task list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskChange {
    /// A task appeared or changed. `None` means unchanged.
    Put { id: String, subject: Option<String>, status: Option<TaskStatus> },
    /// The client replaced its whole list, in this order; such tasks have no ids of their own.
    Replace(Vec<(String, TaskStatus)>),
}

/// The kind of the event whose repeats count the open tasks for which there was no room.
pub const TASKS_LEFT_OUT: &str = "left_out";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
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

/// Everything that one hook call adds to the memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    pub findings: Vec<Finding>,
    pub tasks: Vec<TaskChange>,
    /// Subjects of errors ([`Finding::subject`]) that are resolved if there are any: the same thing worked now.
    pub worked: Vec<String>,
    /// The goal directive of a prompt, with its text as stored.
    pub steering: Option<(Form, Directive<String>)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryEvent {
    pub id: i64,
    pub session_id: String,
    pub category: Category,
    pub kind: String,
    pub importance: Importance,
    pub subject: String,
    pub text: String,
    /// How many times in a row it happened.
    pub repeats: i64,
    /// For errors: the same thing worked later.
    pub resolved: bool,
    pub created_at_ms: Millis,
}

/// A task of the client's own list with its current status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Task {
    pub id: String,
    pub subject: String,
    pub status: TaskStatus,
}

/// The durable goal of a session, as a snapshot shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalSummary {
    pub objective: String,
    /// One line with status, usage and time.
    pub standing: String,
    /// Whether the model should work on it now.
    pub active: bool,
    /// When it was set.
    pub set_at_ms: Millis,
}

/// Everything stored about a session and the sessions it continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionMemory {
    pub session_id: String,
    pub host: Host,
    /// The durable goal of the session, if it is live.
    pub goal: Option<GoalSummary>,
    /// What the user stated as the goal in a prompt, if it still holds.
    pub stated: Option<StatedGoal>,
    /// Oldest first, ancestors' before the session's own.
    pub events: Vec<MemoryEvent>,
    /// In the client's order.
    pub tasks: Vec<Task>,
    pub compactions: i64,
}
