//! Rows of runs: complete with plan and state, or as lists show them.

use rusqlite::Row;
use serde::Deserialize;
use serde_json::json;

use crate::StoreError;
use crate::column::{from_json, process, to_json, word};
use steadfast_model::clock::Millis;
use steadfast_model::run::{Plan, Run, RunKind, RunStatus, Stopping, sealed};
use steadfast_system::process::ProcessId;

/// A run with its plan and state.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    pub run_id: String,
    /// The directory whose `.claude` shows the run.
    pub project_dir: String,
    /// Without secrets.
    pub plan: Plan,
    /// The places of texts that were redacted; the folder of the run has them whole.
    pub sealed: Vec<String>,
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

/// What is stored with a plan.
#[derive(Deserialize)]
struct Sealed {
    #[serde(default)]
    sealed: Vec<String>,
}

/// A plan as it is stored. Where a text is still the redacted one of the row before, its place stays known.
pub(super) fn plan_json(plan: &Plan, before: Option<&RunRow>) -> Result<String, StoreError> {
    let value = |error: serde_json::Error| StoreError::Value(error.to_string());
    let (mut stored, texts) = sealed::seal(plan).map_err(value)?;
    let mut places: Vec<String> = texts.into_keys().collect();
    if let Some(before) = before {
        let old = serde_json::to_value(&before.plan).map_err(value)?;
        let is_same = |place: &&String| old.pointer(place) == stored.pointer(place) && !places.contains(place);
        let kept: Vec<String> = before.sealed.iter().filter(is_same).cloned().collect();
        places.extend(kept);
    }
    if !places.is_empty()
        && let Some(fields) = stored.as_object_mut()
    {
        fields.insert("sealed".to_owned(), json!(places));
    }
    to_json(&stored)
}

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        run_id: row.get("run_id")?,
        project_dir: row.get("project_dir")?,
        plan: from_json(row, "plan_json")?,
        sealed: from_json::<Sealed>(row, "plan_json")?.sealed,
        run: from_json(row, "state_json")?,
        version: row.get("version")?,
        engine: process(row, "engine_pid", "engine_pid_started")?,
        stop_requested: from_json(row, "stop_requested")?,
        updated_at_ms: row.get("updated_at_ms")?,
    })
}

pub(crate) fn read_line(row: &Row<'_>) -> rusqlite::Result<RunLine> {
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
