//! The committed iterations of a run and all its attempts. A second commit of an iteration violates its primary key,
//! and the error rolls the whole step back.

use rusqlite::{ErrorCode, Row, params};
use serde::{Deserialize, Serialize};

use crate::column::{from_json, maybe_word, to_json};
use crate::{Db, StoreError, limit};
use steadfast_model::clock::Millis;
use steadfast_model::redact::redact;
use steadfast_model::run::{AgentDecision, AgentResult, AttemptId, AttemptUsage, Checked, Outcome, Success, rule};
use steadfast_model::text;

/// Characters kept of an agent's text; its whole output is in a file.
const LONGEST_TEXT: usize = 8_000;

/// A committed iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IterationRow {
    /// The attempt that came through.
    pub id: AttemptId,
    /// The vote that counted: the judge's, or the worker's.
    pub plateau: Option<bool>,
    pub decision: Option<AgentDecision>,
    pub summary: Option<String>,
    pub reasoning: Option<String>,
    pub fields: Vec<(String, String)>,
    pub report: IterationReport,
    pub facts: Vec<Checked>,
    pub exit_code: i32,
    /// Of all its attempts.
    pub tokens: i64,
    pub cost_micros: i64,
    pub cost_unknown: bool,
    pub tokens_unknown: bool,
    /// When the attempt that came through started.
    pub started_at_ms: Millis,
    pub committed_at_ms: Millis,
}

/// The lists that an agent reported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IterationReport {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<String>,
}

impl IterationReport {
    /// `None` if the agent listed nothing.
    fn of(result: &AgentResult) -> Option<Self> {
        let all = |texts: &[String]| texts.iter().map(|text| kept(text)).collect();
        let report = Self {
            files: all(&result.files),
            items: all(&result.items),
            errors: all(&result.errors),
            branches: all(&result.branches),
        };
        (report != Self::default()).then_some(report)
    }
}

fn kept(text: &str) -> String {
    text::cut(&redact(&text::printable(text)), LONGEST_TEXT)
}

/// Reads the columns of [`ITERATIONS`] by number, because a long run has many rows and names are slow to look up.
fn read_iteration(row: &Row<'_>) -> rusqlite::Result<IterationRow> {
    Ok(IterationRow {
        id: AttemptId { stage: row.get(0)?, iteration: row.get(1)?, attempt: row.get(2)? },
        plateau: row.get(3)?,
        decision: maybe_word(row, 4)?,
        summary: row.get(5)?,
        reasoning: row.get(6)?,
        fields: from_json(row, 7)?,
        facts: from_json(row, 8)?,
        exit_code: row.get(9)?,
        tokens: row.get(10)?,
        cost_micros: row.get(11)?,
        started_at_ms: row.get(12)?,
        committed_at_ms: row.get(13)?,
        cost_unknown: row.get(14)?,
        tokens_unknown: row.get(15)?,
        report: from_json::<Option<_>>(row, 16)?.unwrap_or_default(),
    })
}

fn twice(error: rusqlite::Error, what: &str, id: AttemptId) -> StoreError {
    let AttemptId { stage, iteration, attempt } = id;
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => {
            StoreError::Value(format!("stage {stage}, iteration {iteration}, attempt {attempt} was {what} before"))
        }
        _ => StoreError::Query(error),
    }
}

const ITERATIONS: &str = "SELECT stage, iteration, attempt, plateau, decision, summary, reasoning, fields_json,
    facts_json, exit_code, tokens, cost_micros, started_at_ms, committed_at_ms, cost_unknown, tokens_unknown,
    report_json FROM run_iterations";

