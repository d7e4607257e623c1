//! The list of the first page as lines: sections with their headings, rows, and what to do where there is nothing.

use std::ops::Range;

use ratatui::text::Line;
use steadfast_app::overview::now::Now;

use super::cards::{self, CardLook};
use super::rows::{RowSection, TopRow};
use super::state::{Mode, SeenView, TopPlace, TopState};
use super::style::Tone;
use super::words;

/// The lines of a list and where each row is.
#[derive(Debug, Default)]
pub(super) struct TopList {
    pub(super) lines: Vec<Line<'static>>,
    pub(super) rows: Vec<Range<usize>>,
}

/// What teaches the first steps.
const BEGIN: [&str; 6] = [
    "No goals and no runs yet. To begin:",
    "  in a client     /goal-start OBJECTIVE  (Codex: $goal-start)",
    "  in a terminal   steadfast run \"All tests pass\" --verify \"cargo test\"",
    "  a loop          steadfast loop run idea-wizard --max 2",
    "  a story         steadfast demo",
    "  not installed?  steadfast setup claude, or steadfast setup codex",
];

fn heading(section: RowSection) -> &'static str {
    match section {
        RowSection::Needs => "NEEDS YOU",
        RowSection::Working => "WORKING",
        RowSection::Runs => "RUNS",
        RowSection::Fleet => "FLEET",
        RowSection::Waiting => "WAITING",
        RowSection::Ended => "RECENTLY ENDED",
        RowSection::Found => "FOUND",
    }
}

/// All lines of the list. Without `has_marker`, no row is marked as selected.
pub(super) fn list(state: &TopState, columns: usize, has_marker: bool) -> TopList {
    let mut list = TopList::default();
    let palette = state.palette;
    let quiet = |text: &str| palette.line(Tone::Quiet, words::cut(text, columns));
    let is_whole = state.place == TopPlace::Now && state.search.is_empty();
    let has_needs = state.rows.iter().any(|row| row.section == RowSection::Needs);
    match (&state.seen, &state.trouble) {
        (SeenView::Nothing, None) => list.lines.push(quiet("  reading the store …")),
        (SeenView::Missing, _) => list.lines.extend(BEGIN.iter().map(|line| quiet(line))),
        (SeenView::Now(_), _) if state.rows.is_empty() => {
            list.lines.extend(empty(state).iter().map(|line| quiet(line)));
        }
        (SeenView::Now(_), _) if is_whole && !has_needs => {
            list.lines.push(palette.line(Tone::Good, words::cut("  ✓ Nothing needs you.", columns)));
        }
        (SeenView::Nothing, Some(_)) | (SeenView::Now(_), _) => {}
    }
    let mut section = None;
    for (at, row) in state.rows.iter().enumerate() {
        if section != Some(row.section) {
            left_out(state, section, &mut list, columns);
            section = Some(row.section);
            let count = state.rows.iter().filter(|other| other.section == row.section).count();
            let tone = if row.section == RowSection::Needs { Tone::Warn } else { Tone::Strong };
            list.lines.push(palette.line(tone, words::cut(&format!("{} {count}", heading(row.section)), columns)));
        }
        let is_selected = has_marker && at == state.selected;
        let look = CardLook { columns, at_ms: state.at_ms, palette, is_selected };
        let begin = list.lines.len();
        list.lines.extend(lines_of(state, row, look));
        list.rows.push(begin..list.lines.len());
    }
    left_out(state, section, &mut list, columns);
    let trouble = state.now().and_then(|now| now.fleet.as_ref()).and_then(|fleet| fleet.trouble.as_deref());
    if let Some(trouble) = trouble.filter(|_| state.place == TopPlace::Now) {
        list.lines
            .push(palette.line(Tone::Warn, words::cut(&format!("  ! fleet: {}", words::plain(trouble)), columns)));
    }
    list
}

fn lines_of(state: &TopState, row: &TopRow, look: CardLook) -> Vec<Line<'static>> {
    let Some(now) = state.now() else { return Vec::new() };
    match row.section {
        RowSection::Needs => now.needs.get(row.index).map(|card| cards::need(card, look)),
        RowSection::Working => now.working.get(row.index).map(|card| cards::goal(card, look)),
        RowSection::Runs => now.runs.get(row.index).map(|card| cards::run(card, look)),
        RowSection::Fleet => {
            now.fleet.as_ref().and_then(|fleet| fleet.runs.get(row.index)).map(|run| cards::fleet(run, look))
        }
        RowSection::Waiting => now.waiting.get(row.index).map(|card| cards::waiting(card, look)),
        RowSection::Ended => now.ended.get(row.index).map(|card| cards::ended(card, look)),
        RowSection::Found => state.found.get(row.index).map(|card| cards::found(card, look)),
    }
    .unwrap_or_default()
}

/// How many rows of a section that just ended are not shown.
fn left_out(state: &TopState, section: Option<RowSection>, list: &mut TopList, columns: usize) {
    let Some(Now { goals_left_out, runs_left_out, .. }) = state.now() else { return };
    let has_working = state.rows.iter().any(|row| row.section == RowSection::Working);
    let (count, noun, command) = match section {
        Some(RowSection::Working) => (*goals_left_out, "goal", "steadfast goal history"),
        Some(RowSection::Needs) if !has_working => (*goals_left_out, "goal", "steadfast goal history"),
        Some(RowSection::Runs) => (*runs_left_out, "run", "steadfast loop list --all"),
        _ => return,
    };
    if count > 0 {
        let count = steadfast_model::text::count(count, noun);
        let text = format!("    … and {count} more; `/` finds them, `{command}` lists them");
        list.lines.push(state.palette.line(Tone::Quiet, words::cut(&text, columns)));
    }
}

/// What an empty list says.
fn empty(state: &TopState) -> Vec<&'static str> {
    match state.place {
        TopPlace::Found => vec!["  Nothing found. `/` searches again, esc goes back."],
        _ if matches!(state.mode, Mode::Search) || !state.search.is_empty() => {
            vec!["  Nothing on this page matches; enter searches everything, esc shows all."]
        }
        TopPlace::Runs => vec!["  No runs. Start one: steadfast run \"OBJECTIVE\"", "  esc goes back."],
        TopPlace::Now | TopPlace::Usage => std::iter::once("  ✓ Nothing needs you.").chain([""]).chain(BEGIN).collect(),
    }
}
