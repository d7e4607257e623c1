//! Runs: loops and pipelines of fresh agents. A loop is a pipeline with one stage. This file has the words — plan, run,
//! stage, iteration, attempt — and the two sides of the machine in `run/machine.rs`, which is pure: what happened
//! ([`RunEvent`]) and what is to be done about it ([`Step`]). An engine saves a step's records and the new state in one
//! transaction and only then acts, so that after any crash the saved state tells what was under way.

pub mod machine;
pub mod name;
pub mod rule;
pub mod template;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};

use crate::clock::Millis;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, Serialize, Deserialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    Loop,
    Pipeline,
}

/// The words of the public state files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, Serialize, Deserialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Running,
    Completed,
    Failed,
    Killed,
    UnknownTermination,
}

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
    /// Another agent that is asked whether the work has levelled off, instead of the worker's own word.
    pub judge: Option<AgentPlan>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentPlan {
    pub kind: AgentKind,
    pub model: Option<String>,
    pub effort: Option<String>,
    /// Let the user's own hooks and plugins run inside the agent.
    pub user_hooks: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    Claude,
    Codex,
    /// Any program, as words; the first one is the program.
    Command(Vec<String>),
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

/// Names one attempt of a run. All counting starts at 1, as in the public files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttemptId {
    pub stage: u32,
    pub iteration: u32,
    pub attempt: u32,
}

/// The state of a run: small whatever its length, since what is over is in the records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub status: RunStatus,
    /// Why it ended.
    pub reason: Option<String>,
    pub started_at_ms: Millis,
    pub completed_at_ms: Option<Millis>,
    /// The stage under way, from 1.
    pub stage: u32,
    pub stages: Vec<StageState>,
    /// What is under way.
    pub flights: Vec<Flight>,
    /// Why the run is to end as soon as nothing is under way any more.
    pub stopping: Option<Stopping>,
    /// Whether that end was asked for from outside: what runs is stopped then, and otherwise waited for.
    #[serde(default)]
    pub cut_short: bool,
    /// The soonest moment at which something goes on by itself, if nothing happens before.
    pub wait: Option<Wait>,
    /// Of the iteration under way that has the most.
    pub errors_in_row: u32,
    /// How long the run was over before it was reopened; the wall clock does not count it.
    #[serde(default)]
    pub closed_ms: Millis,
    pub tokens: i64,
    pub cost_micros: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StageState {
    pub status: StageStatus,
    pub started_at_ms: Option<Millis>,
    pub completed_at_ms: Option<Millis>,
    /// Iterations committed.
    pub iterations: u32,
    pub reason: Option<String>,
    /// How many committed iterations in a row said that nothing is left to improve.
    pub agreeing: u32,
    /// Iterations in a row without any progress, and what the last one left behind.
    pub idle: u32,
    pub footprint: Option<String>,
    /// The maximum given when the run was reopened, instead of the plan's.
    #[serde(default)]
    pub max: Option<u32>,
    /// Iterations that were begun and not committed when the run ended, each with its last attempt.
    #[serde(default)]
    pub left: Vec<AttemptId>,
}

#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, Serialize, Deserialize,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum StageStatus {
    #[default]
    Pending,
    Running,
    Completed,
    Failed,
}

/// One iteration under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flight {
    /// While the rule is tested before the start, `attempt` is the last one made: 0 for none.
    pub id: AttemptId,
    pub phase: Phase,
    /// Until when it rests, and why.
    #[serde(default)]
    pub wait: Option<Wait>,
    /// Failed attempts in a row.
    #[serde(default)]
    pub errors: u32,
    /// Usage limits met so far; each unknown reset is waited for longer.
    #[serde(default)]
    pub usage_waits: u32,
    /// Whether the last attempt was lost: the first time in a row is nobody's fault.
    #[serde(default)]
    pub lost: bool,
}

impl Flight {
    pub fn new(id: AttemptId, phase: Phase) -> Self {
        Self { id, phase, wait: None, errors: 0, usage_waits: 0, lost: false }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The rule is tested before the agent starts.
    CheckingBefore,
    /// The attempt is recorded, and its agent started or about to be.
    Running,
    /// The agent came through; the rule is being tested.
    Checking(Box<Success>),
    /// A failed attempt rests before the next one.
    Resting,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopping {
    pub status: RunStatus,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    pub until_ms: Millis,
    pub why: WaitReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, IntoStaticStr, Serialize, Deserialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    Delay,
    BackOff,
    UsageLimit,
}

/// What an agent used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptUsage {
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub cache_creation_tokens: i64,
    pub cache_read_tokens: i64,
    pub cost_micros: i64,
}

impl AttemptUsage {
    /// As budgets count: cache reads are shown, not charged.
    pub fn charged_tokens(&self) -> i64 {
        self.input_tokens.saturating_add(self.cache_creation_tokens).saturating_add(self.output_tokens)
    }
}

/// What an agent says about its iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentResult {
    pub summary: Option<String>,
    pub plateau: Option<bool>,
    pub reasoning: Option<String>,
    pub decision: Option<AgentDecision>,
    /// Further fields read from marker lines.
    pub fields: Vec<(String, String)>,
}

