//! Faults of definitions: file, line, what is wrong and how to fix it. Reading continues after a fault, so one call
//! reports all of them.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::rc::Rc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The path; for built-in definitions a name in angle brackets.
    pub file: String,
    pub line: u32,
    pub level: Level,
    pub what: String,
    pub fix: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum Level {
    Error,
    Warning,
    /// Nothing to change: what the definition leads to.
    Note,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, level, what, fix } = self;
        write!(f, "{file}:{line}: {level}: {what}\n  fix: {fix}")
    }
}

/// A hostile file can have a fault on every line; no more of each level are kept.
const MAX_FAULTS: usize = 100;

/// The faults found so far. Clones share one list.
#[derive(Debug, Clone, Default)]
pub(super) struct Faults(Rc<RefCell<FaultList>>);

#[derive(Debug, Default)]
struct FaultList {
    faults: Vec<Fault>,
    unreadable: Option<io::Error>,
}

impl Faults {
    /// The first line of a file.
    pub(super) fn file(&self, file: &str) -> Location {
        Location { file: file.into(), line: 1, faults: self.clone() }
    }

    /// Sorted by file and line.
    pub(super) fn list(&self) -> Vec<Fault> {
        let mut list = self.0.borrow().faults.clone();
        list.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        list
    }

    /// Why a file could not be read. That is no fault of the definition, which may be right.
    pub(super) fn unreadable(&self, error: io::Error) {
        self.0.borrow_mut().unreadable.get_or_insert(error);
    }

    /// The first file that could not be read.
    pub(super) fn take_unreadable(&self) -> Option<io::Error> {
        self.0.borrow_mut().unreadable.take()
    }
}

/// A line of a file, and where its faults are collected.
#[derive(Debug, Clone)]
pub(super) struct Location {
    file: Rc<str>,
    pub(super) line: u32,
    faults: Faults,
}

impl Location {
    pub(super) fn line(&self, line: u32) -> Self {
        Self { line, ..self.clone() }
    }

    pub(super) fn file_name(&self) -> &str {
        &self.file
    }

    pub(super) fn file(&self, file: &str) -> Self {
        self.faults.file(file)
    }

    /// Reports that what is named here could not be read.
    pub(super) fn unreadable<T>(&self, error: io::Error) -> Option<T> {
        self.faults.unreadable(error);
        None
    }

    pub(super) fn error(&self, what: impl Into<String>, fix: impl Into<String>) {
        self.add(Level::Error, what.into(), fix.into());
    }

    /// Reports an error where a value was expected.
    pub(super) fn refuse<T>(&self, what: impl Into<String>, fix: impl Into<String>) -> Option<T> {
        self.error(what, fix);
        None
    }

    pub(super) fn warning(&self, what: impl Into<String>, fix: impl Into<String>) {
        self.add(Level::Warning, what.into(), fix.into());
    }

    /// Says what the definition leads to. `fix` is for those who want something else.
    pub(super) fn note(&self, what: impl Into<String>, fix: impl Into<String>) {
        self.add(Level::Note, what.into(), fix.into());
    }

    fn add(&self, level: Level, what: String, fix: String) {
        let fault = Fault { file: self.file.to_string(), line: self.line, level, what, fix };
        let list = &mut self.faults.0.borrow_mut().faults;
        let is_full = list.iter().filter(|other| other.level == level).count() >= MAX_FAULTS;
        if !is_full && !list.contains(&fault) {
            list.push(fault);
        }
    }
}

/// The known word that differs from `word` by the fewest typing mistakes.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: String = word.to_lowercase().chars().take(64).collect();
    let max = match word.chars().count() {
        0 | 1 => 0,
        2..=4 => 1,
        _ => 2,
    };
    let distances = known.into_iter().map(|known| (strsim::osa_distance(&word, &known.to_lowercase()), known));
    distances.filter(|(distance, _)| *distance <= max).min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// ``did you mean `…`? ``, or nothing.
pub(super) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map(|known| format!("did you mean `{known}`? ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_mistakes_are_recognised_and_other_words_are_not() {
        let known = ["completion", "check_before", "model", "runs"];
        for (word, meant) in [
            ("completon", Some("completion")),
            ("Check_Before", Some("check_before")),
            ("modle", Some("model")),
            ("run", Some("runs")),
            ("rnus", Some("runs")),
            ("x", None),
            ("mission", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
