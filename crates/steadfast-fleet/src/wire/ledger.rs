//! What runs report to the ledger of a namespace, and what it keeps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Caps of a day over all runs of the namespace. `None` for no cap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Caps {
    pub tokens: Option<i64>,
    pub cost_micros: Option<i64>,
}

/// What a run has spent in all. Totals, not differences: a repeated signal counts nothing twice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// The id of the run's workflow.
    pub workflow: String,
    pub run_id: String,
    pub tokens: i64,
    pub cost_micros: i64,
    /// What it had spent when it was resumed, which is counted already.
    pub tokens_before: i64,
    pub cost_micros_before: i64,
    /// The run is over.
    pub left: bool,
}

/// The ledger of a namespace: what the runs of a day spent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LedgerState {
    pub caps: Caps,
    /// Days since 1970, in UTC.
    pub day: i64,
    /// Spent on that day, by all runs.
    pub tokens: i64,
    pub cost_micros: i64,
    /// The runs that are not over, by the id of their workflow.
    pub runs: BTreeMap<String, LedgerRun>,
}

/// What the ledger knows of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LedgerRun {
    pub run_id: String,
    pub tokens: i64,
    pub cost_micros: i64,
    /// The day on which it was told that a cap is reached.
    pub capped_on: Option<i64>,
}
