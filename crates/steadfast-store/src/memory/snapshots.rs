//! The text that a model gets when it lost its context, and when it was last injected.

use rusqlite::params;
use serde::Serialize;

use super::{Db, StoreError, lossy, whole};
use steadfast_model::clock::Millis;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    pub session_id: String,
    /// Empty as long as none was written.
    pub text: String,
    /// How often the session's context was compacted.
    pub compactions: i64,
    pub written_at_ms: Millis,
    pub injected_at_ms: Option<Millis>,
    /// The kind of start by which it last reached a model: `compaction`, `resume`, or `double_start` when one followed
    /// upon the other.
    pub injected_by: Option<String>,
    /// When the last compaction announced itself, and how long the session's file was then.
    pub compacting_at_ms: Option<Millis>,
    pub compacting_bytes: Option<i64>,
}

impl Db<'_> {
    /// Keeps the newest text for a session.
    pub fn put_snapshot(self, session_id: &str, text: &str, now: Millis) -> Result<(), StoreError> {
        let sql = "INSERT INTO session_snapshots (session_id, text, written_at_ms) VALUES (?1, ?2, ?3)
                   ON CONFLICT (session_id) DO UPDATE SET text = excluded.text, written_at_ms = excluded.written_at_ms";
        self.execute(sql, params![session_id, text, now])?;
        Ok(())
    }

    pub fn snapshot(self, session_id: &str) -> Result<Option<Snapshot>, StoreError> {
        let sql = "SELECT session_id, text, compactions, written_at_ms, injected_at_ms, injected_by,
                     compacting_at_ms, compacting_bytes
                   FROM session_snapshots WHERE session_id = ?1";
        self.first(sql, [session_id], |row| {
            Ok(Snapshot {
                session_id: lossy(row, 0)?,
                text: lossy(row, 1)?,
                compactions: whole(row, 2)?,
                written_at_ms: whole(row, 3)?,
                injected_at_ms: Some(whole(row, 4)?).filter(|at| *at != 0),
                injected_by: Some(lossy(row, 5)?).filter(|by| !by.is_empty()),
                compacting_at_ms: Some(whole(row, 6)?).filter(|at| *at != 0),
                compacting_bytes: Some(whole(row, 7)?).filter(|at| *at != 0),
            })
        })
    }

    /// When a snapshot of a session was last injected.
    pub fn injected_at(self, session_id: &str) -> Result<Option<Millis>, StoreError> {
        let sql = "SELECT injected_at_ms FROM session_snapshots WHERE session_id = ?1";
        Ok(self.first(sql, [session_id], |row| whole(row, 0))?.filter(|at| *at != 0))
    }

    /// Records an injection, so that two starts in a row inject once.
    pub fn note_injection(self, session_id: &str, by: &str, now: Millis) -> Result<(), StoreError> {
        let sql = "INSERT INTO session_snapshots (session_id, text, written_at_ms, injected_at_ms, injected_by)
                   VALUES (?1, '', ?3, ?3, ?2)
                   ON CONFLICT (session_id) DO UPDATE SET injected_at_ms = excluded.injected_at_ms,
                     injected_by = excluded.injected_by";
        self.execute(sql, params![session_id, by, now])?;
        Ok(())
    }

    /// Keeps the text of the moment before a compaction, and where in the session's file that moment is.
    pub fn put_snapshot_before_compaction(
        self,
        session_id: &str,
        text: &str,
        file_bytes: Option<i64>,
        now: Millis,
    ) -> Result<(), StoreError> {
        self.put_snapshot(session_id, text, now)?;
        let sql = "UPDATE session_snapshots SET compacting_at_ms = ?2, compacting_bytes = ?3 WHERE session_id = ?1";
        self.execute(sql, params![session_id, now, file_bytes])?;
        Ok(())
    }

    /// The conversation of a session was replaced by a summary.
    pub fn note_compaction(self, session_id: &str, now: Millis) -> Result<(), StoreError> {
        let sql = "INSERT INTO session_snapshots (session_id, text, compactions, written_at_ms) VALUES (?1, '', 1, ?2)
                   ON CONFLICT (session_id) DO UPDATE SET compactions = compactions + 1";
        self.execute(sql, params![session_id, now])?;
        Ok(())
    }
}
