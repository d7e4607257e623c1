//! The client's own list of tasks, kept as it stands: a task that changed is merged into what is known of it.

use rusqlite::params;

use super::{Db, StoreError, lossy};
use steadfast_model::clock::Millis;
use steadfast_model::memory::{Importance, TASKS_LEFT_OUT, Task, TaskChange, TaskStatus};
use steadfast_model::text;

/// With more tasks than this, finished ones go, the oldest first. Open ones stay.
const TASKS_KEPT: i64 = 300;
/// Of more open tasks only the number is kept, the longest unchanged first.
const OPEN_TASKS_KEPT: i64 = 2_000;
const ID_KEPT: usize = 200;
const SUBJECT_KEPT: usize = 500;

const PUT: &str = "INSERT INTO session_tasks (session_id, task_id, position, subject, status, changed_at_ms)
     VALUES (?1, ?2, (SELECT coalesce(max(position), 0) + 1 FROM session_tasks WHERE session_id = ?1),
             coalesce(?3, ''), coalesce(?4, 'pending'), ?5)
     ON CONFLICT (session_id, task_id) DO UPDATE SET
       subject = coalesce(?3, subject), status = coalesce(?4, status), changed_at_ms = excluded.changed_at_ms";

/// An entry that the list repeats unchanged keeps its time.
const PUT_IN_LIST: &str = "INSERT INTO session_tasks (session_id, task_id, position, subject, status, changed_at_ms)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6)
     ON CONFLICT (session_id, task_id) DO UPDATE SET
       changed_at_ms = CASE WHEN subject = excluded.subject AND status = excluded.status
                       THEN changed_at_ms ELSE excluded.changed_at_ms END,
       position = excluded.position, subject = excluded.subject, status = excluded.status";

pub(super) const PRUNE: &str = "DELETE FROM session_tasks WHERE session_id = ?1 AND task_id IN (
     SELECT task_id FROM session_tasks WHERE session_id = ?1 AND (status IN ('pending', 'in_progress')) = ?2
     ORDER BY changed_at_ms, position DESC LIMIT ?3)";

const COUNT_LEFT_OUT: &str = "UPDATE session_events SET repeats = repeats + ?2 WHERE id = (
     SELECT id FROM session_events WHERE session_id = ?1 AND category = 'task' AND kind = ?3 ORDER BY id DESC LIMIT 1)";

impl Db<'_> {
    /// Follows a change; gives the id of an event that it added.
    pub(super) fn change_tasks(
        self,
        session_id: &str,
        change: &TaskChange,
        now: Millis,
    ) -> Result<Option<i64>, StoreError> {
        match change {
            TaskChange::Put { id, subject, status } => {
                let subject = subject.as_ref().map(|subject| text::cut(subject, SUBJECT_KEPT));
                let status = status.map(<&str>::from);
                let id = text::cut(id, ID_KEPT);
                self.execute(PUT, params![session_id, id, subject, status, now])?;
            }
            TaskChange::Replace(list) => self.replace_list(session_id, list, now)?,
        }
        self.prune_tasks(session_id, now)
    }

    /// Deletes the tasks that a session has too many of; gives the id of an event that it added.
    pub(super) fn prune_tasks(self, session_id: &str, now: Millis) -> Result<Option<i64>, StoreError> {
        let (all, open): (i64, i64) = self
            .0
            .prepare_cached(
                "SELECT count(*), count(*) FILTER (WHERE status IN ('pending', 'in_progress'))
                 FROM session_tasks WHERE session_id = ?1",
            )?
            .query_row([session_id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if all > TASKS_KEPT && all > open {
            self.execute(PRUNE, params![session_id, false, all - TASKS_KEPT])?;
        }
        if open <= OPEN_TASKS_KEPT {
            return Ok(None);
        }
        let gone = open - OPEN_TASKS_KEPT;
        self.execute(PRUNE, params![session_id, true, gone])?;
        // Count the open tasks that are not kept.
        if self.execute(COUNT_LEFT_OUT, params![session_id, gone, TASKS_LEFT_OUT])? > 0 {
            return Ok(None);
        }
        let text = format!("more than {OPEN_TASKS_KEPT} tasks are open; of more, only the number is kept");
        let sql =
            "INSERT INTO session_events (session_id, category, kind, importance, subject, text, repeats, created_at_ms)
                   VALUES (?1, 'task', ?2, ?3, '', ?4, ?5, ?6) RETURNING id";
        let level = Importance::Critical as i64;
        self.first(sql, params![session_id, TASKS_LEFT_OUT, level, text, gone, now], |row| row.get(0))
    }

    /// Tasks with ids of their own are not in such a list and stay before it.
    fn replace_list(self, session_id: &str, list: &[(String, TaskStatus)], now: Millis) -> Result<(), StoreError> {
        let ids: Vec<String> = (1..=list.len()).map(|number| format!("list-{number}")).collect();
        let still_there = serde_json::json!(ids).to_string();
        let sql = "DELETE FROM session_tasks WHERE session_id = ?1 AND task_id GLOB 'list-[0-9]*'
                     AND task_id NOT IN (SELECT value FROM json_each(?2))";
        self.execute(sql, [session_id, &still_there])?;
        let before: i64 = self
            .0
            .prepare_cached(
                "SELECT coalesce(max(position), 0) FROM session_tasks
                 WHERE session_id = ?1 AND task_id NOT GLOB 'list-[0-9]*'",
            )?
            .query_row([session_id], |row| row.get(0))?;
        let mut put = self.0.prepare_cached(PUT_IN_LIST)?;
        for ((id, (subject, status)), position) in ids.iter().zip(list).zip(before + 1..) {
            let subject = text::cut(subject, SUBJECT_KEPT);
            put.execute(params![session_id, id, position, subject, <&str>::from(*status), now])?;
        }
        Ok(())
    }

    /// How many open tasks there was no room for.
    pub fn tasks_left_out(self, session_id: &str) -> Result<i64, StoreError> {
        let sql = "SELECT coalesce(sum(repeats), 0) FROM session_events
                   WHERE session_id = ?1 AND category = 'task' AND kind = ?2";
        Ok(self.0.prepare_cached(sql)?.query_row([session_id, TASKS_LEFT_OUT], |row| row.get(0))?)
    }

    /// The tasks of a session in the client's order; deleted ones are no longer on the list.
    pub fn tasks_of(self, session_id: &str) -> Result<Vec<Task>, StoreError> {
        self.tasks_until(session_id, Millis::MAX)
    }

    /// Tasks as they were at a moment, as far as they have not changed since.
    pub(super) fn tasks_until(self, session_id: &str, until: Millis) -> Result<Vec<Task>, StoreError> {
        let sql = "SELECT task_id, subject, status FROM session_tasks
                   WHERE session_id = ?1 AND changed_at_ms <= ?2 AND status <> 'deleted' ORDER BY position, task_id";
        self.all_understood(sql, params![session_id, until], |row| {
            let status = lossy(row, 2)?.parse().ok();
            let (id, subject) = (lossy(row, 0)?, lossy(row, 1)?);
            Ok(status.map(|status| Task { id, subject, status }))
        })
    }
}
