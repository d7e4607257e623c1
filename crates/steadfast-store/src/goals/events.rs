//! The event log of goals: every transition and every accounting pass, its actor, and a payload.

use rusqlite::{Row, params, params_from_iter};
use serde_json::{Value, json};

use super::Origin;
use crate::{Db, StoreError, limit, secrets};
use steadfast_model::clock::Millis;
use steadfast_model::goal::event::{Event, EventKind};
use steadfast_model::goal::{Actor, Goal};

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

impl<'a> EventFilter<'a> {
    fn condition(self) -> (&'static str, &'a str) {
        match self {
            Self::All => ("?1 = ''", ""),
            Self::Session(id) => ("session_id = ?1", id),
            Self::Goal(id) => ("goal_id = ?1", id),
        }
    }
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
        let mut payload = event.payload.clone();
        secrets::clean(&mut payload);
        self.execute(
            "INSERT INTO goal_events (session_id, goal_id, hook_name, event_type, status_before, status_after,
               tokens_delta, version_before, version_after, decision, pid, payload_json, created_at_ms, actor)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            params![
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
                payload.to_string(),
                at,
                <&str>::from(origin.actor),
            ],
        )?;
        Ok(())
    }

    /// Events in the order they happened; the newest `most`.
    pub fn events(self, filter: EventFilter<'_>, most: usize) -> Result<Vec<EventRow>, StoreError> {
        let (condition, key) = filter.condition();
        let newest = format!("SELECT * FROM goal_events WHERE {condition} ORDER BY id DESC LIMIT ?2");
        self.all(&format!("SELECT * FROM ({newest}) ORDER BY id"), params![key, limit(most)], read_event)
    }

    /// Visits all events in the order they happened, one at a time.
    pub fn each_event<E: From<StoreError>>(
        self,
        filter: EventFilter<'_>,
        mut visit: impl FnMut(EventRow) -> Result<(), E>,
    ) -> Result<(), E> {
        let (condition, key) = filter.condition();
        let failed = |error: rusqlite::Error| E::from(StoreError::from(error));
        let sql = format!("SELECT * FROM goal_events WHERE {condition} ORDER BY id");
        let mut statement = self.0.prepare_cached(&sql).map_err(failed)?;
        let mut rows = statement.query([key]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            visit(read_event(row).map_err(failed)?)?;
        }
        Ok(())
    }

    /// The events of some kinds, in the order they happened.
    pub fn events_of_kinds(self, goal_id: &str, kinds: &[EventKind]) -> Result<Vec<EventRow>, StoreError> {
        let names: Vec<&str> = kinds.iter().map(|kind| (*kind).into()).collect();
        let places = vec!["?"; names.len()].join(", ");
        let sql = format!("SELECT * FROM goal_events WHERE goal_id = ? AND event_type IN ({places}) ORDER BY id");
        self.all(&sql, params_from_iter(std::iter::once(goal_id).chain(names)), read_event)
    }

    /// The events that changed the status of a goal, in the order they happened.
    pub fn status_changes(self, goal_id: &str) -> Result<Vec<EventRow>, StoreError> {
        let sql = "SELECT * FROM goal_events WHERE goal_id = ?1 AND status_before IS NOT status_after ORDER BY id";
        self.all(sql, [goal_id], read_event)
    }

    /// The newest event of one kind.
    pub fn last_event(self, goal_id: &str, kind: EventKind) -> Result<Option<EventRow>, StoreError> {
        let sql = "SELECT * FROM goal_events WHERE goal_id = ?1 AND event_type = ?2 ORDER BY id DESC LIMIT 1";
        self.first(sql, [goal_id, kind.into()], read_event)
    }

    /// Whether an agent created the goal. A goal whose first events are gone counts as a person's.
    pub fn is_created_by_agent(self, goal_id: &str) -> Result<bool, StoreError> {
        let sql = "SELECT actor FROM goal_events WHERE goal_id = ?1 AND event_type = ?2 ORDER BY id LIMIT 1";
        let created: &str = EventKind::GoalCreated.into();
        let actor: Option<Option<String>> = self.first(sql, [goal_id, created], |row| row.get(0))?;
        let agents = [Actor::Worker, Actor::Evaluator].map(<&str>::from);
        Ok(actor.flatten().is_some_and(|actor| agents.contains(&actor.as_str())))
    }

    /// When the goal ended; `None` while it is live.
    pub fn over_since(self, goal_id: &str) -> Result<Option<Millis>, StoreError> {
        let sql = "SELECT created_at_ms FROM goal_events
                   WHERE goal_id = ?1 AND status_after IN ('complete', 'abandoned') ORDER BY id LIMIT 1";
        self.first(sql, [goal_id], |row| row.get(0))
    }

    /// What agents did to a goal at a place since a moment, among its newest events.
    pub fn agents_events(self, goal_id: &str, place: &str, since: Millis) -> Result<Vec<EventRow>, StoreError> {
        let sql = "SELECT * FROM (SELECT * FROM goal_events WHERE goal_id = ?1 ORDER BY id DESC LIMIT 50)
                   WHERE hook_name = ?2 AND actor = 'worker' AND created_at_ms >= ?3 ORDER BY id";
        self.all(sql, params![goal_id, place, since], read_event)
    }
}

pub(crate) fn read_event(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    let payload: Option<String> = row.get("payload_json")?;
    let text = payload.unwrap_or_else(|| "{}".to_owned());
    // The plugin joined strings, so old payloads may not be JSON; they are kept as text.
    let payload = match serde_json::from_slice(text.as_bytes()) {
        Ok(Value::Object(object)) => Value::Object(object),
        Ok(other) => json!({"value": other}),
        Err(_) => json!({"text": text}),
    };
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
