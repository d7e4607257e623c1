//! The files of an attempt that the engine and the supervisor exchange. Their names and their JSON are stable: an engine
//! resumes runs that an earlier version started.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use steadfast_model::clock::Millis;
use steadfast_model::clock::steady::Tick;
use steadfast_system::process::ProcessIdentity;

use super::token::AttemptToken;
use crate::descendants::FoundProcess;
use crate::durable;

pub(crate) const SPEC: &str = "spec.json";
pub(crate) const PROMPT: &str = "prompt.md";
pub(crate) const OUTPUT: &str = "out.log";
pub(crate) const ERRORS: &str = "err.log";
pub(crate) const RESULT: &str = "result.json";
/// A result file with the fields of other tools.
pub(super) const STATUS: &str = "status.json";
/// What the agent can look up about its iteration.
pub(crate) const CONTEXT: &str = "context.json";
/// Where the agent of a loop may write its output.
pub(super) const OWN_OUTPUT: &str = "output.md";
/// A [`SupervisorRecord`].
pub(crate) const SUPERVISOR: &str = "pid";
pub(crate) const EXIT: &str = "exit.json";
/// An [`EscapedRecord`].
pub(crate) const ESCAPED: &str = "escaped.json";
/// Marks an attempt in which nothing may be started any more.
pub(crate) const ABANDONED: &str = "abandoned";
/// What the supervisor prints on stderr.
pub(crate) const SUPERVISOR_LOG: &str = "keeper.log";
pub(super) const ANSWER: &str = "answer.md";
pub(super) const EVIDENCE: &str = "evidence.json";

/// What the supervisor is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptSpec {
    /// The program and its arguments; no shell is involved.
    pub argv: Vec<String>,
    pub directory: PathBuf,
    /// Added to the environment of the supervisor.
    pub env: Vec<(String, String)>,
    pub env_remove: Vec<String>,
    pub limit_ms: u64,
    /// Between TERM and KILL.
    pub grace_ms: u64,
    /// Which attempt of its run this is, for tests that crash a certain one.
    pub ordinal: u32,
    /// Whether the supervisor gets a token through its stdin. Without it, it starts nothing.
    #[serde(default)]
    pub has_token: bool,
    /// The most bytes to keep of each of its outputs; 0 for all.
    #[serde(default)]
    pub output_bytes: u64,
    /// The engine's time; the supervisor has no store.
    #[serde(default)]
    pub clock: Option<Tick>,
    /// Whether the agent ends with the process that started the supervisor, which keeps the supervisor's stdin open.
    #[serde(default)]
    pub bound_to_parent: bool,
}

/// How the agent ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptExit {
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub timed_out: bool,
    /// The supervisor was asked to end it.
    pub stopped: bool,
    /// Why it did not start.
    pub cannot_start: Option<String>,
    pub started_at_ms: Millis,
    pub ended_at_ms: Millis,
    /// The supervisor that wrote this.
    #[serde(default)]
    pub supervisor: Option<ProcessIdentity>,
    /// Seals the rest of the record.
    #[serde(default)]
    pub seal: Option<String>,
}

/// What the supervisor writes about itself before the agent starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisorRecord {
    pub identity: ProcessIdentity,
    pub started_at_ms: Millis,
}

/// What the supervisor wrote down of processes that left the group of its agent, for an engine that finds the
/// supervisor killed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EscapedRecord {
    pub(crate) processes: Vec<FoundProcess>,
    /// Seals the list.
    pub(crate) seal: Option<String>,
}

impl AttemptExit {
    /// The record with its seal, if its supervisor has a token.
    pub(crate) fn sealed(self, token: Option<&AttemptToken>) -> Self {
        let seal = token.map(|token| token.seal(&durable::json(&Self { seal: None, ..self.clone() })));
        Self { seal, ..self }
    }

    /// Whether the supervisor with this token and identity wrote it.
    pub(crate) fn is_of(&self, token: &AttemptToken, supervisor: &ProcessIdentity) -> bool {
        self.supervisor.as_ref() == Some(supervisor) && self.clone().sealed(Some(token)) == *self
    }
}

impl EscapedRecord {
    pub(crate) fn new(processes: Vec<FoundProcess>, token: Option<&AttemptToken>) -> Self {
        let seal = token.map(|token| token.seal(&durable::json(&processes)));
        Self { processes, seal }
    }

    /// The processes, if a supervisor with this token wrote them down.
    pub(crate) fn believed(self, token: Option<&AttemptToken>) -> Vec<FoundProcess> {
        let is_sealed = token.is_none() || Self::new(self.processes.clone(), token).seal == self.seal;
        if is_sealed { self.processes } else { Vec::new() }
    }
}
