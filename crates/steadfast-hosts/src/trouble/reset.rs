//! When a used-up plan comes back, as agents word it: a number of seconds, a timestamp, "3pm (Europe/Berlin)", "in 2 hours".

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, Zoned};

use steadfast_model::clock::{self, Millis};

/// The longest limits are monthly ones, of a plan or of what is spent; some days are added because the message may be
/// old. A time that is farther away is a misreading.
pub const FARTHEST_RESET: Millis = 40 * 24 * 3_600_000;
const MINUTE: Millis = 60_000;
/// Words after "resets" or "try again" that can belong to the time.
const WORDS_OF_A_TIME: usize = 10;

/// When a message says that trying again makes sense; it may be past. `now` is when the message was written.
pub fn reset_at(message: &str, now: Millis) -> Option<Millis> {
    let lower = message.to_lowercase();
    epoch(&lower)
        .or_else(|| timestamp(message))
        .or_else(|| ["resets_in_seconds", "resets_in"].iter().find_map(|name| seconds_field(&lower, name, now)))
        .or_else(|| {
            ["resets", "reset at", "reset in", "try again", "retry after", "retry in", "available again"]
                .iter()
                .flat_map(|keyword| lower.match_indices(keyword).map(|(at, found)| at + found.len()))
                .find_map(|at| named_time(lower.get(at..)?, message, now))
        })
        .filter(|at| (now - FARTHEST_RESET..now + FARTHEST_RESET).contains(at))
}

/// "usage limit reached|1763211600", `"resets_at": 1763211600`, `"resetsAt":1763211600`
fn epoch(lower: &str) -> Option<Millis> {
    let from = |at: usize| {
        let digits = digits_after(lower.get(at..)?);
        let number: i64 = digits.parse().ok()?;
        match digits.len() {
            10 => clock::from_epoch(number),
            13 => Some(clock::from_wall(number)),
            _ => None,
        }
    };
    ["|", "resets_at", "resetsat"]
        .iter()
        .flat_map(|mark| lower.match_indices(mark).map(|(at, found)| at + found.len()))
        .find_map(from)
}

fn seconds_field(lower: &str, name: &str, now: Millis) -> Option<Millis> {
    let seconds: i64 = digits_after(lower.split(name).nth(1)?).parse().ok()?;
    now.checked_add(seconds.checked_mul(1000)?)
}

fn digits_after(name: &str) -> &str {
    let value = name.trim_start_matches(['"', ':', '=', ' ']);
    value.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default()
}

/// A full timestamp anywhere in the text.
fn timestamp(message: &str) -> Option<Millis> {
    message
        .split(|c: char| c.is_whitespace() || matches!(c, '"' | '(' | ')' | ',' | '|'))
        .map(|word| word.trim_end_matches(['.', ';']))
        .filter(|word| word.len() >= 17 && word.contains('T'))
        .find_map(clock::parse_rfc3339)
}

/// What follows "resets" or "try again": "3pm (Europe/Berlin)", "at Nov 16th, 2026 3:33 AM.", "in 2 hours 3 minutes".
fn named_time(rest: &str, message: &str, now: Millis) -> Option<Millis> {
    let rest = rest.trim_start_matches([' ', ':', '=', '"']);
    let words: Vec<&str> = rest.split_whitespace().take(WORDS_OF_A_TIME).collect();
    let (first, after) = words.split_first()?;
    match *first {
        "in" | "after" => span(after).and_then(|span| now.checked_add(span)),
        "at" | "on" => moment(after, message, now),
        _ => moment(&words, message, now).or_else(|| now.checked_add(span(&words)?)),
    }
}

