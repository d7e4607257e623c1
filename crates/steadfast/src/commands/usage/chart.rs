//! `usage --chart`: each row as a horizontal bar. Bars show the cost, or the tokens if no price is known, and stand after
//! the numbers, so that all columns are aligned at any width.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use steadfast_app::usage::report::{Amounts, Key, Row, UsageReport, View};
use steadfast_model::text;

use super::table::{cost, label, short_model};

/// For a file or a pipe without a width.
const DEFAULT_WIDTH: usize = 80;
const GAP: &str = "  ";
/// A bar is at least so wide before a column of numbers is shown beside it.
const SMALLEST_BAR: usize = 12;
const SHORTEST_LABEL: usize = 10;
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// What the bars show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Cost,
    Tokens,
}

impl Measure {
    fn of(self, amounts: &Amounts) -> i64 {
        match self {
            Self::Cost => amounts.priced_micros,
            Self::Tokens => amounts.tokens.total(),
        }
    }
}

/// A number beside the bars, and its width.
type Column = (fn(&Amounts) -> String, usize);

/// A line of the chart.
enum Line<'a> {
    Bar {
        label: String,
        amounts: &'a Amounts,
        is_part: bool,
    },
    /// Days without a row.
    Gap(i64),
}

pub(super) fn render(report: &UsageReport, zone: &TimeZone, width: usize) -> String {
    let width = if width == usize::MAX { DEFAULT_WIDTH } else { width };
    let measure = if report.totals.priced_micros > 0 { Measure::Cost } else { Measure::Tokens };
    let lines = lines(report, zone);
    let widest = |column: fn(&Amounts) -> String| {
        let amounts = lines.iter().filter_map(|line| match line {
            Line::Bar { amounts, .. } => Some(*amounts),
            Line::Gap(_) => None,
        });
        amounts.chain([&report.totals]).map(|amounts| text::columns(&column(amounts))).max().unwrap_or(0)
    };
    let mut columns: Vec<Column> = vec![(cost, widest(cost)), (tokens, widest(tokens))];
    if measure == Measure::Tokens {
        columns.reverse();
    }
    let names = lines.iter().map(|line| match line {
        Line::Bar { label, .. } => text::columns(label),
        Line::Gap(_) => 0,
    });
    let longest = names.max().unwrap_or(0).max("total".len());
    let mut name_width = longest.min((width / 3).max(SHORTEST_LABEL));
    let numbers = |columns: &[Column]| -> usize { columns.iter().map(|(_, column)| column + GAP.len()).sum() };
    while columns.len() > 1 && name_width + numbers(&columns) + GAP.len() + SMALLEST_BAR > width {
        columns.pop();
    }
    // On a very narrow terminal the name gives way, then the bar.
    let fixed = numbers(&columns) + GAP.len();
    name_width = name_width.min(width.saturating_sub(fixed + 1).max(1));
    let bar_width = width.saturating_sub(name_width + fixed);

    let most = report.rows.iter().map(|row| measure.of(&row.amounts)).max().unwrap_or(0);
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    let green = Style::new().fg_color(Some(AnsiColor::Green.into()));
    let cyan = Style::new().fg_color(Some(AnsiColor::Cyan.into()));
    let cells = |name: &str, amounts: &Amounts| {
        let name = short_name(name, name_width, report.view);
        let mut line = format!("{name}{}", " ".repeat(name_width.saturating_sub(text::columns(&name))));
        for (column, width) in &columns {
            let cell = column(amounts);
            let padding = " ".repeat(width.saturating_sub(text::columns(&cell)));
            let _ = write!(line, "{GAP}{padding}{cell}");
        }
        line
    };
    let mut chart = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(chart, "{bold}{}{bold:#}", text::cut(&title(report.view, measure), width));
    for line in &lines {
        match line {
            Line::Bar { label, amounts, is_part } => {
                let bar = bar(measure.of(amounts), most, bar_width);
                let style = if *is_part { dim } else { cyan };
                let numbers = cells(label, amounts);
                let _ = if bar.is_empty() {
                    writeln!(chart, "{}", numbers.trim_end())
                } else {
                    writeln!(chart, "{numbers}{GAP}{style}{bar}{style:#}")
                };
            }
            Line::Gap(days) => {
                let noun = format!("⋮ {} without usage", text::count(*days, "day"));
                let _ = writeln!(chart, "{dim}{}{dim:#}", text::cut(&noun, width));
            }
        }
    }
    let _ = write!(chart, "{green}{}{green:#}", cells("total", &report.totals).trim_end());
    chart
}

