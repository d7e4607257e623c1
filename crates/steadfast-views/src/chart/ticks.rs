//! Where the lines of an axis are, and what they are called.

use steadfast_model::clock::{self, Millis};
use steadfast_model::text;

use super::number::moment;

const MINUTE: Millis = 60_000;
const HOUR: Millis = 60 * MINUTE;
const DAY: Millis = 24 * HOUR;
/// Distances between two lines of a time axis.
const STEPS: [Millis; 18] = [
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    14 * DAY,
    30 * DAY,
    91 * DAY,
    365 * DAY,
];
const MOST_TIMES: Millis = 5;

/// Round amounts from 0 up to at least `most`, in at most `lines` steps.
pub(super) fn amounts(most: i64, lines: i64) -> Vec<i64> {
    let lines = lines.max(1);
    let wanted = most.max(1).saturating_add(lines - 1) / lines;
    let mut unit = 1_i64;
    let step = loop {
        let found = [1, 2, 5].into_iter().map(|factor| unit.saturating_mul(factor)).find(|step| *step >= wanted);
        match (found, unit.checked_mul(10)) {
            (Some(step), _) => break step,
            (None, Some(larger)) => unit = larger,
            (None, None) => break unit,
        }
    };
    (0..=lines).map(|line| line.saturating_mul(step)).take_while(|amount| amount - step < most.max(1)).collect()
}

/// Moments inside a span with their names, at least one and at most six.
pub(super) fn times(from: Millis, to: Millis) -> Vec<(Millis, String)> {
    let span = to.saturating_sub(from).max(1);
    let step = STEPS.into_iter().find(|step| span / step <= MOST_TIMES).unwrap_or(span / MOST_TIMES);
    let midnight = moment(clock::day_start(from));
    let first = midnight.saturating_add(from.saturating_sub(midnight).div_euclid(step).saturating_mul(step));
    let is_inside = |at: &Millis| (from..=to).contains(at);
    let all = (0..MOST_TIMES + 2).map(|line| first.saturating_add(line.saturating_mul(step))).filter(is_inside);
    let is_one_day = clock::local_day(from) == clock::local_day(to);
    let mut times: Vec<(Millis, String)> = all.map(|at| (at, time_name(at, step, is_one_day))).collect();
    if times.is_empty() {
        times.push((from, time_name(from, step, is_one_day)));
    }
    times
}

fn time_name(at: Millis, step: Millis, is_one_day: bool) -> String {
    let full = clock::to_local(at);
    let Some((date, time)) = full.split_once(' ') else { return full };
    let day = date.split_once('-').map_or(date, |(_, day)| day);
    if step >= 30 * DAY {
        date.to_owned()
    } else if step >= DAY {
        day.to_owned()
    } else if is_one_day {
        time.to_owned()
    } else {
        format!("{day} {time}")
    }
}

/// Money at a line of an axis, with as many digits as the distance between two lines needs.
pub(super) fn money_name(micros: i64, step: i64) -> String {
    match step {
        1_000_000.. => format!("${}", text::short_number(micros / 1_000_000)),
        10_000.. => format!("${}.{:02}", micros / 1_000_000, micros % 1_000_000 / 10_000),
        _ => format!("${}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100),
    }
}
