//! Runs: loops and pipelines of fresh agents. A loop is a pipeline with one stage. This file has the words — run, stage,
//! iteration, attempt; `run/plan.rs` and `run/outcome.rs` have those of what is to be done and of what came of it — and the two sides of the machine in `run/machine.rs`, which is pure: what happened
//! ([`RunEvent`]) and what is to be done about it ([`Step`]). An engine saves a step's records and the new state in one
//! transaction and only then acts, so that after any crash the saved state tells what was under way.

pub mod machine;
pub mod name;
mod outcome;
mod plan;
mod reason;
pub mod rule;
pub mod template;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};

use crate::clock::Millis;

pub use outcome::{AgentDecision, AgentResult, AttemptUsage, Failure, FailureKind, Outcome, Success};
pub use plan::{AgentKind, AgentPlan, Plan, Rule, RunLimits, RunPurpose, StagePlan};
pub use reason::RunReason;

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

/// Names one attempt of a run. All counting starts at 1, as in the public files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
    #[serde(rename = "flights")]
    pub active: Vec<ActiveAttempt>,
    /// Why the run is to end as soon as nothing is under way any more.
    pub stopping: Option<Stopping>,
    /// Whether that end was asked for from outside: what runs is stopped then, and otherwise waited for.
    #[serde(default)]
    pub cut_short: bool,
    /// The soonest moment at which something goes on by itself, if nothing happens before.
    pub wait: Option<Wait>,
    /// Whether a cap over all goals and runs is reached, which ends the run like a limit of its own.
    #[serde(default)]
    pub capped: bool,
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
    /// Agents that came through and whose iterations were not decided about when the run was stopped.
    #[serde(default)]
    pub undecided: Vec<Undecided>,
}

/// An agent that came through. Going on later begins with its rule: the work is done and is not done again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Undecided {
    pub id: AttemptId,
    pub success: Box<Success>,
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
pub struct ActiveAttempt {
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

impl ActiveAttempt {
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
    /// The engine has the run in hand: begin, or go on where the state says. `ActiveAttempt`s that are `Running` get an
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
    /// All goals and runs together spent what a person allows; looked at before the next agent starts.
    CapReached,
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
