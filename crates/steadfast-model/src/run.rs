//! Runs: loops and pipelines of fresh agents. A loop is a pipeline with one stage. This file has the state of a run and
//! the two sides of the state machine in `run/machine.rs`, which is pure: what happened ([`RunEvent`]) and what to do
//! about it ([`Step`]). The engine saves a step's records and the new state in one transaction before it acts, so after
//! a crash the saved state shows what was active.

pub mod appointment;
pub mod condition;
mod graph;
pub mod inputs;
pub mod machine;
pub mod name;
pub mod nesting;
#[cfg(test)]
mod older;
mod outcome;
mod plan;
mod reason;
pub mod restart;
pub mod rule;
pub mod sealed;
mod secrets;
pub mod template;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};

use crate::clock::Millis;

pub use condition::Condition;
pub use graph::StageGraph;
pub use outcome::{AgentDecision, AgentResult, AttemptUsage, Failure, FailureKind, Outcome, Success};
pub use plan::{
    AgentKind, AgentPlan, EnvVariable, MergePlan, ParallelInput, Plan, Rule, RunLimits, RunPurpose, StagePlan, Then,
};
pub use reason::RunReason;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, Serialize, Deserialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    Loop,
    Pipeline,
}

/// As in the public state files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RunStatus {
    #[default]
    Running,
    Completed,
    Failed,
    Killed,
    UnknownTermination,
}

/// Names one attempt of a run. All numbers start at 1, as in the public files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttemptId {
    pub stage: u32,
    pub iteration: u32,
    pub attempt: u32,
}

/// The state of a run. It stays small however long the run is, because ended iterations are only in the records.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    pub status: RunStatus,
    /// Why it ended.
    pub reason: Option<String>,
    pub started_at_ms: Millis,
    pub completed_at_ms: Option<Millis>,
    /// The first stage that is not over, from 1; at the end, the stage that ended the run, or the last one.
    pub stage: u32,
    pub stages: Vec<StageState>,
    /// Stored under an older name.
    #[serde(rename = "flights")]
    pub active: Vec<ActiveAttempt>,
    /// Set when the run has to end as soon as no attempt is active.
    pub stopping: Option<Stopping>,
    /// Whether a person or a signal asked for that end: active attempts are stopped then, and otherwise waited for.
    pub cut_short: bool,
    /// The next time at which something starts if no event comes before.
    pub wait: Option<Wait>,
    /// Whether a cap over all goals and runs is reached, which ends the run like a limit of its own.
    pub capped: bool,
    /// How long the run was over before it was reopened. The wall-clock limit does not count this time.
    pub closed_ms: Millis,
    pub tokens: i64,
    /// The known part of the cost.
    pub cost_micros: i64,
    /// What runs spent that the agents of this one started. It counts to the limits.
    pub nested_tokens: i64,
    pub nested_cost_micros: i64,
    /// A part of the cost is not known.
    pub cost_unknown: bool,
    /// The same since the run was started or resumed: a limit on money cannot hold from there on.
    pub cost_unknown_now: bool,
    /// A part of the tokens is not known.
    pub tokens_unknown: bool,
    /// An attempt since then did not report its tokens: a limit on tokens cannot hold.
    pub tokens_unknown_now: bool,
    /// The most that one attempt used so far.
    pub most_tokens: i64,
    pub most_cost_micros: i64,
    /// The stage that ended the run: its gate did not hold, a limit of it was reached, or it failed.
    pub ended_by: Option<u32>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StageState {
    pub status: StageStatus,
    pub started_at_ms: Option<Millis>,
    pub completed_at_ms: Option<Millis>,
    /// Iterations committed.
    pub iterations: u32,
    pub reason: Option<String>,
    /// Committed iterations in a row that voted that nothing is left to improve.
    pub agreeing: u32,
    /// Iterations in a row without progress.
    pub idle: u32,
    /// The footprint of the last iteration.
    pub footprint: Option<String>,
    /// The maximum given when the run was reopened. It replaces the plan's.
    pub max: Option<u32>,
    /// Iterations that were started and not committed when the run ended, each with its last attempt.
    pub left: Vec<AttemptId>,
    /// Successful attempts whose rule was not tested yet when the run was stopped.
    pub undecided: Vec<Undecided>,
    /// When the delay after the last iteration is over.
    pub delay_until_ms: Option<Millis>,
    /// What its attempts used.
    pub tokens: i64,
    pub cost_micros: i64,
    /// Whether an attempt since it was started or resumed did not report its cost, or its tokens: a limit of the stage on
    /// them cannot hold.
    pub cost_unknown_now: bool,
    pub tokens_unknown_now: bool,
    /// How long it was over before it was reopened. Its time limit does not count this.
    pub closed_ms: Millis,
    /// Iterations of a parallel stage that failed for good.
    pub given_up: u32,
    /// It ended with the run, and not by its own rule. Resuming the run continues it.
    pub cut_off: bool,
    /// What the person said who approved or rejected it.
    pub answer: Option<String>,
}

