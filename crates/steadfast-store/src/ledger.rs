//! The ledger of responses, the spans of goals, and how far each file was read. A response is charged once, to the
//! goal that was active when it was given, however often and in whatever order its lines are read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::params;

use super::{Db, StoreError};
use steadfast_model::clock::Millis;
use steadfast_model::goal::Goal;
use steadfast_model::goal::change::Span;
use steadfast_model::goal::turn::Charge;
use steadfast_model::host::Host;
use steadfast_model::price;
use steadfast_model::reading::{Anchor, NativeGoal, Position, Reading, Response, Tier, Tokens};
use steadfast_model::redact::redact;

/// How far a file was read, and what a reader must remember about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursor {
    pub position: Position,
    pub broken_lines: i64,
    pub queued_prompts: i64,
    pub native_goal: Option<String>,
    pub read_before_compaction: bool,
    pub updated_at_ms: Millis,
}

/// Where a reading comes from.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    pub host: Host,
    pub session_id: &'a str,
    /// Empty for the worker.
    pub agent_id: &'a str,
    /// The kind of the subagent; empty for the worker, and where its kind does not matter.
    pub agent_type: &'a str,
    pub path: &'a Path,
}

/// What recording a reading leads to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// What each goal is to be charged.
    pub charges: BTreeMap<String, Charge>,
    pub cursor: Cursor,
}

/// A response in the ledger.
struct KnownResponse {
    response: Response,
    goal_id: Option<String>,
    agent_type: String,
}

