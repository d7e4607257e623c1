//! The read model of runs: the rows of `list` and the detail of `status`. Scripts rely on the field names and their
//! order; `docs/schema/` describes them.

mod attempts;
mod iterations;
mod left;
pub mod page;
pub mod progress;
mod stages;
pub mod talk;
mod units;

use serde::Serialize;

use self::talk::{AppointmentView, ApprovalView, NoteView};
use super::RunGoal;
use steadfast_model::clock::Millis;
use steadfast_model::limit::Axis;
use steadfast_model::run::{AttemptId, RunKind, RunReason, RunStatus, StagePlan, WaitReason, name};
use steadfast_store::{Db, RunLine, RunRow, StoreError};
use steadfast_system::process::ProcessId;

pub use attempts::{AttemptView, BranchView, Left, LeftView};
pub use iterations::{CheckView, IterationView};
pub use stages::{EndedBy, StageView, ended_by};
pub use units::{Hours, Timestamp, Usd};

use attempts::attempt_views;
use iterations::iteration_view;
use stages::stage_views;
use units::known;

/// How long an engine may take to lock a run after it was created or reopened.
const STARTING_MS: Millis = 10_000;

/// Facts about a run that are not in the store: the caller looks at engine locks and worktrees.
pub struct RunFacts<'a> {
    pub is_live: bool,
    pub now: Millis,
    /// The branch of an attempt of a stage.
    pub branch_of: &'a dyn Fn(AttemptId, &StagePlan) -> BranchView,
    /// What an attempt left whose engine is gone. Not asked while an engine drives the run.
    pub left_of: &'a dyn Fn(AttemptId) -> LeftView,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunView {
    pub name: String,
    pub kind: RunKind,
    /// As stored, except that a run whose engine is gone does not count as running.
    pub status: RunStatus,
    /// Committed iterations of the current stage.
    pub iteration: u32,
    pub max_iterations: u32,
    pub started_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    pub reason: Option<String>,
    /// `None` if a part of them is not known.
    pub tokens: Option<i64>,
    #[serde(rename = "cost_usd")]
    pub cost: Option<Usd>,
    /// The engine's, while it is live.
    pub pid: Option<i64>,
    #[serde(rename = "live")]
    pub is_live: bool,
    /// The engine died before it recorded an end: the run can be resumed or killed.
    #[serde(rename = "engine_gone")]
    pub is_orphaned: bool,
    #[serde(rename = "type")]
    pub title: String,
    pub stage: u32,
    pub project: String,
    pub run_id: String,
    #[serde(skip)]
    pub is_stop_requested: bool,
    /// A stage waits for a person.
    #[serde(skip)]
    pub is_asking: bool,
    /// It runs on the fleet, not on this machine.
    #[serde(skip)]
    pub is_of_fleet: bool,
}

/// An entry of the registry that a user wrote by hand, without a run. Missing values are null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EntryView {
    pub name: String,
    pub kind: RunKind,
    pub status: String,
    pub iteration: Option<u32>,
    pub max_iterations: Option<u64>,
    #[serde(rename = "type")]
    pub title: Option<String>,
    pub started_at: Option<String>,
    pub completed_at: Option<Timestamp>,
    pub reason: Option<String>,
    pub tokens: Option<i64>,
    pub cost_usd: Option<f64>,
    pub pid: Option<i64>,
    #[serde(rename = "live")]
    pub is_live: bool,
    pub by_hand: bool,
    /// Empty in a detail, absent in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<IterationView>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ListedRun {
    Run(RunView),
    Entry(EntryView),
}

/// `list --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunList {
    pub runs: Vec<ListedRun>,
    pub appointments: Vec<AppointmentView>,
}

/// A run with its limits, stages and iterations: `status --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunDetail {
    #[serde(flatten)]
    pub run: RunView,
    pub limits: LimitsView,
    #[serde(rename = "stopping")]
    pub is_stopping: bool,
    pub waiting_until: Option<Timestamp>,
    pub waiting_for: Option<WaitReason>,
    pub under_way: Vec<AttemptView>,
    /// The stage that ended the run before its end.
    pub ended_by: Option<EndedBy>,
    pub stages: Vec<StageView>,
    pub history: Vec<IterationView>,
    /// How the goal that the run pursues stands.
    pub goal: Option<RunGoal>,
    /// What people said to the run.
    pub notes: Vec<NoteView>,
    /// Questions before stages, with their answers.
    pub approvals: Vec<ApprovalView>,
    /// Wall time, without the time the run was over before it was reopened.
    #[serde(skip)]
    pub elapsed_seconds: i64,
    /// Imported from an older tool without its prompts: it cannot be resumed.
    #[serde(skip)]
    pub is_history_only: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LimitsView {
    pub tokens: Option<i64>,
    pub usd: Option<Usd>,
    pub hours: Option<Hours>,
}

