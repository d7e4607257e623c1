//! The details of the selected goal or run as lines.

mod goal;
mod run;

use ratatui::text::Line;
use steadfast_app::overview::now::{Now, UserNeed};
use steadfast_model::clock;

use super::cards;
use super::rows::{RowSection, TopRow};
use super::state::{Detail, TopState};
use super::style::{Palette, Tone};
use super::words::{self, plain};

/// Lines that grow to the width of their place.
pub(super) struct DetailPage {
    pub(super) columns: usize,
    pub(super) palette: Palette,
    pub(super) lines: Vec<Line<'static>>,
}

impl DetailPage {
    fn push(&mut self, tone: Tone, text: &str) {
        self.lines.push(self.palette.line(tone, words::cut(text, self.columns)));
    }

    /// Text in as many lines as it needs, up to `most`; the lines after the first begin below its text.
    fn wrap(&mut self, tone: Tone, label: &str, text: &str, most: usize) {
        let indent = words::width(label);
        for (at, line) in words::wrap(text, self.columns.saturating_sub(indent), most).into_iter().enumerate() {
            let begin = if at == 0 { label.to_owned() } else { " ".repeat(indent) };
            self.lines.push(self.palette.line(tone, format!("{begin}{line}")));
        }
    }

    fn heading(&mut self, text: &str) {
        self.blank();
        self.push(Tone::Strong, text);
    }

    fn blank(&mut self) {
        if !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
    }
}

/// The details of the selected row.
pub(super) fn lines(state: &TopState, columns: usize) -> Vec<Line<'static>> {
    let mut page = DetailPage { columns, palette: state.palette, lines: Vec::new() };
    let Some(row) = state.row() else { return page.lines };
    page.wrap(Tone::Strong, "", &full_title(state, row), 60);
    if let Some(now) = state.now() {
        of_row(&mut page, now, row, state);
    }
    let known = state.detail.as_ref().filter(|(subject, _)| row.subject.as_ref() == Some(subject));
    match known.map(|(_, detail)| detail) {
        Some(Detail::Goal(goal)) => goal::lines(&mut page, goal, state.at_ms),
        Some(Detail::Run { run, log }) => run::lines(&mut page, run, log, state.at_ms),
        Some(Detail::None) => page.wrap(Tone::Quiet, "", "no more is known about it", 2),
        None if row.subject.is_some() => page.push(Tone::Quiet, "reading …"),
        None => {}
    }
    page.lines
}

/// A goal's objective in full, also where its row has only its beginning.
fn full_title(state: &TopState, row: &TopRow) -> String {
    match &state.detail {
        Some((subject, Detail::Goal(goal))) if row.subject.as_ref() == Some(subject) => {
            plain(&goal.report.goal.objective)
        }
        _ => row.title.clone(),
    }
}

/// What the row says that the page of a goal or run does not.
fn of_row(page: &mut DetailPage, now: &Now, row: &TopRow, state: &TopState) {
    match row.section {
        RowSection::Needs => {
            if let Some(need) = now.needs.get(row.index) {
                of_need(page, need, state);
            }
        }
        RowSection::Waiting => {
            if let Some(card) = now.waiting.get(row.index) {
                let left = card
                    .until_ms
                    .map(|until| format!(", {} ({})", words::countdown(until, state.at_ms), clock::to_local(until)));
                let text = format!(
                    "for {}{}; {} wakes it",
                    plain(&card.what),
                    left.unwrap_or_default(),
                    plain(&card.woken_by)
                );
                page.wrap(Tone::Plain, "waits ", &text, 4);
            }
        }
        RowSection::Fleet => {
            let text = format!("`steadfast fleet status {}` shows more; also logs, attach, kill", row.title);
            page.wrap(Tone::Plain, "on the fleet ", &text, 4);
        }
        RowSection::Ended => {
            if let Some(card) = now.ended.get(row.index) {
                page.wrap(Tone::Plain, "", &cards::ended_words(card), 3);
            }
        }
        RowSection::Found => {
            if let Some(found) = state.found.get(row.index) {
                page.wrap(Tone::Quiet, "matched: ", &plain(&found.line), 6);
            }
        }
        RowSection::Working | RowSection::Runs => {}
    }
}

fn of_need(page: &mut DetailPage, need: &UserNeed, state: &TopState) {
    let why = format!("{} ({})", plain(&need.why), words::ago(need.since_ms, state.at_ms));
    page.wrap(Tone::Warn, "! ", &why, 12);
    page.wrap(Tone::Plain, "→ ", &plain(&need.hint), 6);
}
