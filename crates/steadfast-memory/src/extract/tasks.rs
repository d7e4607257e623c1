//! The client's list of tasks: by id where tasks have one, as a whole where they have none. Never by position, since
//! two lists that differ in one place would be mixed up.

use std::fmt::Write as _;

use super::{Notes, ONE_LINE_MAX, clean};
use steadfast_model::memory::{Category, Importance, TaskChange, TaskStatus};

const LIST_MAX: usize = 300;

/// The task is a record of its own; the event records when it changed. A change may be announced and then reported: the
/// store keeps the first of two equal events.
pub(super) fn put(notes: &mut Notes, id: &str, subject: Option<&str>, status: Option<TaskStatus>) {
    if let Some(status) = status {
        let name = subject.map_or_else(|| format!("task {id}"), |subject| format!("task {id}: {subject}"));
        notes.keep(Category::Task, status.into(), Importance::Normal, id, &name);
    }
    let subject = subject.map(|subject| clean(subject, ONE_LINE_MAX)).filter(|subject| !subject.is_empty());
    notes.0.tasks.push(TaskChange::Put { id: clean(id, ONE_LINE_MAX), subject, status });
}

pub(super) fn replace(notes: &mut Notes, list: &[(String, TaskStatus)]) {
    let done = list.iter().filter(|(_, status)| *status == TaskStatus::Completed).count();
    let total = list.len();
    let list = bounded(list);
    let mut text = format!("{done} of {total} done");
    // All of them are named, so that a search finds each.
    let named = |status| list.iter().filter(move |(_, of)| *of == status).map(|(subject, _)| subject);
    for (label, status) in
        [(", now", TaskStatus::InProgress), ("\nto do", TaskStatus::Pending), ("\ndone", TaskStatus::Completed)]
    {
        let subjects: Vec<&str> = named(status).map(String::as_str).collect();
        if !subjects.is_empty() {
            let _ = write!(text, "{label}: {}", subjects.join("; "));
        }
    }
    notes.keep(Category::Task, "list", Importance::Normal, "", &text);
    notes.0.tasks.push(TaskChange::Replace(list));
}

/// The tasks that are kept, in their order. Finished ones are dropped first; open ones that do not fit become one line.
fn bounded(list: &[(String, TaskStatus)]) -> Vec<(String, TaskStatus)> {
    let mut excess = list.len().saturating_sub(LIST_MAX);
    let mut kept: Vec<&(String, TaskStatus)> = list.iter().collect();
    kept.retain(|(_, status)| {
        let goes = excess > 0 && !status.is_open();
        excess -= usize::from(goes);
        !goes
    });
    // One more for the line that counts them.
    let left_out = if excess > 0 { excess + 1 } else { 0 };
    kept.truncate(kept.len() - left_out);
    let mut kept: Vec<(String, TaskStatus)> =
        kept.into_iter().map(|(subject, status)| (clean(subject, ONE_LINE_MAX), *status)).collect();
    if left_out > 0 {
        kept.push((format!("… and {left_out} more open tasks of this list"), TaskStatus::Pending));
    }
    kept
}
