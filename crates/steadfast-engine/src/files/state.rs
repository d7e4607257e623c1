//! `.claude/loop-state-NAME.json` and `.claude/pipeline-runs/NAME/state.json`: a loop, or a pipeline with the stages that
//! have begun, and all iterations. The history only grows, each iteration once, so that writing it again after a crash
//! repairs it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use steadfast_model::run::{RunKind, StagePlan, StageState, StageStatus};
use steadfast_model::{clock, text};
use steadfast_store::{Db, IterationRow};

use super::document::{list, object, set};
use super::{FileView, FilesError, usd};

/// Longer texts of agents are cut; the store has the whole text.
const MAX_TEXT: usize = 2_000;
/// The field that names the stage that ended a run.
pub(super) const ENDED_BY: &str = "ended_by_stage";
/// The field that says which store has the run, without its path.
pub(super) const STORE_ID: &str = "store_id";
/// Fields of an iteration that a marker line cannot set.
pub(crate) const OWN_FIELDS: [&str; 12] = [
    "stage",
    "iteration",
    "timestamp",
    "decision",
    "duration_seconds",
    "attempts",
    "tokens",
    "cost_usd",
    "files_touched",
    "items_completed",
    "errors",
    "branches",
];
/// The lists of an agent's report, as other tools name them.
const REPORT_FIELDS: [&str; 4] = ["files_touched", "items_completed", "errors", "branches"];

/// Brings the state of a run up to date; returns whether that changed anything. New fields are added in the order of the
/// documented examples.
pub(super) fn update(state: &mut Value, view: &FileView<'_>, db: Db<'_>) -> Result<bool, FilesError> {
    let Some(state) = object(state) else { return Ok(false) };
    let changed = match view.plan.kind {
        RunKind::Loop => update_loop(state, view, db)?,
        RunKind::Pipeline => update_pipeline(state, view, db)?,
    };
    Ok(changed
        | set(state, "tokens", (!view.run.tokens_unknown).then_some(view.run.tokens))
        | set(state, "cost_usd", usd(view.run.cost_micros, view.run.cost_unknown))
        | set(state, "run_id", view.run_id)
        | set(state, STORE_ID, db.file_id()))
}

fn update_loop(state: &mut Map<String, Value>, view: &FileView<'_>, db: Db<'_>) -> Result<bool, FilesError> {
    let (plan, run) = (view.plan, view.run);
    let mut changed = set(state, "session", plan.name.as_str())
        | set(state, "type", plan.kind.to_string())
        | set(state, "loop_type", plan.title.as_str())
        | set(state, "started_at", clock::to_rfc3339(run.started_at_ms))
        | set(state, "status", run.status.to_string())
        | set(state, "iteration", run.stages.first().map_or(0, |stage| stage.iterations));
    changed |= extend_history(state, view, db)?;
    Ok(changed
        | set(state, "completed_at", run.completed_at_ms.map(clock::to_rfc3339))
        | set(state, "reason", run.reason.clone())
        | set(state, "max_iterations", run.max_iterations(plan, 1)))
}

fn update_pipeline(state: &mut Map<String, Value>, view: &FileView<'_>, db: Db<'_>) -> Result<bool, FilesError> {
    let (plan, run) = (view.plan, view.run);
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
        | set_ended_by(state, view)
        | set(state, "iteration", run.stage_state(run.stage).map_or(0, |stage| stage.iterations));
    Ok(changed | extend_history(state, view, db)?)
}

/// The name of the stage that ended the run.
pub(super) fn ended_by<'a>(view: &FileView<'a>) -> Option<&'a str> {
    view.run.ended_by.and_then(|stage| view.plan.stage(stage)).map(|stage| stage.name.as_str())
}

/// Absent if there is none.
fn set_ended_by(state: &mut Map<String, Value>, view: &FileView<'_>) -> bool {
    match ended_by(view) {
        Some(name) => set(state, ENDED_BY, name),
        None => state.shift_remove(ENDED_BY).is_some(),
    }
}

/// Stages are listed once they have begun, as in the documented example. Of stages that run side by side, earlier ones
/// that have not begun are listed too, so that the place in the list is the number of the stage.
fn update_stages(state: &mut Map<String, Value>, view: &FileView<'_>) -> bool {
    let Some(listed) = list(state.entry("stages").or_insert_with(|| json!([]))) else { return false };
    let mut changed = false;
    let stages = &view.run.stages;
    let begun = stages.iter().rposition(|it| shown_status(it) != StageStatus::Pending).map_or(0, |last| last + 1);
    let shown = begun.max(listed.len());
    for (at, (plan, stage)) in view.plan.stages.iter().zip(stages).enumerate().take(shown) {
        if listed.len() <= at {
            listed.push(json!({}));
        }
        if let Some(entry) = listed.get_mut(at).and_then(object) {
            changed |= update_stage(entry, plan, stage);
        }
    }
    changed
}

