//! Text for cells of a terminal: foreign text made inert, cut and wrapped by the columns that it needs, and short forms of
//! times, money, bars and rates.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui::text::Span;
use steadfast_model::clock::{self, DAY, HOUR, MINUTE, Millis, SECOND};
use steadfast_model::price;
use steadfast_model::text;

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Foreign text as one line that moves nothing on the screen.
pub(super) fn plain(foreign: &str) -> String {
    text::one_line(foreign)
        .replace(['\t', '\u{2028}', '\u{2029}'], " ")
        .chars()
        .filter(|character| is_steady(*character))
        .collect()
}

/// The lines of a foreign text, each inert.
pub(super) fn plain_lines(foreign: &str) -> impl Iterator<Item = String> {
    let printable = text::printable(foreign).replace(['\r', '\u{2028}', '\u{2029}'], "\n");
    let lines: Vec<String> = printable
        .lines()
        .map(|line| line.replace('\t', "  ").chars().filter(|character| is_steady(*character)).collect())
        .collect();
    lines.into_iter()
}

/// Terminals do not agree on the width of what these make of the characters around them.
fn is_steady(character: char) -> bool {
    !matches!(character, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}')
}

/// The columns that a text needs.
pub(super) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// At most `most` columns of a text; a cut one ends in `…`.
pub(super) fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut room = most.saturating_sub(1);
    for character in text.chars() {
        let needs = Span::raw(character.to_string()).width();
        if needs > room {
            break;
        }
        room -= needs;
        kept.push(character);
    }
    if most > 0 {
        kept.truncate(kept.trim_end().len());
        kept.push('…');
    }
    kept
}

