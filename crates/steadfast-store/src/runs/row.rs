//! Rows of runs: complete with plan and state, or as lists show them.

use rusqlite::Row;

use crate::column::{from_json, process, word};
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
    /// What `Db::save_step` has to match.
    pub version: i64,
    /// The engine that drives it, for people; the lock file is the truth.
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
    pub cost_unknown: bool,
    pub tokens_unknown: bool,
    pub engine: Option<ProcessId>,
    pub is_stop_requested: bool,
    /// A stage waits for a person.
    pub is_asking: bool,
    pub started_at_ms: Millis,
    pub updated_at_ms: Millis,
    pub completed_at_ms: Option<Millis>,
}

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        run_id: row.get("run_id")?,
        project_dir: row.get("project_dir")?,
        plan: from_json(row, "plan_json")?,
        run: from_json(row, "state_json")?,
        version: row.get("version")?,
        engine: process(row, "engine_pid", "engine_pid_started")?,
        stop_requested: from_json(row, "stop_requested")?,
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
        cost_unknown: row.get("cost_unknown")?,
        tokens_unknown: row.get("tokens_unknown")?,
        engine: process(row, "engine_pid", "engine_pid_started")?,
        is_stop_requested: row.get("is_stop_requested")?,
        is_asking: row.get("is_asking")?,
        started_at_ms: row.get("started_at_ms")?,
        updated_at_ms: row.get("updated_at_ms")?,
        completed_at_ms: row.get("completed_at_ms")?,
    })
}
