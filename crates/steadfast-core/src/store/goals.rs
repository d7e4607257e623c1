//! Goals, their history and their events. Every update matches the version it read and adds one; who loses that
//! race changes nothing and writes no event.

use rusqlite::types::Value as SqlValue;
use rusqlite::{OptionalExtension as _, Row, params, params_from_iter};
use serde_json::Value;

use super::{Db, StoreError};
use crate::clock::Millis;
use crate::goal::change::{Change, Event, Span};
use crate::goal::turn::{self, Charge};
use crate::goal::{Actor, Goal, GoalStatus};
use crate::memory::stated::StatedStatus;

/// Who changes a goal, and where.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    pub actor: Actor,
    /// The hook or command, as the event log names it.
    pub place: &'static str,
}

/// One line of the event log.
#[derive(Debug, Clone)]
pub struct EventRow {
    pub id: i64,
    pub session_id: String,
    pub goal_id: String,
    pub kind: String,
    pub hook_name: Option<String>,
    pub actor: Option<String>,
    pub status_before: Option<String>,
    pub status_after: Option<String>,
    pub version_before: Option<i64>,
    pub version_after: Option<i64>,
    pub tokens_delta: Option<i64>,
    pub payload: Value,
    pub created_at_ms: Millis,
}

/// Which events to list.
#[derive(Debug, Clone, Copy)]
pub enum EventFilter<'a> {
    All,
    Session(&'a str),
    Goal(&'a str),
}

/// The columns of a goal in the order of [`values`]; both goal tables have them.
const COLUMNS: [&str; 40] = [
    "session_id",
    "goal_id",
    "host",
    "project_dir",
    "objective",
    "status",
    "paused_reason",
    "token_budget",
    "budget_profile",
    "budget_source",
    "usd_budget_micros",
    "tokens_used",
    "subagent_tokens",
    "cache_read_tokens",
    "cost_micros",
    "unpriced_tokens",
    "time_used_seconds",
    "resume_at_ms",
    "last_accounted_byte_offset",
    "last_accounted_uuid",
    "accounting_uncertain",
    "last_continuation_at_ms",
    "continuations_used",
    "continuations_remaining",
    "max_wall_clock_seconds",
    "deadline_ms",
    "budget_limit_reported",
    "wind_down",
    "wind_down_batches",
    "warned_json",
    "worked_since_continuation",
    "idle_continuations",
    "blocks_in_row",
    "last_message_hash",
    "failures_in_row",
    "wake_at_ms",
    "verify_json",
    "version",
    "created_at_ms",
    "updated_at_ms",
];

fn values(goal: &Goal) -> Result<[SqlValue; COLUMNS.len()], StoreError> {
    let text = |text: &str| SqlValue::Text(text.to_owned());
    let maybe_text = |text: Option<&str>| text.map_or(SqlValue::Null, |text| SqlValue::Text(text.to_owned()));
    let maybe = |number: Option<i64>| number.map_or(SqlValue::Null, SqlValue::Integer);
    let flag = |flag: bool| SqlValue::Integer(i64::from(flag));
    let json = |value: Result<String, serde_json::Error>| {
        value.map(SqlValue::Text).map_err(|error| StoreError::Value(error.to_string()))
    };
    Ok([
        text(&goal.session_id),
        text(&goal.goal_id),
        text(goal.host.into()),
        maybe_text(goal.project_dir.as_deref()),
        text(&goal.objective),
        text(goal.status.into()),
        maybe_text(goal.paused_reason.map(Into::into)),
        maybe(goal.token_budget),
        maybe_text(goal.budget_profile.map(Into::into)),
        text(goal.budget_source.into()),
        maybe(goal.usd_budget_micros),
        SqlValue::Integer(goal.tokens_used),
        SqlValue::Integer(goal.subagent_tokens),
        SqlValue::Integer(goal.cache_read_tokens),
        SqlValue::Integer(goal.cost_micros),
        SqlValue::Integer(goal.unpriced_tokens),
        SqlValue::Integer(goal.time_used_seconds),
        maybe(goal.resume_at_ms),
        SqlValue::Integer(goal.last_accounted_byte_offset),
        maybe_text(goal.last_accounted_uuid.as_deref()),
        flag(goal.accounting_uncertain),
        maybe(goal.last_continuation_at_ms),
        SqlValue::Integer(goal.continuations_used),
        SqlValue::Integer(goal.continuations_remaining),
        SqlValue::Integer(goal.max_wall_clock_seconds),
        maybe(goal.deadline_ms),
        flag(goal.budget_limit_reported),
        maybe_text(goal.wind_down.map(Into::into)),
        SqlValue::Integer(goal.wind_down_batches),
        json(serde_json::to_string(&goal.warned))?,
        flag(goal.worked_since_continuation),
        SqlValue::Integer(goal.idle_continuations),
        SqlValue::Integer(goal.blocks_in_row),
        maybe_text(goal.last_message_hash.as_deref()),
        SqlValue::Integer(goal.failures_in_row),
        maybe(goal.wake_at_ms),
        json(serde_json::to_string(&goal.verify))?,
        SqlValue::Integer(goal.version),
        SqlValue::Integer(goal.created_at_ms),
        SqlValue::Integer(goal.updated_at_ms),
    ])
}

fn word<T: std::str::FromStr>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|_| not_understood(column, &text))
}

