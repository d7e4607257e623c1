//! `.claude/pipeline-runs/NAME/state.json`: a pipeline, the stages that have begun, and all their iterations. Stages count
//! from 1, in `current_stage` and in the names of their folders.

use serde_json::{Map, Value, json};
use steadfast_model::clock;
use steadfast_model::run::{StagePlan, StageState, StageStatus};
use steadfast_store::Db;

use super::document::{list, object, set};
use super::loop_state::{extend_history, set_extras};
use super::{FilesError, View};

pub(super) const DIRECTORY: &str = "pipeline-runs";
pub(super) const FILE: &str = "state.json";

/// Brings the state of a pipeline up to date; returns whether that changed anything.
pub(super) fn update(state: &mut Value, view: &View<'_>, db: Db<'_>) -> Result<bool, FilesError> {
    let Some(state) = object(state) else { return Ok(false) };
    let (plan, run) = (view.plan, view.run);
    let current = (1..).zip(&run.stages).find(|(number, _)| *number == run.stage);
    let mut changed = set(state, "session", plan.name.as_str())
        | set(state, "pipeline", plan.title.as_str())
        | set(state, "started_at", clock::to_rfc3339(run.started_at_ms))
        | set(state, "status", run.status.to_string())
        | set(state, "current_stage", run.stage);
    changed |= update_stages(state, view);
    changed |= set(state, "completed_at", run.completed_at_ms.map(clock::to_rfc3339))
        | set(state, "reason", run.reason.clone())
        | set(state, "type", plan.kind.to_string())
        | set(state, "total_stages", plan.stages.len())
        | set(state, "iteration", current.map_or(0, |(_, stage)| stage.iterations));
    changed |= extend_history(state, view, db)?;
    Ok(changed | set_extras(state, view))
}

/// Stages are listed once they have begun, as in the documented example.
fn update_stages(state: &mut Map<String, Value>, view: &View<'_>) -> bool {
    let Some(listed) = list(state.entry("stages").or_insert_with(|| json!([]))) else { return false };
    let mut changed = false;
    let begun = view.plan.stages.iter().zip(&view.run.stages).take_while(|(_, it)| it.status != StageStatus::Pending);
    for (at, (plan, stage)) in begun.enumerate() {
        if listed.len() <= at {
            listed.push(json!({}));
        }
        if let Some(entry) = listed.get_mut(at).and_then(object) {
            changed |= update_stage(entry, plan, stage);
        }
    }
    changed
}

fn update_stage(entry: &mut Map<String, Value>, plan: &StagePlan, stage: &StageState) -> bool {
    let mut changed = set(entry, "name", plan.name.as_str())
        | set(entry, "loop", plan.loop_type.clone())
        | set(entry, "runs", stage.max.unwrap_or(plan.runs))
        | set(entry, "status", stage.status.to_string())
        | set(entry, "started_at", stage.started_at_ms.map(clock::to_rfc3339));
    if stage.completed_at_ms.is_some() || entry.contains_key("completed_at") {
        changed |= set(entry, "completed_at", stage.completed_at_ms.map(clock::to_rfc3339));
    }
    changed |= set(entry, "iterations_run", stage.iterations);
    if stage.reason.is_some() || entry.contains_key("reason") {
        changed |= set(entry, "reason", stage.reason.clone());
    }
    changed
}