/// A successful attempt whose rule is still to be tested. Resuming tests it and does not repeat the work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Undecided {
    pub id: AttemptId,
    pub success: Box<Success>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum StageStatus {
    #[default]
    Pending,
    /// Its condition is being tested.
    Deciding,
    /// A person has to say yes.
    AwaitingApproval,
    Running,
    Completed,
    Failed,
    /// Its condition did not hold.
    Skipped,
}

impl StageStatus {
    /// Whether nothing of the stage is left to do.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Skipped)
    }
}

/// An iteration that has started and is not committed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActiveAttempt {
    /// While the rule is tested before the start, `attempt` is the number of the previous one: 0 for none.
    pub id: AttemptId,
    pub phase: Phase,
    /// Until when it waits before the next attempt.
    #[serde(default)]
    pub wait: Option<Wait>,
    /// Failed attempts in a row.
    #[serde(default)]
    pub errors: u32,
    /// Usage limits hit so far; the wait for an unknown reset grows with them.
    #[serde(default)]
    pub usage_waits: u32,
    /// Whether the last attempt was lost. The first of several in a row is not counted as an error.
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
    /// The rule is being tested before the agent starts.
    CheckingBefore,
    /// The attempt is recorded; its agent runs or is about to start.
    Running,
    /// The agent succeeded; the rule is being tested.
    Checking(Box<Success>),
    /// The last attempt failed; the next one waits.
    Resting,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopping {
    pub status: RunStatus,
    #[serde(default)]
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

/// What a rule depends on outside of the run's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    BeadsEmpty(String),
    Command(String),
    Verify(Vec<String>),
    Checklist(String),
    /// Whether the chosen branches are merged.
    Merged,
    Judge,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    pub check: Check,
    /// `None` if the check could not decide; the rule does not hold then.
    #[serde(default)]
    pub holds: Option<bool>,
    #[serde(default)]
    pub detail: String,
    /// What a check used that asked an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<AttemptUsage>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEvent {
    /// An engine drives the run from now on, for the first time or again. It sends [`RunEvent::Ended`] for attempts that
    /// the state says are running.
    Started,
    /// An attempt ended.
    Ended { id: AttemptId, outcome: Outcome },
    /// The checks of an attempt ran.
    Checked {
        id: AttemptId,
        #[serde(default)]
        facts: Vec<Checked>,
    },
    /// The condition of a stage was tested; `None` if it could not be.
    Decided {
        stage: u32,
        #[serde(default)]
        holds: Option<bool>,
        #[serde(default)]
        detail: String,
    },
    /// A person approved or rejected a stage.
    Answered {
        stage: u32,
        approved: bool,
        #[serde(default)]
        note: Option<String>,
    },
    /// The clock reached the time of [`Act::WakeAt`].
    Woke,
    /// A person, a signal or an edited file asks for the end.
    StopRequested(Stopping),
    /// A cap over all goals and runs is reached. Checked before the next agent starts.
    CapReached,
    /// What runs below this one spent so far, in all.
    NestedSpent {
        #[serde(default)]
        tokens: i64,
        #[serde(default)]
        cost_micros: i64,
    },
    /// What the running attempts used so far, in all.
    Using {
        #[serde(default)]
        tokens: i64,
        #[serde(default)]
        cost_micros: i64,
    },
    /// The machine slept for a while; that is no time of the run.
    Slept { slept_ms: Millis },
}

/// A row to write, in the same transaction as the new state. A committed iteration is final: there is one such row for
/// each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// A person is asked whether a stage may start.
    ApprovalAsked {
        stage: u32,
    },
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
    Committed {
        id: AttemptId,
        success: Box<Success>,
        #[serde(default)]
        facts: Vec<Checked>,
    },
    StageEnded {
        stage: u32,
        status: StageStatus,
        #[serde(default)]
        reason: String,
    },
    Finished {
        status: RunStatus,
        #[serde(default)]
        reason: String,
    },
    Reopened,
}

/// An action for after the step is saved. Repeating one must be harmless.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    Start(AttemptId),
    Check {
        id: AttemptId,
        #[serde(default)]
        checks: Vec<Check>,
    },
    Stop(Vec<AttemptId>),
    /// Test the condition of a stage.
    Decide(u32),
    WakeAt(Millis),
    Finish,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub run: Run,
    #[serde(default)]
    pub records: Vec<Record>,
    #[serde(default)]
    pub acts: Vec<Act>,
}
