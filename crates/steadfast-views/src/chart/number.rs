//! Amounts and moments as numbers that can be drawn: nothing negative, nothing beyond what can be printed.

use steadfast_app::overview::now::Point;
use steadfast_model::clock::Millis;

/// Amounts above this are shown as this.
const MOST: i64 = 1_000_000_000_000_000;
/// The end of the year 9999.
const LAST_MS: Millis = 253_402_300_799_000;
/// A line with more points than this looks the same.
const POINTS: usize = 400;

/// An amount that can be drawn.
pub(super) fn sane(amount: i64) -> i64 {
    amount.clamp(0, MOST)
}

/// A moment that can be drawn.
pub(super) fn moment(at: Millis) -> Millis {
    at.clamp(0, LAST_MS)
}

#[expect(clippy::cast_precision_loss, reason = "a chart has fewer pixels than an f64 has digits")]
pub(super) fn float(amount: i64) -> f64 {
    amount as f64
}

/// The number of something that is drawn.
pub(super) fn count(number: usize) -> f64 {
    float(i64::try_from(number).unwrap_or(MOST))
}

/// The points in order, without nonsense and not too many. The first and the last are kept.
pub(super) fn drawable(points: &[Point]) -> Vec<Point> {
    let sound = |point: &Point| Point {
        at_ms: moment(point.at_ms),
        tokens: sane(point.tokens),
        cost_micros: sane(point.cost_micros),
    };
    let mut all: Vec<Point> = points.iter().map(sound).collect();
    all.sort_by_key(|point| point.at_ms);
    let last = all.len().saturating_sub(1);
    if all.len() <= POINTS {
        return all;
    }
    (0..POINTS).filter_map(|step| all.get(step * last / (POINTS - 1)).copied()).collect()
}