fn maybe_word<T: std::str::FromStr>(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| text.parse().map_err(|_| not_understood(column, &text))).transpose()
}

fn not_understood(column: &str, text: &str) -> rusqlite::Error {
    let message = format!("column {column} holds `{text}`");
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, message.into())
}

fn list<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<Vec<T>> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|_| not_understood(column, &text))
}

fn read(row: &Row<'_>) -> rusqlite::Result<Goal> {
    Ok(Goal {
        session_id: row.get("session_id")?,
        goal_id: row.get("goal_id")?,
        host: word(row, "host")?,
        project_dir: row.get("project_dir")?,
        objective: row.get("objective")?,
        status: word(row, "status")?,
        paused_reason: maybe_word(row, "paused_reason")?,
        token_budget: row.get("token_budget")?,
        budget_profile: maybe_word(row, "budget_profile")?,
        budget_source: word(row, "budget_source")?,
        usd_budget_micros: row.get("usd_budget_micros")?,
        tokens_used: row.get("tokens_used")?,
        subagent_tokens: row.get("subagent_tokens")?,
        cache_read_tokens: row.get("cache_read_tokens")?,
        cost_micros: row.get("cost_micros")?,
        unpriced_tokens: row.get("unpriced_tokens")?,
        time_used_seconds: row.get("time_used_seconds")?,
        resume_at_ms: row.get("resume_at_ms")?,
        last_accounted_byte_offset: row.get("last_accounted_byte_offset")?,
        last_accounted_uuid: row.get("last_accounted_uuid")?,
        accounting_uncertain: row.get("accounting_uncertain")?,
        last_continuation_at_ms: row.get("last_continuation_at_ms")?,
        continuations_used: row.get("continuations_used")?,
        continuations_remaining: row.get("continuations_remaining")?,
        max_wall_clock_seconds: row.get("max_wall_clock_seconds")?,
        deadline_ms: row.get("deadline_ms")?,
        budget_limit_reported: row.get("budget_limit_reported")?,
        wind_down: maybe_word(row, "wind_down")?,
        wind_down_batches: row.get("wind_down_batches")?,
        warned: list(row, "warned_json")?,
        worked_since_continuation: row.get("worked_since_continuation")?,
        idle_continuations: row.get("idle_continuations")?,
        blocks_in_row: row.get("blocks_in_row")?,
        last_message_hash: row.get("last_message_hash")?,
        failures_in_row: row.get("failures_in_row")?,
        wake_at_ms: row.get("wake_at_ms")?,
        verify: list(row, "verify_json")?,
        version: row.get("version")?,
        created_at_ms: row.get("created_at_ms")?,
        updated_at_ms: row.get("updated_at_ms")?,
    })
}

fn select(table: &str, condition: &str) -> String {
    format!("SELECT {} FROM {table} WHERE {condition}", COLUMNS.join(", "))
}

fn insert(table: &str) -> String {
    let places: Vec<String> = (1..=COLUMNS.len()).map(|number| format!("?{number}")).collect();
    format!("INSERT INTO {table} ({}) VALUES ({})", COLUMNS.join(", "), places.join(", "))
}

