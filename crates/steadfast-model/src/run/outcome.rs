//! How an attempt ended: what the agent used, what it reported, and why it failed.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};

use crate::clock::Millis;
use crate::reading::Tokens;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptUsage {
    #[serde(flatten)]
    pub tokens: Tokens,
    /// The known part of the cost.
    pub cost_micros: i64,
    /// A part of the cost is not known.
    pub cost_unknown: bool,
    /// A part of the tokens is not known.
    pub tokens_unknown: bool,
}

impl AttemptUsage {
    /// Of an agent that ran and did not report what it used.
    pub fn unknown() -> Self {
        Self { cost_unknown: true, tokens_unknown: true, ..Self::default() }
    }

    /// The tokens that count; `None` if a part of them is not known.
    pub fn known_tokens(&self) -> Option<i64> {
        (!self.tokens_unknown).then(|| self.tokens.charged())
    }

    /// The cost in millionths of a dollar; `None` if a part of it is not known.
    pub fn known_cost(&self) -> Option<i64> {
        (!self.cost_unknown).then_some(self.cost_micros)
    }
}

impl AddAssign for AttemptUsage {
    fn add_assign(&mut self, other: Self) {
        self.tokens += other.tokens;
        self.cost_micros = self.cost_micros.saturating_add(other.cost_micros);
        self.cost_unknown |= other.cost_unknown;
        self.tokens_unknown |= other.tokens_unknown;
    }
}

/// What an agent says about its iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentResult {
    pub summary: Option<String>,
    pub plateau: Option<bool>,
    pub reasoning: Option<String>,
    pub decision: Option<AgentDecision>,
    /// Further fields read from marker lines.
    pub fields: Vec<(String, String)>,
    /// Files that it says it changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Items that it says it finished.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// Branches that it chose, for a stage that merges.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<String>,
}

impl AgentResult {
    /// Whether the agent votes that nothing is left to do; `None` without a vote.
    pub fn vote(&self) -> Option<bool> {
        match (self.plateau, self.decision) {
            (Some(true), _) | (_, Some(AgentDecision::Stop)) => Some(true),
            (Some(false), _) | (_, Some(AgentDecision::Continue)) => Some(false),
            (None, Some(AgentDecision::Error) | None) => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, IntoStaticStr, Serialize, Deserialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum AgentDecision {
    Continue,
    Stop,
    Error,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Success {
    pub result: AgentResult,
    pub usage: AttemptUsage,
    /// Promises found in its answer.
    pub promises: Vec<String>,
    /// A fingerprint of answer and working tree, which shows whether an iteration changed anything.
    pub footprint: String,
    /// Whether the working tree is as it was before the first attempt of the stage.
    pub untouched: bool,
    pub exit_code: i32,
    pub started_at_ms: Millis,
    pub ended_at_ms: Millis,
}

impl Success {
    /// The outcome of an attempt that failed although its agent succeeded.
    pub fn but_failed(&self, kind: FailureKind, message: String) -> Outcome {
        Outcome::Failed(Failure {
            kind,
            message,
            exit_code: Some(self.exit_code),
            usage: self.usage,
            started_at_ms: Some(self.started_at_ms),
            ended_at_ms: self.ended_at_ms,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Succeeded(Box<Success>),
    Failed(Failure),
}

impl Success {
    /// Whether the agent asks for the end of the stage.
    pub fn says_stop(&self) -> bool {
        self.result.decision == Some(AgentDecision::Stop)
    }
}

impl Outcome {
    pub fn usage(&self) -> &AttemptUsage {
        match self {
            Self::Succeeded(success) => &success.usage,
            Self::Failed(failure) => &failure.usage,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailureKind,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub exit_code: Option<i32>,
    #[serde(default)]
    pub usage: AttemptUsage,
    #[serde(default)]
    pub started_at_ms: Option<Millis>,
    #[serde(default)]
    pub ended_at_ms: Millis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, Serialize, Deserialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The account's limit is reached, until this time if the agent reported one. Not an error: the iteration is retried.
    UsageLimit { until_ms: Option<Millis> },
    /// Overloaded, network, server error: retried after a while.
    Transient,
    /// It ran past its time limit and was killed.
    TimedOut,
    /// It exited with 0 but left no result where one is needed.
    NoResult,
    /// It reported an error itself.
    Reported,
    /// It ended with another exit code, or by a signal.
    Exit,
    /// It cannot be started; a retry would not help.
    CannotStart,
    /// Its end was not recorded: the machine or its supervisor went down with it.
    Lost,
    /// The engine stopped it.
    Stopped,
    /// The worker that took it was gone before its agent started. Not an error: the iteration is retried at once.
    NeverBegan,
    /// The worker that ran it was shut down in order. Not an error: the iteration is retried at once.
    Drained,
}

impl FailureKind {
    /// The word for tables and views.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
