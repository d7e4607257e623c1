//! Old responses, and what they add up to.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Row, params};

use super::{Reached, SEEN};
use crate::{Db, StoreError, limit};
use steadfast_model::clock::{self, Millis};
use steadfast_model::reading::Tokens;

/// What a model used on one day, by the clock of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageDay {
    pub responses: i64,
    pub tokens: Tokens,
    pub cost_micros: i64,
    /// Tokens whose price is not known.
    pub unpriced_tokens: i64,
}

/// Day, host, model, and whether a goal was charged.
pub type UsageKey = (String, String, String, bool);

struct OldResponse {
    at_ms: Millis,
    host: String,
    id: String,
    session_id: String,
    goal_id: Option<String>,
    model: String,
    tokens: Tokens,
    cost_micros: Option<i64>,
}

fn read(row: &Row<'_>) -> rusqlite::Result<OldResponse> {
    Ok(OldResponse {
        at_ms: row.get(0)?,
        host: row.get(1)?,
        id: row.get(2)?,
        session_id: row.get(3)?,
        goal_id: row.get(4)?,
        model: row.get(5)?,
        tokens: Tokens {
            input: row.get(6)?,
            output: row.get(7)?,
            cache_creation: row.get(8)?,
            cache_creation_1h: row.get(9)?,
            cache_read: row.get(10)?,
        },
        cost_micros: row.get(11)?,
    })
}

impl UsageDay {
    pub(super) fn add(&mut self, tokens: &Tokens, cost_micros: Option<i64>) {
        self.responses += 1;
        self.tokens.input += tokens.input;
        self.tokens.output += tokens.output;
        self.tokens.cache_creation += tokens.cache_creation;
        self.tokens.cache_creation_1h += tokens.cache_creation_1h;
        self.tokens.cache_read += tokens.cache_read;
        match cost_micros {
            Some(micros) => self.cost_micros += micros,
            None => self.unpriced_tokens += tokens.total(),
        }
    }
}

const COLUMNS: &str = "at_ms, host, response_id, session_id, goal_id, model, input_tokens, output_tokens,
    cache_creation_tokens, cache_creation_1h_tokens, cache_read_tokens, cost_micros";