fn title(view: View, measure: Measure) -> String {
    let what = match measure {
        Measure::Cost => "Cost in US dollars",
        Measure::Tokens => "Tokens",
    };
    let by = match view {
        View::Daily => "day",
        View::Weekly => "week",
        View::Monthly => "month",
        View::Session => "session",
        View::Blocks => "block of five hours",
        View::Models => "model",
        View::Projects => "project",
        View::Agents => "agent",
        View::Tools => "skill or MCP server",
    };
    format!("{what} by {by}")
}

fn lines<'a>(report: &'a UsageReport, zone: &TimeZone) -> Vec<Line<'a>> {
    let several_hosts = report.rows.iter().any(|row| Some(row.host) != report.rows.first().map(|first| first.host));
    let mut lines = Vec::new();
    let mut before: Option<Date> = None;
    for row in &report.rows {
        let day = match row.key {
            Key::Day(day) => day,
            _ => None,
        };
        if let (Some(day), Some(before)) = (day, before) {
            let missing = (day - before).get_days().unsigned_abs().saturating_sub(1);
            if missing > 0 {
                lines.push(Line::Gap(i64::from(missing)));
            }
        }
        before = day.or(before);
        let name = name(row, zone);
        let label = if several_hosts { format!("{name} ({})", row.host) } else { name };
        lines.push(Line::Bar { label, amounts: &row.amounts, is_part: false });
        if row.has_breakdown {
            lines.extend(row.models.iter().map(|(model, amounts)| Line::Bar {
                label: format!("└ {}", text::headline(short_model(model), 60)),
                amounts,
                is_part: true,
            }));
        }
    }
    lines
}

fn name(row: &Row, zone: &TimeZone) -> String {
    let name = label(row, zone);
    if row.view == View::Models { short_model(&name).to_owned() } else { name }
}

/// Of the path of a project the end says most, of other names the beginning.
fn short_name(name: &str, width: usize, view: View) -> String {
    if text::columns(name) <= width || view != View::Projects {
        return text::cut_to_columns(name, width);
    }
    let mut end = name;
    while text::columns(end) + 1 > width {
        let mut characters = end.chars();
        if characters.next().is_none() {
            break;
        }
        end = characters.as_str();
    }
    format!("…{end}")
}

fn tokens(amounts: &Amounts) -> String {
    match amounts.known(amounts.tokens.total()) {
        Some(total) => format!("{} tokens", text::short_number(total)),
        None => "unknown".to_owned(),
    }
}

/// A bar in eighths of a cell. What is not zero is seen.
fn bar(value: i64, most: i64, width: usize) -> String {
    if value <= 0 || most <= 0 || width == 0 {
        return String::new();
    }
    let cells = i128::try_from(width).unwrap_or(0);
    let eighths = (i128::from(value) * cells * 8 / i128::from(most)).clamp(1, cells * 8);
    let full = "█".repeat(usize::try_from(eighths / 8).unwrap_or(0));
    let rest = usize::try_from(eighths % 8).ok().and_then(|rest| EIGHTHS.get(rest.checked_sub(1)?));
    rest.map_or_else(|| full.clone(), |rest| format!("{full}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_exact_to_an_eighth_and_never_wider_than_its_column() {
        for (value, most, width, expected) in [
            (0, 10, 4, ""),
            (10, 10, 4, "████"),
            (5, 10, 4, "██"),
            (1, 1_000_000, 4, "▏"),
            (7, 16, 2, "▉"),
            (9, 16, 2, "█▏"),
            (i64::MAX, i64::MAX, 3, "███"),
            (20, 10, 3, "███"),
            (5, 0, 3, ""),
            (5, 5, 0, ""),
        ] {
            assert_eq!(bar(value, most, width), expected, "{value} of {most} in {width}");
        }
    }

    #[test]
    fn the_end_of_a_project_is_kept() {
        assert_eq!(short_name("/home/me/src/website", 10, View::Projects), "…c/website");
        assert_eq!(short_name("/src/web", 10, View::Projects), "/src/web");
        assert_eq!(short_name("claude-opus-4-8", 8, View::Models), "claude-…");
        assert_eq!(text::columns(&short_name("/日本語日本語日本語", 6, View::Projects)), 5);
    }
}
