//! The read model of runs: the rows of `list` and the detail of `status`. Scripts rely on the field names and their
//! order; `docs/schema/` describes them.

pub mod talk;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use self::talk::{AppointmentView, ApprovalView, NoteView};
use super::RunGoal;
use steadfast_model::clock::{self, Millis};
use steadfast_model::limit::Axis;
use steadfast_model::price::dollars;
use steadfast_model::run::{
    ActiveAttempt, AgentDecision, AttemptId, Phase, Plan, RunKind, RunStatus, StagePlan, StageStatus, WaitReason, name,
};
use steadfast_store::{Db, IterationRow, RunLine, RunRow, StoreError};
use steadfast_system::process::ProcessId;

/// How long an engine may take to lock a run after it was created or reopened.
const STARTING_MS: Millis = 10_000;

/// A point in time, RFC 3339 in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp(pub Millis);

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&clock::to_rfc3339(self.0))
    }
}

/// Millionths of a US dollar, dollars in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usd(pub i64);

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(dollars(self.0))
    }
}

/// A cost, unless a part of it is not known.
fn known(micros: i64, is_unknown: bool) -> Option<Usd> {
    (!is_unknown).then_some(Usd(micros))
}

/// A time span in milliseconds, hours in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours(pub Millis);

impl Serialize for Hours {
    #[expect(clippy::cast_precision_loss, reason = "time spans are far below 2^53 milliseconds")]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / 3_600_000.0)
    }
}

/// Facts about a run that are not in the store: the caller looks at engine locks and worktrees.
pub struct RunFacts<'a> {
    pub is_live: bool,
    pub now: Millis,
    /// The branch of an attempt; the flag says whether its stage is parallel.
    pub branch_of: &'a dyn Fn(AttemptId, &StagePlan) -> BranchView,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunView {
    pub name: String,
    pub kind: RunKind,
    pub status: RunStatus,
    /// Committed iterations of the current stage.
    pub iteration: u32,
    pub max_iterations: u32,
    pub started_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    pub reason: Option<String>,
    pub tokens: i64,
    #[serde(rename = "cost_usd")]
    pub cost: Option<Usd>,
    /// The engine's, while it is live.
    pub pid: Option<i64>,
    #[serde(rename = "live")]
    pub is_live: bool,
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

/// The branch that an attempt works on, if not in the project itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BranchView {
    pub branch: Option<String>,
    /// The branch's worktree, while it exists.
    pub worktree: Option<String>,
    /// Why the worktree still exists although its work is done.
    #[serde(skip)]
    pub kept_because: Option<String>,
}

/// An attempt that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttemptView {
    pub stage: u32,
    pub iteration: u32,
    pub attempt: u32,
    pub phase: &'static str,
    pub errors: u32,
    #[serde(flatten)]
    pub place: BranchView,
    pub waiting_until: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StageView {
    pub stage: u32,
    pub name: String,
    #[serde(rename = "loop")]
    pub loop_type: Option<String>,
    #[serde(rename = "runs")]
    pub max_iterations: u32,
    pub parallel: bool,
    pub status: StageStatus,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    #[serde(rename = "iterations_run")]
    pub iterations: u32,
    pub reason: Option<String>,
}

/// A committed iteration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IterationView {
    pub stage: u32,
    pub stage_name: Option<String>,
    pub iteration: u32,
    pub timestamp: Timestamp,
    pub plateau: bool,
    pub reasoning: Option<String>,
    pub summary: Option<String>,
    pub decision: Option<AgentDecision>,
    pub attempts: u32,
    pub tokens: i64,
    #[serde(rename = "cost_usd")]
    pub cost: Option<Usd>,
    pub duration_seconds: i64,
    #[serde(flatten)]
    pub place: BranchView,
    pub checks: Vec<CheckView>,
    pub fields: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckView {
    pub holds: Option<bool>,
    pub detail: String,
}

impl RunView {
    pub fn new(line: RunLine, is_live: bool) -> Self {
        Self {
            name: line.name,
            kind: line.kind,
            status: line.status,
            iteration: line.iterations,
            max_iterations: line.max_iterations,
            started_at: Timestamp(line.started_at_ms),
            completed_at: line.completed_at_ms.map(Timestamp),
            reason: line.reason,
            tokens: line.tokens,
            cost: known(line.cost_micros, line.cost_unknown),
            pid: line.engine.filter(|_| is_live).map(|engine| engine.pid),
            is_live,
            title: line.title,
            stage: line.stage,
            project: line.project_dir,
            run_id: line.run_id,
            is_stop_requested: line.is_stop_requested,
            is_asking: line.is_asking,
        }
    }

