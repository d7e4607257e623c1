//! Groups the events of a session into the sections of a snapshot. A repeated item appears once, where it happened last.

use std::collections::BTreeMap;

use strum::IntoEnumIterator as _;

use super::item::Cleaner;
use super::section::{SectionKind, SnapshotSection};
use steadfast_model::memory::{Category, MemoryEvent, SessionMemory, TASKS_LEFT_OUT, TaskStatus};

/// The sections that are not empty, in the order of the snapshot.
pub(super) fn sections(memory: &SessionMemory, cleaner: &Cleaner) -> Vec<SnapshotSection> {
    let mut lists: BTreeMap<SectionKind, List> = BTreeMap::new();
    let mut last_cwd = None;
    for event in &memory.events {
        let Some(kind) = kind_of(event) else { continue };
        match event.category {
            Category::Cwd => last_cwd = Some(line(event, cleaner)),
            Category::File => {
                let path = cleaner.end_of_line(if event.subject.is_empty() { &event.text } else { &event.subject });
                lists.entry(kind).or_default().touch(path, &event.kind, event.repeats);
            }
            Category::Prompt => lists.entry(kind).or_default().push(cleaner.line(&event.text)),
            Category::Intent => {
                let mode = if event.text.is_empty() { &event.kind } else { &event.text };
                lists.insert(kind, List::default());
                lists.entry(kind).or_default().push(cleaner.line(mode));
            }
            _ => lists.entry(kind).or_default().touch(line(event, cleaner), "", event.repeats),
        }
    }
    if let Some(cwd) = last_cwd {
        lists.entry(SectionKind::Environment).or_default().push(format!("cwd: {cwd}"));
    }
    lists.insert(SectionKind::TaskState, tasks(memory, cleaner));
    SectionKind::iter().filter_map(|kind| lists.remove(&kind)?.into_section(kind)).collect()
}

/// The section of an event. The goal has a section of its own, and a resolved error is listed as its fix.
fn kind_of(event: &MemoryEvent) -> Option<SectionKind> {
    Some(match event.category {
        // Tasks are listed with their current status.
        Category::Goal | Category::Task => return None,
        Category::Error if event.resolved => return None,
        Category::Error => SectionKind::Errors,
        Category::Fix => SectionKind::Fixes,
        Category::Intent => SectionKind::Intent,
        Category::Prompt => SectionKind::RecentUserMessages,
        Category::Decision => SectionKind::Decisions,
        Category::Rule => SectionKind::Rules,
        Category::File => SectionKind::Files,
        Category::Git => SectionKind::Git,
        Category::Cwd | Category::Environment => SectionKind::Environment,
        Category::Subagent => SectionKind::Subagents,
        Category::Skill => SectionKind::Skills,
    })
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
fn tasks(memory: &SessionMemory, cleaner: &Cleaner) -> List {
    let mut list = List::default();
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
struct List {
    entries: Vec<Entry>,
    /// How many more there are that the store did not keep.
    left_out: usize,
}

struct Entry {
    text: String,
    /// What happened how often, in the order of the first time.
    done: Vec<(String, i64)>,
}

impl List {
    /// Adds an item even if there is an equal one.
    fn push(&mut self, text: String) {
        if !text.is_empty() {
            self.entries.push(Entry { text, done: Vec::new() });
        }
    }

    /// Adds an item or moves the equal one to the end.
    fn touch(&mut self, text: String, done: &str, times: i64) {
        if text.is_empty() {
            return;
        }
        let known = self.entries.iter().position(|entry| entry.text == text).map(|at| self.entries.remove(at));
        let mut entry = known.unwrap_or(Entry { text, done: Vec::new() });
        match entry.done.iter_mut().find(|(what, _)| what == done) {
            Some((_, count)) => *count = count.saturating_add(times.max(1)),
            None => entry.done.push((done.to_owned(), times.max(1))),
        }
        self.entries.push(entry);
    }

    fn into_section(self, kind: SectionKind) -> Option<SnapshotSection> {
        let total = self.entries.len().saturating_add(self.left_out);
        let skipped = if kind == SectionKind::TaskState { 0 } else { self.entries.len().saturating_sub(kind.most()) };
        let items: Vec<String> = self.entries.iter().skip(skipped).take(kind.most()).map(Entry::line).collect();
        (!items.is_empty()).then_some(SnapshotSection { kind, items, total })
    }
}

impl Entry {
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
