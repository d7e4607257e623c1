//! Bars from left to right, each with its name and its value in words.

use super::number::{count, float, sane};
use super::svg::{Anchor, Svg};
use steadfast_model::text;

const WIDTH: f64 = 720.0;
const ROW_HEIGHT: f64 = 46.0;
const MOST: usize = 40;

/// One bar. `words` is what the value means, with its unit.
#[derive(Debug, Clone)]
pub struct ChartBar<'a> {
    pub label: &'a str,
    pub value: i64,
    pub words: String,
}

/// Draws bars in the order they are given; the longest fills the width.
pub fn bars(title: &str, rows: &[ChartBar<'_>]) -> String {
    let shown = rows.get(..MOST).unwrap_or(rows);
    let described: Vec<String> = shown.iter().map(|bar| format!("{}: {}", bar.label, bar.words)).collect();
    let description = if described.is_empty() { "nothing to show".to_owned() } else { described.join("; ") };
    let height = count(shown.len().max(1)) * ROW_HEIGHT;
    let mut svg = Svg::new("chart-bars", (WIDTH, height), title, &description);
    let most = shown.iter().map(|bar| sane(bar.value)).max().unwrap_or(0).max(1);
    for (index, bar) in shown.iter().enumerate() {
        let top = count(index) * ROW_HEIGHT;
        let label = text::headline(bar.label, 34);
        svg.text("chart-text", (0.0, top + 18.0), Anchor::Start, &label);
        svg.text("chart-text chart-value", (WIDTH, top + 18.0), Anchor::End, &text::headline(&bar.words, 34));
        svg.rect("chart-bar-track", [0.0, top + 26.0, WIDTH, 8.0], 4.0);
        let width = float(sane(bar.value)) / float(most) * WIDTH;
        if width > 0.0 {
            svg.rect("chart-bar", [0.0, top + 26.0, width.max(3.0), 8.0], 4.0);
        }
    }
    if shown.is_empty() {
        svg.text("chart-text", (0.0, 22.0), Anchor::Start, "nothing to show");
    }
    svg.finish()
}
