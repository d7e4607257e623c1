//! Deletes session memory: after some time without activity, or at the user's request. The time does not apply to a
//! session that runs or has a goal that is not over, nor to those that it was forked from.

use std::collections::HashMap;

use serde::Serialize;

use super::{Db, SessionActivity, StoreError};
use crate::{ParentLink, Session};
use steadfast_model::clock::{DAY, Millis};

/// If the system does not show whether a client runs, a session that was silent this long has ended.
const SILENT_AFTER: Millis = 7 * DAY;
/// Sessions deleted by one hook; the next one continues.
const FORGOTTEN_AT_ONCE: usize = 10;

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

/// Which sessions were forked from each.
type Forks = HashMap<String, Vec<String>>;

impl Db<'_> {
    /// Sessions without activity for `days`, the oldest first, as many as go at once; 0 keeps everything.
    pub fn old_sessions(self, now: Millis, days: u32) -> Result<Vec<String>, StoreError> {
        match oldest_kept(now, days) {
            Some(before) => self.expired(before, now, FORGOTTEN_AT_ONCE),
            None => Ok(Vec::new()),
        }
    }

    /// Deletes the memory of those chosen sessions that are still old: the search was outside of this transaction.
    pub fn forget_old(self, chosen: &[String], now: Millis, days: u32) -> Result<Vec<Forgotten>, StoreError> {
        let mut gone = Vec::new();
        let Some(before) = oldest_kept(now, days).filter(|_| !chosen.is_empty()) else {
            return Ok(gone);
        };
        let forks = self.forks()?;
        for id in chosen.iter().take(FORGOTTEN_AT_ONCE) {
            if self.is_expired(id, &forks, before, now)? {
                gone.push(self.drop_memory(id)?);
            }
        }
        Ok(gone)
    }

    /// Sessions whose last activity was before a moment and that are not needed any more, the oldest first.
    pub fn expired_sessions(self, before: Millis, now: Millis) -> Result<Vec<String>, StoreError> {
        self.expired(before, now, usize::MAX)
    }

    fn expired(self, before: Millis, now: Millis, most: usize) -> Result<Vec<String>, StoreError> {
        let mut expired = Vec::new();
        let old = self.remembered_before(before)?;
        if old.is_empty() {
            return Ok(expired);
        }
        let forks = self.forks()?;
        for id in old {
            if expired.len() == most {
                break;
            }
            if self.is_expired(&id, &forks, before, now)? {
                expired.push(id);
            }
        }
        Ok(expired)
    }

    /// Whether neither a session nor its forks are needed: a fork uses the memory of its ancestors.
    fn is_expired(self, session_id: &str, forks: &Forks, before: Millis, now: Millis) -> Result<bool, StoreError> {
        let mut family = vec![session_id];
        let mut next = 0;
        while let Some(id) = family.get(next).copied() {
            let known = self.session_activity(id)?;
            if known.last_active_ms >= before || self.is_needed(&known, now)? {
                return Ok(false);
            }
            for fork in forks.get(id).into_iter().flatten() {
                if !family.contains(&fork.as_str()) {
                    family.push(fork);
                }
            }
            next += 1;
        }
        Ok(true)
    }

    fn is_needed(self, known: &SessionActivity, now: Millis) -> Result<bool, StoreError> {
        let id = &known.session_id;
        let silent = now.saturating_sub(known.last_active_ms) >= SILENT_AFTER;
        let runs = known.session.as_ref().is_some_and(|session| {
            let client = session.client.and_then(steadfast_system::process::ProcessId::is_alive);
            session.ended_at_ms.is_none() && client.unwrap_or(!silent)
        });
        Ok(runs
            || self.goal(id)?.is_some_and(|goal| goal.status.is_live())
            || self.stated_history(id)?.iter().any(|goal| goal.status.holds()))
    }

    fn forks(self) -> Result<Forks, StoreError> {
        let sql = "SELECT parent_session_id, session_id FROM sessions
             WHERE parent_link = ?1 AND parent_session_id IS NOT NULL";
        let mut forks = Forks::new();
        for (parent, fork) in self.all(sql, [<&str>::from(ParentLink::Fork)], |row| Ok((row.get(0)?, row.get(1)?)))? {
            forks.entry(parent).or_default().push(fork);
        }
        Ok(forks)
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

    fn drop_memory(self, session_id: &str) -> Result<Forgotten, StoreError> {
        let gone = self.weigh(session_id)?;
        for table in ["session_events", "session_tasks", "stated_goals", "session_snapshots"] {
            self.execute(&format!("DELETE FROM {table} WHERE session_id = ?1"), [session_id])?;
        }
        Ok(gone)
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

/// What was active at this moment or later stays.
fn oldest_kept(now: Millis, days: u32) -> Option<Millis> {
    (days > 0).then(|| now.saturating_sub(Millis::from(days) * DAY))
}
