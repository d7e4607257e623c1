//! A small line of what was spent, with the budget above it.

use steadfast_app::overview::now::Point;
use steadfast_model::text;

use super::number::{drawable, float, sane};
use super::svg::Svg;

const WIDTH: f64 = 160.0;
const HEIGHT: f64 = 40.0;
/// Room for the dot at the end and for the width of lines.
const EDGE: f64 = 4.0;

/// Tokens over time and, dashed, their budget.
pub fn spark(points: &[Point], budget: Option<i64>) -> String {
    let points = drawable(points);
    let budget = budget.map(sane).filter(|budget| *budget > 0);
    let used = points.last().map_or(0, |point| point.tokens);
    let of = budget.map(|budget| format!(" of {}", text::short_number(budget))).unwrap_or_default();
    let title = format!("{}{of} tokens used", text::short_number(used));
    let description = if points.is_empty() { "nothing was spent yet" } else { "tokens spent so far, over time" };
    let mut svg = Svg::new("chart-spark", (WIDTH, HEIGHT), &title, description);

    let most = points.iter().map(|point| point.tokens).chain(budget).max().unwrap_or(0).max(1);
    let y = |tokens: i64| HEIGHT - EDGE - float(tokens) / float(most) * (HEIGHT - 2.0 * EDGE);
    let (first, last) = (points.first().map_or(0, |point| point.at_ms), points.last().map_or(0, |point| point.at_ms));
    let span = float((last - first).max(1));
    let x = |at: i64| EDGE + float(at - first) / span * (WIDTH - 2.0 * EDGE);

    svg.line("chart-axis", [EDGE, HEIGHT - EDGE, WIDTH - EDGE, HEIGHT - EDGE]);
    let mut line: Vec<(f64, f64)> = points.iter().map(|point| (x(point.at_ms), y(point.tokens))).collect();
    if let Some(end) = line.last().copied() {
        let mut area = vec![(EDGE, HEIGHT - EDGE)];
        area.append(&mut line.clone());
        area.push((end.0, HEIGHT - EDGE));
        svg.path("chart-area", &area, true);
        if line.len() == 1 {
            line.push((end.0 + 0.1, end.1));
        }
        svg.path("chart-line", &line, false);
        svg.circle("chart-dot", end, 2.5);
    }
    if let Some(budget) = budget {
        svg.line("chart-budget", [EDGE, y(budget), WIDTH - EDGE, y(budget)]);
    }
    svg.finish()
}