/// A text in lines of at most `columns`, broken between words where that is possible. More than `most` lines are cut.
pub(super) fn wrap(text: &str, columns: usize, most: usize) -> Vec<String> {
    let columns = columns.max(4);
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        for piece in pieces(word, columns) {
            let line = lines.last().map(String::as_str).unwrap_or_default();
            let space = usize::from(!line.is_empty());
            let is_full = width(line) + space + width(&piece) > columns;
            match lines.last_mut() {
                Some(last) if !is_full => {
                    last.extend((space > 0).then_some(' '));
                    last.push_str(&piece);
                }
                _ => lines.push(piece),
            }
        }
    }
    if lines.len() > most {
        let rest = lines.split_off(most.saturating_sub(1)).join(" ");
        lines.push(cut(&rest, columns));
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// A word in parts that fit.
fn pieces(word: &str, columns: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut room = columns;
    for character in word.chars() {
        let needs = Span::raw(character.to_string()).width();
        if needs > room {
            pieces.push(String::new());
            room = columns;
        }
        room = room.saturating_sub(needs);
        if let Some(piece) = pieces.last_mut() {
            piece.push(character);
        }
    }
    pieces
}

/// A span of time in at most two units: `12 s`, `3 m`, `2 h 10 m`, `3 d 4 h`.
pub(super) fn span(ms: Millis) -> String {
    let two = |first: i64, unit, second: i64, lesser| match second {
        0 => format!("{first} {unit}"),
        _ => format!("{first} {unit} {second} {lesser}"),
    };
    match ms.max(0) {
        ms if ms < MINUTE => format!("{} s", ms / SECOND),
        ms if ms < HOUR => format!("{} m", ms / MINUTE),
        ms if ms < DAY => two(ms / HOUR, "h", ms % HOUR / MINUTE, "m"),
        ms => two(ms / DAY, "d", ms % DAY / HOUR, "h"),
    }
}

/// How long ago a moment is.
pub(super) fn ago(at: Millis, now: Millis) -> String {
    format!("{} ago", span(now.saturating_sub(at)))
}

/// How far a moment is in the future.
pub(super) fn countdown(until: Millis, now: Millis) -> String {
    match until.saturating_sub(now) {
        left if left > 0 => format!("in {}", precise(left)),
        _ => "now".to_owned(),
    }
}

/// Below an hour, a countdown has seconds.
fn precise(ms: Millis) -> String {
    match ms {
        ms if (MINUTE..HOUR).contains(&ms) => format!("{} m {:02} s", ms / MINUTE, ms % MINUTE / SECOND),
        ms => span(ms),
    }
}

/// The time of day with seconds, in the machine's zone.
pub(super) fn time_of_day(at: Millis) -> String {
    let moment = Timestamp::from_millisecond(clock::to_wall(at)).unwrap_or_default();
    moment.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
}

/// Dollars for a narrow place: cents, and no cents from 100 dollars on.
pub(super) fn money(usd: f64) -> String {
    match price::micros(usd) {
        micros if micros >= 100_000_000 => format!("${}", text::thousands(micros / 1_000_000)),
        micros => {
            let cents = micros / 10_000;
            format!("${}.{:02}", cents / 100, cents % 100)
        }
    }
}

/// The last part of a path.
pub(super) fn project(path: Option<&str>) -> String {
    let name = path.map(|path| path.trim_end_matches('/').rsplit('/').next().unwrap_or(path));
    cut(&plain(name.unwrap_or_default()), 20)
}

/// `██████░░░░`
pub(super) fn bar(percent: i64, columns: usize) -> String {
    let share = usize::try_from(percent.clamp(0, 100)).unwrap_or(0);
    // Anything that is used shows, and only a full limit looks full.
    let filled = (share * columns / 100).max(usize::from(share > 0)).min(columns);
    format!("{}{}", "█".repeat(filled), "░".repeat(columns - filled))
}

/// One character for each value, by its share of the greatest one.
pub(super) fn sparkline(values: &[i64]) -> String {
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let level = |value: &i64| {
        let step = value.max(&0).saturating_mul(7).div_euclid(most);
        LEVELS.get(usize::try_from(step).unwrap_or(0)).copied().unwrap_or('█')
    };
    values.iter().map(level).collect()
}

/// What was added in each of `count` equal parts of the time, from totals over time.
pub(super) fn rates(points: &[(Millis, i64)], count: usize) -> Vec<i64> {
    let (Some((first, _)), Some((last, _))) = (points.first(), points.last()) else { return Vec::new() };
    let length = (last - first).max(1);
    let mut rates = vec![0_i64; count];
    for pair in points.windows(2) {
        let [(_, before), (at, after)] = pair else { continue };
        let part = (at - first).saturating_mul(i64::try_from(count).unwrap_or(1)) / (length + 1);
        if let Some(rate) = usize::try_from(part).ok().and_then(|part| rates.get_mut(part)) {
            *rate += (after - before).max(0);
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_becomes_one_inert_line() {
        for (foreign, shown) in [
            ("a\tb\r\nc\u{1b}[2Jd\u{7}", "a b cd"),
            ("safe \u{202e}txt.exe\u{2069}", "safe txt.exe"),
            ("👩\u{200d}💻 👍\u{1f3fd} ❤\u{fe0f}", "👩💻 👍 ❤"),
            ("one\u{2028}two", "one two"),
        ] {
            assert_eq!(plain(foreign), shown, "{foreign:?}");
        }
        assert_eq!(plain_lines("a\r\n\u{1b}]0;t\u{7}b\tc\n").collect::<Vec<_>>(), ["a", "b  c"]);
    }

    #[test]
    fn cuts_count_columns() {
        assert_eq!((cut("abcdef", 6), cut("abcdefg", 6)), ("abcdef".into(), "abcde…".into()));
        assert_eq!(
            (cut("目標を達成", 6), cut("abc def", 5), cut("abc", 0)),
            ("目標…".into(), "abc…".into(), String::new())
        );
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("one two three four", 9, 9), ["one two", "three", "four"]);
        assert_eq!(wrap("one two three four", 9, 2), ["one two", "three fo…"]);
        assert_eq!(wrap("aaaaaaaaaaaa b", 5, 9), ["aaaaa", "aaaaa", "aa b"]);
        assert_eq!(wrap("目標を達成する", 4, 9), ["目標", "を達", "成す", "る"]);
        assert_eq!(wrap("", 9, 2), Vec::<String>::new());
    }

    #[test]
    fn times_and_money_are_short() {
        for (ms, shown) in [
            (-5, "0 s"),
            (12_900, "12 s"),
            (3 * MINUTE, "3 m"),
            (2 * HOUR + 10 * MINUTE, "2 h 10 m"),
            (2 * HOUR, "2 h"),
            (3 * DAY + 4 * HOUR, "3 d 4 h"),
        ] {
            assert_eq!(span(ms), shown);
        }
        assert_eq!((countdown(90_000, 0), countdown(5, 5)), ("in 1 m 30 s".into(), "now".into()));
        assert_eq!((money(4.126), money(0.001), money(1234.5)), ("$4.12".into(), "$0.00".into(), "$1,234".into()));
    }

    #[test]
    fn a_bar_is_full_only_at_its_limit() {
        assert_eq!((bar(0, 10), bar(1, 10)), ("░░░░░░░░░░".into(), "█░░░░░░░░░".into()));
        assert_eq!((bar(99, 10), bar(140, 10)), ("█████████░".into(), "██████████".into()));
    }

    #[test]
    fn rates_are_what_each_part_of_the_time_added() {
        assert_eq!(rates(&[(0, 0), (5, 10), (10, 40)], 2), [10, 30]);
        assert_eq!(rates(&[(0, 7)], 3), [0, 0, 0]);
        assert_eq!((rates(&[], 3), sparkline(&[0, 5, 10])), (vec![], "▁▄█".into()));
    }
}