impl Db<'_> {
    pub fn cursor(self, path: &Path) -> Result<Option<Cursor>, StoreError> {
        self.first("SELECT * FROM transcript_cursors WHERE path = ?1", [path.to_string_lossy()], |row| {
            let offset = u64::try_from(row.get::<_, i64>("byte_offset")?).unwrap_or(0);
            Ok(Cursor {
                position: Position {
                    offset,
                    anchor: Anchor::from_stored(row.get_ref("anchor")?.as_blob()?),
                    carry: row.get("carry")?,
                },
                broken_lines: row.get("broken_lines")?,
                queued_prompts: row.get("queued_prompts")?,
                native_goal: row.get("native_goal")?,
                read_before_compaction: row.get("read_before_compaction")?,
                updated_at_ms: row.get("updated_at_ms")?,
            })
        })
    }

    pub fn put_cursor(self, source: Source<'_>, cursor: &Cursor, now: Millis) -> Result<(), StoreError> {
        self.execute(
            "INSERT OR REPLACE INTO transcript_cursors (path, session_id, agent_id, byte_offset, anchor, broken_lines,
               queued_prompts, native_goal, read_before_compaction, updated_at_ms, carry)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                source.path.to_string_lossy(),
                source.session_id,
                source.agent_id,
                i64::try_from(cursor.position.offset).unwrap_or(i64::MAX),
                cursor.position.anchor.to_stored(),
                cursor.broken_lines,
                cursor.queued_prompts,
                cursor.native_goal.as_deref().map(redact),
                cursor.read_before_compaction,
                now,
                cursor.position.carry,
            ],
        )?;
        Ok(())
    }

    /// Keeps the file of a subagent, so that it is read with its session; a known cursor stays.
    pub fn remember_subagent_file(
        self,
        session_id: &str,
        agent_id: &str,
        path: &Path,
        now: Millis,
    ) -> Result<(), StoreError> {
        let sql = "INSERT INTO transcript_cursors (path, session_id, agent_id, byte_offset, anchor, updated_at_ms)
                   VALUES (?1, ?2, ?3, 0, x'', ?4) ON CONFLICT (path) DO NOTHING";
        self.execute(sql, params![path.to_string_lossy(), session_id, agent_id, now])?;
        Ok(())
    }

    /// The files of a session's subagents that hooks named.
    pub fn subagent_files(self, session_id: &str) -> Result<Vec<(String, PathBuf)>, StoreError> {
        let sql =
            "SELECT agent_id, path FROM transcript_cursors WHERE session_id = ?1 AND agent_id <> '' ORDER BY path";
        self.all(sql, [session_id], |row| Ok((row.get(0)?, PathBuf::from(row.get::<_, String>(1)?))))
    }

    /// Enters a reading and returns what each goal is to be charged for it. A response whose own time is before
    /// `written_since`, when its line cannot have been there yet, or after `now`, counts at the time of this reading: the
    /// wall clock jumped after it was stamped.
    pub fn record(
        self,
        source: Source<'_>,
        reading: &Reading,
        written_since: Option<Millis>,
        now: Millis,
    ) -> Result<Recorded, StoreError> {
        let before = self.cursor(source.path)?.unwrap_or_default();
        let charges = self.record_responses(source, &reading.responses, written_since, now)?;
        let queued_before = if reading.counts_queue_anew() { 0 } else { before.queued_prompts };
        let broken_before = if reading.rewritten { 0 } else { before.broken_lines };
        let native_goal = match &reading.native_goal {
            Some(NativeGoal::Active(condition)) => Some(condition.clone()),
            Some(NativeGoal::Over) => None,
            None => before.native_goal,
        };
        let cursor = Cursor {
            position: reading.position.clone(),
            broken_lines: broken_before + reading.broken_lines,
            queued_prompts: (queued_before + reading.queued).max(0),
            native_goal,
            updated_at_ms: now,
            // It holds for the compaction that follows; later responses may vanish unread.
            read_before_compaction: before.read_before_compaction && !reading.rewritten && reading.responses.is_empty(),
        };
        self.put_cursor(source, &cursor, now)?;
        Ok(Recorded { charges, cursor })
    }

    /// Enters only responses, and leaves the cursor where it is: they are read again, and known then.
    pub fn record_responses(
        self,
        source: Source<'_>,
        responses: &[Response],
        written_since: Option<Millis>,
        now: Millis,
    ) -> Result<BTreeMap<String, Charge>, StoreError> {
        let mut charges = BTreeMap::new();
        let pruned_before = if responses.is_empty() { Millis::MIN } else { self.pruned_before()? };
        for response in responses {
            // A line without a time is as new as the reading that found it.
            let untimed = response.at_ms == 0 || written_since.is_some_and(|since| response.at_ms < since);
            let at_ms = if untimed { now } else { response.at_ms.min(now) };
            let response = Response { at_ms, ..response.clone() };
            self.record_response(source, &response, pruned_before, &mut charges)?;
        }
        charges.retain(|_, charge: &mut Charge| !charge.is_nothing());
        Ok(charges)
    }

    fn record_response(
        self,
        source: Source<'_>,
        response: &Response,
        pruned_before: Millis,
        charges: &mut BTreeMap<String, Charge>,
    ) -> Result<(), StoreError> {
        let host: &str = source.host.into();
        let known = self.response(host, &response.id)?;
        let goal_id = if let Some(KnownResponse { response: old, goal_id, .. }) = &known {
            if !response.supersedes(old) || (response.bill() == old.bill() && response.at_ms == old.at_ms) {
                return Ok(());
            }
            goal_id.clone()
        } else {
            let goal_id = self.goal_at(source.session_id, response.at_ms)?;
            // It was counted, and its row deleted: only live goals keep the rows of their old responses.
            let is_live = || goal_id.as_deref().map_or(Ok(false), |id| self.is_live_goal(id));
            if response.at_ms < pruned_before && !is_live()? {
                return Ok(());
            }
            goal_id
        };
        if let Some(goal_id) = &goal_id {
            let charge = charges.entry(goal_id.clone()).or_default();
            let is_evaluator = |agent_type: &str| source.host.is_evaluator(agent_type);
            add(charge, response, source.agent_id, is_evaluator(source.agent_type), 1);
            if let Some(old) = &known {
                add(charge, &old.response, source.agent_id, is_evaluator(&old.agent_type), -1);
            }
        }
        let tokens = &response.tokens;
        self.execute(
            "INSERT INTO responses (host, response_id, session_id, agent_id, goal_id, model, input_tokens,
               output_tokens, cache_creation_tokens, cache_creation_1h_tokens, cache_read_tokens, cost_micros, at_ms,
               agent_type, tier)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
             ON CONFLICT (host, response_id) DO UPDATE SET model = excluded.model, agent_type = excluded.agent_type,
               tier = excluded.tier,
               input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
               cache_creation_tokens = excluded.cache_creation_tokens,
               cache_creation_1h_tokens = excluded.cache_creation_1h_tokens,
               cache_read_tokens = excluded.cache_read_tokens, cost_micros = excluded.cost_micros",
            params![
                host,
                response.id,
                source.session_id,
                source.agent_id,
                goal_id,
                response.model,
                tokens.input,
                tokens.output,
                tokens.cache_creation,
                tokens.cache_creation_1h,
                tokens.cache_read,
                price::cost_micros(&response.bill()),
                response.at_ms,
                source.agent_type,
                <&str>::from(response.tier),
            ],
        )?;
        Ok(())
    }

    fn response(self, host: &str, id: &str) -> Result<Option<KnownResponse>, StoreError> {
        let sql = "SELECT model, input_tokens, output_tokens, cache_creation_tokens, cache_creation_1h_tokens,
                     cache_read_tokens, at_ms, goal_id, agent_type, tier
                   FROM responses WHERE host = ?1 AND response_id = ?2";
        self.first(sql, [host, id], |row| {
            let tokens = Tokens {
                input: row.get(1)?,
                output: row.get(2)?,
                cache_creation: row.get(3)?,
                cache_creation_1h: row.get(4)?,
                cache_read: row.get(5)?,
            };
            let tier = row.get::<_, String>(9)?.parse().unwrap_or(Tier::Unknown);
            let response = Response { id: id.to_owned(), model: row.get(0)?, tier, tokens, ..Response::default() };
            let response = Response { at_ms: row.get(6)?, ..response };
            Ok(KnownResponse { response, goal_id: row.get(7)?, agent_type: row.get(8)? })
        })
    }

    /// The goal that was driving a session at a moment.
    fn goal_at(self, session_id: &str, at: Millis) -> Result<Option<String>, StoreError> {
        let sql = "SELECT goal_id FROM goal_spans
                   WHERE session_id = ?1 AND from_ms <= ?2 AND (to_ms IS NULL OR to_ms > ?2)
                   ORDER BY from_ms DESC LIMIT 1";
        self.first(sql, params![session_id, at], |row| row.get(0))
    }

    /// Whether one of these responses is in the ledger already, or was.
    pub fn knows_any(self, host: Host, responses: &[Response]) -> Result<bool, StoreError> {
        let host: &str = host.into();
        let pruned_before = if responses.is_empty() { Millis::MIN } else { self.pruned_before()? };
        for response in responses {
            let is_pruned = response.at_ms > 0 && response.at_ms < pruned_before;
            if is_pruned || self.response(host, &response.id)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a part of what was spent since a moment has no known cost.
    pub fn has_unknown_cost_since(self, from: Millis) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM responses WHERE at_ms >= ?1 AND cost_micros IS NULL)
                   OR EXISTS (SELECT 1 FROM run_attempts WHERE ended_at_ms >= ?1 AND cost_unknown <> 0)";
        Ok(self.0.prepare_cached(sql)?.query_row([from], |row| row.get(0))?)
    }

    pub fn has_open_span(self, goal_id: &str) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM goal_spans WHERE session_id = (SELECT session_id FROM goals
                   WHERE goal_id = ?1) AND goal_id = ?1 AND to_ms IS NULL)";
        Ok(self.0.prepare_cached(sql)?.query_row([goal_id], |row| row.get(0))?)
    }

    /// Opens or closes the goal's claim on the tokens of its session.
    pub fn move_span(self, goal: &Goal, span: Span, now: Millis) -> Result<(), StoreError> {
        if span == Span::Keep {
            return Ok(());
        }
        let open = self.has_open_span(&goal.goal_id)?;
        match span {
            Span::Open if !open => {
                let sql = "INSERT OR REPLACE INTO goal_spans (goal_id, session_id, from_ms) VALUES (?1, ?2, ?3)";
                self.execute(sql, params![goal.goal_id, goal.session_id, now])?;
            }
            Span::Close if open => {
                let sql = "UPDATE goal_spans SET to_ms = max(from_ms, ?2) WHERE goal_id = ?1 AND to_ms IS NULL";
                self.execute(sql, params![goal.goal_id, now])?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Keeps the documented table of subagents current.
    pub fn put_subagent_tokens(
        self,
        source: Source<'_>,
        goal_id: &str,
        add: i64,
        offset: u64,
        now: Millis,
    ) -> Result<(), StoreError> {
        let offset = i64::try_from(offset).unwrap_or(i64::MAX);
        let path = source.path.to_string_lossy();
        self.execute(
            "INSERT INTO subagent_token_cursors (session_id, goal_id, agent_id, transcript_path, tokens_used,
               last_accounted_byte_offset, updated_at_ms)
             VALUES (?1, ?2, ?3, ?4, max(0, ?5), ?6, ?7)
             ON CONFLICT (session_id, goal_id, agent_id) DO UPDATE SET tokens_used = max(0, tokens_used + ?5),
               last_accounted_byte_offset = excluded.last_accounted_byte_offset, updated_at_ms = excluded.updated_at_ms",
            params![source.session_id, goal_id, source.agent_id, path, add, offset, now],
        )?;
        Ok(())
    }
}

fn add(charge: &mut Charge, response: &Response, agent_id: &str, by_evaluator: bool, sign: i64) {
    let tokens = sign * response.tokens.charged();
    if agent_id.is_empty() {
        charge.worker_tokens += tokens;
    } else {
        charge.subagent_tokens += tokens;
    }
    if by_evaluator {
        charge.evaluator_tokens += tokens;
    }
    charge.cache_read_tokens += sign * response.tokens.cache_read;
    match price::cost_micros(&response.bill()) {
        Some(micros) => charge.cost_micros += sign * micros,
        // Cache reads are not charged, but they cost.
        None => charge.unpriced_tokens += sign * response.tokens.total(),
    }
}
