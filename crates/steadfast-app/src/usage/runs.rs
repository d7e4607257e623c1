//! The read model of `usage runs`: what each iteration of every run used. The store has it for every agent, with or
//! without a transcript.

use serde::{Serialize, Serializer};

use super::report::Amounts;
use steadfast_model::clock::{self, Millis};
use steadfast_model::run::RunKind;
use steadfast_store::IterationUsage;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunsReport {
    view: &'static str,
    pub totals: RunAmounts,
    pub rows: Vec<RunUsageRow>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RunAmounts {
    #[serde(flatten)]
    pub amounts: Amounts,
    #[serde(rename = "seconds", serialize_with = "as_seconds")]
    pub duration_ms: Millis,
}

/// One iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunUsageRow {
    pub run: String,
    run_id: String,
    kind: RunKind,
    pub project: String,
    pub stage: u32,
    pub stage_name: String,
    pub iteration: u32,
    attempts: u32,
    committed: bool,
    #[serde(rename = "started_at", serialize_with = "as_rfc3339")]
    pub started_at_ms: Millis,
    #[serde(flatten)]
    pub used: RunAmounts,
}

impl RunsReport {
    pub fn new(iterations: Vec<IterationUsage>) -> Self {
        let rows: Vec<RunUsageRow> = iterations.into_iter().map(RunUsageRow::from).collect();
        let mut totals = RunAmounts::default();
        for row in &rows {
            totals.amounts += row.used.amounts;
            totals.duration_ms = totals.duration_ms.saturating_add(row.used.duration_ms);
        }
        Self { view: "runs", totals, rows }
    }
}

impl From<IterationUsage> for RunUsageRow {
    fn from(iteration: IterationUsage) -> Self {
        let amounts = Amounts {
            responses: None,
            tokens: iteration.usage.tokens,
            priced_micros: iteration.usage.cost_micros,
            unpriced_tokens: iteration.unpriced_tokens,
            cost_unknown: iteration.usage.cost_unknown,
            tokens_unknown: iteration.usage.tokens_unknown,
        };
        Self {
            run: iteration.name,
            run_id: iteration.run_id,
            kind: iteration.kind,
            project: iteration.project_dir,
            stage: iteration.stage,
            stage_name: iteration.stage_name,
            iteration: iteration.iteration,
            attempts: iteration.attempts,
            committed: iteration.is_committed,
            started_at_ms: iteration.started_at_ms,
            used: RunAmounts { amounts, duration_ms: iteration.lasted_ms },
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn as_seconds<S: Serializer>(milliseconds: &Millis, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(milliseconds / 1_000)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn as_rfc3339<S: Serializer>(at_ms: &Millis, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&clock::to_rfc3339(*at_ms))
}
