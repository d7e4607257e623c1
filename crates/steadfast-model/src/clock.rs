//! Time as the store keeps it: milliseconds since 1970, UTC, by a clock that never jumps ([`steady`]). Jiff is used only
//! to read and write dates for people, who live by the wall clock: what they type is converted by [`from_wall`], what
//! they see by [`to_wall`], both in this file. Code that decides something takes `now` as an argument, so that tests need
//! no clock.

pub mod steady;

use std::sync::OnceLock;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp, Zoned};

pub type Millis = i64;

pub const SECOND: Millis = 1_000;
pub const MINUTE: Millis = 60 * SECOND;
pub const HOUR: Millis = 60 * MINUTE;
pub const DAY: Millis = 24 * HOUR;

/// The two clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    pub wall: Millis,
    pub steady: Millis,
}

/// Reads the machine's clocks, once the store has shown how they stand to each other.
static READ: OnceLock<fn() -> Clocks> = OnceLock::new();

/// Sets what reads the clocks from now on. Until then the wall clock is the time.
pub fn read_with(read: fn() -> Clocks) {
    READ.get_or_init(|| read);
}

fn clocks() -> Clocks {
    READ.get().map_or_else(
        || {
            let wall = Timestamp::now().as_millisecond();
            Clocks { wall, steady: wall }
        },
        |read| read(),
    )
}

/// Reads the clock. Only the outermost layers call this, with the store open: the steady time is kept there.
pub fn now() -> Millis {
    clocks().steady
}

/// Reads the clock that people and other programs see.
pub fn wall() -> Millis {
    clocks().wall
}

/// How far the wall clock is ahead, in whole seconds: the two are not read at exactly the same moment, and what was typed
/// must be shown as it was typed.
fn ahead() -> Millis {
    let half = SECOND / 2;
    (ahead_exactly() + half).div_euclid(SECOND) * SECOND
}

/// The same to the millisecond, for what is compared and not shown. Less than a second is none.
pub(crate) fn ahead_exactly() -> Millis {
    let Clocks { wall, steady } = clocks();
    let ahead = wall - steady;
    if ahead.abs() < SECOND { 0 } else { ahead }
}

/// What the wall clock shows at a moment.
pub fn to_wall(at: Millis) -> Millis {
    at.saturating_add(ahead())
}

/// The moment at which the wall clock shows this.
pub fn from_wall(at: Millis) -> Millis {
    at.saturating_sub(ahead())
}

/// The same for whole seconds since 1970, as services write it.
pub fn from_epoch(seconds: i64) -> Option<Millis> {
    seconds.checked_mul(SECOND).map(from_wall)
}

/// Formats a moment as `2026-11-15T10:00:00Z`.
pub fn to_rfc3339(at: Millis) -> String {
    wall_to_rfc3339(to_wall(at))
}

