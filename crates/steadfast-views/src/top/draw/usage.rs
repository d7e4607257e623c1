//! What was used in the last days, as bars.

use ratatui::text::Line;
use steadfast_app::usage::charts::{UsageCharts, UsageDayView};
use steadfast_model::text;

use crate::top::state::{TopState, Usage};
use crate::top::style::{Palette, Tone, fit};
use crate::top::words;

/// The widest bar.
const BAR: usize = 60;
/// What stands beside a bar: the date, tokens and money.
const BESIDE: usize = 36;

pub(super) fn lines(state: &TopState, columns: usize) -> Vec<Line<'static>> {
    let palette = state.palette;
    let line = |tone, text: &str| palette.line(tone, words::cut(text, columns));
    match &state.usage {
        Usage::Unread | Usage::Reading => vec![line(Tone::Quiet, "  reading transcripts …")],
        Usage::Failed(message) => vec![line(Tone::Bad, message)],
        Usage::Read(charts) if charts.days.iter().all(|day| day.tokens == 0) => {
            let text = "  Nothing was used in the last 14 days. `steadfast usage` shows older days.";
            vec![line(Tone::Quiet, text)]
        }
        Usage::Read(charts) => {
            let mut lines =
                vec![line(Tone::Strong, "USAGE OF THE LAST 14 DAYS (tokens; all sessions on this machine)")];
            let most = charts.days.iter().map(|day| day.tokens).max().unwrap_or(0).max(1);
            lines.extend(charts.days.iter().map(|day| day_line(day, most, columns, palette)));
            lines.extend(totals(charts, columns, palette));
            lines
        }
    }
}

fn day_line(day: &UsageDayView, most: i64, columns: usize, palette: Palette) -> Line<'static> {
    let room = columns.saturating_sub(BESIDE).min(BAR);
    let percent = day.tokens.saturating_mul(100) / most;
    let bar = words::bar(percent, room).replace('░', " ");
    let model = day.models.first().map(|model| words::plain(&model.model)).unwrap_or_default();
    let spans = vec![
        palette.span(Tone::Quiet, format!("  {} ", day.date)),
        palette.span(Tone::Accent, bar),
        palette.span(Tone::Plain, format!(" {:>6} {:>9} ", text::short_number(day.tokens), words::money(day.cost_usd))),
        palette.span(Tone::Quiet, model),
    ];
    Line::from(fit(spans, columns))
}

fn totals(charts: &UsageCharts, columns: usize, palette: Palette) -> Vec<Line<'static>> {
    let tokens: i64 = charts.days.iter().map(|day| day.tokens).sum();
    let cost: f64 = charts.days.iter().map(|day| day.cost_usd).sum();
    let total = format!("  together {} tokens, {}", text::short_number(tokens), words::money(cost));
    vec![
        Line::default(),
        palette.line(Tone::Strong, words::cut(&total, columns)),
        palette.line(
            Tone::Quiet,
            words::cut("  more: steadfast usage, steadfast usage models, steadfast usage projects", columns),
        ),
    ]
}
