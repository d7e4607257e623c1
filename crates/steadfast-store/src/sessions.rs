//! Sessions of the hosts, and the calls of our own tools that a hook announced.

use std::path::Path;

use rusqlite::{Row, params};
use serde::Serialize;
use strum::{Display, EnumString, IntoStaticStr};

use super::{Db, StoreError, column};
use steadfast_model::clock::{DAY, Millis};
use steadfast_model::host::Host;
use steadfast_system::process::ProcessId;

/// How a session came from its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, IntoStaticStr, Serialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum ParentLink {
    /// It continues the conversation, and with it the memory.
    Fork,
    /// It only follows in the same client.
    Clear,
}

/// What hooks reported about a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Session {
    pub session_id: String,
    pub host: Host,
    pub cwd: String,
    pub project_dir: String,
    pub transcript_path: String,
    pub client: Option<ProcessId>,
    pub parent_session_id: Option<String>,
    pub parent_link: Option<ParentLink>,
    /// The last prompt that was typed, our own commands included.
    pub last_prompt_ms: Option<Millis>,
    /// The last prompt of a person that is more than commands of ours.
    pub user_prompt_ms: Option<Millis>,
    pub started_at_ms: Millis,
    pub last_seen_ms: Millis,
    pub ended_at_ms: Option<Millis>,
    pub end_reason: Option<String>,
    /// The state of its client; `put_session` leaves it alone.
    pub activity: ClientActivity,
}

/// What the client of a session does now, as far as hooks showed it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientActivity {
    /// Since when a turn runs.
    pub turn_since_ms: Option<Millis>,
    /// The running turn, or the last one, where the host names turns.
    pub turn_id: Option<String>,
    /// Since when a permission dialog is open.
    pub asked_at_ms: Option<Millis>,
    /// Since when tasks run in the background of an ended turn.
    pub background_since_ms: Option<Millis>,
    /// The background hook that will wake the client.
    pub waker: Option<ProcessId>,
}

impl Session {
    /// The session's file, if hooks named one.
    pub fn transcript(&self) -> Option<&Path> {
        (!self.transcript_path.is_empty()).then(|| Path::new(&self.transcript_path))
    }

    /// The directory of the project, if hooks named one.
    pub fn project(&self) -> Option<&str> {
        Some(self.project_dir.as_str()).filter(|project| !project.is_empty())
    }

    /// Whether a client still runs this session, as far as the system shows it.
    pub fn is_alive(&self) -> bool {
        self.ended_at_ms.is_none() && self.client.and_then(ProcessId::is_alive).unwrap_or(true)
    }
}

/// Who called one of our tools, as `PreToolUse` saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    pub tool_use_id: String,
    pub session_id: String,
    pub agent_id: String,
    pub agent_type: String,
    pub tool_name: String,
}

fn read(row: &Row<'_>) -> rusqlite::Result<Session> {
    let host: String = row.get("host")?;
    Ok(Session {
        session_id: row.get("session_id")?,
        // An unknown host was written by a newer binary; such a session is shown, never driven.
        host: host.parse().unwrap_or_default(),
        cwd: row.get("cwd")?,
        project_dir: row.get("project_dir")?,
        transcript_path: row.get("transcript_path")?,
        client: column::process(row, "host_pid", "host_pid_started")?,
        parent_session_id: row.get("parent_session_id")?,
        parent_link: row.get::<_, Option<String>>("parent_link")?.and_then(|link| link.parse().ok()),
        last_prompt_ms: row.get("last_prompt_ms")?,
        user_prompt_ms: row.get("user_prompt_ms")?,
        started_at_ms: row.get("started_at_ms")?,
        last_seen_ms: row.get("last_seen_ms")?,
        ended_at_ms: row.get("ended_at_ms")?,
        end_reason: row.get("end_reason")?,
        activity: ClientActivity {
            turn_since_ms: row.get("turn_since_ms")?,
            turn_id: row.get("turn_id")?,
            asked_at_ms: row.get("asked_at_ms")?,
            background_since_ms: row.get("background_since_ms")?,
            waker: column::process(row, "waker_pid", "waker_pid_started")?,
        },
    })
}

