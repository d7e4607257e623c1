//! Session memory as rows, within bounds, for snapshots, searches and people. A row that cannot be parsed, from a newer
//! program or a broken disk, is skipped, so that it does not hide the others.

mod evict;
mod fixes;
mod imported;
mod known;
mod lineage;
mod retention;
mod search;
mod snapshots;
mod stated;
mod tasks;

use std::collections::HashMap;

use rusqlite::types::ValueRef;
use rusqlite::{Params, Row, params};
use strum::IntoEnumIterator as _;

use super::{Db, StoreError, limit};
use steadfast_model::clock::Millis;
use steadfast_model::memory::{Category, Finding, Findings, Importance, MemoryEvent};
use steadfast_model::text;

pub use known::{SessionActivity, SessionRef};
pub use retention::Forgotten;
pub use search::{Hit, Scope};
pub use snapshots::Snapshot;

/// Findings are bounded where they are made; this only keeps a mistake there from filling the store.
const TEXT_KEPT: usize = 4_000;
const SUBJECT_KEPT: usize = 1_000;

const COLUMNS: &str = "e.id, e.session_id, e.category, e.kind, e.importance, e.subject, e.text, e.repeats, e.resolved,
    e.created_at_ms";

const COUNT_REPETITION: &str = "UPDATE session_events SET repeats = repeats + 1
     WHERE id = (SELECT id FROM session_events WHERE session_id = ?1 AND category = ?2 ORDER BY id DESC LIMIT 1)
       AND kind = ?3 AND subject = ?4 AND text = ?5 AND resolved = 0";

const NEWEST_OF_TASK: &str = "SELECT kind FROM session_events
     WHERE session_id = ?1 AND category = 'task' AND subject = ?2 ORDER BY id DESC LIMIT 1";

/// Returns the id, because the triggers of the search index insert rows too.
const ADD: &str = "INSERT INTO session_events (session_id, category, kind, importance, subject, text, created_at_ms)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id";

/// Which events of a session to list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryFilter {
    pub category: Option<Category>,
    /// Only events after this one, the first of them first; else the newest ones.
    pub after: Option<i64>,
}

