//! Which run a name means: the newest one of this directory, or none. Runs of other directories are only mentioned.

use std::collections::BTreeSet;

use steadfast_core::clock::{self, Millis};
use steadfast_core::host::process::ProcessId;
use steadfast_core::run::name::RunName;
use steadfast_core::run::{RunKind, RunStatus};
use steadfast_core::store::{RunFilter, RunLine, RunRow, Store};
use steadfast_core::text;
use steadfast_engine::goal_link::GoalLink;
use steadfast_engine::lock::RunLock;
use steadfast_engine::publish::{PublishError, Publisher};

use super::{Here, view};
use crate::failure::{Failure, code};
use crate::output;

/// The reason of a run whose engine died unseen.
pub(super) const ENGINE_GONE: &str = "engine_gone";
/// How long an engine may take to come to a new run.
const STARTING_MS: Millis = 10_000;
/// More places than these are not listed.
const MOST_PLACES: usize = 5;

impl Here {
    /// The store, if there is one.
    pub(super) fn existing_store(&self) -> Result<Option<Store>, Failure> {
        Ok(Store::open_if_there(&self.paths.store)?)
    }

    /// The run that a name means, with the store it is in.
    pub(super) fn find(&self, name: &str) -> Result<(Store, RunRow), Failure> {
        let name: RunName = name.parse()?;
        let Some(store) = self.existing_store()? else { return Err(self.no_run(name.as_str(), &[])) };
        let project = self.project_dir();
        if let Some(row) = store.read().newest_run(&project, self.kind, name.as_str())? {
            self.catch_up(&row)?;
            return Ok((store, row));
        }
        // The registry's key is a name for it, too.
        let key = name.as_str().strip_prefix(&format!("{}-", self.kind));
        if let Some(row) = key.and_then(|key| store.read().newest_run(&project, self.kind, key).transpose()) {
            let row = row?;
            self.catch_up(&row)?;
            return Ok((store, row));
        }
        let everywhere = store.read().runs(RunFilter::default(), usize::MAX)?;
        let of_name: Vec<RunLine> = everywhere.into_iter().filter(|line| line.name == name.as_str()).collect();
        Err(self.no_run(name.as_str(), &of_name))
    }

    /// Shows the end of a run whose engine was killed after saving it and before telling anybody.
    pub(super) fn catch_up(&self, row: &RunRow) -> Result<(), Failure> {
        if row.run.status == RunStatus::Running || self.is_driven(&row.run_id)? {
            return Ok(());
        }
        // Whoever only looks is told what is wrong with the files, and gets the answer all the same.
        if let Err(error) = self.catch_up_files(row) {
            output::note(&format!("note: the state files of {} are not up to date: {error}", row.plan.name));
        }
        if let Some(mut goal) = GoalLink::of_run(&self.paths.home, &self.paths.store, row)? {
            goal.show(row, self.now)?;
        }
        Ok(())
    }

    fn catch_up_files(&self, row: &RunRow) -> Result<(), PublishError> {
        let mut publisher = Publisher::open(&self.paths.home, &self.paths.store, row)?;
        if publisher.is_behind(row)? { publisher.show(row) } else { Ok(()) }
    }

    fn no_run(&self, name: &str, elsewhere: &[RunLine]) -> Failure {
        let kind = self.kind;
        if let Some(entry) = view::entry_by_hand(self, name) {
            let status = text::headline(&entry.status, 30);
            return Failure::new(
                code::NOT_FOUND,
                format!(
                    "{} is an entry that was made by hand ({status}), with no run of ours behind it",
                    called(kind, name)
                ),
                format!(
                    "`steadfast {kind} status {name}` shows it; there is nothing to attach to, to read or to go on with"
                ),
            );
        }
        let project = self.project_dir();
        let message = format!("there is no {kind} named {name} in {project}");
        let of_other_kind = elsewhere.iter().find(|line| line.project_dir == project && line.kind != kind);
        let places: BTreeSet<&str> =
            elsewhere.iter().filter(|line| line.kind == kind).map(|line| line.project_dir.as_str()).collect();
        let hint = if let Some(line) = of_other_kind {
            format!("there is a {0} of that name: `steadfast {0} status {name}`", line.kind)
        } else if places.is_empty() {
            format!("`steadfast {kind} list` shows what there is{}", self.go_up())
        } else {
            let places: Vec<&str> = places.into_iter().take(MOST_PLACES).collect();
            format!("one of that name is in {}: go there first", places.join(", "))
        };
        Failure::new(code::NOT_FOUND, message, hint)
    }

    /// Whether somebody drives the run now.
    pub(super) fn is_driven(&self, run_id: &str) -> Result<bool, Failure> {
        Ok(RunLock::is_held(&self.paths.home, run_id)?)
    }

    /// Whether somebody drives the run now, or is about to.
    pub(super) fn is_live(&self, row: &RunRow) -> Result<bool, Failure> {
        let (status, engine) = (row.run.status, row.engine);
        if status != RunStatus::Running {
            return Ok(false);
        }
        Ok(is_starting(status, engine, row.updated_at_ms, clock::now()) || self.is_driven(&row.run_id)?)
    }
}

/// A run as it stands now, which was there a moment ago.
pub(super) fn stored(store: &Store, run_id: &str) -> Result<RunRow, Failure> {
    let gone = || Failure::new(code::NOT_FOUND, "the run is gone from the store", "run `steadfast doctor`");
    store.read().run(run_id)?.ok_or_else(gone)
}

/// Whether a run was made or opened a moment ago and its engine has not come to it yet. An engine that died has left
/// its number behind.
pub(super) fn is_starting(status: RunStatus, engine: Option<ProcessId>, updated_at_ms: Millis, now: Millis) -> bool {
    let age = now.saturating_sub(updated_at_ms);
    status == RunStatus::Running && engine.is_none() && (0..STARTING_MS).contains(&age)
}

/// `loop NAME`, for people.
pub(super) fn called(kind: RunKind, name: &str) -> String {
    format!("{kind} {name}")
}
