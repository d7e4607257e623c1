//! The committed iterations that the public files show, and where they come from.

use steadfast_core::clock::Millis;
use steadfast_core::run::AgentDecision;
use steadfast_core::store::{Db, IterationRow};

pub type HistoryError = Box<dyn std::error::Error + Send + Sync>;

/// A committed iteration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Committed {
    pub stage: u32,
    pub iteration: u32,
    /// How many attempts it took.
    pub attempts: u32,
    pub plateau: Option<bool>,
    pub reasoning: Option<String>,
    pub summary: Option<String>,
    pub decision: Option<AgentDecision>,
    /// Further fields read from marker lines.
    pub fields: Vec<(String, String)>,
    pub tokens: i64,
    pub cost_micros: i64,
    pub started_at_ms: Millis,
    pub committed_at_ms: Millis,
}

impl From<IterationRow> for Committed {
    fn from(row: IterationRow) -> Self {
        Self {
            stage: row.id.stage,
            iteration: row.id.iteration,
            attempts: row.id.attempt,
            plateau: row.plateau,
            reasoning: row.reasoning,
            summary: row.summary,
            decision: row.decision,
            fields: row.fields,
            tokens: row.tokens,
            cost_micros: row.cost_micros,
            started_at_ms: row.started_at_ms,
            committed_at_ms: row.committed_at_ms,
        }
    }
}

/// Where committed iterations come from: the store.
pub trait History {
    /// The iterations of a stage after number `after`, in order.
    fn after(&self, stage: u32, after: u32) -> Result<Vec<Committed>, HistoryError>;
}

impl History for [Committed] {
    fn after(&self, stage: u32, after: u32) -> Result<Vec<Committed>, HistoryError> {
        Ok(self.iter().filter(|it| it.stage == stage && it.iteration > after).cloned().collect())
    }
}

impl History for Vec<Committed> {
    fn after(&self, stage: u32, after: u32) -> Result<Vec<Committed>, HistoryError> {
        self.as_slice().after(stage, after)
    }
}

/// The iterations of a run in the store.
#[derive(Clone, Copy)]
pub struct StoredHistory<'a> {
    pub db: Db<'a>,
    pub run_id: &'a str,
}

impl History for StoredHistory<'_> {
    fn after(&self, stage: u32, after: u32) -> Result<Vec<Committed>, HistoryError> {
        let rows = self.db.run_history(self.run_id, Some((stage, after)), usize::MAX)?;
        Ok(rows.into_iter().filter(|row| row.id.stage == stage).map(Committed::from).collect())
    }
}
