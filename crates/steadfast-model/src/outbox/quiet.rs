//! Hours in which nothing is delivered; messages wait for their end.

use std::str::FromStr;

use jiff::Zoned;
use jiff::civil::Time;

use crate::clock::{self, Millis};

/// A part of each day, in local time; it may cross midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    from: Time,
    to: Time,
}

impl QuietHours {
    /// When the quiet hours end, if `now` is in them.
    pub fn end(self, now: Millis) -> Option<Millis> {
        self.end_in(&clock::zoned(now)?)
    }

    fn end_in(self, here: &Zoned) -> Option<Millis> {
        let time = here.time();
        let is_quiet = if self.from < self.to {
            (self.from..self.to).contains(&time)
        } else {
            time >= self.from || time < self.to
        };
        if is_quiet { clock::next_occurrence(here, self.to) } else { None }
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is no span of hours; write it as `22:00-07:00`")]
pub struct QuietHoursError(String);

impl FromStr for QuietHours {
    type Err = QuietHoursError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let times = text.split_once('-').and_then(|(from, to)| {
            Some(Self { from: clock::parse_time_of_day(from)?, to: clock::parse_time_of_day(to)? })
        });
        times.filter(|hours| hours.from != hours.to).ok_or_else(|| QuietHoursError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    fn end(hours: &str, zone: &TimeZone, local: &str) -> Option<String> {
        let here = local.parse::<jiff::civil::DateTime>().unwrap().to_zoned(zone.clone()).unwrap();
        let end = hours.parse::<QuietHours>().unwrap().end_in(&here)?;
        Some(jiff::Timestamp::from_millisecond(end).unwrap().to_zoned(zone.clone()).datetime().to_string())
    }

    #[test]
    fn quiet_hours_may_cross_midnight() {
        for (hours, local, expected) in [
            ("22:00-07:00", "2026-11-15T21:59:59", None),
            ("22:00-07:00", "2026-11-15T22:00:00", Some("2026-11-16T07:00:00")),
            ("22:00-07:00", "2026-12-31T23:30:00", Some("2027-01-01T07:00:00")),
            ("22:00-07:00", "2026-11-16T00:00:00", Some("2026-11-16T07:00:00")),
            ("22:00-07:00", "2026-11-16T06:59:59", Some("2026-11-16T07:00:00")),
            ("22:00-07:00", "2026-11-16T07:00:00", None),
            ("12:00-13:30", "2026-11-16T13:00:00", Some("2026-11-16T13:30:00")),
            ("12:00-13:30", "2026-11-16T23:00:00", None),
            ("10pm - 7am", "2026-11-16T03:00:00", Some("2026-11-16T07:00:00")),
        ] {
            assert_eq!(end(hours, &TimeZone::UTC, local).as_deref(), expected, "{hours} {local}");
        }
    }

    #[test]
    fn quiet_hours_end_by_the_clock_when_summer_time_begins_and_ends() {
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        for (local, expected) in
            [("2026-03-28T23:00:00", "2026-03-29T07:00:00"), ("2026-10-24T23:00:00", "2026-10-25T07:00:00")]
        {
            assert_eq!(end("22:00-07:00", &berlin, local).as_deref(), Some(expected));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "22:00", "22-7", "25:00-07:00", "22:00-22:00", "22:00-07:00-08:00"] {
            assert_eq!(text.parse::<QuietHours>(), Err(QuietHoursError(text.to_owned())));
        }
    }
}
