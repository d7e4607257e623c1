//! Plans: the stages of a run with their rules and limits. The engine makes them from loop types and pipeline files;
//! they are stored with the run as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumDiscriminants, EnumString, IntoStaticStr, VariantNames};

use super::{Condition, RunKind};
use crate::clock::{HOUR, Millis};
use crate::host::Host;
use crate::limit::{self, Limits};

/// Read from files once and stored with the run, so later edits of the files do not affect the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The run's name, without `loop-` or `pipeline-`.
    pub name: String,
    pub kind: RunKind,
    /// The loop type, or the pipeline's own name.
    #[serde(default)]
    pub title: String,
    /// For pipelines: the file it was read from, as its name only.
    #[serde(default)]
    pub pipeline_file: Option<String>,
    pub stages: Vec<StagePlan>,
    #[serde(default)]
    pub limits: RunLimits,
    #[serde(default)]
    pub purpose: RunPurpose,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPurpose {
    /// A loop type or a pipeline file.
    #[default]
    Definition,
    /// The goal of `steadfast run`.
    Goal,
}

impl Plan {
    /// The title of runs that pursue a goal.
    pub const GOAL_TITLE: &str = "goal";

    /// All agents of all stages, judges included.
    pub fn agents(&self) -> impl Iterator<Item = &AgentPlan> {
        self.stages.iter().flat_map(StagePlan::all_agents)
    }

    pub fn agents_mut(&mut self) -> impl Iterator<Item = &mut AgentPlan> {
        self.stages
            .iter_mut()
            .flat_map(|stage| std::iter::once(&mut stage.agent).chain(&mut stage.agents).chain(&mut stage.judge))
    }

    /// Whether the run was imported without its prompts, so that it cannot be resumed.
    pub fn is_history_only(&self) -> bool {
        self.stages.iter().all(|stage| stage.prompt.is_empty())
    }

    pub fn pursues_goal(&self) -> bool {
        // Plans stored by earlier versions have no purpose. A loop of a type names it in its stage.
        let is_untyped = || self.stages.iter().all(|stage| stage.loop_type.is_none());
        let is_older_goal = self.kind == RunKind::Loop && self.title == Self::GOAL_TITLE && is_untyped();
        self.purpose == RunPurpose::Goal || is_older_goal
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StagePlan {
    pub name: String,
    pub loop_type: Option<String>,
    /// The template, before substitution.
    pub prompt: String,
    /// The maximum of iterations; in a parallel stage, the number of agents.
    pub runs: u32,
    pub min_iterations: u32,
    pub completion: Rule,
    /// Test the rule before each iteration too.
    pub check_before: bool,
    /// Delay after an iteration that did not end the stage.
    pub delay_ms: Millis,
    pub agent: AgentPlan,
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
    pub latest_inputs: bool,
    /// An agent that votes in place of the worker on whether anything is left to improve.
    pub judge: Option<AgentPlan>,
    /// An agent's decision `stop` counts as the promises of the rule, and does not end the stage.
    pub stop_is_promise: bool,
    /// The stages that have to end first, counted from 1; `None` for the one before.
    pub needs: Option<Vec<u32>>,
    /// The stage is skipped unless this holds.
    pub when: Option<Condition>,
    /// The stage starts only after a person said yes to this question.
    pub approve: Option<String>,
    /// Further attempts of an iteration that failed; `None` for those of the run's limits.
    pub retries: Option<u32>,
    /// What follows if the maximum or a limit of the stage is reached before its rule holds; `None` for what suits the
    /// rule, see [`Rule::is_gate`].
    pub on_max: Option<Then>,
    /// What follows if the stage fails.
    pub on_fail: Then,
    /// What the stage may use.
    #[serde(with = "limit::stored")]
    pub limits: Limits,
    /// The variables that its agents get besides the basic ones; empty for all variables.
    pub env: Vec<EnvVariable>,
    /// Iteration `i` gets the values of element `i - 1`, by name.
    pub matrix: Vec<BTreeMap<String, String>>,
    /// Iteration `i` is done by element `i - 1`, and from the first again after the last; empty for `agent`.
    pub agents: Vec<AgentPlan>,
    /// The branches of an earlier parallel stage that this one merges.
    pub merge: Option<MergePlan>,
    /// Files that every iteration has to leave, by name: paths in the directory where it works.
    pub artifacts: BTreeMap<String, String>,
    /// Stages with the same lane work one after the other in one git worktree of their own.
    pub lane: Option<String>,
    /// `${INPUTS}` shows the inputs of the run too, not only those of earlier stages.
    pub initial_inputs: bool,
    /// The outputs of lanes that the context file lists by agent. Their stages are in `inputs` too.
    pub parallel_inputs: Vec<ParallelInput>,
    /// `${CONTEXT}`: text of the user's.
    pub context: String,
    /// The user's commands by name. They are shown to the agent and never run by the engine.
    pub commands: BTreeMap<String, String>,
    /// `${OUTPUT_PATH}`: a file in the directory where the agent works.
    pub output_path: Option<String>,
}

/// What the lanes of a block put out in one of their stages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ParallelInput {
    pub block: String,
    /// The name of the stage inside of the block.
    pub stage: String,
    /// The outputs of all iterations, not only of the last.
    pub history: bool,
    /// The stages of the plan, by the name of the agent in the block.
    pub lanes: BTreeMap<String, String>,
}

/// What a pipeline does after a stage that did not end well.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Display, EnumString, IntoStaticStr, Serialize, Deserialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Then {
    #[default]
    Stop,
    Continue,
}

