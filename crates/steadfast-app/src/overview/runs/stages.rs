//! Stages of a run, as views show them, and the stage that ended it.

use serde::Serialize;
use steadfast_model::run::{Plan, Rule, Run, RunReason, RunStatus, StagePlan, StageState, StageStatus, Then};
use steadfast_model::text;
use steadfast_store::RunRow;

use super::units::Timestamp;

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
    /// The stages that it waits for, by name; null for the one before it.
    pub needs: Option<Vec<String>>,
    /// The question that a person has to answer before it starts.
    pub approve: Option<String>,
    /// What the person said.
    pub answer: Option<String>,
    /// Why the pipeline continued although the stage did not end well.
    pub note: Option<String>,
}

/// The stage that ended a run, and why, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndedBy {
    pub stage: u32,
    pub name: String,
    pub why: String,
}

pub(super) fn stage_views(row: &RunRow) -> Vec<StageView> {
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
            needs: stage
                .needs
                .as_ref()
                .map(|needs| needs.iter().filter_map(|need| name_of(&row.plan, *need)).collect()),
            approve: stage.approve.clone(),
            note: note(&row.run, number, stage, &state),
            answer: state.answer,
            reason: state.reason,
        }
    };
    (1_u32..).zip(&row.plan.stages).map(stage_view).collect()
}

fn name_of(plan: &Plan, number: u32) -> Option<String> {
    plan.stage(number).map(|stage| stage.name.clone())
}

/// Why the pipeline continued after a stage that did not end well, because its definition says so.
fn note(run: &Run, number: u32, stage: &StagePlan, reached: &StageState) -> Option<String> {
    if run.ended_by == Some(number) || reached.cut_off {
        return None;
    }
    let reason = RunReason::parse(reached.reason.as_deref()?);
    let is_unheld = reason.is_some_and(|reason| reason == RunReason::Stopped || reason.axis().is_some());
    match reached.status {
        StageStatus::Completed if is_unheld && stage.on_max == Some(Then::Continue) => {
            let rule = rule_name(&stage.completion);
            Some(format!("{rule} did not hold; the pipeline continued (on_max: continue)"))
        }
        StageStatus::Failed if stage.on_fail == Then::Continue => {
            Some("the pipeline continued (on_fail: continue)".to_owned())
        }
        _ => None,
    }
}

/// The rules of a stage that decide, by name.
fn rule_name(rule: &Rule) -> String {
    let gates: Vec<&str> = rule.leaves().filter(|leaf| leaf.is_gate()).map(Rule::name).collect();
    if gates.is_empty() { rule.leaves().map(Rule::name).collect::<Vec<_>>().join("+") } else { gates.join("+") }
}

/// The stage that ended a run, if one did.
pub fn ended_by(plan: &Plan, run: &Run) -> Option<EndedBy> {
    let stage = run.ended_by.filter(|_| run.status != RunStatus::Running)?;
    let (planned, reached) = (plan.stage(stage)?, run.stage_state(stage)?);
    let name = text::headline(&planned.name, 60);
    let (count, rule) = (reached.iterations, rule_name(&planned.completion));
    let iterations = if count == 1 { "iteration" } else { "iterations" };
    let detail = || {
        let detail = run.reason.as_deref().and_then(|reason| reason.split_once(": ")).map(|(_, detail)| detail);
        detail.map(|detail| format!(": {}", text::headline(detail, 120))).unwrap_or_default()
    };
    let why = match run.end_reason() {
        Some(RunReason::MaxIterations) => {
            format!("stage {name} did not hold: {rule} failed after {count} {iterations}")
        }
        Some(RunReason::Stopped) => {
            format!("stage {name} did not hold: its agent said stop after {count} {iterations}, and {rule} failed")
        }
        Some(RunReason::Rejected) => format!("stage {name} was rejected{}", detail()),
        Some(RunReason::Condition) => format!("the condition of stage {name} could not be tested{}", detail()),
        Some(reason) if reason.is_limit() => format!("stage {name} reached its limit ({reason})"),
        _ => format!("stage {name} failed: {}", text::headline(run.reason.as_deref().unwrap_or("unknown"), 120)),
    };
    Some(EndedBy { stage, name: planned.name.clone(), why })
}
