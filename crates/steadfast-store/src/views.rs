//! Queries of the views: what a goal spent over time, and what matches some words. Each reads a bounded number of rows.

use rusqlite::{params, params_from_iter};

use crate::goals::{EventRow, GoalRef, read_event};
use crate::runs::{RunLine, lines_where, read_line};
use crate::{Db, StoreError, limit};
use steadfast_model::clock::Millis;
use steadfast_model::reading::Tokens;

/// The newest events whose payload is looked at.
const EVENTS_SEEN: usize = 20_000;

/// What one accounting pass charged to a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charged {
    pub at_ms: Millis,
    pub tokens: i64,
    pub cost_micros: i64,
}

/// What the responses of one model used for a goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalModel {
    pub model: String,
    pub is_subagent: bool,
    pub responses: i64,
    pub tokens: Tokens,
    /// `None` if a part of it is not known.
    pub cost_micros: Option<i64>,
}

impl Db<'_> {
    /// What was charged to a goal, the newest first.
    pub fn charges(self, goal_id: &str, most: usize) -> Result<Vec<Charged>, StoreError> {
        let sql = "SELECT created_at_ms, tokens_delta, 
                     CASE WHEN json_valid(payload_json) THEN json_extract(payload_json, '$.cost_micros') END
                   FROM goal_events WHERE goal_id = ?1 AND tokens_delta IS NOT NULL ORDER BY id DESC LIMIT ?2";
        self.all(sql, params![goal_id, limit(most)], |row| {
            Ok(Charged {
                at_ms: row.get(0)?,
                tokens: row.get(1)?,
                cost_micros: row.get::<_, Option<i64>>(2)?.unwrap_or(0),
            })
        })
    }

    /// What each model used for a goal, as far as the ledger still has its responses.
    pub fn models_of_goal(self, goal_id: &str) -> Result<Vec<GoalModel>, StoreError> {
        let sql = "SELECT model, agent_id <> '' AS is_subagent, count(*), sum(input_tokens), sum(output_tokens),
                     sum(cache_creation_tokens), sum(cache_creation_1h_tokens), sum(cache_read_tokens),
                     sum(cost_micros), count(*) = count(cost_micros)
                   FROM responses WHERE goal_id = ?1 GROUP BY 1, 2 ORDER BY 9 DESC, 1, 2";
        self.all(sql, [goal_id], |row| {
            let is_priced: bool = row.get(9)?;
            let cost_micros: Option<i64> = row.get(8)?;
            Ok(GoalModel {
                model: row.get(0)?,
                is_subagent: row.get(1)?,
                responses: row.get(2)?,
                tokens: Tokens {
                    input: row.get(3)?,
                    output: row.get(4)?,
                    cache_creation: row.get(5)?,
                    cache_creation_1h: row.get(6)?,
                    cache_read: row.get(7)?,
                },
                cost_micros: cost_micros.filter(|_| is_priced),
            })
        })
    }

    /// Goals whose objective contains all words, replaced ones too, newest first.
    pub fn goals_with_words(self, words: &[String], most: usize) -> Result<Vec<GoalRef>, StoreError> {
        self.goals_where(&contains("objective", words.len()), words, most)
    }

    /// Runs whose name, type or project contains all words, newest first.
    pub fn runs_with_words(self, words: &[String], most: usize) -> Result<Vec<RunLine>, StoreError> {
        let condition = contains("r.name || ' ' || r.title || ' ' || r.project_dir", words.len());
        let sql = format!("{} LIMIT {}", lines_where(&condition), limit(most));
        self.all(&sql, params_from_iter(words), read_line)
    }

    /// The newest events that contain all words in their kind or payload, newest first.
    pub fn events_with_words(self, words: &[String], most: usize) -> Result<Vec<EventRow>, StoreError> {
        let condition = contains("event_type || ' ' || coalesce(payload_json, '')", words.len());
        let newest = format!("SELECT * FROM goal_events ORDER BY id DESC LIMIT {EVENTS_SEEN}");
        let sql = format!("SELECT * FROM ({newest}) WHERE {condition} ORDER BY id DESC LIMIT {}", limit(most));
        self.all(&sql, params_from_iter(words), read_event)
    }
}

/// `instr(lower(TEXT), lower(?1)) > 0 AND …`: no word is a pattern.
fn contains(text: &str, words: usize) -> String {
    let parts: Vec<String> = (1..=words).map(|n| format!("instr(lower({text}), lower(?{n})) > 0")).collect();
    if parts.is_empty() { "0".to_owned() } else { parts.join(" AND ") }
}
