//! A table that fits the terminal: numbers are shortened and the least important columns dropped before a line would
//! break.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use jiff::tz::TimeZone;
use steadfast_app::usage::report::{Amounts, Key, Row, UsageReport, View};
use steadfast_model::text;

use super::{in_zone, last_part};

const GAP: usize = 2;
/// The smallest width of a column that is cut.
const MIN_WIDTH: usize = 8;

/// A column before it is fitted to the width.
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) right: bool,
    pub(super) cells: Vec<String>,
    /// The same in fewer characters.
    pub(super) short: Option<Vec<String>>,
    /// When space is short, columns are dropped in this order; `None` is never dropped.
    pub(super) drop_order: Option<u8>,
    /// Whether its cells may be cut.
    pub(super) can_cut: bool,
}

impl Column {
    pub(super) fn text(title: &'static str, cells: Vec<String>) -> Self {
        Self { title, right: false, cells, short: None, drop_order: None, can_cut: true }
    }

    pub(super) fn fixed(title: &'static str, drop_order: Option<u8>, cells: Vec<String>) -> Self {
        Self { drop_order, can_cut: false, ..Self::text(title, cells) }
    }

    fn number(
        title: &'static str,
        drop_order: Option<u8>,
        amounts: &[&Amounts],
        value: fn(&Amounts) -> Option<i64>,
    ) -> Self {
        let in_words = |format: fn(i64) -> String| {
            amounts.iter().map(|amounts| value(amounts).map_or_else(|| "unknown".to_owned(), format)).collect()
        };
        let (cells, short) = (in_words(text::thousands), in_words(text::short_number));
        Self { right: true, short: Some(short), ..Self::fixed(title, drop_order, cells) }
    }

    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
        cells.max(self.title.chars().count())
    }
}

pub(super) fn render(report: &UsageReport, zone: &TimeZone, width: usize) -> String {
    lay_out(columns(report, zone), width)
}

/// Columns of the same length, the last cell of each its total.
pub(super) fn lay_out(mut columns: Vec<Column>, width: usize) -> String {
    fit(&mut columns, width);
    draw(&columns)
}

/// A line of the table: a row, or the part of one model in it.
enum Line<'a> {
    Whole(&'a Row),
    Part(&'a str, &'a Amounts),
}

impl Line<'_> {
    fn amounts(&self) -> &Amounts {
        match self {
            Self::Whole(row) => &row.amounts,
            Self::Part(_, amounts) => amounts,
        }
    }
}

fn lines(report: &UsageReport) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for row in &report.rows {
        lines.push(Line::Whole(row));
        if row.has_breakdown {
            lines.extend(row.models.iter().map(|(model, amounts)| Line::Part(model, amounts)));
        }
    }
    lines
}

