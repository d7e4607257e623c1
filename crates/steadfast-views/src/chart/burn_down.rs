//! What was spent over time, against the budget: tokens above, money below, on one time axis.

mod marks;
mod panel;

use steadfast_app::overview::goal_page::{PageMark, Pause};
use steadfast_app::overview::now::{Point, SpendPace};
use steadfast_model::clock::{self, Millis};
use steadfast_model::text;

use self::marks::Legend;
use self::panel::{Frame, Panel, Projection, Unit};
use super::number::{drawable, float, moment, sane};
use super::svg::{Anchor, Svg};
use super::ticks;

const WIDTH: f64 = 720.0;
/// Where the plot begins and ends.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 706.0;
/// The band of marks above the plot.
const TOP: f64 = 42.0;
const TOKENS_HEIGHT: f64 = 170.0;
const MONEY_GAP: f64 = 50.0;
const MONEY_HEIGHT: f64 = 80.0;
/// Names of times below the plot.
const TIMES_HEIGHT: f64 = 34.0;
/// A chart is never narrower in time, so that a single point has a place.
const LEAST_SPAN: Millis = 10_000;

/// What a burn-down shows.
#[derive(Debug, Clone, Copy)]
pub struct BurnDown<'a> {
    /// What was spent until each moment.
    pub points: &'a [Point],
    /// In tokens.
    pub budget: Option<i64>,
    pub usd_budget_micros: Option<i64>,
    pub pauses: &'a [Pause],
    pub marks: &'a [PageMark],
    pub from_ms: Millis,
    pub to_ms: Millis,
    /// Continues the line, dashed; for what still spends.
    pub pace: Option<&'a SpendPace>,
}

/// Draws tokens and money over time.
pub fn burn_down(chart: &BurnDown<'_>) -> String {
    let points = drawable(chart.points);
    let budget = chart.budget.map(sane).filter(|budget| *budget > 0);
    let usd_budget = chart.usd_budget_micros.map(sane).filter(|budget| *budget > 0);
    let from = points.iter().map(|point| point.at_ms).chain([moment(chart.from_ms)]).min().unwrap_or(0);
    let until = points.iter().map(|point| point.at_ms).chain([moment(chart.to_ms)]).max().unwrap_or(0);
    let until = until.max(from + LEAST_SPAN);
    let projection = chart.pace.and_then(|pace| Projection::new(pace, points.last().copied(), from, until));
    let to = projection.as_ref().map_or(until, |projection| projection.to_ms);

    let has_money = usd_budget.is_some() || points.iter().any(|point| point.cost_micros > 0);
    let tokens_bottom = TOP + TOKENS_HEIGHT;
    let bottom = if has_money { tokens_bottom + MONEY_GAP + MONEY_HEIGHT } else { tokens_bottom };
    let legend = Legend::new(chart, budget.or(usd_budget).is_some(), projection.is_some());
    let height = bottom + TIMES_HEIGHT + legend.height();
    let title = title(&points, budget, usd_budget);
    let mut svg = Svg::new("chart-burn", (WIDTH, height), &title, &description(chart, from, until));
    svg.hatchings();

    let frame = Frame { from, to, left: LEFT, right: RIGHT };
    for pause in chart.pauses {
        draw_pause(&mut svg, &frame, pause, until, bottom);
    }
    let times = ticks::times(from, to);
    for (index, (at, name)) in times.iter().enumerate() {
        svg.line("chart-grid", [frame.x(*at), TOP, frame.x(*at), bottom]);
        // A narrow page hides every other name.
        let class = if index % 2 == 1 { "chart-text chart-minor" } else { "chart-text" };
        svg.text(class, (frame.x(*at).clamp(LEFT + 10.0, RIGHT - 30.0), bottom + 22.0), Anchor::Middle, name);
    }
    let tokens = Panel { frame: &frame, unit: Unit::Tokens, top: TOP, bottom: tokens_bottom };
    tokens.draw(&mut svg, &points, budget, projection.as_ref());
    if has_money {
        let money = Panel { frame: &frame, unit: Unit::Money, top: bottom - MONEY_HEIGHT, bottom };
        money.draw(&mut svg, &points, usd_budget, projection.as_ref());
    }
    if points.is_empty() {
        svg.text("chart-text", (f64::midpoint(LEFT, RIGHT), TOP + 90.0), Anchor::Middle, "nothing was spent yet");
    }
    marks::draw(&mut svg, &frame, chart.marks, TOP, bottom);
    legend.draw(&mut svg, bottom + TIMES_HEIGHT + 6.0);
    svg.finish()
}

fn draw_pause(svg: &mut Svg, frame: &Frame, pause: &Pause, until: Millis, bottom: f64) {
    let start = frame.x(moment(pause.from_ms));
    let end = frame.x(pause.to_ms.map_or(until, moment));
    let area = [start, TOP, (end - start).max(2.0), bottom - TOP];
    let reason = pause.reason.as_deref().map(|reason| format!(": {}", text::headline(reason, 120)));
    let end = pause.to_ms.map_or_else(|| "now".to_owned(), clock::to_local);
    let title = format!("paused{} ({} to {end})", reason.unwrap_or_default(), clock::to_local(pause.from_ms));
    svg.group("chart-paused", &title, |svg| {
        svg.rect("chart-pause", area, 0.0);
        svg.hatch(4, area);
    });
}

fn title(points: &[Point], budget: Option<i64>, usd_budget: Option<i64>) -> String {
    let Some(last) = points.last() else { return "Nothing was spent yet".to_owned() };
    let of = |budget: Option<String>| budget.map(|budget| format!(" of {budget}")).unwrap_or_default();
    let tokens = format!("{}{}", text::thousands(last.tokens), of(budget.map(text::thousands)));
    let money = if last.cost_micros > 0 || usd_budget.is_some() {
        format!(" and {}{}", text::usd(last.cost_micros), of(usd_budget.map(text::usd)))
    } else {
        String::new()
    };
    format!("Spent over time: {tokens} tokens{money}")
}

/// The chart in words, for people who do not see it.
fn description(chart: &BurnDown<'_>, from: Millis, until: Millis) -> String {
    let mut parts = vec![format!("From {} to {}", clock::to_local(from), clock::to_local(until))];
    if !chart.pauses.is_empty() {
        let count = i64::try_from(chart.pauses.len()).unwrap_or(i64::MAX);
        parts.push(format!("paused {}", text::count(count, "time")));
    }
    let named = chart.marks.iter().take(marks::MOST_NAMED).map(marks::in_words);
    parts.extend(named);
    let left_out = chart.marks.len().saturating_sub(marks::MOST_NAMED);
    parts.extend((left_out > 0).then(|| format!("and {left_out} more marks")));
    format!("{}.", parts.join("; "))
}

/// How far along a span a moment is, from 0 to 1.
fn share(at: Millis, from: Millis, to: Millis) -> f64 {
    (float(at.saturating_sub(from)) / float(to.saturating_sub(from).max(1))).clamp(0.0, 1.0)
}