impl Db<'_> {
    /// Deletes responses before a moment, except those of live goals, and adds them to the sums of their day and session.
    pub(super) fn prune_ledger(self, position: &str, before: Option<Millis>) -> Result<Reached, StoreError> {
        let Some(before) = before else { return Ok(Reached::End) };
        let from: Millis = position.parse().unwrap_or(Millis::MIN);
        let sql = format!("SELECT {COLUMNS} FROM responses WHERE at_ms >= ?1 AND at_ms < ?2 ORDER BY at_ms LIMIT ?3");
        let seen = self.all(&sql, params![from, before, limit(SEEN)], read)?;
        let Some(last) = seen.last().map(|response| response.at_ms) else { return Ok(Reached::End) };
        let is_full = seen.len() == SEEN;
        let mut live: HashMap<String, bool> = HashMap::new();
        let (mut days, mut sessions) = (BTreeMap::<UsageKey, UsageDay>::new(), BTreeMap::<String, (i64, i64)>::new());
        let mut pruned_before = None;
        for old in seen {
            if let Some(id) = &old.goal_id {
                let is_live = match live.get(id) {
                    Some(known) => *known,
                    None => *live.entry(id.clone()).or_insert(self.is_live_goal(id)?),
                };
                if is_live {
                    continue;
                }
            }
            self.execute("DELETE FROM responses WHERE host = ?1 AND response_id = ?2", [&old.host, &old.id])?;
            let session = sessions.entry(old.session_id).or_default();
            session.0 += old.tokens.charged();
            session.1 += old.cost_micros.unwrap_or(0);
            let key = (clock::local_day(old.at_ms), old.host, old.model, old.goal_id.is_some());
            days.entry(key).or_default().add(&old.tokens, old.cost_micros);
            pruned_before = Some(old.at_ms + 1);
        }
        for (key, day) in &days {
            self.add_usage_day(key, day)?;
        }
        for (id, (tokens, cost)) in &sessions {
            let sql = "INSERT INTO session_sums (session_id, tokens, cost_micros) VALUES (?1, ?2, ?3)
                       ON CONFLICT (session_id) DO UPDATE SET tokens = tokens + ?2, cost_micros = cost_micros + ?3";
            self.execute(sql, params![id, tokens, cost])?;
        }
        if let Some(before) = pruned_before {
            let sql = "INSERT INTO ledger_pruned (id, before_ms) VALUES (1, ?1)
                       ON CONFLICT (id) DO UPDATE SET before_ms = max(before_ms, ?1)";
            self.execute(sql, [before])?;
        }
        // Responses of the same millisecond that were not reached are seen by the next walk.
        let next = if last > from { last } else { last + 1 };
        Ok(if is_full { Reached::At(next.to_string()) } else { Reached::End })
    }

    pub(super) fn add_usage_day(self, key: &UsageKey, day: &UsageDay) -> Result<(), StoreError> {
        let (date, host, model, in_goals) = key;
        let UsageDay { responses, tokens, cost_micros, unpriced_tokens } = day;
        self.execute(
            "INSERT INTO usage_days (day, host, model, in_goals, responses, input_tokens, output_tokens,
               cache_creation_tokens, cache_creation_1h_tokens, cache_read_tokens, cost_micros, unpriced_tokens)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
             ON CONFLICT (day, host, model, in_goals) DO UPDATE SET responses = responses + ?5,
               input_tokens = input_tokens + ?6, output_tokens = output_tokens + ?7,
               cache_creation_tokens = cache_creation_tokens + ?8,
               cache_creation_1h_tokens = cache_creation_1h_tokens + ?9,
               cache_read_tokens = cache_read_tokens + ?10, cost_micros = cost_micros + ?11,
               unpriced_tokens = unpriced_tokens + ?12",
            params![
                date,
                host,
                model,
                in_goals,
                responses,
                tokens.input,
                tokens.output,
                tokens.cache_creation,
                tokens.cache_creation_1h,
                tokens.cache_read,
                cost_micros,
                unpriced_tokens
            ],
        )?;
        Ok(())
    }

    /// Whether a goal is not over.
    pub(crate) fn is_live_goal(self, goal_id: &str) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM goals WHERE goal_id = ?1 AND status NOT IN ('complete', 'abandoned'))";
        Ok(self.0.prepare_cached(sql)?.query_row([goal_id], |row| row.get(0))?)
    }

    /// A response before this moment that the ledger does not know was counted and deleted, unless its goal is live.
    pub(crate) fn pruned_before(self) -> Result<Millis, StoreError> {
        let sql = "SELECT before_ms FROM ledger_pruned";
        Ok(self.first(sql, [], |row| row.get(0))?.unwrap_or(Millis::MIN))
    }

    /// What was used on each day, in the ledger and deleted from it; the oldest day first.
    pub fn usage_by_day(self) -> Result<BTreeMap<UsageKey, UsageDay>, StoreError> {
        let mut days = BTreeMap::<UsageKey, UsageDay>::new();
        let mut statement = self.0.prepare(&format!("SELECT {COLUMNS} FROM responses"))?;
        for old in statement.query_map([], read)? {
            let old = old?;
            let key = (clock::local_day(old.at_ms), old.host, old.model, old.goal_id.is_some());
            days.entry(key).or_default().add(&old.tokens, old.cost_micros);
        }
        let sql = "SELECT day, host, model, in_goals, responses, cost_micros, unpriced_tokens, input_tokens,
                     output_tokens, cache_creation_tokens, cache_creation_1h_tokens, cache_read_tokens FROM usage_days";
        let kept: Vec<(UsageKey, UsageDay)> = self.all(sql, [], |row| {
            let tokens = Tokens {
                input: row.get(7)?,
                output: row.get(8)?,
                cache_creation: row.get(9)?,
                cache_creation_1h: row.get(10)?,
                cache_read: row.get(11)?,
            };
            let (responses, cost_micros, unpriced_tokens) = (row.get(4)?, row.get(5)?, row.get(6)?);
            let key = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            Ok((key, UsageDay { responses, tokens, cost_micros, unpriced_tokens }))
        })?;
        for (key, kept) in kept {
            let day = days.entry(key).or_default();
            let responses = day.responses + kept.responses;
            day.add(&kept.tokens, Some(kept.cost_micros));
            day.responses = responses;
            day.unpriced_tokens += kept.unpriced_tokens;
        }
        Ok(days)
    }
}
