//! Writing the public files of a run, in their order: the registry's entry, the completions log, the state. Each is
//! brought up to date on its own, so that one bad file does not keep the others from telling the truth.

use std::path::Path;

use serde_json::{Value, json};
use steadfast_model::run::name::RunName;
use steadfast_model::run::{RunKind, RunStatus};
use steadfast_store::Db;

use super::document::{self, CLAUDE, Found, Lock, MOST_TRIES, Put};
use super::shown::{Shown, set_owed};
use super::{FilesError, PublicFiles, View, address, completions, loop_state, outputs, pipeline_state, registry};

impl PublicFiles {
    /// Publishes a run for the first time, and writes what belongs to it and is not there yet: progress files and, of a
    /// pipeline, the copy of its definition. Repeating it, on resuming, changes nothing.
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

    /// Brings all files up to date with a run. Doing it again changes nothing. A file that cannot be written does not
    /// keep the others from being: the first error is told once they are, and the state says what is still owed. Returns
    /// what the user should know: files that had to be put aside.
    pub fn publish(&mut self, view: &View<'_>, db: Db<'_>) -> Result<Vec<String>, FilesError> {
        let lock = Lock::take(&self.place)?;
        let mut warnings = Vec::new();
        let mut owed = Vec::new();
        let mut first_error = None;
        let before = match self.state.take(&self.place, &lock) {
            Ok(found) => self.state_of_run(found, view, &mut warnings),
            Err(error) => Err(error),
        };
        // Without a state, what it would have said is not known; it is not written then, either.
        let (state, shown) = match before {
            Ok(state) => {
                let shown = Shown::of(&state);
                (Some(state), shown)
            }
            Err(error) => {
                first_error = Some(error);
                (None, Shown::default())
            }
        };
        if let Err(error) = self.publish_entry(view, &shown, &lock, &mut warnings) {
            owed.push(registry::FILE);
            first_error.get_or_insert(error);
        }
        let is_told = shown.is_end_of(view) && !shown.owes(completions::FILE);
        if view.run.status != RunStatus::Running
            && !is_told
            && let Err(error) = self.publish_end(view, &lock, &mut warnings)
        {
            owed.push(completions::FILE);
            first_error.get_or_insert(error);
        }
        if let Some(state) = state
            && let Err(error) = self.publish_state(state, view, db, (&owed, &lock), &mut warnings)
        {
            first_error.get_or_insert(error);
        }
        first_error.map_or(Ok(warnings), Err)
    }

    fn publish_state(
        &mut self,
        mut state: Value,
        view: &View<'_>,
        db: Db<'_>,
        (owed, lock): (&[&str], &Lock),
        warnings: &mut Vec<String>,
    ) -> Result<(), FilesError> {
        for _ in 0..MOST_TRIES {
            let updated = match self.kind {
                RunKind::Loop => loop_state::update(&mut state, view, db)?,
                RunKind::Pipeline => pipeline_state::update(&mut state, view, db)?,
            };
            let changed = set_owed(&mut state, owed) | updated;
            if self.state.put(&self.place, lock, state, changed)? == Put::Done {
                return Ok(());
            }
            let found = self.state.take(&self.place, lock)?;
            state = self.state_of_run(found, view, warnings)?;
        }
        Err(self.state.busy(&self.place))
    }

    /// The state as the file has it, if it is this run's; anything else makes room.
    fn state_of_run(&self, found: Found, view: &View<'_>, warnings: &mut Vec<String>) -> Result<Value, FilesError> {
        let state = match found {
            Found::Missing => return Ok(json!({})),
            Found::Broken(aside) => {
                warnings.push(broken(&aside));
                return Ok(json!({}));
            }
            Found::Value(state) => state,
        };
        let run_id = state.get("run_id").and_then(Value::as_str);
        if run_id == Some(view.run_id) {
            return Ok(state);
        }
        let aside = match self.kind {
            // The store has an earlier loop of ours; somebody else's state is nowhere but here.
            RunKind::Loop if run_id.is_some() => return Ok(json!({})),
            RunKind::Loop => self.state.path(&self.place)?,
            // Outputs of an earlier run must not be taken for this one's.
            RunKind::Pipeline => self.place.directory(&[CLAUDE, pipeline_state::DIRECTORY, &self.name])?,
        };
        let aside = document::put_aside(&aside, "previous")?;
        warnings.push(format!("an earlier run of that name was moved to `{}`", aside.display()));
        Ok(json!({}))
    }

    fn publish_end(&mut self, view: &View<'_>, lock: &Lock, warnings: &mut Vec<String>) -> Result<(), FilesError> {
        for _ in 0..MOST_TRIES {
            let mut list = match self.completions.take(&self.place, lock)? {
                Found::Value(list) => list,
                Found::Missing => json!([]),
                Found::Broken(aside) => {
                    warnings.push(broken(&aside));
                    json!([])
                }
            };
            let changed = completions::add(&mut list, view);
            if self.completions.put(&self.place, lock, list, changed)? == Put::Done {
                return Ok(());
            }
        }
        Err(self.completions.busy(&self.place))
    }
}

pub(super) fn broken(aside: &Path) -> String {
    format!("a broken file was moved to `{}` and a new one begun", aside.display())
}