/// Every column has a cell for each line and a last one for the totals.
fn columns(report: &UsageReport, zone: &TimeZone) -> Vec<Column> {
    let lines = lines(report);
    let names = |total: &str, cell: &dyn Fn(&Row) -> String| -> Vec<String> {
        let cells = lines.iter().map(|line| match line {
            Line::Whole(row) => cell(row),
            Line::Part(..) => String::new(),
        });
        cells.chain([total.to_owned()]).collect()
    };
    let title = match report.view {
        View::Daily => "Date",
        View::Weekly => "Week of",
        View::Monthly => "Month",
        View::Models => "Model",
        View::Blocks => "Block",
        View::Session => "Session",
        View::Projects => "Project",
        View::Agents => "Agent",
        View::Tools => "Skill or MCP server",
    };
    let mut labels = names("Total", &|row| label(row, zone));
    for (line, cell) in lines.iter().zip(&mut labels) {
        if let Line::Part(model, _) = line {
            *cell = format!("└ {}", text::headline(short_model(model), 60));
        }
    }
    let mut columns = vec![Column::text(title, labels)];
    if report.view == View::Session {
        for column in &mut columns {
            column.short = Some(column.cells.iter().map(|id| id.chars().take(8).collect()).collect());
        }
        let project = |row: &Row| match &row.key {
            Key::Session { project, .. } => last_part(project),
            _ => String::new(),
        };
        columns.push(Column::text("Project", names("", &project)));
        let last = names("", &|row| row.days.map_or_else(String::new, |days| days.1.to_string()));
        columns.push(Column::fixed("Last", Some(1), last));
    }
    let several_hosts = report.rows.iter().any(|row| Some(row.host) != report.rows.first().map(|first| first.host));
    if several_hosts {
        columns.push(Column::fixed("Host", Some(6), names("", &|row| row.host.to_string())));
    }
    let has_parts = report.rows.iter().any(|row| row.has_breakdown);
    if !has_parts && !matches!(report.view, View::Models | View::Session) {
        let models = names("", &|row| {
            let names: Vec<&str> = row.models.keys().map(|model| short_model(model)).collect();
            text::headline(&names.join(", "), 60)
        });
        columns.push(Column::fixed("Models", Some(0), models));
    }
    let amounts: Vec<&Amounts> = lines.iter().map(Line::amounts).chain([&report.totals]).collect();
    columns.push(Column::number("Responses", Some(3), &amounts, |a| Some(a.responses.unwrap_or(0))));
    columns.extend(amounts_columns(&amounts));
    columns
}

pub(super) fn amounts_columns(amounts: &[&Amounts]) -> [Column; 5] {
    let costs = amounts.iter().map(|amounts| cost(amounts)).collect();
    [
        Column::number("Input", Some(5), amounts, |a| a.known(a.tokens.input)),
        Column::number("Output", Some(8), amounts, |a| a.known(a.tokens.output)),
        Column::number("Cache write", Some(4), amounts, |a| a.known(a.tokens.cache_creation)),
        Column::number("Cache read", Some(7), amounts, |a| a.known(a.tokens.cache_read)),
        Column { right: true, ..Column::fixed("Cost", None, costs) },
    ]
}

/// Shortens and drops until the table is no wider than `width`.
fn fit(columns: &mut Vec<Column>, width: usize) {
    let total = |columns: &[Column]| {
        let gaps = GAP * columns.len().saturating_sub(1);
        columns.iter().map(Column::width).sum::<usize>() + gaps
    };
    let drop_next = |columns: &mut Vec<Column>, up_to: u8| {
        let next = columns.iter().filter_map(|column| column.drop_order).filter(|order| *order <= up_to).min();
        columns.retain(|column| next.is_none() || column.drop_order != next);
        next.is_some()
    };
    while total(columns) > width && drop_next(columns, 1) {}
    if total(columns) > width {
        for column in columns.iter_mut() {
            if let Some(short) = column.short.take() {
                column.cells = short;
            }
        }
    }
    while total(columns) > width && drop_next(columns, u8::MAX) {}
    for at in 0..columns.len() {
        let over = total(columns).saturating_sub(width);
        if let Some(column) = columns.get_mut(at).filter(|column| column.can_cut && over > 0) {
            let room = column.width().saturating_sub(over).max(MIN_WIDTH);
            for cell in &mut column.cells {
                *cell = text::cut(cell, room);
            }
        }
    }
}

fn draw(columns: &[Column]) -> String {
    let bold = Style::new().bold();
    let dim = Style::new().dimmed();
    let green = Style::new().fg_color(Some(AnsiColor::Green.into()));
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let line = |cell: &dyn Fn(&Column) -> String| -> String {
        let cells: Vec<String> = columns
            .iter()
            .map(|column| {
                let text = cell(column);
                let padding = " ".repeat(column.width().saturating_sub(text.chars().count()));
                if column.right { padding + &text } else { text + &padding }
            })
            .collect();
        cells.join(&" ".repeat(GAP)).trim_end().to_owned()
    };
    let mut table = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(table, "{bold}{}{bold:#}", line(&|column| column.title.to_owned()));
    for row in 0..rows {
        let text = line(&|column| column.cells.get(row).cloned().unwrap_or_default());
        let is_total = row + 1 == rows;
        if is_total {
            let ruler = line(&|column| "─".repeat(column.width()));
            let _ = writeln!(table, "{dim}{ruler}{dim:#}");
        }
        let style = if is_total { green } else { Style::new() };
        let _ = writeln!(table, "{style}{text}{style:#}");
    }
    table.truncate(table.trim_end().len());
    table
}

