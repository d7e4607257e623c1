//! Finds runs by name: a name means the newest run of this project. Runs of other projects are only mentioned in hints.

use std::collections::BTreeSet;

use steadfast_app::overview::runs::is_starting;
use steadfast_engine::goal_link::GoalLink;
use steadfast_engine::lock::RunLock;
use steadfast_engine::publish::{PublishError, Publisher};
use steadfast_model::run::RunStatus;
use steadfast_model::run::name::RunName;
use steadfast_model::{clock, text};
use steadfast_store::{RunFilter, RunLine, RunRow, Store};

use super::{RunContext, view};
use crate::error::{CliError, code};
use crate::output;

/// The most directories that a hint lists.
const MOST_PLACES: usize = 5;

impl RunContext {
    /// The store, if it exists.
    pub(super) fn existing_store(&self) -> Result<Option<Store>, CliError> {
        Ok(Store::open_if_there(&self.paths.store)?)
    }

    /// The run of a name, with its store.
    pub(super) fn find(&self, name: &str) -> Result<(Store, RunRow), CliError> {
        let name: RunName = name.parse()?;
        let Some(store) = self.existing_store()? else { return Err(self.no_run(name.as_str(), &[])) };
        let project = self.project_dir();
        // The key in the registry, `loop-NAME`, is accepted too.
        let of_key = name.as_str().strip_prefix(&format!("{}-", self.kind));
        for name in [Some(name.as_str()), of_key].into_iter().flatten() {
            if let Some(row) = store.read().newest_run(&project, self.kind, name)? {
                self.publish_end(&row)?;
                return Ok((store, row));
            }
        }
        let everywhere = store.read().runs(RunFilter::default(), usize::MAX)?;
        let of_name: Vec<RunLine> = everywhere.into_iter().filter(|line| line.name == name.as_str()).collect();
        Err(self.no_run(name.as_str(), &of_name))
    }

    /// Publishes the end of a run whose engine died after saving it and before updating the state files and the goal.
    pub(super) fn publish_end(&self, row: &RunRow) -> Result<(), CliError> {
        if row.run.status == RunStatus::Running || self.is_driven(&row.run_id)? {
            return Ok(());
        }
        // Only a note: reading commands still work without the files.
        if let Err(error) = self.publish_files(row) {
            output::note(&format!("note: the state files of {} are not up to date: {error}", row.plan.name));
        }
        if let Some(mut goal) = GoalLink::of_run(&self.paths.home, &self.paths.store, row)? {
            goal.show(row, self.now)?;
        }
        Ok(())
    }

    fn publish_files(&self, row: &RunRow) -> Result<(), PublishError> {
        let mut publisher = Publisher::open(&self.paths.home, &self.paths.store, row)?;
        if publisher.is_behind(row)? { publisher.show(row) } else { Ok(()) }
    }

    fn no_run(&self, name: &str, elsewhere: &[RunLine]) -> CliError {
        let kind = self.kind;
        if let Some(entry) = view::manual_entry(self, name) {
            let status = text::headline(&entry.status, 30);
            return CliError::new(
                code::NOT_FOUND,
                format!("{kind} {name} was entered by hand ({status}) and has no run"),
                format!("`steadfast {kind} status {name}` shows the entry; it cannot be attached to or resumed"),
            );
        }
        let project = self.project_dir();
        let message = format!("no {kind} named {name} in {project}");
        let of_other_kind = elsewhere.iter().find(|line| line.project_dir == project && line.kind != kind);
        let places: BTreeSet<&str> =
            elsewhere.iter().filter(|line| line.kind == kind).map(|line| line.project_dir.as_str()).collect();
        let hint = if let Some(line) = of_other_kind {
            format!("a {0} has that name: `steadfast {0} status {name}`", line.kind)
        } else if places.is_empty() {
            format!("`steadfast {kind} list` lists the {kind}s of this project{}", self.project_above_hint())
        } else {
            let places: Vec<&str> = places.into_iter().take(MOST_PLACES).collect();
            format!("one of that name is in {}: run the command there", places.join(", "))
        };
        CliError::new(code::NOT_FOUND, message, hint)
    }

    /// Whether an engine drives the run now.
    pub(super) fn is_driven(&self, run_id: &str) -> Result<bool, CliError> {
        Ok(RunLock::is_held(&self.paths.home, run_id)?)
    }

    /// Whether an engine drives the run now, or is about to.
    pub(super) fn is_live(&self, row: &RunRow) -> Result<bool, CliError> {
        let (status, engine) = (row.run.status, row.engine);
        if status != RunStatus::Running {
            return Ok(false);
        }
        Ok(is_starting(status, engine, row.updated_at_ms, clock::now()) || self.is_driven(&row.run_id)?)
    }
}

/// The current row of a run that existed a moment ago.
pub(super) fn stored(store: &Store, run_id: &str) -> Result<RunRow, CliError> {
    let missing = || CliError::new(code::NOT_FOUND, format!("no run {run_id}"), "run `steadfast doctor`");
    store.read().run(run_id)?.ok_or_else(missing)
}
