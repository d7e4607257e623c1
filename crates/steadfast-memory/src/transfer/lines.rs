//! Reads the lines of an export one after the other and hands out whole sessions, cleaned and bounded. Memory stays
//! bounded however many events a session of the file has: those that a session may not keep are dropped on the way.

use serde_json::Value;
use serde_json::error::Category as JsonFault;
use steadfast_model::clock::{DAY, Millis};
use steadfast_model::memory::{EVENTS_KEPT, MemoryEvent, eviction, stated};
use steadfast_model::text;

use super::{
    EventEntry, ExportCounts, ExportError, ExportLine, FORMAT, LineFault, SessionEntry, StatedEntry, TaskEntry, VERSION,
};
use crate::extract;

/// Longer than any line of an export.
pub const LONGEST_LINE: usize = 1024 * 1024;
/// The store keeps fewer.
const GOALS_MAX: usize = 1_000;
const TASKS_MAX: usize = 5_000;
const ID_MAX: usize = 200;
const KIND_MAX: usize = 40;
const PATH_MAX: usize = 4_096;
const REPEATS_MAX: i64 = 1_000_000_000;

/// A session with what is remembered of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedSession {
    pub session: SessionEntry,
    pub stated: Vec<StatedEntry>,
    pub tasks: Vec<TaskEntry>,
    /// Oldest first, as many as a session may keep.
    pub events: Vec<MemoryEvent>,
    /// Events of the file that a session may not keep, or that say nothing.
    pub left_out: usize,
}

/// Reads an export.
#[derive(Debug)]
pub struct ExportReader {
    now: Millis,
    number: u64,
    counts: ExportCounts,
    current: Option<ExportedSession>,
    is_over: bool,
    only_checks: bool,
}

impl ExportReader {
    pub fn new(now: Millis) -> Self {
        Self { now, number: 0, counts: ExportCounts::default(), current: None, is_over: false, only_checks: false }
    }

    /// Hands out sessions without their events, whose cleaning takes most of the time.
    pub fn checking(now: Millis) -> Self {
        Self { only_checks: true, ..Self::new(now) }
    }

    /// The number of the line that was read last.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// An error about the line after the last one.
    pub fn error_in_next(&self, fault: LineFault) -> ExportError {
        ExportError { line: self.number + 1, fault }
    }

    /// Takes the next line. Returns the session before it when that is complete.
    pub fn take(&mut self, line: &[u8]) -> Result<Option<ExportedSession>, ExportError> {
        self.number += 1;
        self.taken(line).map_err(|fault| ExportError { line: self.number, fault })
    }

    /// The file is over. Whether it is whole is known only now.
    pub fn finish(self) -> Result<(), ExportError> {
        let fault = match self.number {
            _ if self.is_over => return Ok(()),
            0 => LineFault::Empty,
            _ => LineFault::CutOff,
        };
        Err(ExportError { line: self.number.max(1), fault })
    }

    fn taken(&mut self, line: &[u8]) -> Result<Option<ExportedSession>, LineFault> {
        if self.number == 1 {
            return heading(line).map(|()| None);
        }
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        if self.is_over {
            return Err(LineFault::AfterEnd);
        }
        let line: ExportLine = serde_json::from_slice(line).map_err(|error| fault_of(&error))?;
        self.counts.note(&line);
        match line {
            ExportLine::Session(session) => {
                let session = self.session(session)?;
                let empty =
                    ExportedSession { session, stated: Vec::new(), tasks: Vec::new(), events: Vec::new(), left_out: 0 };
                return Ok(self.current.replace(empty).map(in_order));
            }
            ExportLine::End(counts) => {
                if counts != self.counts {
                    return Err(LineFault::Miscounted);
                }
                self.is_over = true;
                return Ok(self.current.take().map(in_order));
            }
            ExportLine::StatedGoal(goal) => self.stated(&goal)?,
            ExportLine::Task(task) => self.task(&task)?,
            ExportLine::Event(event) => self.event(&event)?,
        }
        Ok(None)
    }

    fn current(&mut self) -> Result<&mut ExportedSession, LineFault> {
        self.current.as_mut().ok_or(LineFault::NoSession)
    }

    fn time(&self, at: Millis) -> Result<Millis, LineFault> {
        // The clocks of two machines differ.
        if (0..=self.now.saturating_add(DAY)).contains(&at) { Ok(at) } else { Err(LineFault::Time(at)) }
    }

