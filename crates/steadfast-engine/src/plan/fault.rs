//! What is wrong with a definition: file, line, what and how to mend it. Reading goes on after a fault, so that all
//! of them are told at once.

use std::fmt;
use std::sync::Arc;

/// One thing to mend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file, as a person would name it.
    pub file: String,
    pub line: u32,
    pub level: Level,
    pub what: String,
    pub fix: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Error,
    Warning,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Error => "error",
            Level::Warning => "warning",
        };
        write!(f, "{}:{}: {level}: {}", self.file, self.line, self.what)?;
        if self.fix.is_empty() { Ok(()) } else { write!(f, "\n  fix: {}", self.fix) }
    }
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct At {
    pub(super) file: Arc<str>,
    pub(super) line: u32,
}

impl At {
    pub(super) fn new(file: &str, line: u32) -> Self {
        Self { file: file.into(), line }
    }

    pub(super) fn line(&self, line: u32) -> Self {
        Self { file: self.file.clone(), line }
    }
}

/// More faults than this help nobody; the rest is counted.
const MOST_FAULTS: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Faults {
    list: Vec<Fault>,
    errors: usize,
}

impl Faults {
    pub(super) fn error(&mut self, at: &At, what: impl Into<String>, fix: impl Into<String>) {
        self.errors += 1;
        self.add(at, Level::Error, what.into(), fix.into());
    }

    pub(super) fn warning(&mut self, at: &At, what: impl Into<String>, fix: impl Into<String>) {
        self.add(at, Level::Warning, what.into(), fix.into());
    }

    fn add(&mut self, at: &At, level: Level, what: String, fix: String) {
        let fault = Fault { file: at.file.to_string(), line: at.line, level, what, fix };
        if self.list.len() < MOST_FAULTS && !self.list.contains(&fault) {
            self.list.push(fault);
        }
    }

    pub(super) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// By file and line, errors before warnings of the same line.
    pub(super) fn into_list(mut self) -> Vec<Fault> {
        self.list.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        self.list
    }
}

/// The known word that somebody probably meant.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let most = match word.chars().count() {
        0 | 1 => 0,
        2..=4 => 1,
        _ => 2,
    };
    let distances = known.into_iter().map(|known| (distance(&word, &known.to_lowercase()), known));
    distances.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// ` — did you mean …?`, or nothing.
pub(super) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map(|known| format!("did you mean `{known}`? ")).unwrap_or_default()
}

/// Typing mistakes between two words: a letter more, less, other, or two swapped.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().take(64).collect(), to.chars().take(64).collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    let at = |rows: &[Vec<usize>], i: usize, j: usize| rows.get(i).and_then(|row| row.get(j)).copied().unwrap_or(64);
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let (a, b) = (from.get(i - 1), to.get(j - 1));
            let mut best = (at(&rows, i - 1, j) + 1).min(row.last().copied().unwrap_or(64) + 1);
            best = best.min(at(&rows, i - 1, j - 1) + usize::from(a != b));
            if i > 1 && j > 1 && a == to.get(j - 2) && from.get(i - 2) == b {
                best = best.min(at(&rows, i - 2, j - 2) + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    at(&rows, from.len(), to.len())
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
