//! The read model of a goal's page and of its report as HTML: the evidence of `goal report`, what was spent over time, and
//! what happened, turn by turn.

mod timeline;

use serde::Serialize;

use super::now::{Action, LimitBar, Point, SpendPace, pace};
use super::queue::{self, QueueEntry};
use super::report::{GoalReport, goal_report};
use super::session::{SessionView, session_view};
use crate::liveness;
use steadfast_model::clock::Millis;
use steadfast_model::goal::proof::Evidence;
use steadfast_model::goal::{Goal, GoalStatus, PausedReason};
use steadfast_model::price::dollars;
use steadfast_model::run::name;
use steadfast_store::{Db, EventFilter, GoalModel, StoreError};
use steadfast_system::paths::Paths;

/// The newest events that the page is made of.
const EVENTS_SEEN: usize = 5_000;
/// Rows of the timeline.
const ROWS_SHOWN: usize = 300;
const EVIDENCE_SHOWN: usize = 50;
/// Points of the curve.
const POINTS: usize = 200;

#[derive(Debug, Clone, Serialize)]
pub struct GoalPage {
    pub report: GoalReport,
    pub bars: Vec<LimitBar>,
    pub pace: Option<SpendPace>,
    /// What was spent so far, over time; at most 200 points.
    pub burn: Vec<Point>,
    /// When the goal was paused or blocked; the last one may be open.
    pub pauses: Vec<Pause>,
    /// What a chart marks: compactions, warnings, the wind-down, checks.
    pub marks: Vec<PageMark>,
    /// Newest first.
    pub timeline: Vec<TimelineRow>,
    /// Older rows that are not in the timeline.
    pub timeline_left_out: usize,
    /// There are more events than those the timeline and the marks were made of.
    pub timeline_is_cut: bool,
    /// Results of verification commands with the end of their output, newest first.
    pub evidence: Vec<EvidenceView>,
    pub models: Vec<ModelSpend>,
    pub queue: Vec<QueueEntry>,
    /// What the session remembers.
    pub memory: Option<SessionView>,
    pub actions: Vec<Action>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pause {
    pub from_ms: Millis,
    pub to_ms: Option<Millis>,
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    Compaction,
    Warning,
    WindDown,
    Passed,
    Failed,
    Extended,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageMark {
    pub at_ms: Millis,
    pub kind: MarkKind,
    pub label: String,
}

/// One event, or several accounting passes in a row as one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimelineRow {
    pub at_ms: Millis,
    /// The kind of the event, as in `goal history`.
    pub kind: String,
    /// What happened, in a few words.
    pub title: String,
    /// A reason, a message or the text of a verdict.
    pub detail: Option<String>,
    pub by: Option<String>,
    pub tokens: i64,
    /// How many events the row stands for.
    pub count: usize,
    pub status_after: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvidenceView {
    pub command: String,
    pub passed: bool,
    pub exit_code: Option<i32>,
    pub timed_out: bool,
    pub duration_ms: i64,
    pub output_tail: String,
    pub output_sha256: String,
    pub git_commit: Option<String>,
    pub git_dirty: Option<bool>,
    pub created_at_ms: Millis,
}

/// What one model used for the goal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelSpend {
    pub model: String,
    pub is_subagent: bool,
    pub responses: i64,
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub cache_creation_tokens: i64,
    pub cache_read_tokens: i64,
    pub cost_usd: Option<f64>,
}

/// Builds the page of a goal, live or over.
pub fn goal_page(db: Db<'_>, goal: &Goal, paths: &Paths, now: Millis) -> Result<GoalPage, StoreError> {
    let goal = &liveness::by_now(db, goal, now)?;
    let report = goal_report(db, goal, paths, now)?;
    let events = db.events(EventFilter::Goal(&goal.goal_id), EVENTS_SEEN)?;
    let (mut timeline, is_cut) = (timeline::rows(&events), events.len() == EVENTS_SEEN);
    let timeline_left_out = timeline.len().saturating_sub(ROWS_SHOWN);
    timeline.truncate(ROWS_SHOWN);
    let snapshot = db.snapshot(&goal.session_id)?;
    let memory = session_view(db, &goal.session_id, paths, now)?;
    Ok(GoalPage {
        bars: pace::bars(goal, now),
        pace: pace::pace(goal, now),
        burn: pace::burn(db, goal, EVENTS_SEEN, POINTS)?,
        pauses: timeline::pauses(&report.timeline),
        marks: timeline::marks(&events, snapshot.and_then(|snapshot| snapshot.compacting_at_ms)),
        timeline,
        timeline_left_out,
        timeline_is_cut: is_cut,
        evidence: db.verifications(&goal.goal_id, EVIDENCE_SHOWN)?.into_iter().map(EvidenceView::from).collect(),
        models: db.models_of_goal(&goal.goal_id)?.into_iter().map(ModelSpend::from).collect(),
        queue: queue::entries(db, &goal.session_id)?,
        actions: actions(goal, memory.as_ref().is_some_and(|session| session.alive)),
        memory,
        report,
    })
}

/// What a person can do about the goal in its state.
fn actions(goal: &Goal, client_runs: bool) -> Vec<Action> {
    let mut actions = match (goal.status, goal.paused_reason) {
        (GoalStatus::Complete | GoalStatus::Abandoned, _) => return Vec::new(),
        (GoalStatus::Active, _) => vec![Action::Pause],
        (_, Some(PausedReason::AccountingError | PausedReason::AccountingUncertain)) => vec![Action::Reconcile],
        (GoalStatus::BudgetLimited, _) => Vec::new(),
        _ => vec![Action::Resume],
    };
    actions.push(Action::Extend);
    actions.extend((!goal.verify.is_empty()).then_some(Action::Verify));
    actions.extend([Action::Complete, Action::Abandon]);
    // A run's goal belongs to its run.
    actions.extend((!client_runs && !name::is_of_goal(&goal.session_id)).then_some(Action::Adopt));
    actions
}

impl From<Evidence> for EvidenceView {
    fn from(run: Evidence) -> Self {
        Self {
            passed: run.passed(),
            command: run.command,
            exit_code: run.exit_code,
            timed_out: run.timed_out,
            duration_ms: run.duration_ms,
            output_tail: run.output_tail,
            output_sha256: run.output_sha256,
            git_commit: run.git_commit,
            git_dirty: run.git_dirty,
            created_at_ms: run.created_at_ms,
        }
    }
}

impl From<GoalModel> for ModelSpend {
    fn from(spent: GoalModel) -> Self {
        let tokens = spent.tokens;
        Self {
            model: spent.model,
            is_subagent: spent.is_subagent,
            responses: spent.responses,
            input_tokens: tokens.input,
            output_tokens: tokens.output,
            cache_creation_tokens: tokens.cache_creation,
            cache_read_tokens: tokens.cache_read,
            cost_usd: spent.cost_micros.map(dollars),
        }
    }
}

#[cfg(test)]
mod tests;
