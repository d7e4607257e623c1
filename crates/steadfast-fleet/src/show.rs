//! The read model of a run on the fleet. Its plan and records come from the run directory and are put into a store that
//! lives as long as the command, so that every view says what it says of a run on this machine.

use std::path::{Path, PathBuf};

use steadfast_app::overview::runs::{self, BranchView, Left, LeftView, RunDetail, RunFacts};
use steadfast_model::clock::{self, Millis};
use steadfast_model::run::{AttemptId, Record, RunStatus, StagePlan, StageStatus, Step, machine};
use steadfast_store::{Db, RunRow, Store, StoreError};
use tempfile::TempDir;

use crate::output::CommandError;
use crate::work::RunDirectory;

/// A run in a store of its own.
pub(crate) struct ShownRun {
    store: Store,
    pub(crate) row: RunRow,
    /// The branch of the run.
    branch: String,
    /// Removed with it.
    folder: TempDir,
}

impl ShownRun {
    /// Puts a run into a new store, as a run of `project`.
    pub(crate) fn new(directory: &RunDirectory, project: &str) -> Result<Self, CommandError> {
        let folder = tempfile::Builder::new().prefix("steadfast-fleet-").tempdir()?;
        let mut store = Store::open(&folder.path().join("goals.db"))?;
        let records = directory.records(0)?;
        let row = store.write(|db| rebuild(db, directory, project, records))?;
        let branch = directory.state.run_ref.repo.branch.clone();
        Ok(Self { store, row, branch, folder })
    }

    pub(crate) fn db(&self) -> Db<'_> {
        self.store.read()
    }

    pub(crate) fn home(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn store_file(&self) -> PathBuf {
        self.folder.path().join("goals.db")
    }

    /// The detail with the last `most` iterations, or with all. `is_live` is what the server says.
    pub(crate) fn detail(&self, is_live: bool, most: Option<usize>) -> Result<RunDetail, CommandError> {
        let branch = self.branch.clone();
        let branch_of =
            |_: AttemptId, _: &StagePlan| BranchView { branch: Some(branch.clone()), ..BranchView::default() };
        let left_of = |_: AttemptId| LeftView { state: Left::Lost, pids: Vec::new() };
        let facts = RunFacts { is_live, now: clock::now(), branch_of: &branch_of, left_of: &left_of };
        let mut detail = runs::run_detail(self.db(), &self.row, &facts, most)?;
        detail.run.is_of_fleet = true;
        Ok(detail)
    }
}

/// Creates the run and saves its records, those of each iteration at the time at which it ended.
fn rebuild(db: Db<'_>, directory: &RunDirectory, project: &str, records: Vec<Record>) -> Result<RunRow, StoreError> {
    let (plan, run) = (directory.plan.as_ref(), &directory.state.run);
    let run_id = &directory.state.run_ref.run_id;
    let row = db.create_run(run_id, project, plan, &machine::begin(plan, run.started_at_ms), run.started_at_ms)?;
    let (mut version, mut at) = (row.version, run.started_at_ms);
    let mut part = Vec::new();
    for record in records {
        let time = time_of(&record);
        at = time.unwrap_or(at).max(at);
        part.push(record);
        if time.is_some() {
            version = save(db, run_id, version, run, &mut part, at)?;
        }
    }
    save(db, run_id, version, run, &mut part, run.completed_at_ms.unwrap_or(at))?;
    answer_all(db, run_id, run, at)?;
    db.run(run_id)?.ok_or(StoreError::Stale)
}

fn save(
    db: Db<'_>,
    run_id: &str,
    version: i64,
    run: &steadfast_model::run::Run,
    part: &mut Vec<Record>,
    at: Millis,
) -> Result<i64, StoreError> {
    let step = Step { run: run.clone(), records: std::mem::take(part), acts: Vec::new() };
    db.save_step(run_id, version, &step, at)
}

/// When an iteration was committed, as far as its record says so.
fn time_of(record: &Record) -> Option<Millis> {
    match record {
        Record::Committed { success, .. } => Some(success.ended_at_ms),
        _ => None,
    }
}

/// A stage that asked and no longer waits was answered.
fn answer_all(db: Db<'_>, run_id: &str, run: &steadfast_model::run::Run, at: Millis) -> Result<(), StoreError> {
    for asked in db.approvals(run_id)? {
        let Some(state) = run.stage_state(asked.stage) else { continue };
        let is_open = state.status == StageStatus::AwaitingApproval && run.status == RunStatus::Running;
        if !is_open && state.status != StageStatus::AwaitingApproval {
            let approved = state.status != StageStatus::Failed || state.iterations > 0;
            db.answer_approval(
                run_id,
                asked.stage,
                approved,
                state.answer.as_deref(),
                state.started_at_ms.unwrap_or(at),
            )?;
        }
    }
    Ok(())
}