impl Db<'_> {
    /// The goal of a session, live or over.
    pub fn goal(self, session_id: &str) -> Result<Option<Goal>, StoreError> {
        let sql = select("goals", "session_id = ?1");
        Ok(self.0.prepare_cached(&sql)?.query_row([session_id], read).optional()?)
    }

    /// Goals whose id is, or begins with, `id`.
    pub fn goals_by_id(self, id: &str) -> Result<Vec<Goal>, StoreError> {
        let sql = select("goals", "substr(goal_id, 1, length(?1)) = ?1");
        Ok(self.0.prepare(&sql)?.query_map([id], read)?.collect::<Result<_, _>>()?)
    }

    /// All goals with a row of their own, newest first.
    pub fn goals(self) -> Result<Vec<Goal>, StoreError> {
        let sql = select("goals", "true ORDER BY created_at_ms DESC, goal_id");
        Ok(self.0.prepare(&sql)?.query_map([], read)?.collect::<Result<_, _>>()?)
    }

    /// Replaced goals, newest first; of one session or of all.
    pub fn replaced_goals(self, session_id: Option<&str>) -> Result<Vec<Goal>, StoreError> {
        let sql = select("goal_history", "?1 IS NULL OR session_id = ?1 ORDER BY created_at_ms DESC, goal_id");
        Ok(self.0.prepare(&sql)?.query_map([session_id], read)?.collect::<Result<_, _>>()?)
    }

    /// Inserts a goal for a session that has no row, or whose goal is over; the old row moves to the history.
    pub fn start_goal(self, goal: &Goal, replaced: Option<&Goal>, origin: Origin) -> Result<Goal, StoreError> {
        let mut goal = goal.clone();
        let mut events = Vec::new();
        if let Some(old) = replaced {
            self.archive_goal(old)?;
            // A process that still holds the old row must not match the new one.
            goal.version = old.version + 1;
            let payload = serde_json::json!({"prev_goal_id": old.goal_id, "prev_status": old.status, "prev_objective": old.objective});
            events.push(Event::new("goal_replaced", payload));
        }
        self.0.prepare_cached(&insert("goals"))?.execute(params_from_iter(values(&goal)?))?;
        self.move_span(&goal, Span::Open, goal.created_at_ms)?;
        let budget = serde_json::json!({
            "objective": goal.objective, "token_budget": goal.token_budget, "budget_profile": goal.budget_profile,
            "usd_budget_micros": goal.usd_budget_micros, "max_turns": goal.continuations_remaining,
            "max_wall_clock_seconds": goal.max_wall_clock_seconds, "deadline_ms": goal.deadline_ms, "verify": goal.verify,
        });
        events.push(Event::new("goal_created", budget));
        for event in &events {
            self.add_event(None, &goal, event, origin, goal.created_at_ms)?;
        }
        self.tie_stated(&goal.session_id, &goal.goal_id)?;
        Ok(goal)
    }

    /// Moves the row of a finished goal to the history.
    pub fn archive_goal(self, goal: &Goal) -> Result<(), StoreError> {
        self.0.prepare_cached(&insert("goal_history"))?.execute(params_from_iter(values(goal)?))?;
        self.delete_row(goal)
    }

    fn delete_row(self, goal: &Goal) -> Result<(), StoreError> {
        let sql = "DELETE FROM goals WHERE session_id = ?1 AND version = ?2";
        match self.0.execute(sql, params![goal.session_id, goal.version])? {
            1 => Ok(()),
            _ => Err(StoreError::Stale),
        }
    }

    /// Writes a change over the row it was made from, with its events. The loser of a race gets `Stale`.
    pub fn save(self, before: &Goal, change: Change, origin: Origin) -> Result<Goal, StoreError> {
        let mut goal = change.goal;
        goal.version = before.version + 1;
        let assignments: Vec<String> =
            COLUMNS.iter().zip(1..).map(|(column, number)| format!("{column} = ?{number}")).collect();
        let sql = format!(
            "UPDATE goals SET {} WHERE session_id = ?{} AND version = ?{}",
            assignments.join(", "),
            COLUMNS.len() + 1,
            COLUMNS.len() + 2
        );
        let mut parameters = Vec::from(values(&goal)?);
        parameters.push(SqlValue::Text(before.session_id.clone()));
        parameters.push(SqlValue::Integer(before.version));
        let updated = self.0.prepare_cached(&sql)?.execute(params_from_iter(parameters))?;
        if updated != 1 {
            return Err(StoreError::Stale);
        }
        self.move_span(&goal, change.span, goal.updated_at_ms)?;
        for event in &change.events {
            self.add_event(Some(before), &goal, event, origin, goal.updated_at_ms)?;
        }
        match goal.status {
            GoalStatus::Complete if before.status.is_live() => {
                self.finish_stated(&goal.goal_id, StatedStatus::Done, goal.updated_at_ms)?;
            }
            GoalStatus::Abandoned if before.status.is_live() => {
                self.finish_stated(&goal.goal_id, StatedStatus::Cleared, goal.updated_at_ms)?;
            }
            _ => {}
        }
        Ok(goal)
    }

    /// Removes a goal and everything only it has. The caller has made sure that nobody drives it.
    pub fn delete_goal(self, goal: &Goal) -> Result<(), StoreError> {
        self.delete_row(goal)?;
        for table in ["goal_events", "goal_spans", "subagent_token_cursors", "verifications"] {
            self.0.execute(&format!("DELETE FROM {table} WHERE goal_id = ?1"), [&goal.goal_id])?;
        }
        Ok(())
    }

    /// Adds what late lines of a transcript tell about a goal that moved on: to another session, or into history.
    pub(crate) fn charge_other_goal(
        self,
        goal_id: &str,
        charge: Charge,
        origin: Origin,
        now: Millis,
    ) -> Result<(), StoreError> {
        if let Some(goal) = self.goals_by_id(goal_id)?.into_iter().find(|goal| goal.goal_id == goal_id) {
            if let Some(change) = turn::charge(&goal, charge, now) {
                self.save(&goal, change, origin)?;
            }
            return Ok(());
        }
        self.0.execute(
            "UPDATE goal_history SET tokens_used = max(0, tokens_used + ?2), subagent_tokens = max(0, subagent_tokens + ?3),
               cache_read_tokens = max(0, cache_read_tokens + ?4), cost_micros = max(0, cost_micros + ?5),
               unpriced_tokens = max(0, unpriced_tokens + ?6)
             WHERE goal_id = ?1",
            params![
                goal_id, charge.worker_tokens, charge.subagent_tokens, charge.cache_read_tokens, charge.cost_micros,
                charge.unpriced_tokens
            ],
        )?;
        Ok(())
    }

    fn add_event(
        self,
        before: Option<&Goal>,
        after: &Goal,
        event: &Event,
        origin: Origin,
        at: Millis,
    ) -> Result<(), StoreError> {
        let status = |goal: &Goal| <&str>::from(goal.status);
        self.0
            .prepare_cached(
                "INSERT INTO goal_events (session_id, goal_id, hook_name, event_type, status_before, status_after,
                   tokens_delta, version_before, version_after, decision, pid, payload_json, created_at_ms, actor)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            )?
            .execute(params![
                after.session_id,
                after.goal_id,
                origin.place,
                event.kind,
                before.map(status),
                status(after),
                event.tokens_delta,
                before.map(|goal| goal.version),
                after.version,
                event.decision,
                std::process::id(),
                event.payload.to_string(),
                at,
                <&str>::from(origin.actor),
            ])?;
        Ok(())
    }

    /// Events in the order they happened; the newest `most`.
    pub fn events(self, filter: EventFilter<'_>, most: usize) -> Result<Vec<EventRow>, StoreError> {
        let (condition, key) = match filter {
            EventFilter::All => ("?1 = ''", ""),
            EventFilter::Session(id) => ("session_id = ?1", id),
            EventFilter::Goal(id) => ("goal_id = ?1", id),
        };
        let sql = format!(
            "SELECT * FROM (SELECT id, session_id, goal_id, event_type, hook_name, actor, status_before, status_after,
               version_before, version_after, tokens_delta, payload_json, created_at_ms
             FROM goal_events WHERE {condition} ORDER BY id DESC LIMIT ?2) ORDER BY id"
        );
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = self.0.prepare(&sql)?.query_map(params![key, most], read_event)?.collect::<Result<_, _>>()?;
        Ok(rows)
    }

    /// The newest event of one kind.
    pub fn last_event(self, goal_id: &str, kind: &str) -> Result<Option<EventRow>, StoreError> {
        let sql = "SELECT id, session_id, goal_id, event_type, hook_name, actor, status_before, status_after,
                     version_before, version_after, tokens_delta, payload_json, created_at_ms
                   FROM goal_events WHERE goal_id = ?1 AND event_type = ?2 ORDER BY id DESC LIMIT 1";
        Ok(self.0.prepare_cached(sql)?.query_row([goal_id, kind], read_event).optional()?)
    }

    /// How many goals are in each status.
    pub fn goal_counts(self) -> Result<Vec<(GoalStatus, i64)>, StoreError> {
        let mut statement =
            self.0.prepare("SELECT status, count(*) AS n FROM goals GROUP BY status ORDER BY status")?;
        let rows = statement.query_map([], |row| Ok((word(row, "status")?, row.get("n")?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn read_event(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    let payload: Option<String> = row.get("payload_json")?;
    // The plugin pasted strings together, so old payloads may not be JSON; they are kept as text.
    let payload = payload.map_or_else(
        || Value::Object(serde_json::Map::new()),
        |text| match serde_json::from_str(&text) {
            Ok(Value::Object(object)) => Value::Object(object),
            Ok(other) => serde_json::json!({"value": other}),
            Err(_) => serde_json::json!({"text": text}),
        },
    );
    Ok(EventRow {
        id: row.get("id")?,
        session_id: row.get("session_id")?,
        goal_id: row.get("goal_id")?,
        kind: row.get("event_type")?,
        hook_name: row.get("hook_name")?,
        actor: row.get("actor")?,
        status_before: row.get("status_before")?,
        status_after: row.get("status_after")?,
        version_before: row.get("version_before")?,
        version_after: row.get("version_after")?,
        tokens_delta: row.get("tokens_delta")?,
        payload,
        created_at_ms: row.get("created_at_ms")?,
    })
}