impl AgentResult {
    /// Whether the agent thinks that nothing is left to do here; `None` if it did not say.
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

/// An agent came through.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Success {
    pub result: AgentResult,
    pub usage: AttemptUsage,
    /// Promises found in its answer.
    pub promises: Vec<String>,
    /// A fingerprint of answer and working tree, to tell whether anything moved.
    pub footprint: String,
    pub exit_code: i32,
    pub started_at_ms: Millis,
    pub ended_at_ms: Millis,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Succeeded(Box<Success>),
    Failed(Failure),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailureKind,
    pub message: String,
    pub exit_code: Option<i32>,
    pub usage: AttemptUsage,
    pub started_at_ms: Option<Millis>,
    pub ended_at_ms: Millis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The account's limit is reached until this time, if the agent named one. Not an error: the same iteration again.
    UsageLimit { until_ms: Option<Millis> },
    /// Overloaded, network, server error: back off and try again.
    Transient,
    /// It ran past its time limit and was killed.
    TimedOut,
    /// It ended well but left no result where one is needed.
    NoResult,
    /// It said itself that it failed.
    Reported,
    /// It ended with another exit code, or by a signal.
    Exit,
    /// It cannot be started at all; trying again would not help.
    CannotStart,
    /// Nobody saw how it ended: the machine or its keeper died with it.
    Lost,
    /// We stopped it.
    Stopped,
}

impl FailureKind {
    /// The word for tables and views.
    pub fn name(self) -> &'static str {
        match self {
            Self::UsageLimit { .. } => "usage_limit",
            Self::Transient => "transient",
            Self::TimedOut => "timed_out",
            Self::NoResult => "no_result",
            Self::Reported => "reported",
            Self::Exit => "exit",
            Self::CannotStart => "cannot_start",
            Self::Lost => "lost",
            Self::Stopped => "stopped",
        }
    }
}

/// What has to be looked up outside to test a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    BeadsEmpty(String),
    Command(String),
    Verify(Vec<String>),
    Checklist(String),
    Judge,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    pub check: Check,
    /// `None` when it could not be told: the rule does not hold then.
    pub holds: Option<bool>,
    pub detail: String,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEvent {
    /// The engine has the run in hand: begin, or go on where the state says. `Flight`s that are `Running` get an
    /// [`RunEvent::Ended`] from the engine, which knows what became of them.
    Started,
    Ended {
        id: AttemptId,
        outcome: Outcome,
    },
    Checked {
        id: AttemptId,
        facts: Vec<Checked>,
    },
    /// The clock reached the time of [`Act::WakeAt`].
    Woke,
    /// A person, a signal or an edited file wants it to end.
    StopRequested(Stopping),
    /// A run that ended is to go on: with more iterations, if the maximum was the reason. It is only opened;
    /// [`RunEvent::Started`] follows. What cannot be reopened stays as it is, see `machine::reopen`.
    Reopened {
        max: Option<u32>,
    },
}

/// Goes into the tables, in the same transaction as the new state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    StageStarted {
        stage: u32,
    },
    AttemptStarted {
        id: AttemptId,
    },
    AttemptEnded {
        id: AttemptId,
        outcome: Outcome,
    },
    /// The iteration counts: once, for ever.
    Committed {
        id: AttemptId,
        success: Box<Success>,
        facts: Vec<Checked>,
    },
    StageEnded {
        stage: u32,
        status: StageStatus,
        reason: String,
    },
    Finished {
        status: RunStatus,
        reason: String,
    },
    Reopened,
}

/// To be done once the step is saved. Doing any of it twice must be harmless.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    Start(AttemptId),
    Check {
        id: AttemptId,
        checks: Vec<Check>,
    },
    Stop(Vec<AttemptId>),
    WakeAt(Millis),
    /// Nothing is left to do.
    Finish,
}

/// One step of the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub run: Run,
    pub records: Vec<Record>,
    pub acts: Vec<Act>,
}
