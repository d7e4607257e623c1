//! The stages of a run as a graph, from left to right: a stage is right of all that it waits for.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use steadfast_app::overview::runs::StageView;
use steadfast_model::run::{StageGraph, StageStatus};
use steadfast_model::text;

use super::number::{count, float};
use super::svg::{Anchor, Svg};

const BOX_WIDTH: f64 = 170.0;
const BOX_HEIGHT: f64 = 52.0;
const COLUMN: f64 = BOX_WIDTH + 46.0;
const ROW: f64 = BOX_HEIGHT + 22.0;
const EDGE: f64 = 8.0;
/// Stages that are drawn.
const MOST: usize = 120;
/// Numbers of columns that are wider than a page and still readable when they shrink to it.
const FITTED: RangeInclusive<usize> = 4..=6;
/// Stages that the description names.
const MOST_NAMED: usize = 30;

/// Draws the stages with their status, as shape and word, and what each waits for.
pub fn stage_graph(stages: &[StageView]) -> String {
    let shown = stages.get(..MOST).unwrap_or(stages);
    let graph = graph(shown);
    let columns = columns(&graph, shown.len());
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let left_out = stages.len() - shown.len();
    let height = 2.0 * EDGE + count(rows) * ROW - (ROW - BOX_HEIGHT) + if left_out > 0 { 26.0 } else { 0.0 };
    let width = 2.0 * EDGE + count(columns.len().max(1)) * COLUMN - (COLUMN - BOX_WIDTH);
    // A wide graph shrinks a little before its box scrolls.
    let class = if FITTED.contains(&columns.len()) { "chart-graph chart-graph-fit" } else { "chart-graph" };
    let mut svg = Svg::of_size(class, (width, height), "Stages of the run", &description(stages));

    let mut places: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for (column, numbers) in columns.iter().enumerate() {
        let offset = count(rows - numbers.len()) * ROW / 2.0;
        for (row, number) in numbers.iter().enumerate() {
            places.insert(*number, (EDGE + count(column) * COLUMN, EDGE + offset + count(row) * ROW));
        }
    }
    for (number, to) in &places {
        for from in graph.needs(*number).iter().filter_map(|need| places.get(need)) {
            draw_arrow(&mut svg, *from, *to);
        }
    }
    for (number, stage) in (1_u32..).zip(shown) {
        if let Some(place) = places.get(&number) {
            draw_stage(&mut svg, *place, stage);
        }
    }
    if stages.is_empty() {
        svg.text("chart-text", (EDGE, 34.0), Anchor::Start, "no stages");
    }
    if left_out > 0 {
        svg.text("chart-text", (EDGE, height - 8.0), Anchor::Start, &format!("and {left_out} more stages"));
    }
    svg.finish()
}

/// The graph by numbers; a view has the names of the stages.
fn graph(stages: &[StageView]) -> StageGraph {
    let number_of =
        |name: &String| (1_u32..).zip(stages).find(|(_, stage)| stage.name == *name).map(|(number, _)| number);
    StageGraph::new(stages.iter().map(|stage| Some(stage.needs.as_ref()?.iter().filter_map(number_of).collect())))
}

/// The stages by column. In each, a stage stands near those that it waits for. Stages that wait for themselves, which no
/// plan has, come last.
fn columns(graph: &StageGraph, stages: usize) -> Vec<Vec<u32>> {
    let mut columns = graph.levels();
    let placed: Vec<u32> = columns.iter().flatten().copied().collect();
    let rest: Vec<u32> = (1_u32..).take(stages).filter(|number| !placed.contains(number)).collect();
    if !rest.is_empty() {
        columns.push(rest);
    }
    let mut rows: BTreeMap<u32, f64> = BTreeMap::new();
    for column in &mut columns {
        let wanted = |number: u32| {
            let above: Vec<f64> = graph.needs(number).iter().filter_map(|need| rows.get(need)).copied().collect();
            if above.is_empty() { float(i64::from(number)) } else { above.iter().sum::<f64>() / count(above.len()) }
        };
        let mut order: Vec<(f64, u32)> = column.iter().map(|number| (wanted(*number), *number)).collect();
        order.sort_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
        *column = order.into_iter().map(|(_, number)| number).collect();
        let middle = count(column.len()) / 2.0;
        rows.extend(column.iter().enumerate().map(|(row, number)| (*number, count(row) - middle)));
    }
    columns
}

