//! Imports session memory. The file is checked to its end before anything is written. Each session is one transaction;
//! one with much text takes several, the oldest events first, and becomes a known session in the last of them. A killed
//! import is completed by the next one, because each adds what is newer than what is here.

use std::io::{self, BufReader, Read, Seek};

use steadfast_memory::transfer::{
    ExportReader, ExportedSession, KnownMemory, LONGEST_LINE, LineFault, SessionLink, TaskEntry, additions,
};
use steadfast_model::clock::Millis;
use steadfast_model::memory::stated::StatedGoal;
use steadfast_model::memory::{EVENTS_KEPT, MemoryEvent, Task};
use steadfast_store::{Db, MemoryFilter, ParentLink, Session, Store, StoreError};
use steadfast_system::bounded;

use super::{TransferError, tasks};

/// Text that one transaction writes, so that it holds the lock for a few hundredths of a second.
const TEXT_AT_ONCE: usize = 32 * 1024;
/// What a row costs besides its text.
const ROW: usize = 64;

/// What an import did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Imported {
    pub sessions_added: usize,
    /// Sessions that were here and got something.
    pub sessions_extended: usize,
    pub sessions_unchanged: usize,
    pub stated_goals_added: usize,
    pub stated_goals_already_here: usize,
    pub tasks_added: usize,
    pub tasks_already_here: usize,
    pub events_added: usize,
    pub events_already_here: usize,
    /// Events that a session may not keep.
    pub events_left_out: usize,
    /// Sessions that are older than memory is kept.
    pub expiring: usize,
}

/// Checks a file and imports it. The store is opened once the file is known to be whole. Sessions that were last active
/// before `expires_before` are counted as expiring.
pub fn import(
    source: &mut (impl Read + Seek),
    open_store: impl FnOnce() -> Result<Store, StoreError>,
    expires_before: Option<Millis>,
    now: Millis,
) -> Result<Imported, TransferError> {
    read(source, ExportReader::checking(now), |_| Ok(()))?;
    let mut store = open_store()?;
    let mut report = Imported::default();
    let mut batch = Batch::default();
    read(source, ExportReader::new(now), |recorded| {
        if expires_before.is_some_and(|before| last_active(&recorded) < before) {
            report.expiring += 1;
        }
        batch.take(&mut store, recorded, &mut report)
    })?;
    batch.write(&mut store, &mut report)?;
    Ok(report)
}

/// Passes each session of a file on.
fn read(
    source: &mut (impl Read + Seek),
    mut lines: ExportReader,
    mut take: impl FnMut(ExportedSession) -> Result<(), TransferError>,
) -> Result<(), TransferError> {
    source.rewind().map_err(TransferError::Unreadable)?;
    let mut reader = BufReader::new(source);
    let mut line = Vec::new();
    loop {
        match bounded::next_line(&mut reader, LONGEST_LINE, &mut line) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                return Err(lines.error_in_next(LineFault::TooLong).into());
            }
            Err(error) => return Err(TransferError::Unreadable(error)),
        }
        if let Some(recorded) = lines.take(&line)? {
            take(recorded)?;
        }
    }
    Ok(lines.finish()?)
}

/// A session, or a part of one that is too large for one transaction.
struct ImportStep {
    recorded: ExportedSession,
    is_last: bool,
}

/// What a step changed.
#[derive(Default, Clone, Copy)]
struct Written {
    /// Something was known of the session before.
    was_known: bool,
    did_write: bool,
    stated_goals: usize,
    tasks: usize,
    events: usize,
}

/// What is written in one transaction.
#[derive(Default)]
struct Batch {
    steps: Vec<ImportStep>,
    weight: usize,
    /// What earlier parts of the next session changed.
    begun: Option<Written>,
}

impl Batch {
    fn take(
        &mut self,
        store: &mut Store,
        recorded: ExportedSession,
        report: &mut Imported,
    ) -> Result<(), TransferError> {
        report.events_left_out += recorded.left_out;
        report.stated_goals_already_here += recorded.stated.len();
        report.tasks_already_here += recorded.tasks.len();
        report.events_already_here += recorded.events.len();
        for step in parts(recorded) {
            let weight = weight(&step.recorded);
            if self.weight + weight > TEXT_AT_ONCE {
                self.write(store, report)?;
            }
            self.weight += weight;
            self.steps.push(step);
        }
        Ok(())
    }

    fn write(&mut self, store: &mut Store, report: &mut Imported) -> Result<(), TransferError> {
        self.weight = 0;
        let mut changes = Vec::new();
        let batch = [std::mem::take(&mut self.steps)];
        store.write_in_steps(&batch, |db, steps| {
            changes = steps.iter().map(|step| write(db, step)).collect::<Result<_, _>>()?;
            Ok::<_, StoreError>(())
        })?;
        for (step, change) in batch.iter().flatten().zip(changes) {
            let change = self.begun.map_or(change, |begun| begun.then(change));
            self.begun = (!step.is_last).then_some(change);
            if step.is_last {
                report.note(change);
            }
        }
        Ok(())
    }
}

impl Written {
    fn then(self, later: Self) -> Self {
        Self {
            was_known: self.was_known,
            did_write: self.did_write || later.did_write,
            stated_goals: self.stated_goals + later.stated_goals,
            tasks: self.tasks + later.tasks,
            events: self.events + later.events,
        }
    }
}

