//! What the state file itself says about publishing: which run and which end it showed before, and which other files
//! could not be written then.

use serde_json::{Value, json};
use steadfast_model::clock;

use super::{View, document};

/// The files that could not be written when the state was: its own field, there only as long as there are any.
const OWED: &str = "unpublished";

pub(super) fn set_owed(state: &mut Value, owed: &[&str]) -> bool {
    let Some(state) = state.as_object_mut() else { return false };
    if owed.is_empty() { state.shift_remove(OWED).is_some() } else { document::set(state, OWED, json!(owed)) }
}

/// What the state file showed before.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) run_id: Option<String>,
    pub(super) ended: bool,
    completed_at: Value,
    pub(super) owed: Vec<String>,
}

impl Shown {
    pub(super) fn of(state: &Value) -> Self {
        let text = |name: &str| state.get(name).and_then(Value::as_str);
        let owed = state.get(OWED).and_then(Value::as_array).into_iter().flatten();
        Self {
            run_id: text("run_id").map(str::to_owned),
            ended: text("status").is_some_and(|status| status != "running"),
            completed_at: state.get("completed_at").cloned().unwrap_or_default(),
            owed: owed.filter_map(|file| file.as_str().map(str::to_owned)).collect(),
        }
    }

    pub(super) fn owes(&self, file: &str) -> bool {
        self.owed.iter().any(|owed| owed == file)
    }

    /// Whether it showed this end already, and so the log of completions had it.
    pub(super) fn is_end_of(&self, view: &View<'_>) -> bool {
        let completed_at = view.run.completed_at_ms.map(clock::to_rfc3339);
        self.ended && self.run_id.as_deref() == Some(view.run_id) && self.completed_at == json!(completed_at)
    }
}
