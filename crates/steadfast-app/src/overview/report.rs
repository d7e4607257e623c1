//! The read model of `goal report`: the evidence for a whole goal, also for one that is over.

use serde::Serialize;
use serde_json::Value;

use super::{GoalView, goal_view, without_secrets};
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::Goal;
use steadfast_model::goal::event::EventKind;
use steadfast_model::goal::proof::Evidence;
use steadfast_model::limit::{Axis, Standing};
use steadfast_model::text;
use steadfast_store::{Db, EventRow, StoreError};
use steadfast_system::paths::Paths;

#[derive(Debug, Clone, Serialize)]
pub struct GoalReport {
    pub goal: GoalView,
    pub limits: Vec<LimitUse>,
    pub checks: Vec<ReportedCheck>,
    pub verdicts: Vec<VerdictView>,
    /// Earlier texts of the objective, the oldest first.
    pub objectives: Vec<ObjectiveChange>,
    /// Every change of the status, the oldest first.
    pub timeline: Vec<StatusChange>,
    /// What an agent tried and may not do.
    pub refused: Vec<RefusedVerb>,
}

/// What is used of a limit, in words.
#[derive(Debug, Clone, Serialize)]
pub struct LimitUse {
    pub limit: &'static str,
    pub used: String,
    pub most: String,
}

/// A verification command with its newest result; null if it never ran.
#[derive(Debug, Clone, Serialize)]
pub struct ReportedCheck {
    pub command: String,
    pub result: Option<ReportedResult>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ReportedResult {
    pub passed: bool,
    pub exit_code: Option<i32>,
    pub timed_out: bool,
    pub duration_ms: i64,
    pub output_sha256: String,
    pub git_commit: Option<String>,
    pub git_dirty: Option<bool>,
    pub created_at_ms: Millis,
}

#[derive(Debug, Clone, Serialize)]
pub struct VerdictView {
    pub verdict: String,
    pub reason: Option<String>,
    pub evidence: Vec<String>,
    pub for_current_objective: bool,
    pub created_at_ms: Millis,
}

#[derive(Debug, Clone, Serialize)]
pub struct ObjectiveChange {
    pub previous: String,
    pub by: Option<String>,
    pub created_at_ms: Millis,
}

#[derive(Debug, Clone, Serialize)]
pub struct StatusChange {
    pub kind: String,
    pub from: Option<String>,
    pub to: Option<String>,
    pub reason: Option<String>,
    pub by: Option<String>,
    pub created_at_ms: Millis,
}

#[derive(Debug, Clone, Serialize)]
pub struct RefusedVerb {
    pub verb: String,
    pub by: Option<String>,
    pub created_at_ms: Millis,
}

/// Builds the report of a goal as of now.
pub fn goal_report(db: Db<'_>, goal: &Goal, paths: &Paths, now: Millis) -> Result<GoalReport, StoreError> {
    let until = if goal.status.is_live() { now } else { goal.updated_at_ms };
    let used = goal.used(until);
    let limits = goal.limits.standings(&used).map(|Standing { axis, used, most }| {
        // How far the deadline is away is no amount that the goal used.
        let used = if axis == Axis::Deadline { clock::to_local(until) } else { axis.format(used) };
        LimitUse { limit: axis.into(), used, most: axis.format(goal.limits.get(axis).unwrap_or(most)) }
    });
    let hash = text::fingerprint(&goal.objective);
    let events = |kind| db.events_of_kinds(&goal.goal_id, &[kind]);
    let verdicts = events(EventKind::EvaluatorVerdict)?;
    let objectives = events(EventKind::GoalObjectiveUpdated)?;
    let refused = events(EventKind::PrivilegedVerbRefused)?;
    Ok(GoalReport {
        goal: goal_view(db, goal, paths, now)?,
        limits: limits.collect(),
        checks: checks(goal, &db.newest_verifications(&goal.goal_id)?),
        verdicts: verdicts.into_iter().map(|event| verdict(&event, &hash)).collect(),
        objectives: objectives.into_iter().map(objective_change).collect(),
        timeline: db.status_changes(&goal.goal_id)?.into_iter().map(status_change).collect(),
        refused: refused.into_iter().map(refused_verb).collect(),
    })
}

/// The goal's commands in their order.
fn checks(goal: &Goal, newest: &[Evidence]) -> Vec<ReportedCheck> {
    let result = |run: &Evidence| ReportedResult {
        passed: run.passed(),
        exit_code: run.exit_code,
        timed_out: run.timed_out,
        duration_ms: run.duration_ms,
        output_sha256: run.output_sha256.clone(),
        git_commit: run.git_commit.clone(),
        git_dirty: run.git_dirty,
        created_at_ms: run.created_at_ms,
    };
    // Evidence names its command without secrets.
    let check = |command: String| ReportedCheck {
        result: newest.iter().find(|run| run.command == command).map(result),
        command,
    };
    without_secrets(&goal.verify).into_iter().map(check).collect()
}

fn words(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn verdict(event: &EventRow, current: &str) -> VerdictView {
    let evidence = event.payload["evidence"].as_array().into_iter().flatten();
    VerdictView {
        verdict: words(&event.payload["verdict"]).unwrap_or_else(|| "unknown".to_owned()),
        reason: words(&event.payload["reason"]),
        evidence: evidence.filter_map(words).collect(),
        for_current_objective: event.payload["objective_hash"] == current,
        created_at_ms: event.created_at_ms,
    }
}

fn objective_change(event: EventRow) -> ObjectiveChange {
    let previous = words(&event.payload["previous_objective"]).unwrap_or_default();
    ObjectiveChange { previous, by: event.actor, created_at_ms: event.created_at_ms }
}

fn status_change(event: EventRow) -> StatusChange {
    let keys = ["reason", "cause", "message", "limit", "completed_by"];
    StatusChange {
        reason: keys.into_iter().find_map(|key| words(&event.payload[key])),
        kind: event.kind,
        from: event.status_before,
        to: event.status_after,
        by: event.actor,
        created_at_ms: event.created_at_ms,
    }
}

fn refused_verb(event: EventRow) -> RefusedVerb {
    let verb = words(&event.payload["verb"]).unwrap_or_default();
    RefusedVerb { verb, by: event.actor, created_at_ms: event.created_at_ms }
}