/// That a condition is being tested is over in a moment.
fn shown_status(stage: &StageState) -> StageStatus {
    if stage.status == StageStatus::Deciding { StageStatus::Pending } else { stage.status }
}

fn update_stage(entry: &mut Map<String, Value>, plan: &StagePlan, stage: &StageState) -> bool {
    let mut changed = set(entry, "name", plan.name.as_str())
        | set(entry, "loop", plan.loop_type.clone())
        | set(entry, "runs", stage.max.unwrap_or(plan.runs))
        | set(entry, "status", shown_status(stage).to_string())
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

/// Adds the iterations that are missing in the file.
fn extend_history(state: &mut Map<String, Value>, view: &FileView<'_>, db: Db<'_>) -> Result<bool, FilesError> {
    let Some(shown) = list(state.entry("history").or_insert_with(|| json!([]))) else { return Ok(false) };
    let mut added: Vec<IterationRow> = Vec::new();
    let single = view.plan.stages.len() == 1;
    for (stage, (plan, state)) in (1_u32..).zip(view.plan.stages.iter().zip(&view.run.stages)) {
        if state.iterations == 0 {
            continue;
        }
        // Parallel iterations end in any order; of sequential ones, only those after the last can be missing.
        let mut there = shown.iter().rev().filter_map(|entry| iteration_of(entry, stage, single));
        let after = if plan.parallel { 0 } else { there.next().unwrap_or(0) };
        let there: BTreeSet<u32> = if plan.parallel { there.collect() } else { BTreeSet::new() };
        if there.len() >= state.iterations as usize || after >= state.iterations {
            continue;
        }
        let rows = db.run_history(view.run_id, Some((stage, after)), usize::MAX)?;
        added.extend(rows.into_iter().filter(|row| row.id.stage == stage && !there.contains(&row.id.iteration)));
    }
    // Stages that run side by side are listed in the order of their commits.
    added.sort_by_key(|row| row.committed_at_ms);
    shown.extend(added.iter().map(|row| iteration(row, view.plan.kind)));
    Ok(!added.is_empty())
}

fn iteration_of(entry: &Value, stage: u32, single: bool) -> Option<u32> {
    let number = |name: &str| entry.get(name).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    if single || number("stage") == Some(stage) { number("iteration") } else { None }
}

/// One entry of the history.
fn iteration(row: &IterationRow, kind: RunKind) -> Value {
    let mut entry = Map::new();
    let words = |words: &Option<String>| words.as_deref().map(|words| text::cut(&text::printable(words), MAX_TEXT));
    if kind == RunKind::Pipeline {
        set(&mut entry, "stage", row.id.stage);
    }
    set(&mut entry, "iteration", row.id.iteration);
    set(&mut entry, "timestamp", clock::to_rfc3339(row.committed_at_ms));
    set(&mut entry, "plateau", row.plateau.unwrap_or(false));
    set(&mut entry, "reasoning", words(&row.reasoning));
    set(&mut entry, "summary", words(&row.summary));
    if let Some(decision) = row.decision {
        set(&mut entry, "decision", decision.to_string());
    }
    let report = &row.report;
    let lists = [&report.files, &report.items, &report.errors, &report.branches];
    for (name, list) in REPORT_FIELDS.iter().zip(lists).filter(|(_, list)| !list.is_empty()) {
        set(&mut entry, name, list.clone());
    }
    let milliseconds = row.committed_at_ms.saturating_sub(row.started_at_ms).max(0);
    set(&mut entry, "duration_seconds", milliseconds / 1_000);
    set(&mut entry, "attempts", row.id.attempt);
    set(&mut entry, "tokens", (!row.tokens_unknown).then_some(row.tokens));
    set(&mut entry, "cost_usd", usd(row.cost_micros, row.cost_unknown));
    for (name, value) in &row.fields {
        // A marker line cannot set our own fields, even if this iteration does not have them.
        if !entry.contains_key(name) && !OWN_FIELDS.contains(&name.as_str()) {
            set(&mut entry, name, words(&Some(value.clone())));
        }
    }
    Value::Object(entry)
}

#[cfg(test)]
mod tests {
    use steadfast_model::run::AttemptId;

    use super::*;

    #[test]
    fn fields_of_marker_lines_never_replace_our_own() {
        let fields = [("stage", "7"), ("decision", "x"), ("tokens", "9"), ("risk", "low")];
        let row = IterationRow {
            id: AttemptId { stage: 1, iteration: 3, attempt: 1 },
            fields: fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            ..IterationRow::default()
        };
        let shown = |kind| {
            let entry = iteration(&row, kind);
            fields.map(|(name, _)| entry.get(name).cloned())
        };
        let (tokens, risk) = (Some(json!(0)), Some(json!("low")));
        assert_eq!(shown(RunKind::Pipeline), [Some(json!(1)), None, tokens.clone(), risk.clone()]);
        assert_eq!(shown(RunKind::Loop), [None, None, tokens, risk]);
    }
}
