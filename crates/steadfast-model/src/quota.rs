//! The quota of the user's plan, as a client reports it: how much of each window is used, and when it is reset.

use strum::{Display, EnumString, IntoStaticStr};

use crate::clock::Millis;

/// A number that was seen longer ago says nothing about now.
const SOON_OLD: Millis = 6 * 3_600_000;
/// Windows up to this length are shown as the short one, whatever a client calls them.
const LONGEST_SHORT_WINDOW: i64 = 24 * 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Window {
    FiveHour,
    Weekly,
}

impl Window {
    pub fn of_minutes(minutes: i64) -> Self {
        if minutes <= LONGEST_SHORT_WINDOW { Self::FiveHour } else { Self::Weekly }
    }

    /// What people call it.
    pub fn noun(self) -> &'static str {
        match self {
            Self::FiveHour => "5-hour window",
            Self::Weekly => "weekly window",
        }
    }
}

/// How much of one window is used, in whole percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    pub window: Window,
    pub used_percent: i64,
    pub resets_at_ms: Option<Millis>,
    pub seen_at_ms: Millis,
}

impl Quota {
    /// A window as a client reports it; `None` for numbers that cannot be one. The percentage is rounded down.
    pub fn read(window: Window, used_percent: f64, resets_at_ms: Option<Millis>, seen_at_ms: Millis) -> Option<Self> {
        if !(0.0..=1_000.0).contains(&used_percent) {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "it is between 0 and 1,000")]
        let used_percent = used_percent as i64;
        Some(Self { window, used_percent, resets_at_ms, seen_at_ms })
    }

    /// Whether the number still holds: its window was not reset since, and it was seen a short while ago.
    pub fn holds(&self, now: Millis) -> bool {
        self.resets_at_ms.is_none_or(|reset| reset > now) && self.seen_at_ms > now - SOON_OLD
    }

    /// `91 % of the plan's 5-hour window used`
    pub fn describe(&self) -> String {
        format!("{} % of the plan's {} used", self.used_percent, self.window.noun())
    }
}

/// The fuller of the windows whose numbers still hold.
pub fn fuller(quotas: &[Quota], now: Millis) -> Option<Quota> {
    quotas.iter().filter(|quota| quota.holds(now)).max_by_key(|quota| quota.used_percent).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = 1_794_744_000_000;
    const HOUR: Millis = 3_600_000;

    fn quota(window: Window, used_percent: i64, reset_in: Option<Millis>, seen_ago: Millis) -> Quota {
        Quota { window, used_percent, resets_at_ms: reset_in.map(|after| NOW + after), seen_at_ms: NOW - seen_ago }
    }

    #[test]
    fn old_numbers_are_unknown() {
        for (reset_in, seen_ago, holds) in [
            (Some(HOUR), 0, true),
            (None, 5 * HOUR, true),
            (Some(0), 0, false),
            (Some(-HOUR), 2 * HOUR, false),
            (Some(HOUR), 6 * HOUR, false),
            (None, 7 * HOUR, false),
        ] {
            assert_eq!(quota(Window::Weekly, 99, reset_in, seen_ago).holds(NOW), holds, "{reset_in:?} {seen_ago}");
        }
    }

    #[test]
    fn the_fuller_window_counts_unless_it_is_old() {
        let short = quota(Window::FiveHour, 95, Some(HOUR), 0);
        let long = quota(Window::Weekly, 60, Some(90 * HOUR), 0);
        assert_eq!(fuller(&[short, long], NOW), Some(short));
        assert_eq!(fuller(&[short, long], NOW + 2 * HOUR), Some(long));
        assert_eq!(fuller(&[short, long], NOW + 9 * HOUR), None);
        assert_eq!(fuller(&[], NOW), None);
    }

    #[test]
    fn numbers_that_are_no_percentage_are_left_out() {
        for (used, read) in [(83.9, Some(83)), (0.0, Some(0)), (104.0, Some(104)), (-1.0, None), (f64::NAN, None)] {
            let quota = Quota::read(Window::FiveHour, used, None, NOW);
            assert_eq!(quota.map(|quota| quota.used_percent), read, "{used}");
        }
        assert_eq!(Window::of_minutes(300), Window::FiveHour);
        assert_eq!(Window::of_minutes(10_080), Window::Weekly);
    }
}
