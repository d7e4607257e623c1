//! Committed iterations of a run, as views show them.

use serde::Serialize;
use serde_json::{Map, Value};
use steadfast_model::run::{AgentDecision, Plan};
use steadfast_store::IterationRow;

use super::RunFacts;
use super::attempts::{BranchView, branch_view};
use super::units::{Timestamp, Usd, known};

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
    /// `None` if a part of them is not known.
    pub tokens: Option<i64>,
    #[serde(rename = "cost_usd")]
    pub cost: Option<Usd>,
    pub duration_seconds: i64,
    #[serde(flatten)]
    pub place: BranchView,
    pub checks: Vec<CheckView>,
    pub fields: Map<String, Value>,
    /// What the agent reported.
    pub files_touched: Vec<String>,
    pub items_completed: Vec<String>,
    pub errors: Vec<String>,
    pub branches: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckView {
    pub holds: Option<bool>,
    pub detail: String,
}

pub(super) fn iteration_view(plan: &Plan, iteration: IterationRow, facts: &RunFacts<'_>) -> IterationView {
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
        tokens: (!iteration.tokens_unknown).then_some(iteration.tokens),
        cost: known(iteration.cost_micros, iteration.cost_unknown),
        duration_seconds: took_ms.max(0) / 1_000,
        place: branch_view(plan, iteration.id, facts),
        checks: checks.map(|check| CheckView { holds: check.holds, detail: check.detail }).collect(),
        fields: iteration.fields.into_iter().map(|(name, value)| (name, Value::String(value))).collect(),
        files_touched: iteration.report.files,
        items_completed: iteration.report.items,
        errors: iteration.report.errors,
        branches: iteration.report.branches,
    }
}
