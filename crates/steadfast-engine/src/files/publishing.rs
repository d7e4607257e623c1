//! Writing the public files of a run. The order is a promise: the registry's entry, the completions log, the state. So a
//! state that shows a run proves that its entry was written, and an entry that is missing now was removed by a person,
//! unless the registry as a whole was lost (`files/listing.rs`). One bad file does not keep the others from being written.

use serde_json::{Value, json};
use steadfast_model::clock;
use steadfast_model::run::name::RunName;
use steadfast_model::run::{RunKind, RunStatus};
use steadfast_store::Db;

use super::aside::PREVIOUS;
use super::document::{self, CLAUDE, Edit, FoundDocument, Lock};
use super::{FileView, FilesError, PIPELINES, PublicFiles, address, registry, state};

/// A list of runs that ended, each with its last end, for scripts that wait for it. They may remove it once they have
/// read it; a removed entry is written again only if the run ends again.
pub(super) const COMPLETIONS: &str = "loop-completions.json";
/// How many ends of runs stay in the list.
const MOST_ENDS: usize = 1_000;
/// The field that lists the files that could not be written; absent if there are none.
const OWED: &str = "unpublished";

/// What the state file shows.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) run_id: Option<String>,
    pub(super) ended: bool,
    /// Status, reason and time of the end.
    end: [Value; 3],
    pub(super) owed: Vec<String>,
}

impl Shown {
    pub(super) fn of(state: &Value) -> Self {
        let text = |name: &str| state.get(name).and_then(Value::as_str);
        let owed = state.get(OWED).and_then(Value::as_array).into_iter().flatten();
        Self {
            run_id: text("run_id").map(str::to_owned),
            ended: text("status").is_some_and(|status| status != "running"),
            end: ["status", "reason", "completed_at"].map(|name| state.get(name).cloned().unwrap_or_default()),
            owed: owed.filter_map(|file| file.as_str().map(str::to_owned)).collect(),
        }
    }

    pub(super) fn owes(&self, file: &str) -> bool {
        self.owed.iter().any(|owed| owed == file)
    }

    /// Whether it shows this end, which means that the completions log had it.
    pub(super) fn is_end_of(&self, view: &FileView<'_>) -> bool {
        let run = view.run;
        let end = [json!(run.status.to_string()), json!(run.reason), json!(run.completed_at_ms.map(clock::to_rfc3339))];
        self.ended && self.run_id.as_deref() == Some(view.run_id) && self.end == end
    }
}

impl PublicFiles {
    /// Publishes a run for the first time, and creates what is missing: progress files and, of a pipeline, the copy of
    /// its definition. Repeating it, on resuming, changes nothing.
    pub fn begin(
        &mut self,
        view: &FileView<'_>,
        definition: Option<&str>,
        db: Db<'_>,
    ) -> Result<Vec<String>, FilesError> {
        for stage in &view.plan.stages {
            let _: RunName = stage.name.parse()?;
        }
        let warnings = self.publish(view, db)?;
        let lock = Lock::take(&self.place)?;
        document::sweep(&self.place.directory(&[CLAUDE])?, &lock);
        document::sweep(&self.place.directory(&self.artifact_folder())?, &lock);
        address::sweep(&self.place)?;
        self.prepare(view.plan, definition, &lock)?;
        Ok(warnings)
    }

    /// Brings all files up to date with a run. Repeating it changes nothing. A file that cannot be written does not keep
    /// the others from being written: the state lists what is still owed, and the first error is returned at the end.
    /// Returns warnings for the user: files that were moved aside.
    pub fn publish(&mut self, view: &FileView<'_>, db: Db<'_>) -> Result<Vec<String>, FilesError> {
        let lock = Lock::take(&self.place)?;
        let mut warnings = Vec::new();
        let mut owed = self.owed_outputs.clone();
        let mut first_error = None;
        let shown = self.state.peek(&self.place).map(|state| state.map(Shown::of));
        let shown = shown.unwrap_or_default().filter(|shown| shown.run_id.as_deref() == Some(view.run_id));
        let shown = shown.unwrap_or_default();
        if let Err(error) = self.publish_entry(view, &shown, &lock, &mut warnings) {
            owed.push(registry::FILE.to_owned());
            first_error.get_or_insert(error);
        }
        let is_logged = shown.is_end_of(view) && !shown.owes(COMPLETIONS);
        if view.run.status != RunStatus::Running
            && !is_logged
            && let Err(error) = self.publish_end(view, &lock, &mut warnings)
        {
            owed.push(COMPLETIONS.to_owned());
            first_error.get_or_insert(error);
        }
        if let Err(error) = self.publish_state(view, db, &owed, &lock, &mut warnings) {
            first_error.get_or_insert(error);
        }
        first_error.map_or(Ok(warnings), Err)
    }

