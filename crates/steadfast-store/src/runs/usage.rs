//! Tokens, cost and time of iterations, summed over their attempts.

use rusqlite::Row;

use crate::column::word;
use crate::{Db, StoreError};
use steadfast_model::clock::Millis;
use steadfast_model::reading::Tokens;
use steadfast_model::run::{AttemptUsage, RunKind};

/// An iteration of a run, whether or not it came through, with everything that its attempts used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IterationUsage {
    pub run_id: String,
    pub name: String,
    pub kind: RunKind,
    pub project_dir: String,
    /// From 1.
    pub stage: u32,
    pub stage_name: String,
    pub iteration: u32,
    pub attempts: u32,
    pub is_committed: bool,
    pub usage: AttemptUsage,
    /// Tokens of attempts whose cost is not known, all kinds together.
    pub unpriced_tokens: i64,
    /// When its first attempt started.
    pub started_at_ms: Millis,
    /// From the start of the attempt that came through until it was committed, as the state files show it; of an
    /// iteration that did not come through, the time of its attempts.
    pub lasted_ms: Millis,
}

const SELECT: &str = "SELECT r.run_id, r.name, r.kind, r.project_dir, a.stage, s.name AS stage_name, a.iteration,
    count(*) AS attempts, i.attempt IS NOT NULL AS is_committed, sum(a.input_tokens) AS input_tokens,
    sum(a.output_tokens) AS output_tokens, sum(a.cache_creation_tokens) AS cache_creation_tokens,
    sum(a.cache_read_tokens) AS cache_read_tokens, sum(a.cost_micros) AS cost_micros,
    max(a.cost_unknown) AS cost_unknown, max(a.tokens_unknown) AS tokens_unknown,
    sum(iif(a.cost_unknown, a.input_tokens + a.output_tokens + a.cache_creation_tokens + a.cache_read_tokens, 0))
      AS unpriced_tokens,
    min(a.started_at_ms) AS started_at_ms,
    coalesce(i.committed_at_ms - i.started_at_ms, sum(max(0, coalesce(a.ended_at_ms - a.started_at_ms, 0))))
      AS lasted_ms
  FROM runs r JOIN run_attempts a ON a.run_id = r.run_id
    LEFT JOIN run_stages s ON s.run_id = a.run_id AND s.stage = a.stage
    LEFT JOIN run_iterations i ON i.run_id = a.run_id AND i.stage = a.stage AND i.iteration = a.iteration
  GROUP BY r.run_id, a.stage, a.iteration
  ORDER BY r.started_at_ms, r.run_id, a.stage, a.iteration";

fn read(row: &Row<'_>) -> rusqlite::Result<IterationUsage> {
    let lasted_ms: Millis = row.get("lasted_ms")?;
    Ok(IterationUsage {
        run_id: row.get("run_id")?,
        name: row.get("name")?,
        kind: word(row, "kind")?,
        project_dir: row.get("project_dir")?,
        stage: row.get("stage")?,
        stage_name: row.get::<_, Option<String>>("stage_name")?.unwrap_or_default(),
        iteration: row.get("iteration")?,
        attempts: row.get("attempts")?,
        is_committed: row.get("is_committed")?,
        usage: AttemptUsage {
            tokens: Tokens {
                input: row.get("input_tokens")?,
                output: row.get("output_tokens")?,
                cache_creation: row.get("cache_creation_tokens")?,
                cache_creation_1h: 0,
                cache_read: row.get("cache_read_tokens")?,
            },
            cost_micros: row.get("cost_micros")?,
            cost_unknown: row.get("cost_unknown")?,
            tokens_unknown: row.get("tokens_unknown")?,
        },
        unpriced_tokens: row.get("unpriced_tokens")?,
        started_at_ms: row.get("started_at_ms")?,
        lasted_ms: lasted_ms.max(0),
    })
}

impl Db<'_> {
    /// What every iteration of every run used, the oldest run first.
    pub fn iteration_usage(self) -> Result<Vec<IterationUsage>, StoreError> {
        self.all(SELECT, [], read)
    }

    /// The directory that a run belongs to.
    pub fn project_of_run(self, run_id: &str) -> Result<Option<String>, StoreError> {
        self.first("SELECT project_dir FROM runs WHERE run_id = ?1", [run_id], |row| row.get(0))
    }
}