    pub fn of_row(row: &RunRow, is_live: bool) -> Self {
        let (plan, run) = (&row.plan, &row.run);
        Self {
            name: plan.name.clone(),
            kind: plan.kind,
            status: run.status,
            iteration: run.stage_state(run.stage).map_or(0, |stage| stage.iterations),
            max_iterations: run.max_iterations(plan, run.stage),
            started_at: Timestamp(run.started_at_ms),
            completed_at: run.completed_at_ms.map(Timestamp),
            reason: run.reason.clone(),
            tokens: run.tokens,
            cost: known(run.cost_micros, run.cost_unknown),
            pid: row.engine.filter(|_| is_live).map(|engine| engine.pid),
            is_live,
            title: plan.title.clone(),
            stage: run.stage,
            project: row.project_dir.clone(),
            run_id: row.run_id.clone(),
            is_stop_requested: row.stop_requested.is_some(),
            is_asking: run.is_asking(),
        }
    }

    /// Whether the engine died before the run ended.
    pub fn is_orphaned(&self) -> bool {
        self.status == RunStatus::Running && !self.is_live
    }
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
        under_way: run.active.iter().map(|attempt| attempt_view(plan, attempt, facts)).collect(),
        stages: stage_views(row),
        history: history.into_iter().map(|iteration| iteration_view(plan, iteration, facts)).collect(),
        goal: goal.as_ref().map(RunGoal::from),
        notes: talk::note_views(db, &row.run_id)?,
        approvals: talk::approval_views(db, row)?,
        elapsed_seconds: (until - run.started_at_ms - run.closed_ms).max(0) / 1_000,
        is_history_only: plan.stages.iter().any(|stage| stage.prompt.is_empty()),
    })
}

fn stage_views(row: &RunRow) -> Vec<StageView> {
    let stage_view = |(number, stage): (u32, &StagePlan)| {
        let state = row.run.stage_state(number).cloned().unwrap_or_default();
        StageView {
            stage: number,
            name: stage.name.clone(),
            loop_type: stage.loop_type.clone(),
            max_iterations: row.run.max_iterations(&row.plan, number),
            parallel: stage.parallel,
            status: state.status,
            started_at: state.started_at_ms.map(Timestamp),
            completed_at: state.completed_at_ms.map(Timestamp),
            iterations: state.iterations,
            reason: state.reason,
        }
    };
    (1_u32..).zip(&row.plan.stages).map(stage_view).collect()
}

fn branch_view(plan: &Plan, id: AttemptId, facts: &RunFacts<'_>) -> BranchView {
    plan.stage(id.stage).map_or_else(BranchView::default, |stage| (facts.branch_of)(id, stage))
}

fn attempt_view(plan: &Plan, attempt: &ActiveAttempt, facts: &RunFacts<'_>) -> AttemptView {
    AttemptView {
        stage: attempt.id.stage,
        iteration: attempt.id.iteration,
        attempt: attempt.id.attempt,
        phase: match attempt.phase {
            Phase::CheckingBefore | Phase::Checking(_) => "checking",
            Phase::Running => "running",
            Phase::Resting => "resting",
        },
        errors: attempt.errors,
        place: branch_view(plan, attempt.id, facts),
        waiting_until: attempt.wait.as_ref().map(|wait| Timestamp(wait.until_ms)),
    }
}

fn iteration_view(plan: &Plan, iteration: IterationRow, facts: &RunFacts<'_>) -> IterationView {
    let checks = iteration.facts.into_iter();
    let took_ms = iteration.committed_at_ms.saturating_sub(iteration.started_at_ms);
    IterationView {
        stage: iteration.id.stage,
        stage_name: plan.stage(iteration.id.stage).map(|stage| stage.name.clone()),
        iteration: iteration.id.iteration,
        timestamp: Timestamp(iteration.committed_at_ms),
        plateau: iteration.plateau.unwrap_or(false),
        reasoning: iteration.reasoning,
        summary: iteration.summary,
        decision: iteration.decision,
        attempts: iteration.id.attempt,
        tokens: iteration.tokens,
        cost: known(iteration.cost_micros, iteration.cost_unknown),
        duration_seconds: took_ms.max(0) / 1_000,
        place: branch_view(plan, iteration.id, facts),
        checks: checks.map(|check| CheckView { holds: check.holds, detail: check.detail }).collect(),
        fields: iteration.fields.into_iter().map(|(name, value)| (name, Value::String(value))).collect(),
    }
}

#[cfg(test)]
mod tests;