    fn publish_state(
        &mut self,
        view: &FileView<'_>,
        db: Db<'_>,
        owed: &[String],
        lock: &Lock,
        warnings: &mut Vec<String>,
    ) -> Result<(), FilesError> {
        let path = self.state.path(&self.place)?;
        self.state.update(&self.place, lock, |found| {
            let mut state = match found {
                FoundDocument::Value(state) if state.get("run_id").and_then(Value::as_str) == Some(view.run_id) => {
                    state
                }
                FoundDocument::Value(_) if self.has_begun => json!({}),
                FoundDocument::Value(earlier) => {
                    let aside = match self.kind {
                        // The store has an earlier loop of ours; another tool's state exists only here.
                        RunKind::Loop => earlier.get("run_id").is_none_or(|id| !id.is_string()).then(|| path.clone()),
                        // Outputs of an earlier run must not be taken for this one's.
                        RunKind::Pipeline => Some(self.place.directory(&[CLAUDE, PIPELINES, &self.name])?),
                    };
                    if let Some(aside) = aside {
                        let aside = document::move_aside(&aside, PREVIOUS)?;
                        warnings.push(format!("an earlier run of that name was moved to `{}`", aside.display()));
                    }
                    json!({})
                }
                missing => missing.value_or(json!({}), warnings),
            };
            let updated = state::update(&mut state, view, db)?;
            let changed = set_owed(&mut state, owed) | updated;
            Ok((Edit::write_if(changed, state), ()))
        })?;
        self.has_begun = true;
        Ok(())
    }

    pub(super) fn publish_end(
        &mut self,
        view: &FileView<'_>,
        lock: &Lock,
        warnings: &mut Vec<String>,
    ) -> Result<(), FilesError> {
        self.completions.update(&self.place, lock, |found| {
            let mut list = found.value_or(json!([]), warnings);
            let changed = list.as_array_mut().is_some_and(|entries| {
                let is_written = write_end(entries, end_of(view));
                drop_oldest(entries, view.run_id) | is_written
            });
            Ok((Edit::write_if(changed, list), ()))
        })
    }
}

/// Writes the end of a run in the place of its earlier end; returns whether that changed anything.
fn write_end(entries: &mut Vec<Value>, end: Value) -> bool {
    let Some(found) = entries.iter_mut().rev().find(|entry| entry.get("run_id") == end.get("run_id")) else {
        entries.push(end);
        return true;
    };
    let (Some(found), Value::Object(end)) = (found.as_object_mut(), end) else { return false };
    // Of an earlier end.
    let is_removed = !end.contains_key(state::ENDED_BY) && found.shift_remove(state::ENDED_BY).is_some();
    end.into_iter().fold(is_removed, |changed, (name, value)| document::set(found, &name, value) | changed)
}

/// Drops the oldest ends beyond the maximum, but for that of this run; returns whether there were any. An entry without
/// the id of a run is not ours.
fn drop_oldest(entries: &mut Vec<Value>, run_id: &str) -> bool {
    let id_of = |entry: &Value| entry.get("run_id").and_then(Value::as_str).map(str::to_owned);
    let mut surplus = entries.iter().filter_map(id_of).count().saturating_sub(MOST_ENDS);
    let before = entries.len();
    entries.retain(|entry| {
        let is_dropped = surplus > 0 && id_of(entry).is_some_and(|id| id != run_id);
        surplus -= usize::from(is_dropped);
        !is_dropped
    });
    entries.len() < before
}

pub(super) fn set_owed(state: &mut Value, owed: &[String]) -> bool {
    let Some(state) = state.as_object_mut() else { return false };
    if owed.is_empty() { state.shift_remove(OWED).is_some() } else { document::set(state, OWED, json!(owed)) }
}

/// An entry of the completions log.
fn end_of(view: &FileView<'_>) -> Value {
    let (plan, run) = (view.plan, view.run);
    let what = if plan.kind == RunKind::Loop { "loop_type" } else { "pipeline" };
    let mut end = json!({
        "session": plan.name,
        "type": plan.kind.to_string(),
        "status": run.status.to_string(),
        "completed_at": run.completed_at_ms.map(clock::to_rfc3339),
        "reason": run.reason,
        what: plan.title,
        "run_id": view.run_id,
    });
    if let (Some(end), Some(stage)) =
        (end.as_object_mut(), state::ended_by(view).filter(|_| plan.kind == RunKind::Pipeline))
    {
        document::set(end, state::ENDED_BY, stage);
    }
    end
}
