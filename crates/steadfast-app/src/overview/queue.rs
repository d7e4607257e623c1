//! The read model of a session's queue.

use serde::Serialize;

use steadfast_model::clock::{self, HOUR, Millis};
use steadfast_model::goal::budget::BudgetProfile;
use steadfast_model::limit::{Axis, Limits};
use steadfast_model::price::dollars;
use steadfast_model::text;
use steadfast_store::{Db, QueuedGoal, StoreError};

/// A goal that waits for the live one to end.
#[derive(Debug, Clone, Serialize)]
pub struct QueueEntry {
    pub id: i64,
    /// Its number in the queue, from 1.
    pub position: usize,
    pub objective: String,
    pub budget_profile: Option<BudgetProfile>,
    pub token_budget: Option<i64>,
    pub usd_budget: Option<f64>,
    pub max_turns: Option<i64>,
    pub max_hours: Option<f64>,
    pub deadline: Option<String>,
    pub verify: Vec<String>,
    pub items: Vec<String>,
    pub judge: bool,
    pub sign_off: bool,
    pub created_at_ms: Millis,
    #[serde(skip)]
    limits: Limits,
}

impl From<QueuedGoal> for QueueEntry {
    #[expect(clippy::cast_precision_loss, reason = "hours of a limit are far below the exact range")]
    fn from(entry: QueuedGoal) -> Self {
        let limits = entry.goal.budget.limits;
        Self {
            id: entry.id,
            position: entry.number,
            objective: entry.goal.objective,
            budget_profile: entry.goal.budget.profile,
            token_budget: limits.get(Axis::Tokens),
            usd_budget: limits.get(Axis::Usd).map(dollars),
            max_turns: limits.get(Axis::Turns),
            max_hours: limits.get(Axis::Hours).map(|ms| ms as f64 / HOUR as f64),
            deadline: limits.get(Axis::Deadline).map(clock::to_rfc3339),
            verify: super::without_secrets(&entry.goal.verify),
            items: entry.goal.items,
            judge: entry.goal.judge,
            sign_off: entry.goal.sign_off,
            created_at_ms: entry.created_at_ms,
            limits,
        }
    }
}

/// The queue of a session; the next goal to start comes first.
pub fn entries(db: Db<'_>, session_id: &str) -> Result<Vec<QueueEntry>, StoreError> {
    Ok(db.queue(session_id)?.into_iter().map(QueueEntry::from).collect())
}

/// What `goal queue list` and `/goal-queue` print.
pub fn list_text(entries: &[QueueEntry]) -> String {
    if entries.is_empty() {
        return "the queue is empty".to_owned();
    }
    let line = |entry: &QueueEntry| {
        let objective = text::headline(&entry.objective, 90);
        format!("{}. {objective}\n   limits: {}", entry.position, entry.limits.describe())
    };
    entries.iter().map(line).collect::<Vec<_>>().join("\n")
}
