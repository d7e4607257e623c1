//! What is said about a goal whose change is saved, if the rest cannot be read afterwards: it must not look undone.

use serde_json::{Value, json};
use steadfast_model::goal::Goal;
use steadfast_store::StoreError;

/// The goal as it was saved, and why there is no more of it.
pub fn unseen(goal: &Goal, error: &StoreError) -> Value {
    let saved = json!({
        "goal_id": goal.goal_id, "session_id": goal.session_id, "objective": goal.objective, "status": goal.status,
        "paused_reason": goal.paused_reason, "version": goal.version,
    });
    json!({"goal": saved, "incomplete": unseen_note(error)})
}

pub fn unseen_note(error: &StoreError) -> String {
    format!("the change is saved, but the rest cannot be read: {error}")
}
