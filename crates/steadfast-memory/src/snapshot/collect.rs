//! Groups the events of a session into the sections of a snapshot. A repeated item appears once, where it happened last.

use std::collections::BTreeMap;

use super::item::Cleaner;
use super::section::{SECTIONS, SnapshotSection};
use steadfast_model::memory::{Category, MemoryEvent, SessionMemory, TASKS_LEFT_OUT, TaskStatus};

/// The sections that are not empty, in the order of the snapshot.
pub(super) fn sections(memory: &SessionMemory, cleaner: &Cleaner) -> Vec<SnapshotSection> {
    let mut lists: BTreeMap<Category, SnapshotList> = BTreeMap::new();
    for event in &memory.events {
        let list = lists.entry(event.category).or_default();
        match event.category {
            // The goal has a section of its own, tasks are listed with their current status, and a resolved error is
            // listed as its fix.
            Category::Goal | Category::Task => {}
            Category::Error if event.resolved => {}
            Category::Cwd => list.set(format!("cwd: {}", line(event, cleaner))),
            Category::Intent => {
                list.set(cleaner.line(if event.text.is_empty() { &event.kind } else { &event.text }));
            }
            Category::File => {
                let path = cleaner.end_of_line(if event.subject.is_empty() { &event.text } else { &event.subject });
                list.touch(path, &event.kind, event.repeats);
            }
            Category::Prompt => list.push(cleaner.line(&event.text)),
            _ => list.touch(line(event, cleaner), "", event.repeats),
        }
    }
    if let Some(cwd) = lists.remove(&Category::Cwd) {
        lists.entry(Category::Environment).or_default().entries.extend(cwd.entries);
    }
    lists.insert(Category::Task, tasks(memory, cleaner));
    let section = |(category, tag, most)| lists.remove(&category)?.into_section(category, tag, most);
    SECTIONS.into_iter().filter_map(section).collect()
}

/// The text of an event, preceded by its subject unless the text contains it.
fn line(event: &MemoryEvent, cleaner: &Cleaner) -> String {
    let about = match event.category {
        Category::Error | Category::Fix => event.subject.as_str(),
        Category::Git | Category::Subagent => event.kind.as_str(),
        _ => "",
    };
    let said = if event.text.trim().is_empty() { &event.subject } else { &event.text };
    if about.is_empty() || said.contains(about) {
        cleaner.line(said)
    } else {
        cleaner.line(&format!("{about}: {said}"))
    }
}

/// The open tasks, those in progress first.
fn tasks(memory: &SessionMemory, cleaner: &Cleaner) -> SnapshotList {
    let mut list = SnapshotList::default();
    for status in [TaskStatus::InProgress, TaskStatus::Pending] {
        for task in memory.tasks.iter().filter(|task| task.status == status) {
            list.push(cleaner.line(&format!("[{status}] {}", task.subject)));
        }
    }
    // Tasks that the store had no room for are only counted.
    let gone = memory.events.iter().filter(|event| event.category == Category::Task && event.kind == TASKS_LEFT_OUT);
    let gone = gone.fold(0, |gone: i64, event| gone.saturating_add(event.repeats));
    list.left_out = usize::try_from(gone).unwrap_or(0);
    list
}

/// Items in the order of their last appearance.
#[derive(Default)]
struct SnapshotList {
    entries: Vec<SnapshotEntry>,
    /// How many more there are that the store did not keep.
    left_out: usize,
}

struct SnapshotEntry {
    text: String,
    /// What happened how often, in the order of the first time.
    done: Vec<(String, i64)>,
}

impl SnapshotList {
    fn set(&mut self, text: String) {
        self.entries.clear();
        self.push(text);
    }

    /// Adds an item even if there is an equal one.
    fn push(&mut self, text: String) {
        if !text.is_empty() {
            self.entries.push(SnapshotEntry { text, done: Vec::new() });
        }
    }

    /// Adds an item or moves the equal one to the end.
    fn touch(&mut self, text: String, done: &str, times: i64) {
        if text.is_empty() {
            return;
        }
        let known = self.entries.iter().position(|entry| entry.text == text).map(|at| self.entries.remove(at));
        let mut entry = known.unwrap_or(SnapshotEntry { text, done: Vec::new() });
        match entry.done.iter_mut().find(|(what, _)| what == done) {
            Some((_, count)) => *count = count.saturating_add(times.max(1)),
            None => entry.done.push((done.to_owned(), times.max(1))),
        }
        self.entries.push(entry);
    }

    fn into_section(self, category: Category, tag: &'static str, most: usize) -> Option<SnapshotSection> {
        let total = self.entries.len().saturating_add(self.left_out);
        let skipped = if category == Category::Task { 0 } else { self.entries.len().saturating_sub(most) };
        let items: Vec<String> = self.entries.iter().skip(skipped).take(most).map(SnapshotEntry::line).collect();
        (!items.is_empty()).then_some(SnapshotSection { category, tag, items, total })
    }
}

impl SnapshotEntry {
    fn line(&self) -> String {
        let done: Vec<String> = self
            .done
            .iter()
            .filter(|(what, times)| !what.is_empty() || *times > 1)
            .take(5)
            .map(|(what, times)| if what.is_empty() { format!("×{times}") } else { format!("{what} ×{times}") })
            .collect();
        if done.is_empty() { self.text.clone() } else { format!("{} ({})", self.text, done.join(", ")) }
    }
}
