//! Facts about runs that are not in the store: whether an engine holds their lock, their worktrees, and what a dead
//! engine left.

use steadfast_app::overview::now::{self, Now};
use steadfast_app::overview::runs::{self, BranchView, Left, LeftView, RunDetail, RunFacts, is_starting};
use steadfast_engine::attempt::{Attempt, LeftAttempt};
use steadfast_engine::lock::RunLock;
use steadfast_engine::worktree;
use steadfast_model::clock::Millis;
use steadfast_model::run::{RunStatus, StagePlan};
use steadfast_store::{Db, RunLine, RunRow, StoreError};
use steadfast_system::paths::Paths;
use steadfast_system::process::ProcessId;

use crate::fleet;

/// Whether an engine drives the run, or is about to. A lock that cannot be looked at counts as free.
pub fn is_live(paths: &Paths, line: &RunLine, at: Millis) -> bool {
    is_driven(paths, &line.run_id, line.status, line.engine, line.updated_at_ms, at)
}

fn is_driven(
    paths: &Paths,
    run_id: &str,
    status: RunStatus,
    engine: Option<ProcessId>,
    updated: Millis,
    at: Millis,
) -> bool {
    status == RunStatus::Running
        && (is_starting(status, engine, updated, at) || RunLock::is_held(&paths.home, run_id).unwrap_or(false))
}

/// The first page as of now.
pub fn now(db: Db<'_>, paths: &Paths, at: Millis) -> Result<Now, StoreError> {
    let now = now::now(db, paths, &|line| is_live(paths, line, at), at)?;
    Ok(Now { fleet: fleet::look(paths), ..now })
}

/// A run with its stages and its last `most` iterations, or with all of them.
pub fn run_detail(
    db: Db<'_>,
    row: &RunRow,
    paths: &Paths,
    most: Option<usize>,
    at: Millis,
) -> Result<RunDetail, StoreError> {
    let is_live = is_driven(paths, &row.run_id, row.run.status, row.engine, row.updated_at_ms, at);
    run_detail_if(is_live, db, row, paths, most, at)
}

/// The same for a caller that knows whether an engine drives the run.
pub fn run_detail_if(
    is_live: bool,
    db: Db<'_>,
    row: &RunRow,
    paths: &Paths,
    most: Option<usize>,
    at: Millis,
) -> Result<RunDetail, StoreError> {
    let home = &paths.home;
    // Most runs have no worktrees, and looking for thousands of them takes long.
    let has_worktrees = worktree::are_there(home, &row.run_id);
    let branch_of = |id, stage: &StagePlan| {
        let kept = has_worktrees.then(|| worktree::kept(home, &row.run_id, stage, id)).flatten();
        kept.map_or_else(BranchView::default, |kept| BranchView {
            branch: Some(kept.branch),
            worktree: kept.worktree.map(|path| path.to_string_lossy().into_owned()),
            kept_because: kept.stays,
        })
    };
    let left_of = |id| left(&Attempt::at(home, &row.run_id, id));
    let facts = RunFacts { is_live, now: at, branch_of: &branch_of, left_of: &left_of };
    runs::run_detail(db, row, &facts, most)
}

/// What an attempt left whose engine is gone.
fn left(attempt: &Attempt) -> LeftView {
    let (state, pids) = match attempt.left() {
        LeftAttempt::NotStarted => (Left::NotStarted, Vec::new()),
        LeftAttempt::Running(pids) => (Left::Running, pids),
        LeftAttempt::Finished => (Left::Finished, Vec::new()),
        LeftAttempt::Lost => (Left::Lost, Vec::new()),
    };
    LeftView { state, pids }
}
