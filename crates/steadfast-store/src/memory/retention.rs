//! Deletes session memory: after some time without activity, or at the user's request. The time does not apply to a
//! session that runs or has a goal that is not over, nor to those that it was forked from. A stated goal that holds is
//! never deleted by time; what else is remembered of its session is.

use serde::Serialize;

use super::{Db, SessionActivity, StoreError};
use crate::{ParentLink, Session};
use steadfast_model::clock::{DAY, Millis};

/// If the system does not show whether a client runs, a session that was silent this long has ended.
const SILENT_AFTER: Millis = 7 * DAY;

/// What is deleted with a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Forgotten {
    pub session_id: String,
    pub project: Option<String>,
    pub events: i64,
    pub tasks: i64,
    pub stated_goals: i64,
    pub last_active_ms: Millis,
}

impl Db<'_> {
    /// Sessions whose last activity was before a moment and that are not needed any more, the oldest first.
    pub fn expired_sessions(self, before: Millis, now: Millis) -> Result<Vec<String>, StoreError> {
        let mut expired = Vec::new();
        for id in self.remembered_before(before)? {
            let family = self.family(&id)?;
            if self.are_expired(&family, before, now)? && !self.has_stated(&family)? {
                expired.push(id);
            }
        }
        Ok(expired)
    }

    /// Whether neither a session nor its forks are needed: a fork uses the memory of its ancestors.
    pub(crate) fn is_expired(self, session_id: &str, before: Millis, now: Millis) -> Result<bool, StoreError> {
        self.are_expired(&self.family(session_id)?, before, now)
    }

    /// A session, its forks, and theirs.
    fn family(self, session_id: &str) -> Result<Vec<String>, StoreError> {
        let mut family = vec![session_id.to_owned()];
        let mut next = 0;
        while let Some(id) = family.get(next).cloned() {
            for fork in self.forks_of(&id)? {
                if !family.contains(&fork) {
                    family.push(fork);
                }
            }
            next += 1;
        }
        Ok(family)
    }

    fn are_expired(self, family: &[String], before: Millis, now: Millis) -> Result<bool, StoreError> {
        for id in family {
            let known = self.session_activity(id)?;
            if known.last_active_ms >= before || self.is_needed(&known, now)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a stated goal of these sessions holds.
    fn has_stated(self, family: &[String]) -> Result<bool, StoreError> {
        for id in family {
            if self.stated_history(id)?.iter().any(|goal| goal.status.holds()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_needed(self, known: &SessionActivity, now: Millis) -> Result<bool, StoreError> {
        let id = &known.session_id;
        let silent = now.saturating_sub(known.last_active_ms) >= SILENT_AFTER;
        let runs = known.session.as_ref().is_some_and(|session| {
            let client = session.client.and_then(steadfast_system::process::ProcessId::is_alive);
            session.ended_at_ms.is_none() && client.unwrap_or(!silent)
        });
        Ok(runs || self.goal(id)?.is_some_and(|goal| goal.status.is_live()))
    }

    fn forks_of(self, session_id: &str) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT session_id FROM sessions WHERE parent_session_id = ?1 AND parent_link = ?2";
        self.all(sql, [session_id, ParentLink::Fork.into()], |row| row.get(0))
    }

    /// What would be deleted with a session.
    pub fn weigh(self, session_id: &str) -> Result<Forgotten, StoreError> {
        let known = self.session_activity(session_id)?;
        let count = |table: &str| {
            let sql = format!("SELECT count(*) FROM {table} WHERE session_id = ?1");
            self.0.prepare_cached(&sql)?.query_row([session_id], |row| row.get(0))
        };
        Ok(Forgotten {
            project: known.session.as_ref().and_then(Session::project).map(str::to_owned),
            events: count("session_events")?,
            tasks: count("session_tasks")?,
            stated_goals: count("stated_goals")?,
            last_active_ms: known.last_active_ms,
            session_id: known.session_id,
        })
    }

    fn drop_memory(self, session_id: &str) -> Result<(), StoreError> {
        self.drop_all_but_stated(session_id)?;
        self.execute("DELETE FROM stated_goals WHERE session_id = ?1", [session_id])?;
        Ok(())
    }

    fn drop_all_but_stated(self, session_id: &str) -> Result<usize, StoreError> {
        let mut dropped = 0;
        for table in ["session_events", "session_tasks", "session_snapshots"] {
            dropped += self.execute(&format!("DELETE FROM {table} WHERE session_id = ?1"), [session_id])?;
        }
        Ok(dropped)
    }

    /// Deletes the memory of an expired session; its stated goals stay while one of them holds. Returns whether there
    /// was something to delete.
    pub(crate) fn expire_memory(self, session_id: &str) -> Result<bool, StoreError> {
        if self.has_stated(&[session_id.to_owned()])? {
            return Ok(self.drop_all_but_stated(session_id)? > 0);
        }
        self.drop_memory(session_id)?;
        Ok(true)
    }

    /// Deletes what a purged session has besides its events.
    pub(crate) fn purge_rest(self, session_id: &str) -> Result<(), StoreError> {
        self.drop_memory(session_id)?;
        if !self.session(session_id)?.is_some_and(|session| session.is_alive()) {
            self.execute(
                "DELETE FROM sessions WHERE session_id = ?1
                   AND NOT EXISTS (SELECT 1 FROM goals WHERE session_id = ?1)
                   AND NOT EXISTS (SELECT 1 FROM goal_history WHERE session_id = ?1)",
                [session_id],
            )?;
        }
        Ok(())
    }
}