/// The same for what is the wall clock's time already.
pub fn wall_to_rfc3339(at: Millis) -> String {
    Timestamp::from_millisecond(at)
        .map_or_else(|_| at.to_string(), |moment| moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Formats a moment for a person, in the machine's own time zone.
pub fn to_local(at: Millis) -> String {
    zoned(at).map_or_else(|| at.to_string(), |moment| moment.strftime("%Y-%m-%d %H:%M").to_string())
}

/// The same, without the date if it is today's.
pub fn to_local_short(at: Millis, now: Millis) -> String {
    let (moment, today) = (to_local(at), to_local(now));
    match (moment.split_once(' '), today.split_once(' ')) {
        (Some((date, time)), Some((today, _))) if date == today => time.to_owned(),
        _ => moment,
    }
}

/// A moment in the machine's time zone; `None` outside the calendar's range.
pub(crate) fn zoned(at: Millis) -> Option<Zoned> {
    Some(Timestamp::from_millisecond(to_wall(at)).ok()?.to_zoned(TimeZone::system()))
}

/// The moment at which the wall clock shows this.
pub fn from_zoned(moment: &Zoned) -> Millis {
    from_wall(moment.timestamp().as_millisecond())
}

/// Reads an RFC 3339 timestamp as transcripts write it.
pub fn parse_rfc3339(text: &str) -> Option<Millis> {
    parse_wall_rfc3339(text).map(from_wall)
}

/// The same, left as the wall clock's time: days and months are of that clock.
pub fn parse_wall_rfc3339(text: &str) -> Option<Millis> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// Reads what a person types for a moment: a full timestamp, a local date and time, a local date, a time of
/// day (its next occurrence), or a span from now such as `2h 30m` or `in 3h`.
pub fn parse_moment(text: &str, now: Millis) -> Option<Millis> {
    let text = text.trim();
    if let Some(span) = text.strip_prefix("in ") {
        return now.checked_add(parse_duration(span)?);
    }
    if let Some(moment) = parse_rfc3339(text) {
        return Some(moment);
    }
    let here = zoned(now)?;
    if let Ok(local) = text.replace(' ', "T").parse::<jiff::civil::DateTime>() {
        return local.to_zoned(TimeZone::system()).ok().map(|at| from_zoned(&at));
    }
    if let Some(time) = parse_time_of_day(text) {
        return next_occurrence(&here, time);
    }
    now.checked_add(parse_duration(text)?)
}

/// Reads what a person types for a day: a date, `today`, `yesterday`, or a span back from today such as `7d`.
pub fn parse_day(text: &str, today: Date) -> Option<Date> {
    match text.trim() {
        "today" => Some(today),
        "yesterday" => today.yesterday().ok(),
        text => {
            let date = text.parse().or_else(|_| Date::strptime("%Y%m%d", text));
            date.ok().or_else(|| {
                let span: Span = text.parse().ok().filter(|span: &Span| span.is_positive())?;
                today.checked_sub(span).ok()
            })
        }
    }
}

/// Reads a duration such as `90s`, `2h 30m` or `1d` as milliseconds; it must be positive.
pub fn parse_duration(text: &str) -> Option<Millis> {
    let span: Span = text.trim().parse().ok()?;
    let duration: SignedDuration = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok()?;
    i64::try_from(duration.as_millis()).ok().filter(|ms| *ms > 0)
}

/// Reads `15:04`, `3pm` or `3:04 pm`.
pub fn parse_time_of_day(text: &str) -> Option<jiff::civil::Time> {
    let compact = text.trim().to_lowercase().replace(' ', "");
    ["%H:%M", "%I:%M%p", "%I%p"].iter().find_map(|format| jiff::civil::Time::strptime(format, &compact).ok())
}

/// The next moment at which a clock in `here`'s zone shows `time`.
pub fn next_occurrence(here: &Zoned, time: jiff::civil::Time) -> Option<Millis> {
    let on = |day: Date| day.to_datetime(time).to_zoned(here.time_zone().clone()).ok();
    // Each day on its own: where clocks are set forward, one of them may not have this time.
    let next = on(here.date()).filter(|today| today > here).or_else(|| on(here.date().tomorrow().ok()?))?;
    Some(from_zoned(&next))
}

/// Midnight of today, in the machine's time zone.
pub fn day_start(now: Millis) -> Millis {
    midnight(now, 0)
}

/// The date of a moment, in the machine's time zone: `2026-11-16`.
pub fn local_day(at: Millis) -> String {
    zoned(at).map_or_else(String::new, |here| here.date().to_string())
}

/// Midnight of this week's Monday, in the machine's time zone.
pub fn week_start(now: Millis) -> Millis {
    let days = zoned(now).map_or(0, |here| here.weekday().to_monday_zero_offset());
    midnight(now, i64::from(days))
}

/// Midnight, `days` before today.
fn midnight(now: Millis, days: i64) -> Millis {
    let midnight = zoned(now).and_then(|here| midnight_before(&here, days));
    // A timestamp outside the calendar's range has no midnight; a whole day back is close enough.
    midnight.map_or(now - DAY * (days + 1), |midnight| from_zoned(&midnight))
}

/// Where clocks are set forward at midnight, a day begins later: first the date, then its start.
fn midnight_before(here: &Zoned, days: i64) -> Option<Zoned> {
    let date = here.date().checked_sub(Span::new().days(days)).ok()?;
    date.to_zoned(here.time_zone().clone()).ok()?.start_of_day().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Days of 23 and 25 hours, and one that begins at one o'clock.
    #[test]
    fn days_and_weeks_begin_at_their_first_moment() {
        for (zone, now, days, expected) in [
            ("Europe/Berlin", "2026-03-29T12:00:00", 0, "2026-03-28T23:00:00Z"),
            ("Europe/Berlin", "2026-03-30T00:00:00", 1, "2026-03-28T23:00:00Z"),
            ("Europe/Berlin", "2026-10-25T02:30:00", 0, "2026-10-24T22:00:00Z"),
            ("Europe/Berlin", "2026-10-25T23:59:59", 0, "2026-10-24T22:00:00Z"),
            ("Europe/Berlin", "2026-10-26T00:00:00", 0, "2026-10-25T23:00:00Z"),
            ("America/New_York", "2026-11-01T12:00:00", 6, "2026-10-26T04:00:00Z"),
            ("Asia/Beirut", "2026-03-29T12:00:00", 0, "2026-03-28T22:00:00Z"),
            ("Asia/Beirut", "2026-03-30T12:00:00", 1, "2026-03-28T22:00:00Z"),
        ] {
            let here: jiff::civil::DateTime = now.parse().unwrap();
            let here = here.to_zoned(TimeZone::get(zone).unwrap()).unwrap();
            let midnight = midnight_before(&here, days).unwrap();
            assert_eq!(midnight.timestamp().to_string(), expected, "{zone} {now} -{days}");
        }
    }

    #[test]
    fn days_are_dates_words_or_spans() {
        let today = jiff::civil::date(2026, 11, 15);
        for (text, day) in [
            ("2026-11-01", Some((11, 1))),
            ("20261101", Some((11, 1))),
            ("today", Some((11, 15))),
            (" yesterday ", Some((11, 14))),
            ("7d", Some((11, 8))),
            ("2w", Some((11, 1))),
            ("1mo", Some((10, 15))),
            ("-3d", None),
            ("2026-13-01", None),
            ("soon", None),
            ("", None),
        ] {
            let expected = day.map(|(month, day)| jiff::civil::date(2026, month, day));
            assert_eq!(parse_day(text, today), expected, "{text}");
        }
    }
}
