//! Prints the demo: short lines with a label in front, a bar for the token budget, and pauses for the reader.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use steadfast_model::text;

use crate::output;

const WIDTH: usize = 80;
const LABEL: usize = 11;
const BAR: usize = 24;

pub(super) const PLAIN: Style = Style::new();
pub(super) const DIM: Style = PLAIN.dimmed();
pub(super) const GREEN: Style = AnsiColor::Green.on_default();
pub(super) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(super) const RED: Style = AnsiColor::Red.on_default();

pub(super) struct Printer {
    /// With `--json`, stdout has only the summary.
    pub(super) to_stderr: bool,
    pub(super) fast: bool,
}

impl Printer {
    pub(super) fn line(&self, line: &str) {
        if self.to_stderr {
            output::note(line);
        } else {
            output::line(line);
        }
    }

    /// Pauses for the time that this many lines take to read.
    pub(super) fn pause(&self, lines: u32) {
        if !self.fast {
            std::thread::sleep(Duration::from_millis(180) * lines);
        }
    }

    pub(super) fn heading(&self, title: &str) {
        let bold = Style::new().bold();
        self.line(&format!("\n{bold}{title}{bold:#}"));
        self.pause(1);
    }

    /// Prints a label and, in the column beside it, the wrapped text.
    pub(super) fn labelled(&self, mut label: &str, style: Style, text: &str) {
        for paragraph in text.lines().filter(|line| !line.trim().is_empty()) {
            for row in wrap(&text::printable(paragraph).replace('\t', " "), WIDTH - LABEL - 2) {
                self.line(&format!("  {style}{label:<LABEL$}{style:#}{row}"));
                label = "";
            }
        }
        self.pause(1);
    }

    pub(super) fn budget(&self, used: i64, budget: i64) {
        let percent = used.saturating_mul(100) / budget.max(1);
        let filled = usize::try_from(percent).unwrap_or(0).min(100) * BAR / 100;
        let style = if percent < 80 { GREEN } else { YELLOW };
        let bar = format!("{style}{}{style:#}{}", "█".repeat(filled), "░".repeat(BAR.saturating_sub(filled)));
        let numbers = format!("{} of {} tokens, {percent} %", text::thousands(used), text::thousands(budget));
        self.line(&format!("  {:<LABEL$}{bar} {numbers}", "budget"));
        self.pause(1);
    }
}

/// Breaks a line at spaces; a word longer than the row stays whole.
fn wrap(line: &str, width: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        match rows.last_mut() {
            Some(row) if row.chars().count() + 1 + word.chars().count() <= width => {
                row.push(' ');
                row.push_str(word);
            }
            _ => rows.push(word.to_owned()),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_never_inside_a_word() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("incomprehensibilities are long", 8), ["incomprehensibilities", "are long"]);
        assert!(wrap("", 8).is_empty());
    }
}
