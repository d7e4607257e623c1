//! What crosses machines: inputs and results of workflows, activities and signals. Histories keep these for as long as a
//! run lasts, so every field that came later has a default.

mod activities;
mod ledger;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast_model::clock::Millis;
use steadfast_model::run::{AttemptId, AttemptUsage, Check, Record, Run, RunEvent, RunStatus};

pub use self::activities::{
    AttemptInput, AttemptResult, CheckInput, CheckReport, ConditionInput, ConditionReport, FinishInput, ForkInput,
    RecordInput, SaveInput,
};
pub use self::ledger::{Caps, LedgerRun, LedgerState, Spent};

/// The place of the run's own branch.
pub const RUN_PLACE: &str = "run";

/// Where the code of a run is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoRef {
    pub url: String,
    /// `steadfast/RUN`.
    pub branch: String,
    /// The commit that the run started from.
    pub base: String,
    /// The project's directory inside of the repository; empty for its root.
    #[serde(default)]
    pub subdirectory: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRef {
    pub name: String,
    pub run_id: String,
    pub repo: RepoRef,
    /// The blob of the plan on `steadfast-runs/RUN`.
    pub plan_sha: String,
}

/// The input of the workflow `steadfast-run`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInput {
    pub run: RunRef,
    #[serde(default)]
    pub options: FleetOptions,
    /// The state so far, of a run that is resumed or whose history was cut.
    #[serde(default)]
    pub carried: Option<Carried>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetOptions {
    /// What a worker must have, besides the agent.
    pub labels: Vec<String>,
    /// Without a heartbeat for this long an attempt is lost.
    pub heartbeat_ms: i64,
    /// Steps after which the history is cut.
    pub cut_after: u32,
    /// The run was started by a schedule: its name is the workflow's id, and its code starts at the branch's newest
    /// commit.
    pub scheduled: bool,
}

impl Default for FleetOptions {
    fn default() -> Self {
        Self { labels: Vec::new(), heartbeat_ms: 90_000, cut_after: 500, scheduled: false }
    }
}

impl FleetOptions {
    /// The longest time between two heartbeats.
    pub fn heartbeat(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.heartbeat_ms).unwrap_or(0).max(1_000))
    }
}

/// The newest commit of each place: `run`, `lane-NAME`, or `S-I` for an iteration of a parallel stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Heads(pub BTreeMap<String, String>);

impl Heads {
    pub fn get(&self, place: &str) -> Option<&str> {
        self.0.get(place).map(String::as_str)
    }

    pub fn set(&mut self, place: &str, sha: &str) {
        self.0.insert(place.to_owned(), sha.to_owned());
    }
}

/// What a run keeps when it is resumed or its history is cut.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    pub run: Run,
    #[serde(default)]
    pub heads: Heads,
    /// Records written so far.
    #[serde(default)]
    pub seq: u64,
    #[serde(default)]
    pub held: Vec<FleetAct>,
    #[serde(default)]
    pub inbox: Vec<RunEvent>,
    /// By `S-I-A`.
    #[serde(default)]
    pub shas: BTreeMap<String, AttemptShas>,
    /// What people said to the run and no agent has read.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Records that are not written yet: of a reopened run, that it was reopened.
    #[serde(default)]
    pub records: Vec<Record>,
    /// The history was cut, so the run is not started again.
    #[serde(default)]
    pub continued: bool,
}

/// What an attempt that is not committed left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptShas {
    #[serde(default)]
    pub place: String,
    /// The commit with its work.
    #[serde(default)]
    pub sha: Option<String>,
    /// The commit with its files.
    #[serde(default)]
    pub files: Option<String>,
    #[serde(default)]
    pub branch: Option<String>,
}

/// Asks the machine for one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRequest {
    pub run_ref: RunRef,
    #[serde(default)]
    pub options: FleetOptions,
    /// `None` begins the run.
    #[serde(default)]
    pub run: Option<Run>,
    pub event: RunEvent,
    pub now: Millis,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    pub run: Run,
    #[serde(default)]
    pub records: Vec<Record>,
    #[serde(default)]
    pub acts: Vec<FleetAct>,
    #[serde(default)]
    pub face: Face,
}

/// What lists show of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Face {
    /// `loop` or `pipeline`.
    pub kind: String,
    pub title: String,
    /// Of the current stage.
    pub max_iterations: u32,
}

/// An act of the machine, with what the workflow has to know of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FleetAct {
    Start {
        id: AttemptId,
        queue: String,
        /// The longest that its agent may take.
        #[serde(default)]
        timeout_ms: Option<i64>,
        /// When a limit on time of the run or its stage is reached.
        #[serde(default)]
        deadline_ms: Option<Millis>,
        place: String,
        /// The place whose commit it starts from if its own has none.
        base_place: String,
    },
    Check {
        id: AttemptId,
        checks: Vec<Check>,
        queue: String,
        place: String,
        base_place: String,
    },
    Condition {
        stage: u32,
        queue: String,
        place: String,
        base_place: String,
    },
    Stop(Vec<AttemptId>),
    WakeAt(Millis),
    Finish,
}

/// In every heartbeat, so that a lost attempt is charged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerProgress {
    pub usage: AttemptUsage,
    #[serde(default)]
    pub worker: String,
    #[serde(default)]
    pub started_at_ms: Option<Millis>,
}

/// The result of a run, and what lists show of it meanwhile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    pub name: String,
    pub run_id: String,
    /// Where its code and its run directory are.
    pub repo: String,
    /// `loop` or `pipeline`.
    pub kind: String,
    pub title: String,
    pub status: RunStatus,
    pub reason: Option<String>,
    pub stage: u32,
    pub iteration: u32,
    /// Of the current stage.
    pub max_iterations: u32,
    pub tokens: i64,
    pub tokens_unknown: bool,
    pub cost_micros: i64,
    pub cost_unknown: bool,
    pub started_at_ms: Millis,
    pub completed_at_ms: Option<Millis>,
    /// A stage that waits for a person.
    pub asking: Option<u32>,
    /// Records written so far.
    pub seq: u64,
    /// The newest commit of the run.
    pub head: String,
}

/// The answer of a person to a stage that asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub stage: u32,
    pub approved: bool,
    #[serde(default)]
    pub note: Option<String>,
}

/// What a running attempt used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Using {
    pub id: AttemptId,
    pub usage: AttemptUsage,
}

/// `S-I-A`.
pub fn attempt_key(id: AttemptId) -> String {
    format!("{}-{}-{}", id.stage, id.iteration, id.attempt)
}
