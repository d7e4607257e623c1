//! What is to be run, with its rules and limits. Plans are made from loop types and pipeline files outside of this
//! crate; here they are only words, kept with the run as JSON.

use serde::{Deserialize, Serialize};

use super::RunKind;
use crate::clock::{HOUR, Millis};
use crate::host::Host;

/// What is to be run: read from files once, checked, and kept with the run. Editing the files later changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The run's name, without `loop-` or `pipeline-`.
    pub name: String,
    pub kind: RunKind,
    /// The loop type, or the pipeline's own name.
    pub title: String,
    /// For pipelines: the file it was read from, as its name only.
    pub pipeline_file: Option<String>,
    pub stages: Vec<StagePlan>,
    pub limits: RunLimits,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StagePlan {
    pub name: String,
    /// The loop type that prompt and rule come from, if any.
    pub loop_type: Option<String>,
    /// The template, before substitution.
    pub prompt: String,
    /// The most iterations; of a parallel stage, the number of agents.
    pub runs: u32,
    pub min_iterations: u32,
    pub completion: Rule,
    /// Test the rule before each iteration too.
    pub check_before: bool,
    /// Rest after an iteration that did not end the stage.
    pub delay_ms: Millis,
    pub agent: AgentPlan,
    /// The time limit of one attempt.
    pub timeout_ms: Millis,
    /// Iteration `i` gets element `i - 1`.
    pub perspectives: Vec<String>,
    pub items: Vec<String>,
    /// All iterations at once, each in a git worktree of its own.
    pub parallel: bool,
    /// Marker lines to read from the output: name of the field, marker.
    pub output_parse: Vec<(String, String)>,
    /// Names of earlier stages whose outputs `${INPUTS}` shows; empty for the one before.
    pub inputs: Vec<String>,
    /// `${INPUTS}` shows only the last output of each of them, not all.
    #[serde(default)]
    pub latest_inputs: bool,
    /// Another agent that is asked whether the work has levelled off, instead of the worker's own word.
    pub judge: Option<AgentPlan>,
    /// An agent that decides `stop` has made the promises of the rule with that.
    #[serde(default)]
    pub stop_is_promise: bool,
}

impl StagePlan {
    /// The time limit of an attempt that nobody gave another.
    pub const TIMEOUT_MS: Millis = 2 * HOUR;

    /// A stage of which nothing else is said: iterations of Claude Code, one after the other and without rest.
    pub fn new(name: impl Into<String>, completion: Rule, runs: u32) -> Self {
        Self {
            name: name.into(),
            loop_type: None,
            prompt: String::new(),
            runs,
            min_iterations: 1,
            completion,
            check_before: false,
            delay_ms: 0,
            agent: AgentPlan::new(AgentKind::default()),
            timeout_ms: Self::TIMEOUT_MS,
            perspectives: Vec::new(),
            items: Vec::new(),
            parallel: false,
            output_parse: Vec::new(),
            inputs: Vec::new(),
            latest_inputs: false,
            judge: None,
            stop_is_promise: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentPlan {
    pub kind: AgentKind,
    pub model: Option<String>,
    pub effort: Option<String>,
    /// Let the user's own hooks and plugins run inside the agent.
    pub user_hooks: bool,
}

impl AgentPlan {
    /// An agent as its own configuration has it.
    pub fn new(kind: AgentKind) -> Self {
        Self { kind, model: None, effort: None, user_hooks: false }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// Any program, as words; the first one is the program.
    Command(Vec<String>),
    #[serde(untagged)]
    Host(Host),
}

impl Default for AgentKind {
    fn default() -> Self {
        Self::Host(Host::default())
    }
}

/// When a stage is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// After `runs` iterations.
    FixedN,
    /// After one iteration for each item.
    AllItems,
    /// This many different iterations in a row say that nothing is left to improve.
    Plateau(u32),
    /// No bead with this label is ready, in progress or blocked.
    BeadsEmpty(String),
    /// A command of the user's exits with 0.
    Command(String),
    /// The agent's answer contains this promise.
    Promise(String),
    /// All of the user's verify commands exit with 0.
    Verify(Vec<String>),
    /// No unticked box is left in this Markdown file.
    Checklist(String),
    Any(Vec<Rule>),
    All(Vec<Rule>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunLimits {
    pub tokens: Option<i64>,
    pub cost_micros: Option<i64>,
    /// From the start of the run, waiting included; time between an end and going on again is not.
    pub wall_ms: Option<Millis>,
    /// Failed attempts in a row that stop the run; 5 unless told otherwise.
    pub errors: u32,
    /// Iterations in a row without any progress that stop an open-ended stage; 3, 0 for never.
    pub idle: u32,
    /// Agents at once in a parallel stage.
    pub parallel: u32,
    /// What the rest after a failed attempt grows from, see `run/machine/attempt.rs`.
    #[serde(default = "back_off_ms")]
    pub back_off_ms: Millis,
}

fn back_off_ms() -> Millis {
    2_000
}

impl Default for RunLimits {
    fn default() -> Self {
        let [tokens, cost_micros, wall_ms] = [None; 3];
        Self { tokens, cost_micros, wall_ms, errors: 5, idle: 3, parallel: 4, back_off_ms: back_off_ms() }
    }
}
