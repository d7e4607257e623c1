//! What the flags of `usage` ask for, checked.

use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use steadfast_app::usage::report::{Filter, ProjectFilter, Selection};
use steadfast_model::clock::{self, Millis};
use steadfast_model::text;

use super::in_zone;
use crate::cli::UsageArgs;
use crate::error::{CliError, code};

pub(super) struct Asked {
    pub(super) zone: TimeZone,
    pub(super) today: Date,
    pub(super) filter: Filter,
    pub(super) select: Selection,
}

impl Asked {
    pub(super) fn new(arguments: &UsageArgs, now: Millis) -> Result<Self, CliError> {
        let zone = arguments.timezone.as_deref().map_or_else(|| Ok(TimeZone::system()), zone)?;
        let today = in_zone(now, &zone).date();
        let since = arguments.since.as_deref().map(|text| day(text, today)).transpose()?;
        let until = arguments.until.as_deref().map(|text| day(text, today)).transpose()?;
        if let (Some(since), Some(until)) = (since, until)
            && since > until
        {
            let message = format!("--since {since} is after --until {until}");
            return Err(CliError::new(code::USAGE, message, "swap the two days, or leave one out"));
        }
        let view = arguments.view.as_deref().unwrap_or_default();
        only_for("--active", arguments.active, "blocks", view)?;
        only_for("--id", arguments.id.is_some(), "session", view)?;
        if arguments.last == Some(0) {
            return Err(CliError::new(code::USAGE, "--last must be at least 1", "use for example --last 7"));
        }
        let project = match arguments.project.as_deref() {
            Some("") => {
                let hint = "pass a directory or the name of a project, such as --project . or --project website";
                return Err(CliError::new(code::USAGE, "--project is empty", hint));
            }
            Some(project) => Some(ProjectFilter::new(project, &std::env::current_dir()?)),
            None => None,
        };
        if arguments.id.as_deref() == Some("") {
            return Err(CliError::new(code::USAGE, "--id is empty", "`steadfast usage session` lists the sessions"));
        }
        let filter = Filter { since, until, project, session: arguments.id.clone(), breakdown: arguments.breakdown };
        let select = Selection {
            last: arguments.last,
            is_descending: arguments.order.as_deref().map(|order| order == "desc"),
            only_active: arguments.active,
        };
        Ok(Self { zone, today, filter, select })
    }

    /// Whether the rows include the last days, oldest first.
    pub(super) fn shows_last_days(&self) -> bool {
        self.filter.until.is_none() && self.select == Selection::default()
    }
}

fn only_for(flag: &str, is_given: bool, wanted: &str, view: &str) -> Result<(), CliError> {
    if !is_given || view == wanted {
        return Ok(());
    }
    let message = format!("{flag} only applies to the view `{wanted}`");
    Err(CliError::new(code::USAGE, message, format!("type `steadfast usage {wanted} {flag}`")))
}

fn day(text: &str, today: Date) -> Result<Date, CliError> {
    clock::parse_day(text, today).ok_or_else(|| {
        let hint = "use a date such as 2026-11-01, today, yesterday, or a number of days back such as 7d";
        CliError::new(code::USAGE, format!("invalid date `{}`", text::headline(text, 40)), hint)
    })
}

/// A time zone by its name, or an offset from UTC such as `+05:30`, `-8` or `+0200`.
fn zone(text: &str) -> Result<TimeZone, CliError> {
    let zone = if text.starts_with(['+', '-']) { offset(text).map(TimeZone::fixed) } else { TimeZone::get(text).ok() };
    zone.ok_or_else(|| {
        let hint = "use a name such as Europe/Berlin or UTC, or an offset such as +02:00";
        CliError::new(code::USAGE, format!("unknown time zone `{}`", text::headline(text, 40)), hint)
    })
}

fn offset(text: &str) -> Option<Offset> {
    let (sign, digits) = text.split_at_checked(1)?;
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 => digits.split_at_checked(2)?,
        None => (digits, "0"),
    };
    let number = |text: &str| -> Option<i32> {
        let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes).filter(|minutes| *minutes < 60)?);
    let seconds = (hours * 60 + minutes) * 60;
    Offset::from_seconds(if sign == "-" { -seconds } else { seconds }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_a_name_or_an_offset() {
        for (text, seconds) in
            [("+02:00", 7_200), ("-8", -28_800), ("+0530", 19_800), ("+05:45", 20_700), ("-00:30", -1_800)]
        {
            assert_eq!(offset(text), Offset::from_seconds(seconds).ok(), "{text}");
            assert!(zone(text).is_ok(), "{text}");
        }
        for name in ["UTC", "Europe/Berlin", "utc"] {
            assert!(zone(name).is_ok(), "{name}");
        }
        for bad in ["", "+", "Mars/Olympus", "+99", "+2:60", "+1:2:3", "+-2", "../../etc/passwd", "+é2"] {
            assert!(zone(bad).is_err(), "{bad}");
        }
    }
}
