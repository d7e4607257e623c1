//! The log of what happened to goals: every transition and every accounting pass, who did it, and a payload.

use rusqlite::{OptionalExtension as _, Row, params};
use serde_json::Value;

use super::Origin;
use crate::{Db, StoreError};
use steadfast_model::clock::Millis;
use steadfast_model::goal::Goal;
use steadfast_model::goal::event::{Event, EventKind};

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

impl Db<'_> {
    pub(super) fn add_event(
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
                <&str>::from(event.kind),
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
    pub fn last_event(self, goal_id: &str, kind: EventKind) -> Result<Option<EventRow>, StoreError> {
        let sql = "SELECT id, session_id, goal_id, event_type, hook_name, actor, status_before, status_after,
                     version_before, version_after, tokens_delta, payload_json, created_at_ms
                   FROM goal_events WHERE goal_id = ?1 AND event_type = ?2 ORDER BY id DESC LIMIT 1";
        Ok(self.0.prepare_cached(sql)?.query_row([goal_id, kind.into()], read_event).optional()?)
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
