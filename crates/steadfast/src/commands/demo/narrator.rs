//! How the story looks: short lines with who speaks in front, a bar for the token budget, and time to read.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use steadfast_model::text;

use super::story::Voice;
use crate::output;

const WIDTH: usize = 80;
const LABEL: usize = 11;
const BAR: usize = 24;

pub(super) struct Narrator {
    /// With `--json`, stdout is for the summary alone.
    to_stderr: bool,
    /// Time to read a line.
    pace: Duration,
    scenes: usize,
}

impl Narrator {
    pub(super) fn new(to_stderr: bool, fast: bool) -> Self {
        let pace = if fast { 0 } else { 180 };
        Self { to_stderr, pace: Duration::from_millis(pace), scenes: 0 }
    }

    pub(super) fn line(&self, line: &str) {
        if self.to_stderr {
            output::note(line);
        } else {
            output::line(line);
        }
    }

    /// Gives the reader time for so many lines.
    pub(super) fn rest(&self, lines: u32) {
        std::thread::sleep(self.pace * lines);
    }

    pub(super) fn scene(&mut self, title: &str) {
        self.scenes += 1;
        self.heading(&format!("{}. {title}", self.scenes));
        self.rest(1);
    }

    pub(super) fn heading(&self, title: &str) {
        let bold = Style::new().bold();
        self.line(&format!("\n{bold}{title}{bold:#}"));
    }

    pub(super) fn said(&self, voice: Voice, said: &str) {
        let (label, style) = match voice {
            Voice::User => ("user", colour(AnsiColor::Yellow)),
            Voice::Agent => ("agent", Style::new()),
            Voice::Client => ("client", Style::new().dimmed()),
            Voice::Steadfast => ("steadfast", colour(AnsiColor::Green)),
        };
        self.labelled(label, style, said);
        self.rest(1);
    }

    pub(super) fn alarm(&self, label: &str, said: &str) {
        self.labelled(label, colour(AnsiColor::Red).bold(), said);
        self.rest(2);
    }

    /// A line with a label in front, its text wrapped into the column beside it.
    pub(super) fn labelled(&self, label: &str, style: Style, said: &str) {
        let mut label = label;
        for paragraph in said.lines().filter(|line| !line.trim().is_empty()) {
            for row in wrap(&text::printable(paragraph).replace('\t', " "), WIDTH - LABEL - 2) {
                self.line(&format!("  {style}{label:<LABEL$}{style:#}{row}"));
                label = "";
            }
        }
    }

    /// How much of the budget is spent, as Steadfast counts it.
    pub(super) fn budget(&self, used: i64, budget: i64) {
        let percent = used.saturating_mul(100) / budget.max(1);
        let filled = usize::try_from(percent).unwrap_or(0).min(100) * BAR / 100;
        let style = match percent {
            ..80 => colour(AnsiColor::Cyan),
            80..100 => colour(AnsiColor::Yellow),
            _ => colour(AnsiColor::Red),
        };
        let bar = format!("{style}{}{style:#}{}", "█".repeat(filled), "░".repeat(BAR.saturating_sub(filled)));
        let numbers = format!("{} of {} tokens, {percent} %", text::thousands(used), text::thousands(budget));
        self.line(&format!("  {:<LABEL$}{bar} {numbers}", "budget"));
        self.rest(1);
    }
}

pub(super) fn colour(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(colour.into()))
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
