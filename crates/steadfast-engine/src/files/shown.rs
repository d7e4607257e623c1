//! What the state file records about publishing: the run and the end that it shows, and the files that could not be
//! written.

use serde_json::{Value, json};
use steadfast_model::clock;

use super::{View, document};

/// The field that lists the files that could not be written; absent if there are none.
const OWED: &str = "unpublished";

pub(super) fn set_owed(state: &mut Value, owed: &[&str]) -> bool {
    let Some(state) = state.as_object_mut() else { return false };
    if owed.is_empty() { state.shift_remove(OWED).is_some() } else { document::set(state, OWED, json!(owed)) }
}

/// What the state file shows.
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

    /// Whether it shows this end, which means that the completions log had it.
    pub(super) fn is_end_of(&self, view: &View<'_>) -> bool {
        let completed_at = view.run.completed_at_ms.map(clock::to_rfc3339);
        self.ended && self.run_id.as_deref() == Some(view.run_id) && self.completed_at == json!(completed_at)
    }
}