impl Db<'_> {
    pub(super) fn add_attempt(self, run_id: &str, id: AttemptId, now: Millis) -> Result<(), StoreError> {
        let sql = "INSERT INTO run_attempts (run_id, stage, iteration, attempt, status, started_at_ms)
                   VALUES (?1, ?2, ?3, ?4, 'starting', ?5)";
        self.0
            .prepare_cached(sql)?
            .execute(params![run_id, id.stage, id.iteration, id.attempt, now])
            .map_err(|error| twice(error, "started", id))?;
        Ok(())
    }

    pub(super) fn end_attempt(self, run_id: &str, id: AttemptId, outcome: &Outcome) -> Result<(), StoreError> {
        let (status, failure, message, exit_code, usage, started, ended) = match outcome {
            Outcome::Succeeded(success) => {
                let (started, ended) = (Some(success.started_at_ms), success.ended_at_ms);
                ("succeeded", None, None, Some(success.exit_code), success.usage, started, ended)
            }
            Outcome::Failed(failed) => {
                let message = Some(kept(&failed.message));
                let kind = Some(failed.kind.name());
                ("failed", kind, message, failed.exit_code, failed.usage, failed.started_at_ms, failed.ended_at_ms)
            }
        };
        let AttemptId { stage, iteration, attempt } = id;
        let tokens = usage.tokens;
        let updated = self.execute(
            "UPDATE run_attempts SET status = ?5, failure = ?6, message = ?7, exit_code = ?8, input_tokens = ?9,
               output_tokens = ?10, cache_creation_tokens = ?11, cache_read_tokens = ?12, cost_micros = ?13,
               started_at_ms = coalesce(?14, started_at_ms), ended_at_ms = ?15, cost_unknown = ?16,
               tokens_unknown = ?17
             WHERE run_id = ?1 AND stage = ?2 AND iteration = ?3 AND attempt = ?4 AND status = 'starting'",
            params![
                run_id,
                stage,
                iteration,
                attempt,
                status,
                failure,
                message,
                exit_code,
                tokens.input,
                tokens.output,
                tokens.cache_creation,
                tokens.cache_read,
                usage.cost_micros,
                started,
                ended,
                usage.cost_unknown,
                usage.tokens_unknown
            ],
        )?;
        if updated == 1 {
            return Ok(());
        }
        Err(StoreError::Value(format!("stage {stage}, iteration {iteration}, attempt {attempt} is not under way")))
    }

    /// Counts what a judge used to the attempt that it judged.
    fn add_usage(self, run_id: &str, id: AttemptId, usage: &AttemptUsage) -> Result<(), StoreError> {
        let tokens = usage.tokens;
        self.execute(
            "UPDATE run_attempts SET input_tokens = input_tokens + ?5, output_tokens = output_tokens + ?6,
               cache_creation_tokens = cache_creation_tokens + ?7, cache_read_tokens = cache_read_tokens + ?8,
               cost_micros = cost_micros + ?9, cost_unknown = max(cost_unknown, ?10),
               tokens_unknown = max(tokens_unknown, ?11)
             WHERE run_id = ?1 AND stage = ?2 AND iteration = ?3 AND attempt = ?4",
            params![
                run_id,
                id.stage,
                id.iteration,
                id.attempt,
                tokens.input,
                tokens.output,
                tokens.cache_creation,
                tokens.cache_read,
                usage.cost_micros,
                usage.cost_unknown,
                usage.tokens_unknown
            ],
        )?;
        Ok(())
    }

    pub(super) fn add_iteration(
        self,
        run_id: &str,
        id: AttemptId,
        success: &Success,
        facts: &[Checked],
        now: Millis,
    ) -> Result<(), StoreError> {
        for usage in facts.iter().filter_map(|fact| fact.usage.as_ref()) {
            self.add_usage(run_id, id, usage)?;
        }
        let result = &success.result;
        let fields: Vec<(String, String)> =
            result.fields.iter().map(|(name, value)| (kept(name), kept(value))).collect();
        let facts: Vec<Checked> =
            facts.iter().map(|fact| Checked { detail: kept(&fact.detail), ..fact.clone() }).collect();
        self.0
            .prepare_cached(
                "INSERT INTO run_iterations (run_id, stage, iteration, attempt, plateau, decision, summary, reasoning,
                   fields_json, facts_json, exit_code, started_at_ms, committed_at_ms, report_json, tokens, cost_micros,
                   cost_unknown, tokens_unknown)
                 SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,
                   coalesce(sum(input_tokens + cache_creation_tokens + output_tokens), 0),
                   coalesce(sum(cost_micros), 0), coalesce(max(cost_unknown), 0), coalesce(max(tokens_unknown), 0)
                 FROM run_attempts WHERE run_id = ?1 AND stage = ?2 AND iteration = ?3",
            )?
            .execute(params![
                run_id,
                id.stage,
                id.iteration,
                id.attempt,
                rule::vote(success, &facts),
                result.decision.map(<&str>::from),
                result.summary.as_deref().map(kept),
                rule::reasoning(success, &facts).map(kept),
                to_json(&fields)?,
                to_json(&facts)?,
                success.exit_code,
                success.started_at_ms,
                now,
                IterationReport::of(result).map(|report| to_json(&report)).transpose()?,
            ])
            .map_err(|error| twice(error, "committed", id))?;
        Ok(())
    }

    /// Committed iterations in order, beginning after one of them (stage, iteration).
    pub fn run_history(
        self,
        run_id: &str,
        after: Option<(u32, u32)>,
        most: usize,
    ) -> Result<Vec<IterationRow>, StoreError> {
        let (stage, iteration) = after.unwrap_or((0, 0));
        let sql = format!(
            "{ITERATIONS} WHERE run_id = ?1 AND (stage, iteration) > (?2, ?3) ORDER BY stage, iteration LIMIT ?4"
        );
        self.all(&sql, params![run_id, stage, iteration, limit(most)], read_iteration)
    }

    /// The last committed iterations of a stage, in order.
    pub fn end_of_stage(self, run_id: &str, stage: u32, most: usize) -> Result<Vec<IterationRow>, StoreError> {
        let sql = format!("{ITERATIONS} WHERE run_id = ?1 AND stage = ?2 ORDER BY iteration DESC LIMIT ?3");
        let mut rows = self.all(&sql, params![run_id, stage, limit(most)], read_iteration)?;
        rows.reverse();
        Ok(rows)
    }

    /// The last committed iterations, the last one first.
    pub fn last_iterations(self, run_id: &str, most: usize) -> Result<Vec<IterationRow>, StoreError> {
        let sql = format!("{ITERATIONS} WHERE run_id = ?1 ORDER BY stage DESC, iteration DESC LIMIT ?2");
        self.all(&sql, params![run_id, limit(most)], read_iteration)
    }
}