/// What a row is about; a block as `2026-11-15 10:00 to 15:00`, in local time.
pub(super) fn label(row: &Row, zone: &TimeZone) -> String {
    match (&row.key, row.key.block_end()) {
        (Key::Day(Some(day)) | Key::Week(Some(day)), _) => day.to_string(),
        (Key::Month(Some(day)), _) => day.strftime("%Y-%m").to_string(),
        (Key::Named(name), _) if name.is_empty() => "no name".to_owned(),
        (Key::Named(name) | Key::Session { id: name, .. }, _) => text::headline(name, 64),
        (Key::Block { start: Some(start) }, Some(end)) => {
            let (start, end) = (in_zone(*start, zone), in_zone(end, zone));
            format!("{} to {}", start.strftime("%Y-%m-%d %H:%M"), end.strftime("%H:%M"))
        }
        _ => "no date".to_owned(),
    }
}

/// `claude-opus-4-5-20251101` as `opus-4-5`.
pub(super) fn short_model(model: &str) -> &str {
    let model = model.strip_prefix("claude-").unwrap_or(model);
    match model.rsplit_once('-') {
        Some((name, date)) if date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => model,
    }
}

/// The known part of the cost; a plus means that a part is unknown.
pub(super) fn cost(amounts: &Amounts) -> String {
    let cents = (amounts.priced_micros + 5_000) / 10_000;
    let known = match amounts.priced_micros {
        1..5_000 => "<$0.01".to_owned(),
        _ => format!("${}.{:02}", text::thousands(cents / 100), cents % 100),
    };
    match amounts.cost_micros() {
        Some(_) => known,
        None if amounts.priced_micros == 0 => "unknown".to_owned(),
        None => format!("{known}+"),
    }
}

/// How fast the running blocks are used, one line each.
pub(super) fn burn_lines(report: &UsageReport, zone: &TimeZone) -> String {
    let line = |row: &Row| -> Option<String> {
        let (burn, end) = (row.burn?, row.key.block_end()?);
        Some(format!(
            "{}: {} tokens and {} a minute; at this rate {} tokens and {} at {} ({} minutes left)",
            row.host,
            text::thousands(burn.tokens_per_minute),
            text::cost(burn.micros_per_minute),
            text::thousands(burn.projected_tokens),
            text::cost(burn.projected_micros),
            in_zone(end, zone).strftime("%H:%M"),
            burn.minutes_left,
        ))
    };
    report.rows.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

/// Days as bars of eight heights; `None` when all of them are empty.
pub(super) fn sparkline(days: &[i64], width: usize) -> Option<String> {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = days.iter().copied().max().filter(|most| *most > 0)?;
    let bars: String = days
        .iter()
        .map(|tokens| {
            // In 128 bits, since tokens times seven may be too large for 64.
            let height = usize::try_from((i128::from(*tokens) * 7).div_euclid(i128::from(most))).unwrap_or(0);
            if *tokens == 0 { '·' } else { BARS.get(height).copied().unwrap_or('█') }
        })
        .collect();
    let short = format!("last {} days  {bars}", days.len());
    let whole = format!("{short}  at most {} tokens a day", text::short_number(most));
    let fits = whole.chars().count() <= width;
    Some(if fits { whole } else { text::cut(&short, width) })
}

#[cfg(test)]
mod tests;