impl Db<'_> {
    /// Remembers what one hook call found, in the caller's transaction. What equals the newest event of its
    /// category only raises its `repeats`; an error that was resolved since is a new one.
    ///
    /// A damaged search index keeps new events away, but nothing else that the caller decides.
    pub fn remember(self, session_id: &str, found: &Findings, now: Millis) -> Result<(), StoreError> {
        if *found == Findings::default() {
            return Ok(());
        }
        self.execute("SAVEPOINT remember", [])?;
        let remembered = self.remember_all(session_id, found, now);
        let is_damaged = remembered.as_ref().is_err_and(StoreError::is_of_search_index);
        if is_damaged {
            self.execute("ROLLBACK TO remember", [])?;
        }
        self.execute("RELEASE remember", [])?;
        if is_damaged { Ok(()) } else { remembered }
    }

    fn remember_all(self, session_id: &str, found: &Findings, now: Millis) -> Result<(), StoreError> {
        let mut added = Vec::new();
        for finding in &found.findings {
            added.extend(self.add_finding(session_id, finding, now)?);
        }
        for subject in &found.worked {
            // What failed and worked within one call may have failed last.
            let failed_too = |finding: &Finding| finding.category == Category::Error && finding.subject == *subject;
            if subject.is_empty() || found.findings.iter().any(failed_too) {
                continue;
            }
            if let Some(fix) = self.resolve_errors(session_id, subject)? {
                added.extend(self.add_finding(session_id, &fix, now)?);
            }
        }
        for change in &found.tasks {
            added.extend(self.change_tasks(session_id, change, now)?);
        }
        match (added.first(), added.last()) {
            (Some(first), Some(last)) => self.evict_events(session_id, *first, *last),
            _ => Ok(()),
        }
    }

    /// Adds an event, unless it repeats the newest of its category; then there is no new id.
    fn add_finding(self, session_id: &str, finding: &Finding, now: Millis) -> Result<Option<i64>, StoreError> {
        let category = <&str>::from(finding.category);
        let (subject, text) = (text::cut(&finding.subject, SUBJECT_KEPT), text::cut(&finding.text, TEXT_KEPT));
        // A client announces a change of a task, and then reports it again.
        if finding.category == Category::Task && !subject.is_empty() {
            let newest = self.first(NEWEST_OF_TASK, [session_id, &subject], |row| lossy(row, 0))?;
            if newest.is_some_and(|newest| newest == finding.kind) {
                return Ok(None);
            }
        }
        if self.execute(COUNT_REPETITION, [session_id, category, finding.kind, &subject, &text])? > 0 {
            return Ok(None);
        }
        // The column holds the position of the variant, from 0 for `Low`.
        let level = finding.importance as i64;
        self.first(ADD, params![session_id, category, finding.kind, level, subject, text, now], |row| row.get(0))
    }

    /// Events of a session, oldest first.
    pub fn events_of(
        self,
        session_id: &str,
        filter: MemoryFilter,
        most: usize,
    ) -> Result<Vec<MemoryEvent>, StoreError> {
        let order = if filter.after.is_some() { "ASC" } else { "DESC" };
        let sql = format!(
            "SELECT * FROM (SELECT {COLUMNS} FROM session_events e
               WHERE e.session_id = ?1 AND (?2 IS NULL OR e.category = ?2) AND e.id > ?3 ORDER BY e.id {order} LIMIT ?4)
             ORDER BY id"
        );
        let category = filter.category.map(<&str>::from);
        self.all_understood(&sql, params![session_id, category, filter.after.unwrap_or(0), limit(most)], read)
    }

    /// How many events of each category there are, a repeated one counted once; categories without any are left out.
    pub fn counts_by_category(self, session_id: &str) -> Result<Vec<(Category, i64)>, StoreError> {
        let sql = "SELECT category, count(*) FROM session_events WHERE session_id = ?1 GROUP BY category";
        let counts: HashMap<String, i64> =
            self.all(sql, [session_id], |row| Ok((lossy(row, 0)?, row.get(1)?)))?.into_iter().collect();
        let count = |category: Category| Some((category, *counts.get(<&str>::from(category))?));
        Ok(Category::iter().filter_map(count).collect())
    }

    /// When the newest event of a session was stored.
    pub fn newest_event_ms(self, session_id: &str) -> Result<Option<Millis>, StoreError> {
        let sql = "SELECT created_at_ms FROM session_events WHERE session_id = ?1 ORDER BY id DESC LIMIT 1";
        self.first(sql, [session_id], |row| row.get(0))
    }

    /// All rows that could be parsed.
    fn all_understood<T>(
        self,
        sql: &str,
        values: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<Option<T>>,
    ) -> Result<Vec<T>, StoreError> {
        Ok(self.all(sql, values, read)?.into_iter().flatten().collect())
    }
}

/// Reads an event; `None` if its category or importance is unknown.
fn read(row: &Row<'_>) -> rusqlite::Result<Option<MemoryEvent>> {
    let category = lossy(row, 2)?.parse().ok();
    let importance = match row.get_ref(4)? {
        ValueRef::Integer(level) => Importance::iter().find(|importance| *importance as i64 == level),
        _ => None,
    };
    let (Some(category), Some(importance)) = (category, importance) else {
        return Ok(None);
    };
    Ok(Some(MemoryEvent {
        id: row.get(0)?,
        session_id: lossy(row, 1)?,
        category,
        kind: lossy(row, 3)?,
        importance,
        subject: lossy(row, 5)?,
        text: lossy(row, 6)?,
        repeats: whole(row, 7)?,
        resolved: whole(row, 8)? != 0,
        created_at_ms: whole(row, 9)?,
    }))
}

/// Reads any value as text: invalid UTF-8 is replaced, other types are formatted.
fn lossy(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => match std::str::from_utf8(bytes) {
            // Several times faster than `from_utf8_lossy`.
            Ok(text) => text.to_owned(),
            Err(_) => String::from_utf8_lossy(bytes).into_owned(),
        },
    })
}

fn whole(row: &Row<'_>, column: usize) -> rusqlite::Result<i64> {
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(number) => number,
        _ => 0,
    })
}

#[cfg(test)]
mod tests;
