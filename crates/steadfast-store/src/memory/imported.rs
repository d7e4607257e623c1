//! Rows of session memory that come from another machine, with the times they had there. No process, no durable goal and
//! no wake-up comes with them.

use rusqlite::params;

use super::{Db, StoreError, lossy, whole};
use crate::Session;
use steadfast_model::clock::Millis;
use steadfast_model::memory::stated::{StatedGoal, StatedStatus};
use steadfast_model::memory::{MemoryEvent, Task, TaskStatus};

/// Why an imported session is over: its client was on another machine.
const IMPORTED: &str = "import";

const ADD_EVENT: &str = "INSERT INTO session_events
       (session_id, category, kind, importance, subject, text, repeats, resolved, created_at_ms)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) RETURNING id";

const PUT_TASK: &str = "INSERT INTO session_tasks (session_id, task_id, position, subject, status, changed_at_ms)
     VALUES (?1, ?2, (SELECT coalesce(max(position), 0) + 1 FROM session_tasks WHERE session_id = ?1), ?3, ?4, ?5)
     ON CONFLICT (session_id, task_id) DO UPDATE SET
       subject = excluded.subject, status = excluded.status, changed_at_ms = excluded.changed_at_ms";

/// What hooks said about a session stays; only what an earlier import said is brought up to date.
const PUT_SESSION: &str =
    "INSERT INTO sessions (session_id, host, cwd, project_dir, transcript_path, parent_session_id,
       parent_link, started_at_ms, last_seen_ms, ended_at_ms, end_reason)
     VALUES (?1, ?2, ?3, ?4, '', ?5, ?6, ?7, ?8, ?8, ?9)
     ON CONFLICT (session_id) DO UPDATE SET last_seen_ms = excluded.last_seen_ms, ended_at_ms = excluded.ended_at_ms
     WHERE end_reason = excluded.end_reason AND excluded.last_seen_ms > last_seen_ms";

impl Db<'_> {
    /// The time of the newest event of a session.
    pub fn newest_event_time(self, session_id: &str) -> Result<Option<Millis>, StoreError> {
        let sql = "SELECT max(created_at_ms) FROM session_events WHERE session_id = ?1";
        Ok(self.first(sql, [session_id], |row| row.get::<_, Option<Millis>>(0))?.flatten())
    }

    /// All tasks of a session in the client's order, deleted ones too, and when each changed.
    pub fn tasks_with_times(self, session_id: &str) -> Result<Vec<(Task, Millis)>, StoreError> {
        let sql = "SELECT task_id, subject, status, changed_at_ms FROM session_tasks
                   WHERE session_id = ?1 ORDER BY position, task_id";
        self.all_understood(sql, [session_id], |row| {
            let status: Option<TaskStatus> = lossy(row, 2)?.parse().ok();
            let (id, subject, changed_at) = (lossy(row, 0)?, lossy(row, 1)?, whole(row, 3)?);
            Ok(status.map(|status| (Task { id, subject, status }, changed_at)))
        })
    }

    /// Adds events of another machine, oldest first, and evicts what is too much then.
    pub fn add_imported_events(self, session_id: &str, events: &[MemoryEvent]) -> Result<(), StoreError> {
        let mut added = Vec::new();
        for event in events {
            let (category, level) = (<&str>::from(event.category), event.importance as i64);
            let MemoryEvent { kind, subject, text, repeats, resolved, created_at_ms, .. } = event;
            let values = params![session_id, category, kind, level, subject, text, repeats, resolved, created_at_ms];
            added.extend(self.first(ADD_EVENT, values, |row| row.get::<_, i64>(0))?);
        }
        match (added.first(), added.last()) {
            (Some(first), Some(last)) => self.evict_events(session_id, *first, *last),
            _ => Ok(()),
        }
    }

    /// An event of here happened again elsewhere, or was resolved there.
    pub fn change_imported_event(self, event: &MemoryEvent) -> Result<(), StoreError> {
        let sql = "UPDATE session_events SET repeats = ?2, resolved = ?3 WHERE id = ?1";
        self.execute(sql, params![event.id, event.repeats, event.resolved])?;
        Ok(())
    }

    /// Adds or changes tasks, with the time of each change, and deletes those that are too many.
    pub fn put_imported_tasks(self, session_id: &str, tasks: &[(Task, Millis)]) -> Result<(), StoreError> {
        for (task, changed_at) in tasks {
            let status: &str = task.status.into();
            self.execute(PUT_TASK, params![session_id, task.id, task.subject, status, changed_at])?;
        }
        if let Some(newest) = tasks.iter().map(|(_, changed_at)| *changed_at).max() {
            self.prune_tasks(session_id, newest)?;
        }
        Ok(())
    }

    /// Adds a stated goal; the one that holds here has been moved by the caller.
    pub fn add_imported_goal(self, goal: &StatedGoal) -> Result<(), StoreError> {
        let times = (goal.set_at_ms, goal.changed_at_ms);
        self.add_stated(&goal.session_id, &goal.objective, goal.status, None, times)?;
        self.prune_stated(&goal.session_id)
    }

    pub fn move_imported_goal(self, id: i64, status: StatedStatus, at: Millis) -> Result<(), StoreError> {
        let sql = "UPDATE stated_goals SET status = ?2, changed_at_ms = ?3 WHERE id = ?1";
        self.execute(sql, params![id, <&str>::from(status), at])?;
        Ok(())
    }

    /// Adds a session of another machine, which is over here. Returns whether it was unknown.
    pub fn put_imported_session(self, session: &Session, compactions: i64) -> Result<bool, StoreError> {
        let is_new = self.session(&session.session_id)?.is_none();
        let parent = session.parent_session_id.as_ref();
        let link = session.parent_link.map(<&str>::from).filter(|_| parent.is_some());
        let values = params![
            session.session_id,
            <&str>::from(session.host),
            session.cwd,
            session.project_dir,
            parent,
            link,
            session.started_at_ms,
            session.last_seen_ms,
            IMPORTED,
        ];
        self.execute(PUT_SESSION, values)?;
        if compactions > 0 {
            let sql =
                "INSERT INTO session_snapshots (session_id, text, compactions, written_at_ms) VALUES (?1, '', ?2, ?3)
                       ON CONFLICT (session_id) DO UPDATE SET compactions = excluded.compactions
                       WHERE excluded.compactions > compactions";
            self.execute(sql, params![session.session_id, compactions, session.last_seen_ms])?;
        }
        Ok(is_new)
    }
}