impl RunView {
    pub fn new(line: RunLine, is_live: bool) -> Self {
        let (status, is_orphaned) = shown_status(line.status, is_live);
        Self {
            name: line.name,
            kind: line.kind,
            status,
            iteration: line.iterations,
            max_iterations: line.max_iterations,
            started_at: Timestamp(line.started_at_ms),
            completed_at: line.completed_at_ms.map(Timestamp),
            reason: line.reason.or_else(|| gone(is_orphaned)),
            tokens: (!line.tokens_unknown).then_some(line.tokens),
            cost: known(line.cost_micros, line.cost_unknown),
            pid: line.engine.filter(|_| is_live).map(|engine| engine.pid),
            is_live,
            is_orphaned,
            title: line.title,
            stage: line.stage,
            project: line.project_dir,
            run_id: line.run_id,
            is_stop_requested: line.is_stop_requested,
            is_asking: line.is_asking,
            is_of_fleet: false,
        }
    }

    pub fn of_row(row: &RunRow, is_live: bool) -> Self {
        let (plan, run) = (&row.plan, &row.run);
        let (status, is_orphaned) = shown_status(run.status, is_live);
        Self {
            name: plan.name.clone(),
            kind: plan.kind,
            status,
            iteration: run.stage_state(run.stage).map_or(0, |stage| stage.iterations),
            max_iterations: run.max_iterations(plan, run.stage),
            started_at: Timestamp(run.started_at_ms),
            completed_at: run.completed_at_ms.map(Timestamp),
            reason: run.reason.clone().or_else(|| gone(is_orphaned)),
            tokens: (!run.tokens_unknown).then_some(run.tokens),
            cost: known(run.cost_micros, run.cost_unknown),
            pid: row.engine.filter(|_| is_live).map(|engine| engine.pid),
            is_live,
            is_orphaned,
            title: plan.title.clone(),
            stage: run.stage,
            project: row.project_dir.clone(),
            run_id: row.run_id.clone(),
            is_stop_requested: row.stop_requested.is_some(),
            is_asking: run.is_asking(),
            is_of_fleet: false,
        }
    }
}

impl RunView {
    /// What the user types before a verb about this run.
    pub fn command(&self) -> String {
        if self.is_of_fleet { "steadfast fleet".to_owned() } else { format!("steadfast {}", self.kind) }
    }
}

/// The status to show, and whether the engine died before the run ended.
fn shown_status(status: RunStatus, is_live: bool) -> (RunStatus, bool) {
    let is_orphaned = status == RunStatus::Running && !is_live;
    (if is_orphaned { RunStatus::UnknownTermination } else { status }, is_orphaned)
}

fn gone(is_orphaned: bool) -> Option<String> {
    is_orphaned.then(|| RunReason::EngineGone.into())
}

/// Whether a run was created or reopened a moment ago and no engine has locked it yet. An engine that died has left its
/// process id.
pub fn is_starting(status: RunStatus, engine: Option<ProcessId>, updated_at_ms: Millis, now: Millis) -> bool {
    let age = now.saturating_sub(updated_at_ms);
    status == RunStatus::Running && engine.is_none() && (0..STARTING_MS).contains(&age)
}

/// Builds the detail of a run with its last `most` iterations in order, or with all of them.
pub fn run_detail(
    db: Db<'_>,
    row: &RunRow,
    facts: &RunFacts<'_>,
    most: Option<usize>,
) -> Result<RunDetail, StoreError> {
    let (plan, run) = (&row.plan, &row.run);
    let history = match most {
        Some(most) => {
            let mut last = db.last_iterations(&row.run_id, most)?;
            last.reverse();
            last
        }
        None => db.run_history(&row.run_id, None, usize::MAX)?,
    };
    let until = run.completed_at_ms.unwrap_or(facts.now);
    let goal = if plan.pursues_goal() { db.goal(&name::of_goal(&row.run_id))? } else { None };
    Ok(RunDetail {
        run: RunView::of_row(row, facts.is_live),
        limits: LimitsView {
            tokens: plan.limits.limits.get(Axis::Tokens),
            usd: plan.limits.limits.get(Axis::Usd).map(Usd),
            hours: plan.limits.limits.get(Axis::Hours).map(Hours),
        },
        is_stopping: row.stop_requested.is_some() || run.stopping.is_some(),
        waiting_until: run.wait.as_ref().map(|wait| Timestamp(wait.until_ms)),
        waiting_for: run.wait.as_ref().map(|wait| wait.why),
        under_way: attempt_views(plan, run, facts),
        ended_by: ended_by(plan, run),
        stages: stage_views(row),
        history: history.into_iter().map(|iteration| iteration_view(plan, iteration, facts)).collect(),
        goal: goal.as_ref().map(RunGoal::from),
        notes: talk::note_views(db, &row.run_id)?,
        approvals: talk::approval_views(db, row)?,
        elapsed_seconds: (until - run.started_at_ms - run.closed_ms).max(0) / 1_000,
        is_history_only: plan.is_history_only(),
    })
}

#[cfg(test)]
mod tests;
