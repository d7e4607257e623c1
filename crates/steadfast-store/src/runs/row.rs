//! Rows of runs: whole with plan and state, or as lists show them, and how they are read. What does not have the form
//! it was written in is an error that names its column.

use rusqlite::Row;

use crate::StoreError;
use crate::goals::{not_understood, word};
use steadfast_model::clock::Millis;
use steadfast_model::run::{Plan, Run, RunKind, RunStatus, Stopping};
use steadfast_system::process::ProcessId;

/// A run with its plan and state.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    pub run_id: String,
    /// The directory whose `.claude` shows the run.
    pub project_dir: String,
    pub plan: Plan,
    pub run: Run,
    /// What [`Db::save_step`] has to match.
    pub version: i64,
    /// Who drives it, for people; the lock file is the truth.
    pub engine: Option<ProcessId>,
    pub stop_requested: Option<Stopping>,
    pub updated_at_ms: Millis,
}

/// A run as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLine {
    pub run_id: String,
    pub name: String,
    pub kind: RunKind,
    pub title: String,
    pub project_dir: String,
    pub status: RunStatus,
    pub reason: Option<String>,
    /// The stage under way, from 1, with its iterations and their maximum.
    pub stage: u32,
    pub iterations: u32,
    pub max_iterations: u32,
    pub tokens: i64,
    pub cost_micros: i64,
    pub engine: Option<ProcessId>,
    pub is_stop_requested: bool,
    pub started_at_ms: Millis,
    pub updated_at_ms: Millis,
    pub completed_at_ms: Option<Millis>,
}

pub(super) const SELECT: &str =
    "SELECT run_id, project_dir, plan_json, state_json, version, engine_pid, engine_pid_started,
    stop_requested, updated_at_ms FROM runs";

pub(super) fn to_json<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Value(error.to_string()))
}

pub(super) fn from_json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| not_understood(column, &error.to_string()))
}

fn engine(row: &Row<'_>) -> rusqlite::Result<Option<ProcessId>> {
    let pid: Option<i64> = row.get("engine_pid")?;
    let started: Option<i64> = row.get("engine_pid_started")?;
    Ok(pid.zip(started).map(|(pid, started)| ProcessId { pid, started }))
}

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let stop: Option<String> = row.get("stop_requested")?;
    let stop = stop.map(|text| serde_json::from_str(&text)).transpose();
    Ok(RunRow {
        run_id: row.get("run_id")?,
        project_dir: row.get("project_dir")?,
        plan: from_json(row, "plan_json")?,
        run: from_json(row, "state_json")?,
        version: row.get("version")?,
        engine: engine(row)?,
        stop_requested: stop.map_err(|error| not_understood("stop_requested", &error.to_string()))?,
        updated_at_ms: row.get("updated_at_ms")?,
    })
}

pub(super) fn read_line(row: &Row<'_>) -> rusqlite::Result<RunLine> {
    Ok(RunLine {
        run_id: row.get("run_id")?,
        name: row.get("name")?,
        kind: word(row, "kind")?,
        title: row.get("title")?,
        project_dir: row.get("project_dir")?,
        status: word(row, "status")?,
        reason: row.get("reason")?,
        stage: row.get("stage")?,
        iterations: row.get("iterations")?,
        max_iterations: row.get("max_iterations")?,
        tokens: row.get("tokens")?,
        cost_micros: row.get("cost_micros")?,
        engine: engine(row)?,
        is_stop_requested: row.get("is_stop_requested")?,
        started_at_ms: row.get("started_at_ms")?,
        updated_at_ms: row.get("updated_at_ms")?,
        completed_at_ms: row.get("completed_at_ms")?,
    })
}
