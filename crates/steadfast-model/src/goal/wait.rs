//! What a waiting goal waits for. It costs no tokens: a process of ours looks, and the goal is woken once.

use serde::{Deserialize, Serialize};

use crate::clock::Millis;

/// What ends a wait. The goal's `wake_at_ms` is the moment at which it ends in any case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    /// Nothing but the moment.
    Time,
    /// A command of the user exits with 0.
    Command(String),
    /// The file exists.
    File(String),
    /// The process ends; its start time distinguishes it from a later one with the same number.
    Process { pid: i32, started: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    #[serde(rename = "for")]
    pub wait_for: WaitFor,
    /// How often the condition was looked at, and when it is looked at next.
    #[serde(default)]
    pub checks: i64,
    #[serde(default)]
    pub next_check_ms: Millis,
}