    fn session(&self, session: SessionEntry) -> Result<SessionEntry, LineFault> {
        let path = |path: &str| extract::stored_line(path, PATH_MAX);
        Ok(SessionEntry {
            session_id: id(session.session_id)?,
            project: path(&session.project),
            cwd: path(&session.cwd),
            parent_session_id: session.parent_session_id.map(id).transpose()?,
            started_at_ms: session.started_at_ms.map(|at| self.time(at)).transpose()?,
            last_seen_ms: session.last_seen_ms.map(|at| self.time(at)).transpose()?,
            compactions: session.compactions.clamp(0, REPEATS_MAX),
            ..session
        })
    }

    fn stated(&mut self, goal: &StatedEntry) -> Result<(), LineFault> {
        let (set_at_ms, changed_at_ms) = (self.time(goal.set_at_ms)?, self.time(goal.changed_at_ms)?);
        let objective = stated::kept(&goal.objective);
        let current = self.current()?;
        if current.stated.len() == GOALS_MAX {
            return Err(LineFault::TooMany { what: "stated goals", most: GOALS_MAX });
        }
        if !objective.is_empty() {
            current.stated.push(StatedEntry { objective, status: goal.status, set_at_ms, changed_at_ms });
        }
        Ok(())
    }

    fn task(&mut self, task: &TaskEntry) -> Result<(), LineFault> {
        let changed_at_ms = self.time(task.changed_at_ms)?;
        let task = TaskEntry {
            id: extract::stored_line(&task.id, extract::ONE_LINE_MAX),
            subject: extract::clean(&task.subject, extract::ONE_LINE_MAX),
            status: task.status,
            changed_at_ms,
        };
        let current = self.current()?;
        if current.tasks.len() == TASKS_MAX {
            return Err(LineFault::TooMany { what: "tasks", most: TASKS_MAX });
        }
        current.tasks.push(task);
        Ok(())
    }

    fn event(&mut self, event: &EventEntry) -> Result<(), LineFault> {
        let created_at_ms = self.time(event.created_at_ms)?;
        if self.only_checks {
            return self.current().map(drop);
        }
        let text = extract::stored_text(event.category, &event.text);
        let number = i64::try_from(self.number).unwrap_or(i64::MAX);
        let current = self.current()?;
        if text.is_empty() {
            current.left_out += 1;
            return Ok(());
        }
        current.events.push(MemoryEvent {
            id: number,
            session_id: current.session.session_id.clone(),
            category: event.category,
            kind: extract::stored_line(&event.kind, KIND_MAX),
            importance: event.importance,
            subject: extract::subject(&event.subject),
            text,
            repeats: event.repeats.clamp(1, REPEATS_MAX),
            resolved: event.resolved,
            created_at_ms,
        });
        if current.events.len() >= 2 * EVENTS_KEPT {
            current.left_out += eviction::fit(&mut current.events);
        }
        Ok(())
    }
}

/// What is newest comes last, so that an eviction never drops it. A session of which only memory is left gets its times.
fn in_order(mut recorded: ExportedSession) -> ExportedSession {
    recorded.events.sort_by_key(|event| event.created_at_ms);
    recorded.left_out += eviction::fit(&mut recorded.events);
    let ExportedSession { session, stated, tasks, events, .. } = &mut recorded;
    let events = events.iter().map(|event| event.created_at_ms);
    let others = stated.iter().map(|goal| goal.set_at_ms).chain(tasks.iter().map(|task| task.changed_at_ms));
    let times = || events.clone().chain(others.clone());
    session.started_at_ms = session.started_at_ms.or(times().min());
    session.last_seen_ms = session.last_seen_ms.or(times().max());
    recorded
}

fn heading(line: &[u8]) -> Result<(), LineFault> {
    let Ok(Value::Object(fields)) = serde_json::from_slice(line) else {
        return Err(if line.trim_ascii().is_empty() { LineFault::Empty } else { LineFault::Foreign });
    };
    if fields.get("format").and_then(Value::as_str) != Some(FORMAT) {
        return Err(LineFault::Foreign);
    }
    match fields.get("version").and_then(Value::as_u64) {
        Some(VERSION) => Ok(()),
        Some(other) => Err(LineFault::OtherVersion(other)),
        None => Err(LineFault::Foreign),
    }
}

/// An id is only ever a key; one that looks like a path is a mistake or an attack.
fn id(id: String) -> Result<String, LineFault> {
    let is_plain = |id: &str| text::printable(id) == id && !id.contains(['/', '\\', '\n', '\t']);
    if !id.is_empty() && id.len() <= ID_MAX && is_plain(&id) {
        Ok(id)
    } else {
        Err(LineFault::SessionId(text::headline(&id, 60)))
    }
}

fn fault_of(error: &serde_json::Error) -> LineFault {
    // The position is in the line, of which the user has the number.
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default().to_owned();
    if matches!(error.classify(), JsonFault::Data) {
        LineFault::NotOfFormat(message)
    } else {
        LineFault::NotJson(message)
    }
}
