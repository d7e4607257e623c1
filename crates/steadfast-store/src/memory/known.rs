//! Which sessions the store knows of, and when something last happened in each.

use std::cmp::Reverse;

use super::{Db, StoreError};
use crate::Session;
use steadfast_model::clock::Millis;

/// A session, newest activity first in lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionActivity {
    pub session_id: String,
    /// What hooks reported about it; memory may outlive that.
    pub session: Option<Session>,
    /// Its newest event, or when a hook last saw it.
    pub last_active_ms: Millis,
}

/// Steps from one session to the next in the index, so that their events are not read.
const REMEMBERED: &str = "WITH RECURSIVE found(id) AS (
       SELECT min(session_id) FROM session_events
       UNION ALL
       SELECT (SELECT min(session_id) FROM session_events WHERE session_id > found.id) FROM found WHERE id IS NOT NULL)
     SELECT id FROM found WHERE id IS NOT NULL
     UNION SELECT session_id FROM stated_goals
     UNION SELECT session_id FROM session_tasks
     UNION SELECT session_id FROM session_snapshots";

/// The last activity of a session, as [`Db::session_activity`] has it.
const LAST_ACTIVE: &str = "max(
       coalesce((SELECT created_at_ms FROM session_events e WHERE e.session_id = r.id ORDER BY e.id DESC LIMIT 1), 0),
       coalesce((SELECT last_seen_ms FROM sessions s WHERE s.session_id = r.id), 0))";

/// A session in a long list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRef {
    pub session_id: String,
    pub project_dir: String,
    pub cwd: String,
    last_seen_ms: Millis,
}

impl Db<'_> {
    /// Every session that hooks reported, the last seen first.
    pub fn sessions_by_last_seen(self) -> Result<Vec<SessionRef>, StoreError> {
        let sql = "SELECT session_id, project_dir, cwd, last_seen_ms FROM sessions";
        let mut found = self.all(sql, [], |row| {
            Ok(SessionRef {
                session_id: row.get(0)?,
                project_dir: row.get(1)?,
                cwd: row.get(2)?,
                last_seen_ms: row.get(3)?,
            })
        })?;
        found.sort_by_key(|session| Reverse(session.last_seen_ms));
        Ok(found)
    }

    /// Every session that hooks reported or that something is remembered of, the last active first.
    pub fn known_sessions(self) -> Result<Vec<SessionActivity>, StoreError> {
        let sql = format!("{REMEMBERED} UNION SELECT session_id FROM sessions");
        let ids: Vec<String> = self.all(&sql, [], |row| row.get(0))?;
        let mut known = ids.into_iter().map(|id| self.session_activity(&id)).collect::<Result<Vec<_>, _>>()?;
        known.sort_by_key(|known| Reverse(known.last_active_ms));
        Ok(known)
    }

    /// Sessions that something is remembered of and whose last activity was before a moment, the oldest first.
    pub fn remembered_before(self, before: Millis) -> Result<Vec<String>, StoreError> {
        let sql = format!(
            "SELECT id FROM (SELECT r.id, {LAST_ACTIVE} AS active_at FROM ({REMEMBERED}) r)
             WHERE active_at < ?1 ORDER BY active_at, id"
        );
        self.all(&sql, [before], |row| row.get(0))
    }

    /// A session by its id, known or not.
    pub fn session_activity(self, session_id: &str) -> Result<SessionActivity, StoreError> {
        let session = self.session(session_id)?;
        let seen = session.as_ref().map(|session| session.last_seen_ms);
        let last_active_ms = self.newest_event_ms(session_id)?.max(seen).unwrap_or(0);
        Ok(SessionActivity { session_id: session_id.to_owned(), session, last_active_ms })
    }

    /// Ids that are, or begin with, `id`: of sessions with hooks, memory or a goal. An exact one is the only one.
    pub fn sessions_by_id(self, id: &str) -> Result<Vec<String>, StoreError> {
        // The last character of Unicode ends the range of all ids with this beginning.
        let tables = ["sessions", "session_events", "stated_goals", "session_tasks", "session_snapshots", "goals"];
        let selects = tables.map(|table| {
            format!("SELECT session_id FROM {table} WHERE session_id >= ?1 AND session_id < ?1 || char(1114111)")
        });
        let mut found: Vec<String> = self.all(&selects.join(" UNION "), [id], |row| row.get(0))?;
        if found.iter().any(|found| found == id) {
            found.retain(|found| found == id);
        }
        Ok(found)
    }

    /// The directories of projects, as sessions named them.
    pub fn project_directories(self) -> Result<Vec<String>, StoreError> {
        self.all("SELECT DISTINCT project_dir FROM sessions WHERE project_dir <> ''", [], |row| row.get(0))
    }
}
