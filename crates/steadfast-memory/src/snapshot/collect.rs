//! From what is remembered to the sections of a snapshot: what belongs together is put together, what happened again
//! is told once, at its last place.

use std::collections::{BTreeMap, HashMap};

use strum::IntoEnumIterator as _;

use super::item::Cleaner;
use super::section::{Kind, Section};
use steadfast_model::memory::{Category, Recollection, Remembered, TASKS_LEFT_OUT, TaskStatus};

/// The sections that have something to tell, in the order in which they are told.
pub(super) fn sections(recollection: &Recollection, cleaner: &Cleaner) -> Vec<Section> {
    let mut lists: BTreeMap<Kind, List> = BTreeMap::new();
    let mut last_cwd = None;
    for event in &recollection.events {
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
                lists.insert(kind, List::of(cleaner.line(mode)));
            }
            _ => lists.entry(kind).or_default().touch(line(event, cleaner), "", event.repeats),
        }
    }
    if let Some(cwd) = last_cwd {
        lists.entry(Kind::Environment).or_default().push(format!("cwd: {cwd}"));
    }
    lists.insert(Kind::TaskState, tasks(recollection, cleaner));
    Kind::iter().filter_map(|kind| lists.remove(&kind)?.into_section(kind)).collect()
}

/// Where an event is told. The goal has a place of its own, and an error that is over is told as its fix.
fn kind_of(event: &Remembered) -> Option<Kind> {
    Some(match event.category {
        // The list of tasks tells how they stand now.
        Category::Goal | Category::Task => return None,
        Category::Error if event.resolved => return None,
        Category::Error => Kind::Errors,
        Category::Fix => Kind::Fixes,
        Category::Intent => Kind::Intent,
        Category::Prompt => Kind::RecentUserMessages,
        Category::Decision => Kind::Decisions,
        Category::Rule => Kind::Rules,
        Category::File => Kind::Files,
        Category::Git => Kind::Git,
        Category::Cwd | Category::Environment => Kind::Environment,
        Category::Subagent => Kind::Subagents,
        Category::Skill => Kind::Skills,
    })
}

/// What an event says, with what it is about where the text does not name it.
fn line(event: &Remembered, cleaner: &Cleaner) -> String {
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

/// The open tasks, those in work first.
fn tasks(recollection: &Recollection, cleaner: &Cleaner) -> List {
    let mut list = List::default();
    for status in [TaskStatus::InProgress, TaskStatus::Pending] {
        for task in recollection.tasks.iter().filter(|task| task.status == status) {
            list.push(cleaner.line(&format!("[{status}] {}", task.subject)));
        }
    }
    // Those that the store had no room for are told in number.
    let gone =
        recollection.events.iter().filter(|event| event.category == Category::Task && event.kind == TASKS_LEFT_OUT);
    let gone = gone.fold(0, |gone: i64, event| gone.saturating_add(event.repeats));
    list.distinct = list.distinct.saturating_add(usize::try_from(gone).unwrap_or(0));
    list
}

/// Items in the order of their last appearance.
#[derive(Default)]
struct List {
    items: Vec<Option<Entry>>,
    places: HashMap<String, usize>,
    distinct: usize,
}

#[derive(Default)]
struct Entry {
    text: String,
    /// What was done how many times, in the order of the first time.
    done: Vec<(String, i64)>,
}

impl List {
    fn of(text: String) -> Self {
        let mut list = Self::default();
        list.push(text);
        list
    }

    /// One more item, whether or not there is one like it.
    fn push(&mut self, text: String) {
        if !text.is_empty() {
            self.distinct += 1;
            self.items.push(Some(Entry { text, done: Vec::new() }));
        }
    }

    /// An item that may be there already: then it moves to the end.
    fn touch(&mut self, text: String, done: &str, times: i64) {
        if text.is_empty() {
            return;
        }
        let known = self.places.insert(text.clone(), self.items.len());
        let known = known.and_then(|at| self.items.get_mut(at)?.take());
        let mut entry = known.unwrap_or_else(|| {
            self.distinct += 1;
            Entry { text, done: Vec::new() }
        });
        let times = times.max(1);
        match entry.done.iter_mut().find(|(what, _)| what == done) {
            Some((_, count)) => *count = count.saturating_add(times),
            None => entry.done.push((done.to_owned(), times)),
        }
        self.items.push(Some(entry));
    }

    fn into_section(self, kind: Kind) -> Option<Section> {
        let entries: Vec<Entry> = self.items.into_iter().flatten().collect();
        let skipped = if kind == Kind::TaskState { 0 } else { entries.len().saturating_sub(kind.most()) };
        let items: Vec<String> = entries.iter().skip(skipped).take(kind.most()).map(Entry::line).collect();
        (!items.is_empty()).then_some(Section { kind, items, total: self.distinct })
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
