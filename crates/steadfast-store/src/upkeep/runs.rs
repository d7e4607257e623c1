//! Runs that are over. Their folders go first, because a row is what leads to a folder; so the caller, who knows the
//! folders, deletes both.

use rusqlite::params;

use super::DELETED;
use super::ledger::UsageDay;
use crate::{Db, StoreError, limit};
use steadfast_model::clock::{self, Millis};
use steadfast_model::reading::Tokens;
use steadfast_model::run::RunKind;

/// The host in the sums by day that stands for attempts of runs: they are not in the ledger.
const RUN: &str = "run";

/// Tables with parts of a run, and their keys.
const PARTS: [(&str, &str); 5] = [
    ("run_models", "run_id, stage, iteration, attempt, model"),
    ("run_iterations", "run_id, stage, iteration"),
    ("run_stages", "run_id, stage"),
    ("run_approvals", "run_id, stage"),
    ("run_notes", "note_id"),
];

/// A run that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredRun {
    pub run_id: String,
    pub kind: RunKind,
    pub name: String,
    pub project_dir: String,
    pub completed_at_ms: Option<Millis>,
    pub updated_at_ms: Millis,
}

impl Db<'_> {
    /// Runs that are over since before a moment, in the order of their ids, after one of them.
    pub fn runs_over(self, before: Millis, after: &str, most: usize) -> Result<Vec<ExpiredRun>, StoreError> {
        let sql = "SELECT run_id, kind, name, project_dir, completed_at_ms, updated_at_ms FROM runs
                   WHERE run_id > ?1 AND status <> 'running' AND updated_at_ms < ?2
                     AND coalesce(completed_at_ms, 0) < ?2 ORDER BY run_id LIMIT ?3";
        self.all(sql, params![after, before, limit(most)], |row| {
            Ok(ExpiredRun {
                run_id: row.get(0)?,
                kind: crate::column::word(row, "kind")?,
                name: row.get(2)?,
                project_dir: row.get(3)?,
                completed_at_ms: row.get(4)?,
                updated_at_ms: row.get(5)?,
            })
        })
    }

    /// Deletes rows of a run that is over, the run itself last, unless it changed. Returns whether all are gone.
    pub fn delete_some_of_run(self, run: &ExpiredRun) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM runs WHERE run_id = ?1 AND updated_at_ms = ?2 AND status <> 'running')";
        let is_unchanged: bool =
            self.0.prepare_cached(sql)?.query_row(params![run.run_id, run.updated_at_ms], |row| row.get(0))?;
        if !is_unchanged {
            return Ok(true);
        }
        if self.delete_attempts(&run.run_id)? == DELETED {
            return Ok(false);
        }
        for (part, key) in PARTS {
            let sql =
                format!("DELETE FROM {part} WHERE ({key}) IN (SELECT {key} FROM {part} WHERE run_id = ?1 LIMIT ?2)");
            if self.execute(&sql, params![run.run_id, limit(DELETED)])? == DELETED {
                return Ok(false);
            }
        }
        self.execute("DELETE FROM runs WHERE run_id = ?1", [&run.run_id])?;
        Ok(true)
    }

    /// Deletes attempts of a run and adds what they used to the sums of their days. Returns how many.
    fn delete_attempts(self, run_id: &str) -> Result<usize, StoreError> {
        let sql = "SELECT stage, iteration, attempt, coalesce(ended_at_ms, started_at_ms), input_tokens, output_tokens,
                     cache_creation_tokens, cache_read_tokens, iif(cost_unknown, NULL, cost_micros)
                   FROM run_attempts WHERE run_id = ?1 LIMIT ?2";
        let old = self.all(sql, params![run_id, limit(DELETED)], |row| {
            let tokens = Tokens {
                input: row.get(4)?,
                output: row.get(5)?,
                cache_creation: row.get(6)?,
                cache_creation_1h: 0,
                cache_read: row.get(7)?,
            };
            let id: (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok((id, row.get::<_, Millis>(3)?, tokens, row.get::<_, Option<i64>>(8)?))
        })?;
        for ((stage, iteration, attempt), at, tokens, cost) in &old {
            let mut day = UsageDay::default();
            day.add(tokens, *cost);
            self.add_usage_day(&(clock::local_day(*at), RUN.to_owned(), String::new(), false), &day)?;
            let sql = "DELETE FROM run_attempts WHERE run_id = ?1 AND stage = ?2 AND iteration = ?3 AND attempt = ?4";
            self.execute(sql, params![run_id, stage, iteration, attempt])?;
        }
        Ok(old.len())
    }
}
