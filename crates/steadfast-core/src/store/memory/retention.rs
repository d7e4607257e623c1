//! Forgetting: by itself after some time without activity, or at a person's word. By itself nothing goes that may
//! still be needed: a session that runs, one with a goal that is not over, and those that such a session was forked from.

use serde::Serialize;

use super::{Db, SessionActivity, StoreError};
use crate::clock::Millis;
use crate::store::{ParentLink, Store};

const DAY: Millis = 86_400_000;
/// Where it cannot be told whether the client of a session runs, one that was silent this long does not.
const SILENT_AFTER: Millis = 7 * DAY;
/// Forgetting happens on the way of a hook: the rest goes the next time.
const FORGOTTEN_AT_ONCE: usize = 10;

/// What went, or would go, with a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Forgotten {
    pub session_id: String,
    pub project: Option<String>,
    pub events: i64,
    pub tasks: i64,
    pub stated_goals: i64,
    pub last_active_ms: Millis,
}

impl Store {
    /// Rewrites the whole file from what is in its rows, and empties the log: what was deleted or replaced before is in
    /// neither afterwards. Everyday writes leave old words in free pages, since wiping each would cost every hook.
    pub fn rewrite(&self) -> Result<(), StoreError> {
        let rewritten = self.db.execute_batch("VACUUM").map_err(|error| self.explain(error.into()));
        // The log has old pages too, whatever became of the file.
        let busy: i64 = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        rewritten?;
        if busy == 0 { Ok(()) } else { Err(StoreError::Busy(self.path.clone())) }
    }
}

impl Db<'_> {
    /// Forgets sessions without activity for `days`, a few at a time; 0 keeps everything.
    pub fn forget_old(self, now: Millis, days: u32) -> Result<Vec<Forgotten>, StoreError> {
        let old = self.old_sessions(now, days)?;
        old.iter().take(FORGOTTEN_AT_ONCE).map(|id| self.drop_memory(id)).collect()
    }

    /// Those it would forget, and more of their kind.
    pub(crate) fn old_sessions(self, now: Millis, days: u32) -> Result<Vec<String>, StoreError> {
        if days == 0 {
            return Ok(Vec::new());
        }
        self.expired_sessions(now.saturating_sub(Millis::from(days) * DAY), now)
    }

    /// Sessions that something is remembered of and whose last activity was before a moment.
    pub fn remembered_before(self, before: Millis) -> Result<Vec<SessionActivity>, StoreError> {
        let mut known = Vec::new();
        for id in self.remembered_sessions()? {
            known.push(self.session_activity(&id)?);
        }
        known.retain(|known| known.last_active_ms < before);
        Ok(known)
    }

    /// Sessions whose last activity was before a moment and that nobody needs any more, the oldest first.
    pub fn expired_sessions(self, before: Millis, now: Millis) -> Result<Vec<String>, StoreError> {
        let mut old = Vec::new();
        for known in self.remembered_before(before)? {
            if !self.is_needed(&known, now)? {
                old.push(known);
            }
        }
        // A fork that stays lives on what its ancestors remember.
        for fork in self.forks()? {
            let known = self.session_activity(&fork)?;
            if known.last_active_ms >= before || self.is_needed(&known, now)? {
                let lineage = self.lineage(&known.session_id)?;
                old.retain(|old| lineage.iter().all(|kin| kin.session_id != old.session_id));
            }
        }
        old.sort_by_key(|known| known.last_active_ms);
        Ok(old.into_iter().map(|known| known.session_id).collect())
    }

    fn is_needed(self, known: &SessionActivity, now: Millis) -> Result<bool, StoreError> {
        let id = &known.session_id;
        let silent = now.saturating_sub(known.last_active_ms) >= SILENT_AFTER;
        let runs = known.session.as_ref().is_some_and(|session| {
            let client = session.client.and_then(crate::host::process::ProcessId::is_alive);
            session.ended_at_ms.is_none() && client.unwrap_or(!silent)
        });
        Ok(runs
            || self.goal(id)?.is_some_and(|goal| goal.status.is_live())
            || self.stated_history(id)?.iter().any(|goal| goal.status.holds()))
    }

    fn forks(self) -> Result<Vec<String>, StoreError> {
        let mut statement = self.0.prepare_cached("SELECT session_id FROM sessions WHERE parent_link = ?1")?;
        let rows = statement.query_map([<&str>::from(ParentLink::Fork)], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// What would go with a session.
    pub fn weigh(self, session_id: &str) -> Result<Forgotten, StoreError> {
        let known = self.session_activity(session_id)?;
        let count = |table: &str| {
            let sql = format!("SELECT count(*) FROM {table} WHERE session_id = ?1");
            self.0.prepare_cached(&sql)?.query_row([session_id], |row| row.get(0))
        };
        Ok(Forgotten {
            project: known.session.map(|session| session.project_dir).filter(|project| !project.is_empty()),
            events: count("session_events")?,
            tasks: count("session_tasks")?,
            stated_goals: count("stated_goals")?,
            last_active_ms: known.last_active_ms,
            session_id: known.session_id,
        })
    }

    fn drop_memory(self, session_id: &str) -> Result<Forgotten, StoreError> {
        let gone = self.weigh(session_id)?;
        for table in ["session_events", "session_tasks", "stated_goals", "session_snapshots"] {
            self.0.prepare_cached(&format!("DELETE FROM {table} WHERE session_id = ?1"))?.execute([session_id])?;
        }
        Ok(gone)
    }

    /// Forgets a session at a person's word, whatever its state. Its goal stays; what hooks told about the session
    /// stays only while a goal or a client needs it.
    pub fn purge(self, session_id: &str) -> Result<Forgotten, StoreError> {
        let gone = self.purge_rows(session_id)?;
        self.wipe()?;
        Ok(gone)
    }

    /// The same for several.
    pub fn purge_each(self, session_ids: &[String]) -> Result<Vec<Forgotten>, StoreError> {
        let gone = session_ids.iter().map(|id| self.purge_rows(id)).collect::<Result<_, _>>()?;
        self.wipe()?;
        Ok(gone)
    }

    /// Forgets every session whose last activity was before a moment, whatever its state.
    pub fn purge_all_before(self, before: Millis) -> Result<Vec<Forgotten>, StoreError> {
        let old = self.known_sessions()?.into_iter().filter(|known| known.last_active_ms < before);
        self.purge_each(&old.map(|known| known.session_id).collect::<Vec<_>>())
    }

    fn purge_rows(self, session_id: &str) -> Result<Forgotten, StoreError> {
        // What a person wants gone must not stay readable in free pages of the file.
        let _: i64 = self.0.pragma_update_and_check(None, "secure_delete", true, |row| row.get(0))?;
        let gone = self.drop_memory(session_id)?;
        let runs = self.session(session_id)?.is_some_and(|session| session.is_alive());
        if !runs {
            self.0.execute(
                "DELETE FROM sessions WHERE session_id = ?1
                   AND NOT EXISTS (SELECT 1 FROM goals WHERE session_id = ?1)
                   AND NOT EXISTS (SELECT 1 FROM goal_history WHERE session_id = ?1)",
                [session_id],
            )?;
        }
        Ok(gone)
    }

    /// Rewrites the index for searches, which otherwise keeps the words of deleted rows until it merges its parts.
    fn wipe(self) -> Result<(), StoreError> {
        self.0.execute("INSERT INTO session_events_fts (session_events_fts) VALUES ('optimize')", [])?;
        Ok(())
    }
}