impl Imported {
    /// All rows of the file were counted as here already.
    fn note(&mut self, change: Written) {
        let sessions = match (change.was_known, change.did_write) {
            (false, _) => &mut self.sessions_added,
            (true, true) => &mut self.sessions_extended,
            (true, false) => &mut self.sessions_unchanged,
        };
        *sessions += 1;
        for (here, added, change) in [
            (&mut self.stated_goals_already_here, &mut self.stated_goals_added, change.stated_goals),
            (&mut self.tasks_already_here, &mut self.tasks_added, change.tasks),
            (&mut self.events_already_here, &mut self.events_added, change.events),
        ] {
            *here = here.saturating_sub(change);
            *added += change;
        }
    }
}

fn of_event(event: &MemoryEvent) -> usize {
    ROW + event.subject.len() + event.text.len()
}

fn weight(recorded: &ExportedSession) -> usize {
    let goals = recorded.stated.iter().map(|goal| ROW + goal.objective.len());
    let tasks = recorded.tasks.iter().map(|task| ROW + task.subject.len());
    ROW + recorded.events.iter().map(of_event).chain(goals).chain(tasks).sum::<usize>()
}

/// Cuts the oldest events off until the rest fits into one transaction. Events of one moment stay together, so that the
/// next import can see by the time of the newest event what is missing.
fn parts(mut recorded: ExportedSession) -> Vec<ImportStep> {
    let mut parts = Vec::new();
    let mut left = weight(&recorded);
    let mut events = std::mem::take(&mut recorded.events).into_iter().peekable();
    while left > TEXT_AT_ONCE && events.peek().is_some() {
        let (mut some, mut taken): (Vec<MemoryEvent>, usize) = (Vec::new(), 0);
        while let Some(event) = events.next_if(|event| {
            let same_moment = some.last().is_some_and(|last| last.created_at_ms == event.created_at_ms);
            taken < TEXT_AT_ONCE || same_moment
        }) {
            taken += of_event(&event);
            some.push(event);
        }
        left = left.saturating_sub(taken);
        let session = recorded.session.clone();
        let part = ExportedSession { session, stated: Vec::new(), tasks: Vec::new(), events: some, left_out: 0 };
        parts.push(ImportStep { recorded: part, is_last: false });
    }
    recorded.events = events.collect();
    parts.push(ImportStep { recorded, is_last: true });
    parts
}

fn write(db: Db<'_>, step: &ImportStep) -> Result<Written, StoreError> {
    let recorded = &step.recorded;
    let id = recorded.session.session_id.as_str();
    let known = db.session(id)?;
    let all = MemoryFilter { category: None, after: Some(0) };
    let here = KnownMemory {
        newest_event_ms: db.newest_event_time(id)?,
        events: db.events_of(id, all, 2 * EVENTS_KEPT)?,
        stated: db.stated_history(id)?,
        tasks: tasks(db, id)?,
    };
    let was_known = known.is_some() || here != KnownMemory::default();
    let additions = additions(&here, recorded);
    let mut change = Written {
        was_known,
        did_write: false,
        stated_goals: additions.stated.len(),
        tasks: additions.tasks.len(),
        events: additions.events.len(),
    };
    let changed = additions.changed.len() + additions.moved.len();
    change.did_write = change.stated_goals + change.tasks + change.events + changed > 0;
    db.add_imported_events(id, &additions.events)?;
    for event in &additions.changed {
        db.change_imported_event(event)?;
    }
    for goal in &additions.moved {
        db.move_imported_goal(goal.id, goal.status, goal.changed_at_ms)?;
    }
    for goal in additions.stated {
        db.add_imported_goal(&StatedGoal {
            id: 0,
            session_id: id.to_owned(),
            objective: goal.objective,
            status: goal.status,
            goal_id: None,
            set_at_ms: goal.set_at_ms,
            changed_at_ms: goal.changed_at_ms,
        })?;
    }
    let of_line =
        |task: TaskEntry| (Task { id: task.id, subject: task.subject, status: task.status }, task.changed_at_ms);
    let changed: Vec<_> = additions.tasks.into_iter().map(of_line).collect();
    db.put_imported_tasks(id, &changed)?;
    if step.is_last {
        db.put_imported_session(&session(recorded), recorded.session.compactions)?;
    }
    Ok(change)
}

/// The newest thing that the file knows of a session.
fn last_active(recorded: &ExportedSession) -> Millis {
    let events = recorded.events.last().map(|event| event.created_at_ms);
    events.max(recorded.session.last_seen_ms).unwrap_or_default()
}

fn session(recorded: &ExportedSession) -> Session {
    let line = &recorded.session;
    Session {
        session_id: line.session_id.clone(),
        host: line.host,
        cwd: line.cwd.clone(),
        project_dir: line.project.clone(),
        parent_session_id: line.parent_session_id.clone(),
        parent_link: line.parent_link.map(|link| match link {
            SessionLink::Fork => ParentLink::Fork,
            SessionLink::Clear => ParentLink::Clear,
        }),
        started_at_ms: line.started_at_ms.unwrap_or_default(),
        last_seen_ms: line.last_seen_ms.unwrap_or_default(),
        ..Session::default()
    }
}
