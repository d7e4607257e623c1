//! The log of an iteration, piece by piece as it grows.

use std::path::Path;

use serde_json::{Value, json};
use steadfast_engine::attempt::Attempt;
use steadfast_model::run::{AttemptId, RunStatus};
use steadfast_store::{Store, StoreError};
use steadfast_system::paths::Paths;

use super::fields::Fields;
use crate::log;

/// Lines from the end of a log that is opened.
const FIRST_LINES: usize = 1_000;
const ERROR_LINES: usize = 100;

/// The next piece of a log, `{text, next, is_over}`, and of which attempt. Without `from`, it begins near the end.
/// `None` if the run does not exist.
pub(crate) fn log(paths: &Paths, run_id: &str, query: &Fields) -> Result<Option<Value>, StoreError> {
    let store = Store::open_existing(&paths.store)?;
    let Some(row) = store.read().run(run_id)? else { return Ok(None) };
    let is_running = row.run.status == RunStatus::Running;
    let all = log::attempts(&paths.home, run_id);
    let Some(id) = chosen(&all, query) else {
        return Ok(Some(json!({"text": "", "next": 0, "is_over": !is_running})));
    };
    let attempt = Attempt::at(&paths.home, run_id, id);
    let has_ended = log::has_ended(&attempt, id, &all) || !is_running;
    let output = attempt.output();
    let from = query.number("from").unwrap_or_else(|| log::start_of_tail(&output, FIRST_LINES));
    let host = log::host_of(&row.plan, id);
    let chunk = log::chunk(&output, from, host, has_ended);
    let lines = log::clean_from(&output, from, host, false).lines(chunk.lines);
    let mut text = lines.join("\n");
    if !lines.is_empty() {
        text.push('\n');
    }
    let is_over = has_ended && chunk.next == from;
    if is_over {
        text.push_str(&errors(&attempt.errors()));
    }
    Ok(Some(json!({
        "text": text, "next": chunk.next, "is_over": is_over,
        "stage": id.stage, "iteration": id.iteration, "attempt": id.attempt,
    })))
}

/// The newest attempt of the iteration that the query names, or that very attempt.
fn chosen(all: &[AttemptId], query: &Fields) -> Option<AttemptId> {
    let fits = |name: &str, number: u32| query.number::<u32>(name).is_none_or(|wanted| wanted == number);
    let is_it =
        |id: &&AttemptId| fits("stage", id.stage) && fits("iteration", id.iteration) && fits("attempt", id.attempt);
    all.iter().rfind(is_it).copied()
}

/// What the agent printed to stderr, as the end of its log.
pub(super) fn errors(path: &Path) -> String {
    let (lines, _) = log::last_lines(path, ERROR_LINES, None, false);
    if lines.is_empty() { String::new() } else { format!("--- stderr\n{}\n", lines.join("\n")) }
}
