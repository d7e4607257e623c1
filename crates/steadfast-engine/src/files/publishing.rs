//! Writing the public files of a run, in their order: the registry's entry, the completions log, the state. Each is
//! brought up to date on its own, so that one bad file does not keep the others from being written.

use std::path::Path;

use serde_json::{Value, json};
use steadfast_model::run::name::RunName;
use steadfast_model::run::{RunKind, RunStatus};
use steadfast_store::Db;

use super::document::{self, CLAUDE, Edit, Found, Lock};
use super::shown::{Shown, set_owed};
use super::{FilesError, PublicFiles, View, address, completions, loop_state, outputs, pipeline_state, registry};

impl PublicFiles {
    /// Publishes a run for the first time, and creates what is missing: progress files and, of a pipeline, the copy of
    /// its definition. Repeating it, on resuming, changes nothing.
    pub fn begin(&mut self, view: &View<'_>, definition: Option<&str>, db: Db<'_>) -> Result<Vec<String>, FilesError> {
        for stage in &view.plan.stages {
            let _: RunName = stage.name.parse()?;
        }
        let warnings = self.publish(view, db)?;
        let lock = Lock::take(&self.place)?;
        document::sweep(&self.place.directory(&[CLAUDE])?, &lock);
        address::sweep(&self.place)?;
        outputs::prepare(&self.place, view.plan, definition, &lock)?;
        Ok(warnings)
    }

    /// Brings all files up to date with a run. Repeating it changes nothing. A file that cannot be written does not keep
    /// the others from being written: the state lists what is still owed, and the first error is returned at the end.
    /// Returns warnings for the user: files that were moved aside.
    pub fn publish(&mut self, view: &View<'_>, db: Db<'_>) -> Result<Vec<String>, FilesError> {
        let lock = Lock::take(&self.place)?;
        let mut warnings = Vec::new();
        let mut owed = Vec::new();
        let mut first_error = None;
        let shown = self.state.peek(&self.place).map(|state| state.map(Shown::of));
        let shown = shown.unwrap_or_default().filter(|shown| shown.run_id.as_deref() == Some(view.run_id));
        let shown = shown.unwrap_or_default();
        if let Err(error) = self.publish_entry(view, &shown, &lock, &mut warnings) {
            owed.push(registry::FILE);
            first_error.get_or_insert(error);
        }
        let is_logged = shown.is_end_of(view) && !shown.owes(completions::FILE);
        if view.run.status != RunStatus::Running
            && !is_logged
            && let Err(error) = self.publish_end(view, &lock, &mut warnings)
        {
            owed.push(completions::FILE);
            first_error.get_or_insert(error);
        }
        if let Err(error) = self.publish_state(view, db, &owed, &lock, &mut warnings) {
            first_error.get_or_insert(error);
        }
        first_error.map_or(Ok(warnings), Err)
    }

    fn publish_state(
        &mut self,
        view: &View<'_>,
        db: Db<'_>,
        owed: &[&str],
        lock: &Lock,
        warnings: &mut Vec<String>,
    ) -> Result<(), FilesError> {
        let path = self.state.path(&self.place)?;
        self.state.update(&self.place, lock, |found| {
            let mut state = match found {
                Found::Value(state) if state.get("run_id").and_then(Value::as_str) == Some(view.run_id) => state,
                Found::Value(earlier) => {
                    let aside = match self.kind {
                        // The store has an earlier loop of ours; another tool's state exists only here.
                        RunKind::Loop => earlier.get("run_id").is_none_or(|id| !id.is_string()).then(|| path.clone()),
                        // Outputs of an earlier run must not be taken for this one's.
                        RunKind::Pipeline => {
                            Some(self.place.directory(&[CLAUDE, pipeline_state::DIRECTORY, &self.name])?)
                        }
                    };
                    if let Some(aside) = aside {
                        let aside = document::move_aside(&aside, "previous")?;
                        warnings.push(format!("an earlier run of that name was moved to `{}`", aside.display()));
                    }
                    json!({})
                }
                Found::Missing => json!({}),
                Found::Broken(aside) => {
                    warnings.push(broken_file(&aside));
                    json!({})
                }
            };
            let updated = match self.kind {
                RunKind::Loop => loop_state::update(&mut state, view, db)?,
                RunKind::Pipeline => pipeline_state::update(&mut state, view, db)?,
            };
            let changed = set_owed(&mut state, owed) | updated;
            Ok((Edit::write_if(changed, state), ()))
        })
    }

    fn publish_end(&mut self, view: &View<'_>, lock: &Lock, warnings: &mut Vec<String>) -> Result<(), FilesError> {
        self.completions.update(&self.place, lock, |found| {
            let mut list = match found {
                Found::Value(list) => list,
                Found::Missing => json!([]),
                Found::Broken(aside) => {
                    warnings.push(broken_file(&aside));
                    json!([])
                }
            };
            let changed = completions::add(&mut list, view);
            Ok((Edit::write_if(changed, list), ()))
        })
    }
}

pub(super) fn broken_file(aside: &Path) -> String {
    format!("a broken file was moved to `{}` and replaced by a new one", aside.display())
}
