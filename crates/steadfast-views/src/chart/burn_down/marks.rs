//! Marks above a burn-down, each kind with a shape of its own, and the legend that names them.

use steadfast_app::overview::goal_page::{MarkKind, PageMark};
use steadfast_model::clock;
use steadfast_model::text;

use super::super::number::{count, moment};
use super::super::svg::{Anchor, Svg};
use super::BurnDown;
use super::panel::Frame;

/// Marks that the description of the chart names.
pub(super) const MOST_NAMED: usize = 20;
/// Marks that are drawn; more would be a bar of colour.
const MOST_DRAWN: usize = 120;
const KINDS: [MarkKind; 6] = [
    MarkKind::Passed,
    MarkKind::Failed,
    MarkKind::Compaction,
    MarkKind::Warning,
    MarkKind::WindDown,
    MarkKind::Extended,
];
const COLUMNS: usize = 3;
const COLUMN_WIDTH: f64 = 232.0;
const ROW_HEIGHT: f64 = 26.0;

fn word(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::Compaction => "compaction",
        MarkKind::Warning => "warning",
        MarkKind::WindDown => "wind-down",
        MarkKind::Passed => "check passed",
        MarkKind::Failed => "check failed",
        MarkKind::Extended => "extended",
    }
}

pub(super) fn in_words(mark: &PageMark) -> String {
    let label = text::headline(&mark.label, 80);
    let label = if label.is_empty() { label } else { format!(" ({label})") };
    format!("{}{label} at {}", word(mark.kind), clock::to_local(mark.at_ms))
}

/// Draws the newest marks in the band above the plot, each with a line down to the time axis.
pub(super) fn draw(svg: &mut Svg, frame: &Frame, marks: &[PageMark], top: f64, bottom: f64) {
    for mark in marks.iter().skip(marks.len().saturating_sub(MOST_DRAWN)) {
        let x = frame.x(moment(mark.at_ms));
        svg.group("chart-mark", &in_words(mark), |svg| {
            svg.line("chart-mark-line", [x, top - 8.0, x, bottom]);
            shape(svg, mark.kind, (x, top - 16.0));
        });
    }
}

fn shape(svg: &mut Svg, kind: MarkKind, (x, y): (f64, f64)) {
    let at = |points: &[(f64, f64)]| points.iter().map(|(dx, dy)| (x + dx, y + dy)).collect::<Vec<_>>();
    match kind {
        MarkKind::Compaction => {
            svg.path("chart-shape", &at(&[(0.0, -6.0), (6.0, 0.0), (0.0, 6.0), (-6.0, 0.0)]), true);
        }
        MarkKind::Warning => svg.path("chart-shape chart-near", &at(&[(0.0, -6.0), (6.5, 5.0), (-6.5, 5.0)]), true),
        MarkKind::WindDown => svg.path("chart-shape chart-over", &at(&[(0.0, 6.0), (6.5, -5.0), (-6.5, -5.0)]), true),
        MarkKind::Passed => svg.path("chart-stroke chart-good", &at(&[(-5.0, 0.0), (-1.5, 4.5), (5.5, -5.0)]), false),
        MarkKind::Failed => {
            svg.path("chart-stroke chart-over", &at(&[(-5.0, -5.0), (5.0, 5.0)]), false);
            svg.path("chart-stroke chart-over", &at(&[(-5.0, 5.0), (5.0, -5.0)]), false);
        }
        MarkKind::Extended => {
            svg.path("chart-stroke", &at(&[(-5.5, 0.0), (5.5, 0.0)]), false);
            svg.path("chart-stroke", &at(&[(0.0, -5.5), (0.0, 5.5)]), false);
        }
    }
}

enum MarkEntry {
    Spent,
    Budget,
    Projection,
    Paused,
    Marked(MarkKind),
}

/// What the lines, areas and shapes of this chart mean.
pub(super) struct Legend {
    entries: Vec<MarkEntry>,
}

impl Legend {
    pub(super) fn new(chart: &BurnDown<'_>, has_budget: bool, has_projection: bool) -> Self {
        let mut entries = vec![MarkEntry::Spent];
        entries.extend(has_budget.then_some(MarkEntry::Budget));
        entries.extend(has_projection.then_some(MarkEntry::Projection));
        entries.extend((!chart.pauses.is_empty()).then_some(MarkEntry::Paused));
        let is_marked = |kind: &MarkKind| chart.marks.iter().any(|mark| mark.kind == *kind);
        entries.extend(KINDS.into_iter().filter(is_marked).map(MarkEntry::Marked));
        Self { entries }
    }

    pub(super) fn height(&self) -> f64 {
        count(self.entries.len().div_ceil(COLUMNS)) * ROW_HEIGHT + 8.0
    }

    pub(super) fn draw(&self, svg: &mut Svg, top: f64) {
        for (index, entry) in self.entries.iter().enumerate() {
            let x = count(index % COLUMNS) * COLUMN_WIDTH + 12.0;
            let y = count(index / COLUMNS) * ROW_HEIGHT + top + 8.0;
            let word = match entry {
                MarkEntry::Spent => {
                    svg.line("chart-line", [x, y, x + 22.0, y]);
                    "spent"
                }
                MarkEntry::Budget => {
                    svg.line("chart-budget", [x, y, x + 22.0, y]);
                    "budget"
                }
                MarkEntry::Projection => {
                    svg.line("chart-projection", [x, y, x + 22.0, y]);
                    "at this pace"
                }
                MarkEntry::Paused => {
                    let area = [x, y - 7.0, 22.0, 14.0];
                    svg.rect("chart-pause", area, 0.0);
                    svg.hatch(4, area);
                    "paused"
                }
                MarkEntry::Marked(kind) => {
                    shape(svg, *kind, (x + 11.0, y));
                    word(*kind)
                }
            };
            svg.text("chart-text", (x + 32.0, y + 5.0), Anchor::Start, word);
        }
    }
}