impl Db<'_> {
    pub fn session(self, session_id: &str) -> Result<Option<Session>, StoreError> {
        self.first("SELECT * FROM sessions WHERE session_id = ?1", [session_id], read)
    }

    /// Sessions without a recorded end, newest first.
    pub fn open_sessions(self) -> Result<Vec<Session>, StoreError> {
        self.all("SELECT * FROM sessions WHERE ended_at_ms IS NULL ORDER BY last_seen_ms DESC", [], read)
    }

    /// The session that the same client ran before `session_id`: after `/clear` or a fork.
    pub fn previous_session(self, client: ProcessId, session_id: &str) -> Result<Option<Session>, StoreError> {
        let sql = "SELECT * FROM sessions WHERE host_pid = ?1 AND host_pid_started = ?2 AND session_id <> ?3
                   ORDER BY last_seen_ms DESC LIMIT 1";
        self.first(sql, params![client.pid, client.started, session_id], read)
    }

    /// Verdicts no longer count in the session: a file defines another agent of the evaluator's name.
    pub fn hide_evaluator(self, session_id: &str, file: &Path) -> Result<(), StoreError> {
        let sql = "UPDATE sessions SET evaluator_hidden_by = ?2 WHERE session_id = ?1";
        self.execute(sql, params![session_id, file.to_string_lossy()])?;
        Ok(())
    }

    pub fn is_evaluator_hidden(self, session_id: &str) -> Result<bool, StoreError> {
        let sql = "SELECT evaluator_hidden_by IS NOT NULL FROM sessions WHERE session_id = ?1";
        Ok(self.first(sql, [session_id], |row| row.get(0))?.unwrap_or(false))
    }

    /// The sessions of a client, the newest first.
    pub fn sessions_of_client(self, client: ProcessId) -> Result<Vec<Session>, StoreError> {
        let sql = "SELECT * FROM sessions WHERE host_pid = ?1 AND host_pid_started = ?2 ORDER BY last_seen_ms DESC";
        self.all(sql, params![client.pid, client.started], read)
    }

    /// Whether one of these processes is the client of a session.
    pub fn has_client_among(self, processes: &[ProcessId]) -> Result<bool, StoreError> {
        let list = processes.iter().map(|process| format!("({},{})", process.pid, process.started));
        let list = list.collect::<Vec<_>>().join(",");
        let sql = format!("SELECT 1 FROM sessions WHERE (host_pid, host_pid_started) IN (VALUES {list}) LIMIT 1");
        Ok(!processes.is_empty() && self.first(&sql, [], |_| Ok(()))?.is_some())
    }

    /// Sessions that a client said it had left by `/clear` since a moment, and that no other session than `session_id`
    /// has followed yet.
    pub fn sessions_left_by_clear(self, session_id: &str, since: Millis) -> Result<Vec<Session>, StoreError> {
        let sql = "SELECT * FROM sessions s
                   WHERE end_reason = 'clear' AND ended_at_ms >= ?2 AND session_id <> ?1 AND NOT EXISTS (
                     SELECT 1 FROM sessions f WHERE f.parent_session_id = s.session_id AND f.parent_link = 'clear'
                       AND f.started_at_ms >= s.ended_at_ms AND f.session_id <> ?1)";
        self.all(sql, params![session_id, since], read)
    }

    /// Adds or refreshes a session. What the new record does not know stays as it was.
    pub fn put_session(self, session: &Session) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO sessions (session_id, host, cwd, project_dir, transcript_path, host_pid, host_pid_started,
               parent_session_id, parent_link, last_prompt_ms, started_at_ms, last_seen_ms, ended_at_ms, end_reason,
               user_prompt_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
             ON CONFLICT (session_id) DO UPDATE SET
               cwd = excluded.cwd, project_dir = excluded.project_dir,
               transcript_path = coalesce(nullif(excluded.transcript_path, ''), transcript_path),
               host_pid = coalesce(excluded.host_pid, host_pid),
               host_pid_started = coalesce(excluded.host_pid_started, host_pid_started),
               parent_session_id = coalesce(excluded.parent_session_id, parent_session_id),
               parent_link = coalesce(excluded.parent_link, parent_link),
               last_prompt_ms = coalesce(excluded.last_prompt_ms, last_prompt_ms),
               user_prompt_ms = coalesce(excluded.user_prompt_ms, user_prompt_ms),
               last_seen_ms = excluded.last_seen_ms,
               ended_at_ms = excluded.ended_at_ms, end_reason = excluded.end_reason",
            params![
                session.session_id,
                <&str>::from(session.host),
                session.cwd,
                session.project_dir,
                session.transcript_path,
                session.client.map(|client| client.pid),
                session.client.map(|client| client.started),
                session.parent_session_id,
                session.parent_link.map(<&str>::from),
                session.last_prompt_ms,
                session.started_at_ms,
                session.last_seen_ms,
                session.ended_at_ms,
                session.end_reason,
                session.user_prompt_ms,
            ],
        )?;
        Ok(())
    }

    /// A hook of the session ran. Returns whether the session is known.
    pub fn touch_session(self, session_id: &str, now: Millis) -> Result<bool, StoreError> {
        let sql = "UPDATE sessions SET last_seen_ms = ?2 WHERE session_id = ?1";
        Ok(self.execute(sql, params![session_id, now])? == 1)
    }

    /// A turn runs from now on. A turn that runs already keeps its beginning.
    pub fn begin_turn(self, session_id: &str, turn_id: Option<&str>, now: Millis) -> Result<(), StoreError> {
        self.execute(
            "UPDATE sessions SET turn_since_ms = coalesce(turn_since_ms, ?3), turn_id = coalesce(?2, turn_id),
               asked_at_ms = NULL, background_since_ms = NULL
             WHERE session_id = ?1",
            params![session_id, turn_id, now],
        )?;
        Ok(())
    }

    /// The turn that a prompt is part of.
    pub fn name_turn(self, session_id: &str, turn_id: &str) -> Result<(), StoreError> {
        self.execute("UPDATE sessions SET turn_id = ?2 WHERE session_id = ?1", [session_id, turn_id])?;
        Ok(())
    }

    /// No turn runs any more. `background` says whether tasks of it still do.
    pub fn end_turn(self, session_id: &str, background: bool, now: Millis) -> Result<(), StoreError> {
        self.execute(
            "UPDATE sessions SET turn_since_ms = NULL, asked_at_ms = NULL,
               background_since_ms = iif(?2, coalesce(background_since_ms, ?3), NULL)
             WHERE session_id = ?1",
            params![session_id, background, now],
        )?;
        Ok(())
    }

    /// A permission dialog opened, or was answered.
    pub fn set_asked(self, session_id: &str, asked_at: Option<Millis>) -> Result<(), StoreError> {
        self.execute("UPDATE sessions SET asked_at_ms = ?2 WHERE session_id = ?1", params![session_id, asked_at])?;
        Ok(())
    }

    /// Registers the background hook that will wake the client; the newest one replaces all others.
    pub fn set_waker(self, session_id: &str, waker: Option<ProcessId>) -> Result<(), StoreError> {
        self.execute(
            "UPDATE sessions SET waker_pid = ?2, waker_pid_started = ?3 WHERE session_id = ?1",
            params![session_id, waker.map(|waker| waker.pid), waker.map(|waker| waker.started)],
        )?;
        Ok(())
    }

    /// Notes a call of one of our tools; notes older than a day are dropped.
    pub fn note_tool_call(self, call: &ToolCall, now: Millis) -> Result<(), StoreError> {
        self.execute("DELETE FROM tool_calls WHERE created_at_ms < ?1", [self.aged_now(now)? - DAY])?;
        self.execute(
            "INSERT OR REPLACE INTO tool_calls (tool_use_id, session_id, agent_id, agent_type, tool_name, created_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![call.tool_use_id, call.session_id, call.agent_id, call.agent_type, call.tool_name, now],
        )?;
        Ok(())
    }

    pub fn tool_call(self, tool_use_id: &str) -> Result<Option<ToolCall>, StoreError> {
        self.first("SELECT * FROM tool_calls WHERE tool_use_id = ?1", [tool_use_id], |row| {
            Ok(ToolCall {
                tool_use_id: row.get("tool_use_id")?,
                session_id: row.get("session_id")?,
                agent_id: row.get("agent_id")?,
                agent_type: row.get("agent_type")?,
                tool_name: row.get("tool_name")?,
            })
        })
    }
}
