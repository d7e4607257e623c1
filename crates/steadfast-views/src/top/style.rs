//! The few styles of the screen. Colours are the terminal's own, so that light and dark ones work; without colour, weight
//! and shapes say the same.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::words;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    /// Less important.
    Quiet,
    Strong,
    /// What is selected or can be pressed.
    Accent,
    Good,
    Warn,
    Bad,
}

/// How tones look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Palette {
    pub(super) has_colour: bool,
}

impl Palette {
    pub(super) fn style(self, tone: Tone) -> Style {
        let (colour, weight) = match tone {
            Tone::Plain => (None, Modifier::empty()),
            Tone::Quiet => (None, Modifier::DIM),
            Tone::Strong => (None, Modifier::BOLD),
            Tone::Accent => (Some(Color::Cyan), Modifier::BOLD),
            Tone::Good => (Some(Color::Green), Modifier::empty()),
            Tone::Warn => (Some(Color::Yellow), Modifier::BOLD),
            Tone::Bad => (Some(Color::Red), Modifier::BOLD),
        };
        let style = Style::new().add_modifier(weight);
        colour.filter(|_| self.has_colour).map_or(style, |colour| style.fg(colour))
    }

    pub(super) fn span(self, tone: Tone, text: impl Into<String>) -> Span<'static> {
        Span::styled(text.into(), self.style(tone))
    }

    pub(super) fn line(self, tone: Tone, text: impl Into<String>) -> Line<'static> {
        Line::from(self.span(tone, text))
    }
}

/// The tone of a share of a limit.
pub(super) fn of_percent(percent: i64) -> Tone {
    match percent {
        95.. => Tone::Bad,
        80.. => Tone::Warn,
        _ => Tone::Good,
    }
}

/// A line with one part at its beginning, cut where it must be, and one at its end.
pub(super) fn sides(left: Vec<Span<'static>>, right: Vec<Span<'static>>, columns: usize) -> Line<'static> {
    let end: usize = right.iter().map(Span::width).sum();
    let gap = if end == 0 { 0 } else { 2 };
    let room = columns.saturating_sub(end + gap);
    let mut spans = fit(left, room);
    let used: usize = spans.iter().map(Span::width).sum();
    if end > 0 {
        spans.push(Span::raw(" ".repeat(columns.saturating_sub(used + end))));
        spans.extend(right);
    }
    Line::from(spans)
}

/// As many spans as fit; the last one is cut.
pub(super) fn fit(spans: Vec<Span<'static>>, columns: usize) -> Vec<Span<'static>> {
    let mut room = columns;
    let mut kept = Vec::new();
    for span in spans {
        let needs = span.width();
        if needs <= room {
            room -= needs;
            kept.push(span);
            continue;
        }
        kept.extend((room > 0).then(|| Span::styled(words::cut(&span.content, room), span.style)));
        break;
    }
    kept
}

/// A line with escape sequences, for a terminal without a screen of its own.
pub(super) fn ansi(line: &Line<'_>) -> String {
    let coded = |span: &Span<'_>| {
        let mut codes: Vec<&str> = Vec::new();
        codes.extend(span.style.add_modifier.contains(Modifier::BOLD).then_some("1"));
        codes.extend(span.style.add_modifier.contains(Modifier::DIM).then_some("2"));
        codes.extend(match span.style.fg {
            Some(Color::Red) => Some("31"),
            Some(Color::Green) => Some("32"),
            Some(Color::Yellow) => Some("33"),
            Some(Color::Cyan) => Some("36"),
            _ => None,
        });
        if codes.is_empty() {
            span.content.to_string()
        } else {
            format!("\u{1b}[{}m{}\u{1b}[0m", codes.join(";"), span.content)
        }
    };
    line.spans.iter().map(coded).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_line_stays_when_its_beginning_is_cut() {
        let line = |columns| sides(vec![Span::raw("a long beginning")], vec![Span::raw("end")], columns).to_string();
        assert_eq!(line(24), "a long beginning     end");
        assert_eq!(line(12), "a long…  end");
        assert_eq!(sides(vec![Span::raw("alone")], vec![], 9).to_string(), "alone");
    }

    #[test]
    fn without_colour_the_weight_stays() {
        let bad = Palette { has_colour: false }.line(Tone::Bad, "x");
        assert_eq!(ansi(&bad), "\u{1b}[1mx\u{1b}[0m");
        assert_eq!(ansi(&Palette { has_colour: true }.line(Tone::Bad, "x")), "\u{1b}[1;31mx\u{1b}[0m");
        assert_eq!(ansi(&Palette { has_colour: true }.line(Tone::Plain, "x")), "x");
    }
}