/// "2 hours 3 minutes", "2h5m", "20.5s", "30": seconds where no unit is named.
fn span(words: &[&str]) -> Option<Millis> {
    let text = words.join(" ");
    let mut rest = text.as_str();
    let mut total: f64 = 0.0;
    let mut found = false;
    loop {
        rest = rest.trim_start_matches([' ', ',']).trim_start_matches("and ");
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest.get(..end)?.trim_end_matches('.').parse::<f64>() else { break };
        let (_, after) = rest.split_at(end);
        let after = after.trim_start();
        let unit_end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let seconds = match unit {
            "ms" | "milliseconds" => 0.001,
            "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
            "d" | "day" | "days" => 86_400.0,
            "w" | "week" | "weeks" => 604_800.0,
            _ => break,
        };
        total += number * seconds;
        found = true;
        rest = after;
        if unit.is_empty() {
            break;
        }
    }
    #[expect(clippy::cast_possible_truncation, reason = "longer spans are refused by the caller")]
    let milliseconds = (total * 1000.0).ceil() as i64;
    found.then_some(milliseconds)
}

/// A clock time, after a date or without one, in the zone named in parentheses or the machine's own.
fn moment(words: &[&str], message: &str, now: Millis) -> Option<Millis> {
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let mut words: Vec<String> =
        words.iter().map(|word| if word.starts_with('(') { (*word).to_owned() } else { bare(word) }).collect();
    let zone = words
        .iter()
        .find_map(|word| word.strip_prefix('('))
        .and_then(|name| zone_named(name.trim_end_matches([')', '.', ',']), message))
        .unwrap_or_else(TimeZone::system);
    let here = Timestamp::from_millisecond(clock::to_wall(now)).ok()?.to_zoned(zone);
    let weekday = weekday(&mut words, &here);
    let date = date(&mut words, &here).or(weekday);
    words.retain(|word| word != "at");
    let first = words.first()?;
    let joined = words.get(1).map(|second| format!("{first}{second}"));
    let time = joined.as_deref().and_then(clock::parse_time_of_day).or_else(|| clock::parse_time_of_day(first))?;
    // A time without seconds that has only just come means the rest of this minute, and not tomorrow's.
    let named = at(date.unwrap_or(here.date()), time, &here)?;
    if (named..named + MINUTE).contains(&now) {
        return Some(named + MINUTE);
    }
    match date {
        // Today's time is over, so it is next week's.
        Some(day) if weekday == Some(day) && named <= now => at(day.checked_add(1.week()).ok()?, time, &here),
        Some(_) => Some(named),
        None => clock::next_occurrence(&here, time),
    }
}

fn at(date: Date, time: Time, here: &Zoned) -> Option<Millis> {
    Some(clock::from_zoned(&date.to_datetime(time).to_zoned(here.time_zone().clone()).ok()?))
}

/// Takes "Nov 16th, 2026" or "Nov 16" off the front of the words; without a year, the next such day.
fn date(words: &mut Vec<String>, here: &Zoned) -> Option<Date> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let name = words.first()?.get(..3)?;
    let month = i8::try_from(MONTHS.iter().position(|month| *month == name)? + 1).ok()?;
    let day: i8 = words.get(1)?.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()?;
    let year = words.get(2).and_then(|word| word.parse::<i16>().ok()).filter(|year| (2000..3000).contains(year));
    words.drain(..if year.is_some() { 3 } else { 2 });
    let date = Date::new(year.unwrap_or(here.year()), month, day).ok()?;
    if year.is_none() && date < here.date() { Date::new(here.year() + 1, month, day).ok() } else { Some(date) }
}

/// Takes "Thursday" or "Thu" off the front of the words: the next such day, which may be today.
fn weekday(words: &mut Vec<String>, here: &Zoned) -> Option<Date> {
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let named = words.first().filter(|word| word.len() >= 3)?;
    let number = DAYS.iter().position(|day| day.starts_with(named.as_str()))?;
    let wanted = Weekday::from_monday_zero_offset(i8::try_from(number).ok()?).ok()?;
    words.remove(0);
    here.date().checked_add(i64::from(here.weekday().until(wanted)).days()).ok()
}

