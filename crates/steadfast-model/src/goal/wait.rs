//! What a waiting goal waits for, and when a process looks at it next. Waiting costs no tokens: Steadfast looks, and the
//! goal is woken once.

mod request;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::clock::{self, Millis};
use crate::redact::redact;
use crate::text;

pub use request::{WaitCondition, WaitError, WaitRequest};

/// When a wait for a condition ends if the condition is never met and no moment was given.
const LATEST_END: Millis = clock::DAY;
/// The rest between two looks grows from the first to the second, in milliseconds.
const COMMAND_RESTS: (Millis, Millis) = (5_000, 60_000);
const OTHER_RESTS: (Millis, Millis) = (1_000, 5_000);

/// What ends a wait. The goal's `wake_at_ms` is the moment at which it ends in any case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    /// Nothing but the moment.
    Time,
    /// A command of the user exits with 0.
    Command(String),
    /// The file exists. The path is absolute.
    File(String),
    /// The process ends. Start time and boot distinguish it from a later one with the same number.
    Process { pid: i32, started: String, boot: String },
}

/// What a look at the condition found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    Met,
    /// The file does not exist, or the process runs.
    NotYet,
    /// The command exited with this code.
    Exited(i32),
    /// The command was ended at its time limit.
    TimedOut,
    /// A signal ended the command, or it could not be started.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    #[serde(rename = "for")]
    pub wait_for: WaitFor,
    /// Distinguishes this wait from an earlier one for the same thing.
    #[serde(default)]
    pub since_ms: Millis,
    /// When it ends in any case, if no limit of the goal comes first.
    #[serde(default)]
    pub until_ms: Millis,
    /// How often the condition was looked at, and when it is looked at next.
    #[serde(default)]
    pub checks: i64,
    #[serde(default)]
    pub next_check_ms: Millis,
    /// What the last look found.
    #[serde(default)]
    pub seen: Option<Seen>,
}

impl WaitFor {
    /// The thing in words; a path below `project` without it.
    pub fn describe(&self, project: Option<&str>) -> String {
        match self {
            Self::Time => "the time".into(),
            Self::Command(command) => format!("the command `{}`", text::headline(&redact(command), 120)),
            Self::File(path) => format!("the file {}", short_path(path, project)),
            Self::Process { pid, .. } => format!("the end of process {pid}"),
        }
    }

    fn rests(&self) -> (Millis, Millis) {
        if matches!(self, Self::Command(_)) { COMMAND_RESTS } else { OTHER_RESTS }
    }
}

/// A path for people, relative to the project where it is below it.
pub fn short_path(path: &str, project: Option<&str>) -> String {
    let below = project.and_then(|project| Path::new(path).strip_prefix(project).ok()?.to_str());
    text::headline(below.unwrap_or(path), 160)
}

impl Wait {
    /// A wait that begins now. Its condition is looked at at once: it may be met already.
    pub fn new(wait_for: WaitFor, until: Option<Millis>, now: Millis) -> Self {
        let until_ms = until.unwrap_or_else(|| now.saturating_add(LATEST_END));
        Self { wait_for, since_ms: now, until_ms, checks: 0, next_check_ms: now, seen: None }
    }

    pub fn is_met(&self) -> bool {
        self.seen == Some(Seen::Met)
    }

    /// When the condition is looked at next; `None` if there is none, or if it is met.
    pub fn next_check(&self) -> Option<Millis> {
        (self.wait_for != WaitFor::Time && !self.is_met()).then_some(self.next_check_ms)
    }

    /// Whether it is time to look. A moment further away than any rest means that the clock was set back. A look under
    /// way moves the next one past its own time limit, `lease`.
    pub fn check_due(&self, lease: Millis, now: Millis) -> bool {
        let furthest = self.wait_for.rests().1.max(lease);
        self.next_check().is_some_and(|at| at <= now || at - now > furthest)
    }

    /// The wait while a process looks: no other one looks until `lease` is over.
    #[must_use]
    pub fn during_check(&self, lease: Millis, now: Millis) -> Self {
        Self { next_check_ms: now.saturating_add(lease), ..self.clone() }
    }

    /// The wait after a look. Each rest is twice as long as the one before, up to a maximum.
    #[must_use]
    pub fn after_check(&self, seen: Seen, now: Millis) -> Self {
        let (first, most) = self.wait_for.rests();
        let doublings = self.checks.clamp(0, 16);
        let rest = (first << doublings).min(most);
        Self {
            checks: self.checks.saturating_add(1),
            next_check_ms: now.saturating_add(rest),
            seen: Some(seen),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests;
