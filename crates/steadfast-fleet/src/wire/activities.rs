//! Inputs and results of the activities.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use steadfast_model::clock::Millis;
use steadfast_model::run::{AttemptId, Check, Checked, Outcome, Record, Run};

use super::{AttemptShas, FleetOptions, Heads, RunRef, Spent};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AttemptInput {
    pub run_ref: RunRef,
    pub id: AttemptId,
    /// The commit to work on.
    pub base: String,
    #[serde(default)]
    pub heads: Heads,
    /// Records that the run directory has at least.
    #[serde(default)]
    pub seq: u64,
    #[serde(default)]
    pub timeout_ms: Option<i64>,
    #[serde(default)]
    pub deadline_ms: Option<Millis>,
    /// What people said to the run since the last attempt.
    #[serde(default)]
    pub notes: Vec<String>,
    pub run: Run,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptResult {
    pub outcome: Outcome,
    #[serde(default)]
    pub sha: Option<String>,
    /// The commit with the attempt's files.
    #[serde(default)]
    pub files: Option<String>,
    #[serde(default)]
    pub branch: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckInput {
    pub run_ref: RunRef,
    pub id: AttemptId,
    pub checks: Vec<Check>,
    /// The commit to check: the attempt's, or the place's before the first one.
    pub sha: String,
    #[serde(default)]
    pub heads: Heads,
    #[serde(default)]
    pub seq: u64,
    /// The commit with the attempt's files, if it has any.
    #[serde(default)]
    pub files: Option<String>,
    pub run: Run,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckReport {
    pub facts: Vec<Checked>,
    /// The commit with the attempt's files and the checks' evidence.
    #[serde(default)]
    pub files: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ConditionInput {
    pub run_ref: RunRef,
    pub stage: u32,
    pub sha: String,
    #[serde(default)]
    pub heads: Heads,
    #[serde(default)]
    pub seq: u64,
    pub run: Run,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionReport {
    /// `None` if it could not be tested.
    pub holds: Option<bool>,
    #[serde(default)]
    pub detail: String,
}

/// Writes records to the run directory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordInput {
    pub run_ref: RunRef,
    /// The number of the first of `records`, from 0. Records that are written already are left out.
    pub seq: u64,
    pub records: Vec<Record>,
    pub run: Run,
    #[serde(default)]
    pub heads: Heads,
    /// Attempts with the commits of their files.
    #[serde(default)]
    pub files: Vec<(AttemptId, String)>,
    /// Attempts that are not committed; a resumed run needs them.
    #[serde(default)]
    pub shas: BTreeMap<String, AttemptShas>,
    #[serde(default)]
    pub options: FleetOptions,
}

/// Writes records, and reports to the ledger what the run spent, if that changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SaveInput {
    pub record: RecordInput,
    #[serde(default)]
    pub spent: Option<Spent>,
}

/// Moves the run's branch to its last commit and cleans up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishInput {
    pub run_ref: RunRef,
    pub head: String,
    #[serde(default)]
    pub spent: Spent,
}

/// Begins a run that a schedule starts: its own branches, from the newest commit of the scheduled one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkInput {
    pub from: RunRef,
    pub name: String,
    pub run_id: String,
}
