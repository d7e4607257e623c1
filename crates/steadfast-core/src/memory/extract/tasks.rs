//! The client's list of tasks: by id where tasks have one, as a whole where they have none. Never by position, since
//! two lists that differ in one place would be mixed up.

use super::{Notes, ONE_LINE_MAX, clean};
use crate::memory::observation::Observation;
use crate::memory::{Category, Importance, TaskChange, TaskStatus};

/// The most tasks of a list that is told as a whole.
const LIST_MAX: usize = 200;

pub(super) fn note(notes: &mut Notes, observation: &Observation) {
    match observation {
        Observation::TaskAnnounced { id, subject, status } => {
            put(notes, id, subject.as_deref(), Some(*status));
        }
        Observation::TaskChanged { id, subject, status } => {
            put(notes, id, subject.as_deref(), *status);
            // The task itself is a record of its own; the event tells when it moved.
            if let Some(status) = status {
                let name = subject.as_deref().map_or_else(|| format!("task {id}"), |it| format!("task {id}: {it}"));
                let kind: &'static str = status.into();
                notes.keep(Category::Task, kind, Importance::Normal, id, &name, ONE_LINE_MAX);
            }
        }
        Observation::TaskList(list) => {
            let list: Vec<(String, TaskStatus)> =
                list.iter().take(LIST_MAX).map(|(subject, status)| (clean(subject, ONE_LINE_MAX), *status)).collect();
            let done = list.iter().filter(|(_, status)| *status == TaskStatus::Completed).count();
            let now = list.iter().find(|(_, status)| *status == TaskStatus::InProgress);
            let text = match now {
                Some((subject, _)) => format!("{done} of {} done, now: {subject}", list.len()),
                None => format!("{done} of {} done", list.len()),
            };
            notes.keep(Category::Task, "list", Importance::Normal, "", &text, ONE_LINE_MAX);
            notes.kept.tasks.push(TaskChange::Replace(list));
        }
        _ => {}
    }
}

fn put(notes: &mut Notes, id: &str, subject: Option<&str>, status: Option<TaskStatus>) {
    let subject = subject.map(|subject| clean(subject, ONE_LINE_MAX)).filter(|subject| !subject.is_empty());
    notes.kept.tasks.push(TaskChange::Put { id: clean(id, ONE_LINE_MAX), subject, status });
}
