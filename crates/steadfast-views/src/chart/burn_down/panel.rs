//! One plot of a burn-down: its axis, its line and its budget.

use steadfast_app::overview::now::{Point, SpendPace};
use steadfast_model::clock::Millis;
use steadfast_model::price;
use steadfast_model::text;

use super::super::number::{float, sane};
use super::super::svg::{Anchor, Svg};
use super::super::ticks;
use super::share;

const HOUR_MS: f64 = 3_600_000.0;
/// A budget this many times above the line would flatten it; then it is only named.
const FAR: i64 = 12;

/// The time axis that the plots share.
pub(super) struct Frame {
    pub(super) from: Millis,
    pub(super) to: Millis,
    pub(super) left: f64,
    pub(super) right: f64,
}

impl Frame {
    pub(super) fn x(&self, at: Millis) -> f64 {
        self.left + share(at, self.from, self.to) * (self.right - self.left)
    }
}

#[derive(Clone, Copy)]
pub(super) enum Unit {
    Tokens,
    Money,
}

impl Unit {
    fn of(self, point: &Point) -> i64 {
        match self {
            Self::Tokens => point.tokens,
            Self::Money => point.cost_micros,
        }
    }

    fn spelled(self, amount: i64) -> String {
        match self {
            Self::Tokens => text::short_number(amount),
            Self::Money => text::usd(amount),
        }
    }
}

/// Where the line goes if the spending continues as it did.
pub(super) struct Projection {
    from: Point,
    pub(super) to_ms: Millis,
    end: Point,
}

impl Projection {
    pub(super) fn new(pace: &SpendPace, last: Option<Point>, from: Millis, until: Millis) -> Option<Self> {
        let start = Point { at_ms: until, ..last? };
        let most = until.saturating_sub(from) / 3;
        let left = pace.seconds_left.map_or(most, |seconds| sane(seconds).saturating_mul(1_000));
        let span = left.clamp(0, most);
        let grown = |amount: i64, per_hour: f64| sane(amount.saturating_add(whole(per_hour * float(span) / HOUR_MS)));
        let end = Point {
            at_ms: until.saturating_add(span),
            tokens: grown(start.tokens, float(sane(pace.tokens_per_hour))),
            cost_micros: grown(start.cost_micros, pace.usd_per_hour.map_or(0.0, |usd| float(price::micros(usd)))),
        };
        (span > 0).then_some(Self { from: start, to_ms: end.at_ms, end })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "what is too large for an i64 becomes the largest one")]
fn whole(amount: f64) -> i64 {
    amount as i64
}

pub(super) struct Panel<'a> {
    pub(super) frame: &'a Frame,
    pub(super) unit: Unit,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Panel<'_> {
    pub(super) fn draw(&self, svg: &mut Svg, points: &[Point], budget: Option<i64>, projection: Option<&Projection>) {
        let amounts = points.iter().chain(projection.map(|projection| &projection.end));
        let used = amounts.map(|point| self.unit.of(point)).max().unwrap_or(0);
        let near = budget.filter(|budget| used == 0 || *budget / FAR <= used);
        let lines = if self.bottom - self.top > 100.0 { 4 } else { 3 };
        let marks = ticks::amounts(used.max(near.unwrap_or(0)), lines);
        let highest = marks.last().copied().unwrap_or(1).max(1);
        let y = |amount: i64| self.bottom - float(amount) / float(highest) * (self.bottom - self.top);
        let (left, right) = (self.frame.left, self.frame.right);

        let step = marks.get(1).copied().unwrap_or(1);
        for amount in marks {
            let class = if amount == 0 { "chart-axis" } else { "chart-grid" };
            svg.line(class, [left, y(amount), right, y(amount)]);
            let name = match self.unit {
                Unit::Tokens => text::short_number(amount),
                Unit::Money => ticks::money_name(amount, step),
            };
            svg.text("chart-text", (left - 8.0, y(amount) + 4.0), Anchor::End, &name);
        }
        let unit = match self.unit {
            Unit::Tokens => "tokens",
            Unit::Money => "US dollars",
        };
        svg.text("chart-text chart-unit", (2.0, self.top - 22.0), Anchor::Start, unit);
        self.draw_line(svg, points, &y);
        if let Some(projection) = projection {
            let ends = [projection.from, projection.end];
            let dashes = ends.map(|point| (self.frame.x(point.at_ms), y(self.unit.of(&point))));
            svg.path("chart-projection", &dashes, false);
        }
        match (near, budget) {
            (Some(budget), _) => {
                svg.line("chart-budget", [left, y(budget), right, y(budget)]);
                let name = format!("budget {}", self.unit.spelled(budget));
                svg.text("chart-text chart-budget-name", (left + 6.0, y(budget) - 5.0), Anchor::Start, &name);
            }
            (None, Some(budget)) => {
                let name = format!("budget {}, far above", self.unit.spelled(budget));
                svg.text("chart-text chart-budget-name", (left + 6.0, self.top + 14.0), Anchor::Start, &name);
            }
            (None, None) => {}
        }
    }

    fn draw_line(&self, svg: &mut Svg, points: &[Point], y: &impl Fn(i64) -> f64) {
        let mut line: Vec<(f64, f64)> =
            points.iter().map(|point| (self.frame.x(point.at_ms), y(self.unit.of(point)))).collect();
        let (Some(first), Some(last)) = (line.first().copied(), line.last().copied()) else { return };
        if line.len() > 1 {
            let mut area = vec![(first.0, self.bottom)];
            area.extend(&line);
            area.push((last.0, self.bottom));
            svg.path("chart-area", &area, true);
        } else {
            line.push((last.0 + 0.1, last.1));
        }
        svg.path("chart-line", &line, false);
        svg.circle("chart-dot", last, 3.5);
    }
}
