//! `steadfast session export` and `import`: session memory as JSON Lines, from one store to another. Both work on one
//! session after the other, so that memory stays bounded, and the store is locked only for short moments.

mod import;

use std::io::{self, Write};

use steadfast_memory::transfer::{
    ExportCounts, ExportError, ExportLine, Heading, LONGEST_LINE, SessionEntry, SessionLink, StatedEntry, TaskEntry,
};
use steadfast_model::clock::Millis;
use steadfast_model::redact::redact;
use steadfast_store::{Db, MemoryFilter, ParentLink, StoreError};

pub use import::{Imported, import};

/// Events that are read at once.
const PAGE: usize = 500;

#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("{0}")]
    ExportLine(#[from] ExportError),
    #[error("cannot read the file: {0}")]
    Unreadable(io::Error),
    #[error("cannot write the export: {0}")]
    Unwritten(#[from] io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl TransferError {
    pub fn hint(&self) -> String {
        match self {
            Self::ExportLine(error) => error.hint(),
            Self::Unreadable(_) => format!("give a file with lines of at most {LONGEST_LINE} bytes, or - for stdin"),
            Self::Unwritten(_) => "check the path and the free space of its disk".to_owned(),
            Self::Store(error) => error.hint().to_owned(),
        }
    }
}

/// Writes the memory of sessions.
pub fn export(
    db: Db<'_>,
    session_ids: &[String],
    now: Millis,
    out: &mut dyn Write,
) -> Result<ExportCounts, TransferError> {
    let mut writer = Writer { out, counts: ExportCounts::default() };
    writer.line(&Heading::new(now))?;
    for id in session_ids {
        writer.session(db, id)?;
    }
    let counts = writer.counts;
    writer.line(&ExportLine::End(counts))?;
    writer.out.flush()?;
    Ok(counts)
}

struct Writer<'a> {
    out: &'a mut dyn Write,
    counts: ExportCounts,
}

impl Writer<'_> {
    fn line(&mut self, value: &impl serde::Serialize) -> Result<(), TransferError> {
        serde_json::to_writer(&mut self.out, value).map_err(io::Error::from)?;
        Ok(self.out.write_all(b"\n")?)
    }

    fn put(&mut self, line: &ExportLine) -> Result<(), TransferError> {
        self.counts.note(line);
        self.line(line)
    }

    fn session(&mut self, db: Db<'_>, id: &str) -> Result<(), TransferError> {
        self.put(&ExportLine::Session(session_line(db, id)?))?;
        for goal in db.stated_history(id)? {
            self.put(&ExportLine::StatedGoal(StatedEntry {
                objective: redact(&goal.objective).into_owned(),
                status: goal.status,
                set_at_ms: goal.set_at_ms,
                changed_at_ms: goal.changed_at_ms,
            }))?;
        }
        for task in tasks(db, id)? {
            let subject = redact(&task.subject).into_owned();
            self.put(&ExportLine::Task(TaskEntry { subject, ..task }))?;
        }
        let mut after = 0;
        loop {
            let filter = MemoryFilter { category: None, after: Some(after) };
            let page = db.events_of(id, filter, PAGE)?;
            let Some(last) = page.last() else { break };
            after = last.id;
            for event in page {
                self.put(&ExportLine::of_event(event))?;
            }
        }
        Ok(())
    }
}

fn session_line(db: Db<'_>, id: &str) -> Result<SessionEntry, StoreError> {
    let known = db.session(id)?;
    let goal = db.goal(id)?;
    let session = known.as_ref();
    let link = |link| match link {
        ParentLink::Fork => SessionLink::Fork,
        ParentLink::Clear => SessionLink::Clear,
    };
    Ok(SessionEntry {
        session_id: id.to_owned(),
        host: session.map(|session| session.host).or(goal.map(|goal| goal.host)).unwrap_or_default(),
        project: session.map(|session| redact(&session.project_dir).into_owned()).unwrap_or_default(),
        cwd: session.map(|session| redact(&session.cwd).into_owned()).unwrap_or_default(),
        parent_session_id: session.and_then(|session| session.parent_session_id.clone()),
        parent_link: session.and_then(|session| session.parent_link).map(link),
        started_at_ms: session.map(|session| session.started_at_ms),
        last_seen_ms: session.map(|session| session.last_seen_ms),
        compactions: db.snapshot(id)?.map_or(0, |snapshot| snapshot.compactions),
    })
}

fn tasks(db: Db<'_>, id: &str) -> Result<Vec<TaskEntry>, StoreError> {
    let line = |(task, changed_at_ms): (steadfast_model::memory::Task, Millis)| TaskEntry {
        id: task.id,
        subject: task.subject,
        status: task.status,
        changed_at_ms,
    };
    Ok(db.tasks_with_times(id)?.into_iter().map(line).collect())
}
