//! `.claude/loop-completions.json`: a list of runs that ended, for scripts that wait for it. They may remove the file once
//! they have read it; a removed entry is not written again.

use serde_json::{Value, json};
use steadfast_model::clock;
use steadfast_model::run::{RunKind, RunStatus};

use super::View;

pub(super) const FILE: &str = "loop-completions.json";

/// Adds the end of a run to the list; returns whether that changed anything.
pub(super) fn add(list: &mut Value, view: &View<'_>) -> bool {
    if view.run.status == RunStatus::Running {
        return false;
    }
    let Some(list) = list.as_array_mut() else { return false };
    let end = end_of(view);
    let same = |entry: &&Value| ["run_id", "completed_at"].iter().all(|name| entry.get(name) == end.get(name));
    if list.iter().rev().any(|entry| same(&entry)) {
        return false;
    }
    list.push(end);
    true
}

fn end_of(view: &View<'_>) -> Value {
    let (plan, run) = (view.plan, view.run);
    let what = if plan.kind == RunKind::Loop { "loop_type" } else { "pipeline" };
    json!({
        "session": plan.name,
        "type": plan.kind.to_string(),
        "status": run.status.to_string(),
        "completed_at": run.completed_at_ms.map(clock::to_rfc3339),
        "reason": run.reason,
        what: plan.title,
        "run_id": view.run_id,
    })
}