fn word(status: StageStatus) -> &'static str {
    match status {
        StageStatus::Pending => "pending",
        StageStatus::Deciding => "deciding",
        StageStatus::AwaitingApproval => "waits for your yes",
        StageStatus::Running => "running",
        StageStatus::Completed => "completed",
        StageStatus::Failed => "failed",
        StageStatus::Skipped => "skipped",
    }
}

fn class(status: StageStatus) -> &'static str {
    match status {
        StageStatus::Pending | StageStatus::Deciding => "chart-stage chart-pending",
        StageStatus::AwaitingApproval => "chart-stage chart-near",
        StageStatus::Running => "chart-stage chart-running",
        StageStatus::Completed => "chart-stage chart-good",
        StageStatus::Failed => "chart-stage chart-over",
        StageStatus::Skipped => "chart-stage chart-skipped",
    }
}

fn in_words(stage: &StageView) -> String {
    let reason = stage.reason.as_ref().map(|reason| format!(", {}", text::headline(reason, 80))).unwrap_or_default();
    let iterations = text::count(i64::from(stage.iterations), "iteration");
    format!("{}: {}{reason}, {iterations}", text::headline(&stage.name, 60), word(stage.status))
}

fn description(stages: &[StageView]) -> String {
    let mut named: Vec<String> = stages.iter().take(MOST_NAMED).map(in_words).collect();
    let left_out = stages.len().saturating_sub(MOST_NAMED);
    named.extend((left_out > 0).then(|| format!("and {left_out} more")));
    if named.is_empty() { "no stages".to_owned() } else { named.join("; ") }
}

fn draw_arrow(svg: &mut Svg, from: (f64, f64), to: (f64, f64)) {
    let (start, end) = ((from.0 + BOX_WIDTH, from.1 + BOX_HEIGHT / 2.0), (to.0, to.1 + BOX_HEIGHT / 2.0));
    svg.curve("chart-edge", start, (end.0 - 6.0, end.1));
    svg.path("chart-arrow", &[end, (end.0 - 8.0, end.1 - 4.5), (end.0 - 8.0, end.1 + 4.5)], true);
}

fn draw_stage(svg: &mut Svg, (x, y): (f64, f64), stage: &StageView) {
    svg.group(class(stage.status), &in_words(stage), |svg| {
        svg.rect("chart-box", [x, y, BOX_WIDTH, BOX_HEIGHT], 6.0);
        draw_status(svg, stage.status, (x + 18.0, y + 35.0));
        svg.text("chart-stage-name", (x + 10.0, y + 20.0), Anchor::Start, &text::cut_to_columns(&stage.name, 20));
        svg.text("chart-text", (x + 32.0, y + 39.0), Anchor::Start, word(stage.status));
        if stage.status != StageStatus::AwaitingApproval && stage.iterations > 0 {
            let iterations = format!("{} of {}", stage.iterations, stage.max_iterations);
            svg.text("chart-text", (x + BOX_WIDTH - 10.0, y + 39.0), Anchor::End, &iterations);
        }
    });
}

/// The shape of a status.
fn draw_status(svg: &mut Svg, status: StageStatus, (x, y): (f64, f64)) {
    let at = |points: &[(f64, f64)]| points.iter().map(|(dx, dy)| (x + dx, y + dy)).collect::<Vec<_>>();
    match status {
        StageStatus::Pending => svg.circle("chart-hollow", (x, y), 4.5),
        StageStatus::Deciding => {
            svg.circle("chart-hollow", (x, y), 4.5);
            svg.circle("chart-shape", (x, y), 1.8);
        }
        StageStatus::AwaitingApproval => {
            svg.path("chart-shape", &at(&[(0.0, -6.0), (6.0, 0.0), (0.0, 6.0), (-6.0, 0.0)]), true);
        }
        StageStatus::Running => svg.path("chart-shape", &at(&[(-4.0, -5.5), (6.0, 0.0), (-4.0, 5.5)]), true),
        StageStatus::Completed => {
            svg.path("chart-stroke", &at(&[(-5.0, 0.0), (-1.5, 4.5), (5.5, -5.0)]), false);
        }
        StageStatus::Failed => {
            svg.path("chart-stroke", &at(&[(-5.0, -5.0), (5.0, 5.0)]), false);
            svg.path("chart-stroke", &at(&[(-5.0, 5.0), (5.0, -5.0)]), false);
        }
        StageStatus::Skipped => svg.path("chart-stroke", &at(&[(-5.5, 0.0), (5.5, 0.0)]), false),
    }
}
