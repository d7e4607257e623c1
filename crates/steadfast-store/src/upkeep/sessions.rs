//! Session memory, sessions and cursors that are not needed any more.

use rusqlite::{OptionalExtension as _, params};

use super::{DELETED, Reached, SEEN, WALKED};
use crate::{Db, Session, StoreError, limit};
use steadfast_model::clock::Millis;
use steadfast_system::process::ProcessId;

/// Tables with the memory of sessions.
const MEMORY: [&str; 4] = ["session_events", "stated_goals", "session_tasks", "session_snapshots"];
/// Deleting an event also changes the search index.
const EVENTS_DELETED: usize = DELETED / 2;

impl Db<'_> {
    /// Deletes the memory of sessions whose last activity was before a moment.
    pub(super) fn forget_some(
        self,
        position: &str,
        before: Option<Millis>,
        aged: Millis,
    ) -> Result<Reached, StoreError> {
        let Some(before) = before else { return Ok(Reached::End) };
        let mut at = position.to_owned();
        for _ in 0..WALKED {
            let Some(id) = self.remembered_after(&at)? else { return Ok(Reached::End) };
            if self.is_expired(&id, before, aged)? {
                let deleted = self.delete_events_of(&id, EVENTS_DELETED)?;
                if deleted == EVENTS_DELETED {
                    return Ok(Reached::At(at));
                }
                if self.expire_memory(&id)? || deleted > 0 {
                    return Ok(Reached::At(id));
                }
            }
            at = id;
        }
        Ok(Reached::At(at))
    }

    /// The next session that something is remembered of, in the order of ids.
    fn remembered_after(self, id: &str) -> Result<Option<String>, StoreError> {
        let mut next: Option<String> = None;
        for table in MEMORY {
            let sql = format!("SELECT min(session_id) FROM {table} WHERE session_id > ?1");
            let found: Option<String> =
                self.0.prepare_cached(&sql)?.query_row([id], |row| row.get(0)).optional()?.flatten();
            next = match (next, found) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        Ok(next)
    }

    /// Deletes what hooks reported about sessions that have neither a goal nor memory, and that no fork continues, and the
    /// sums of sessions that are not known any more, such as those that the user purged.
    pub(super) fn prune_sessions(self, position: &str, before: Option<Millis>) -> Result<Reached, StoreError> {
        let Some(before) = before else { return Ok(Reached::End) };
        let sql = "SELECT session_id, last_seen_ms FROM sessions WHERE session_id > ?1
                   UNION ALL
                   SELECT session_id, iif(EXISTS (SELECT 1 FROM responses WHERE session_id = s.session_id), ?3, 0)
                   FROM session_sums s WHERE session_id > ?1 AND session_id NOT IN (SELECT session_id FROM sessions)
                   ORDER BY 1 LIMIT ?2";
        let seen: Vec<(String, Millis)> =
            self.all(sql, params![position, limit(WALKED), before], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (id, last_seen) in &seen {
            let runs = |session: Session| session.client.and_then(ProcessId::is_alive) == Some(true);
            if *last_seen < before && !self.is_session_used(id)? && !self.session(id)?.is_some_and(runs) {
                for table in ["sessions", "session_sums", "subagents", "typed_commands"] {
                    self.execute(&format!("DELETE FROM {table} WHERE session_id = ?1"), [id])?;
                }
            }
        }
        Ok(seen.last().map_or(Reached::End, |(id, _)| Reached::At(id.clone())))
    }

    /// Whether a goal, memory or a fork needs what hooks reported about a session.
    fn is_session_used(self, session_id: &str) -> Result<bool, StoreError> {
        let of_session = MEMORY.iter().chain(&["goals", "goal_history", "goal_queue"]);
        let checks: Vec<String> = of_session
            .map(|table| format!("EXISTS (SELECT 1 FROM {table} WHERE session_id = ?1)"))
            .chain(["EXISTS (SELECT 1 FROM sessions WHERE parent_session_id = ?1)".to_owned()])
            .collect();
        let sql = format!("SELECT {}", checks.join(" OR "));
        Ok(self.0.prepare_cached(&sql)?.query_row([session_id], |row| row.get(0))?)
    }

    /// Deletes the positions of files that were last read before a moment. A file that is read again from its start
    /// changes nothing in the ledger.
    pub(super) fn prune_cursors(self, position: &str, before: Option<Millis>) -> Result<Reached, StoreError> {
        let Some(before) = before else { return Ok(Reached::End) };
        let last = "SELECT max(path) FROM (SELECT path FROM transcript_cursors WHERE path > ?1 ORDER BY path LIMIT ?2)";
        let last: Option<String> = self.first(last, params![position, limit(SEEN)], |row| row.get(0))?.flatten();
        let Some(last) = last else { return Ok(Reached::End) };
        let sql = "DELETE FROM transcript_cursors WHERE path > ?1 AND path <= ?2 AND updated_at_ms < ?3
                     AND NOT EXISTS (SELECT 1 FROM goals g WHERE g.session_id = transcript_cursors.session_id
                                       AND g.status NOT IN ('complete', 'abandoned'))";
        self.execute(sql, params![position, last, before])?;
        Ok(Reached::At(last))
    }
}