/// The zone with the case of the original message; zone names are case-sensitive on disk.
fn zone_named(lower: &str, message: &str) -> Option<TimeZone> {
    let at = message.to_lowercase().find(&format!("({lower}"))? + 1;
    TimeZone::get(message.get(at..at + lower.len())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Millis = 1_794_744_000_000; // 2026-11-15T12:00:00Z

    fn local(year: i16, month: i8, day: i8, hour: i8, minute: i8) -> String {
        let at = jiff::civil::date(year, month, day).at(hour, minute, 0, 0).to_zoned(TimeZone::system()).unwrap();
        clock::to_rfc3339(at.timestamp().as_millisecond())
    }

    #[test]
    fn reset_times_as_agents_word_them() {
        let table = [
            ("Claude AI usage limit reached|1794751200", "2026-11-15T14:00:00Z".to_owned()),
            ("usage limit reached|1794751200000", "2026-11-15T14:00:00Z".to_owned()),
            ("You've hit your limit · resets 3pm (UTC)", "2026-11-15T15:00:00Z".to_owned()),
            ("You've hit your session limit · resets 3:30 pm (UTC)", "2026-11-15T15:30:00Z".to_owned()),
            ("You've hit your weekly limit · resets Nov 20, 9am (UTC)", "2026-11-20T09:00:00Z".to_owned()),
            ("You've hit your weekly limit · resets Nov 20 at 9:05am (UTC)", "2026-11-20T09:05:00Z".to_owned()),
            // It is a Sunday.
            ("weekly limit · resets Thursday 9am (UTC)", "2026-11-19T09:00:00Z".to_owned()),
            ("weekly limit reached, resets on Thu, at 9:30 am (UTC)", "2026-11-19T09:30:00Z".to_owned()),
            ("weekly limit · resets Sunday 3pm (UTC)", "2026-11-15T15:00:00Z".to_owned()),
            ("weekly limit · resets Sun 9am (UTC)", "2026-11-22T09:00:00Z".to_owned()),
            ("weekly limit · resets Sat 9am (UTC)", "2026-11-21T09:00:00Z".to_owned()),
            ("weekly limit · resets Fri, Nov 20, 9am (UTC)", "2026-11-20T09:00:00Z".to_owned()),
            ("5-hour limit reached ∙ resets 11:30am (UTC)", "2026-11-16T11:30:00Z".to_owned()),
            // It is noon now, and these resets come in the minute that has begun.
            ("You've hit your session limit · resets 12pm (UTC)", "2026-11-15T12:01:00Z".to_owned()),
            ("You've hit your weekly limit · resets Nov 15 at 12pm (UTC)", "2026-11-15T12:01:00Z".to_owned()),
            ("You've hit your session limit · resets 11:59am (UTC)", "2026-11-16T11:59:00Z".to_owned()),
            ("limit reached, resets at 15:00 (Europe/Berlin)", "2026-11-15T14:00:00Z".to_owned()),
            ("usage limit: try again in 2 hours 3 minutes.", "2026-11-15T14:03:00Z".to_owned()),
            ("You've hit your usage limit. Try again in 1 day 3 hours.", "2026-11-16T15:00:00Z".to_owned()),
            ("limit reached, resets in 2h 5m", "2026-11-15T14:05:00Z".to_owned()),
            ("limit reached; retry after 90", "2026-11-15T12:01:30Z".to_owned()),
            ("Please try again in 20.5s.", "2026-11-15T12:00:20Z".to_owned()),
            ("limit reached until reset at 2026-11-15T18:00:00Z.", "2026-11-15T18:00:00Z".to_owned()),
            ("limit reached, resets 2026-11-15T19:00:00+01:00", "2026-11-15T18:00:00Z".to_owned()),
            (r#"{"type":"usage_limit_reached","resets_at":1794751200}"#, "2026-11-15T14:00:00Z".to_owned()),
            (r#"{"type":"usage_limit_reached","resets_in_seconds":3600}"#, "2026-11-15T13:00:00Z".to_owned()),
            ("purchase more credits or try again at Nov 16th, 2026 3:33 AM.", local(2026, 11, 16, 3, 33)),
            ("try again at Jan 2nd, 2027 11:05 PM.", "none".to_owned()),
        ];
        for (message, expected) in table {
            let found = reset_at(message, NOON).map_or("none".to_owned(), clock::to_rfc3339);
            assert_eq!(found, expected, "{message}");
        }
        for vague in ["5-hour limit reached", "try again later", "resets soon", "|12", "resets 99pm", ""] {
            assert_eq!(reset_at(vague, NOON), None, "{vague}");
        }
    }
}