/// A variable of an agent's environment. Only names are stored; the value comes from the engine's environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvVariable {
    /// What the agent calls it.
    pub name: String,
    /// The variable of the engine that has the value.
    pub from: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergePlan {
    /// The parallel stage whose branches are merged.
    pub from: String,
    /// The stage whose results list the chosen branches; `None` for all.
    #[serde(default)]
    pub chosen_by: Option<String>,
}

impl StagePlan {
    pub const TIMEOUT_MS: Millis = 2 * HOUR;

    /// The agent of an iteration, counted from 1.
    pub fn agent_of(&self, iteration: u32) -> &AgentPlan {
        let index = usize::try_from(iteration.saturating_sub(1)).unwrap_or(0);
        index.checked_rem(self.agents.len()).and_then(|index| self.agents.get(index)).unwrap_or(&self.agent)
    }

    /// The name inside of its block, or its own.
    pub fn short_name(&self) -> &str {
        let in_lane = self.lane.as_deref().and_then(|lane| self.name.strip_prefix(lane)?.strip_prefix('-'));
        in_lane.unwrap_or(&self.name)
    }

    /// Everybody who may work in this stage: its agents and its judge.
    pub fn all_agents(&self) -> impl Iterator<Item = &AgentPlan> {
        let own = if self.agents.is_empty() { std::slice::from_ref(&self.agent) } else { &self.agents };
        own.iter().chain(&self.judge)
    }

    /// The values of an iteration in the matrix, counted from 1, by name.
    pub fn matrix_of(&self, iteration: u32) -> impl Iterator<Item = (&String, &String)> {
        let index = usize::try_from(iteration).ok().and_then(|iteration| iteration.checked_sub(1));
        index.and_then(|index| self.matrix.get(index)).into_iter().flatten()
    }

    /// A stage with the defaults: Claude Code, one iteration after the other, without a delay.
    pub fn new(name: impl Into<String>, completion: Rule, runs: u32) -> Self {
        let name = name.into();
        Self { name, completion, runs, min_iterations: 1, timeout_ms: Self::TIMEOUT_MS, ..Self::default() }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentPlan {
    pub kind: AgentKind,
    pub model: Option<String>,
    pub effort: Option<String>,
    /// Let the user's own hooks and plugins run inside the agent.
    pub user_hooks: bool,
    /// Start the client in its own sandbox instead of with the configured permissions.
    pub sandbox: bool,
}

impl AgentPlan {
    /// An agent with the model and effort of its own configuration.
    pub fn new(kind: AgentKind) -> Self {
        Self { kind, ..Self::default() }
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

/// When a stage is over. To add a rule, add a variant here and its answers in `run/rule.rs`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, EnumDiscriminants)]
#[serde(rename_all = "kebab-case")]
#[strum_discriminants(name(RuleKind), derive(Display, EnumString, IntoStaticStr, VariantNames))]
#[strum_discriminants(strum(serialize_all = "kebab-case"), doc = "The name of a rule, as in definitions.")]
pub enum Rule {
    /// After `runs` iterations.
    #[default]
    FixedN,
    /// After one iteration for each item.
    AllItems,
    /// This many iterations in a row vote that nothing is left to improve.
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
    /// All chosen branches of the merge are in the branch of the stage.
    Merged,
    Any(Vec<Rule>),
    All(Vec<Rule>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunLimits {
    /// Tokens, money and time. Time counts from the start of the run, waiting included; time between an end and a
    /// resume does not count.
    #[serde(flatten, with = "limit::stored")]
    pub limits: Limits,
    /// Failed attempts in a row that stop the run.
    pub errors: u32,
    /// Iterations in a row without progress that stop a stage; 0 for never.
    pub idle: u32,
    /// Agents at once in a parallel stage.
    pub parallel: u32,
    /// The base of the wait after a failed attempt, see `run/machine/attempt.rs`.
    pub back_off_ms: Millis,
}

fn back_off_ms() -> Millis {
    2_000
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { limits: Limits::default(), errors: 5, idle: 3, parallel: 4, back_off_ms: back_off_ms() }
    }
}
