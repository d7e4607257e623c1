//! When a run starts that was put off, or is to start again and again.

use jiff::{Span, Zoned};

use crate::clock::{self, DAY, MINUTE, Millis};

/// The shortest time between two starts.
pub const SHORTEST: Millis = MINUTE;

/// The next time after `now` in the series that begins at `first`. An interval of whole days keeps the time that clocks
/// show, also when they are set forward or back; any other interval counts the time that passes. Times that were missed
/// are left out.
pub fn next_after(first: Millis, every: Millis, now: Millis) -> Option<Millis> {
    if first > now {
        return Some(first);
    }
    let passed = now.checked_sub(first)?.checked_div(every)?;
    if every % DAY != 0 {
        return first.checked_add(passed.checked_add(1)?.checked_mul(every)?);
    }
    next_day_after(&clock::zoned(first)?, every / DAY, passed, now)
}

/// The same for whole days; `passed` is how many intervals of 24 hours each have passed.
fn next_day_after(first: &Zoned, days: i64, passed: i64, now: Millis) -> Option<Millis> {
    // A day may have 23 or 25 hours, so that the next time is one of these.
    (passed.saturating_sub(1)..=passed.saturating_add(2)).find_map(|count| {
        let span = Span::new().try_days(count.checked_mul(days)?).ok()?;
        let at = clock::from_zoned(&first.checked_add(span).ok()?);
        (at > now).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::HOUR;

    const FIRST: Millis = 1_794_800_000_000;

    #[test]
    fn the_next_time_is_in_the_series_and_missed_ones_are_left_out() {
        for (every, after, expected) in [
            (HOUR, -1, 0),
            (HOUR, 0, HOUR),
            (HOUR, HOUR - 1, HOUR),
            (HOUR, 5 * HOUR + 1, 6 * HOUR),
            (90 * MINUTE, 10 * HOUR, 630 * MINUTE),
            (7 * DAY, 20 * DAY, 21 * DAY),
        ] {
            assert_eq!(next_after(FIRST, every, FIRST + after), Some(FIRST + expected), "{every} {after}");
        }
        assert_eq!(next_after(FIRST, 0, FIRST), None);
        assert_eq!(next_after(0, Millis::MAX, Millis::MAX), None);
    }

    /// Also over the days of 23 and 25 hours; a time that a day does not have is an hour later on that day only.
    #[test]
    fn whole_days_keep_the_time_in_zones_that_change_their_clocks() {
        let berlin = jiff::tz::TimeZone::get("Europe/Berlin").unwrap();
        for (first, day, expected) in [
            ("2026-03-27T09:00:00", 1, "2026-03-28T09:00:00"),
            ("2026-03-27T09:00:00", 2, "2026-03-29T09:00:00"),
            ("2026-03-27T09:00:00", 3, "2026-03-30T09:00:00"),
            ("2026-03-27T02:30:00", 2, "2026-03-29T03:30:00"),
            ("2026-03-27T02:30:00", 3, "2026-03-30T02:30:00"),
            ("2026-10-23T02:30:00", 2, "2026-10-25T02:30:00"),
            ("2026-10-23T02:30:00", 3, "2026-10-26T02:30:00"),
            ("2026-10-23T23:30:00", 3, "2026-10-26T23:30:00"),
        ] {
            let first: jiff::civil::DateTime = first.parse().unwrap();
            let first = first.to_zoned(berlin.clone()).unwrap();
            let begin = first.timestamp().as_millisecond();
            let mut at = begin;
            for _ in 0..day {
                at = next_day_after(&first, 1, (at - begin) / DAY, at).unwrap();
            }
            let at = jiff::Timestamp::from_millisecond(at).unwrap().to_zoned(berlin.clone());
            assert_eq!(at.datetime().to_string(), expected, "{first}");
        }
    }

    #[test]
    fn whole_days_keep_the_time_on_the_clock() {
        let time_of = |at: Millis| clock::to_local(at).split_once(' ').map(|(_, time)| time.to_owned());
        let mut at = FIRST;
        for _ in 0..400 {
            let next = next_after(FIRST, DAY, at).unwrap();
            assert!(next > at && next - at <= 25 * HOUR && next - at >= 23 * HOUR, "{at} {next}");
            assert_eq!(time_of(next), time_of(FIRST));
            at = next;
        }
    }
}
