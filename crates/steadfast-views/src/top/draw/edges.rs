//! The lines at the edges of the screen: the header, trouble, messages and questions, and the keys that do something now.

use ratatui::text::{Line, Span};
use steadfast_app::overview::now::Now;
use steadfast_model::text::{self, count};

use crate::top::asking;
use crate::top::state::{Mode, StatusKind, TopPlace, TopState};
use crate::top::style::{self, Tone, fit, sides};
use crate::top::words::{self, plain};

/// From this share on, a cap or a window of the plan is worth a place in the header.
const NEAR_PERCENT: i64 = 50;
/// The most lines of a message.
const MESSAGE_LINES: usize = 4;

/// Needs, goals, runs, today's money against its cap, the plan, and the time.
pub(in crate::top) fn header(state: &TopState, columns: usize) -> Line<'static> {
    let palette = state.palette;
    let clock = match &state.trouble {
        Some(trouble) => palette.span(Tone::Bad, format!("not read since {}", words::time_of_day(trouble.since_ms))),
        None if state.at_ms == 0 => Span::raw(""),
        None => palette.span(Tone::Quiet, words::time_of_day(state.at_ms)),
    };
    let mut parts = vec![palette.span(Tone::Accent, "steadfast")];
    let mut room = columns.saturating_sub(clock.width() + 2 + words::width("steadfast"));
    // The most important first; one that does not fit is left out as a whole.
    for (tone, text) in state.now().map(parts_of).unwrap_or_default() {
        let text = if parts.len() == 1 { format!("  {text}") } else { format!(" · {text}") };
        let needs = words::width(&text);
        if needs <= room {
            room -= needs;
            parts.push(palette.span(tone, text));
        }
    }
    sides(parts, vec![clock], columns)
}

fn parts_of(now: &Now) -> Vec<(Tone, String)> {
    let header = &now.header;
    let counted = |number: usize, noun| count(i64::try_from(number).unwrap_or(i64::MAX), noun);
    let mut parts = Vec::new();
    if !now.needs.is_empty() {
        let verb = if now.needs.len() == 1 { "needs" } else { "need" };
        parts.push((Tone::Warn, format!("{} {verb} you", now.needs.len())));
    }
    parts.push((Tone::Strong, counted(header.live_goals, "goal")));
    parts.push((Tone::Strong, counted(header.live_runs, "run")));
    let daily = header.caps.iter().find(|cap| cap.name == "daily_usd");
    let spent = header
        .today_cost_usd
        .map_or_else(|| format!("{} tokens", text::short_number(header.today_tokens)), words::money);
    parts.push(match daily {
        Some(cap) => {
            let reached = if cap.is_reached { " REACHED" } else { "" };
            let tone = if cap.percent < NEAR_PERCENT { Tone::Plain } else { style::of_percent(cap.percent) };
            (tone, format!("today {} of {} ({} %){reached}", plain(&cap.used), plain(&cap.most), cap.percent))
        }
        None => (Tone::Plain, format!("today {spent}")),
    });
    for plan in &header.plan {
        let window = if plan.window == "five_hour" { "5 h" } else { "week" };
        let several = header.plan.iter().any(|other| other.host != plan.host);
        let host = if several { format!("{} ", plan.host) } else { String::new() };
        let tone = if plan.used_percent < NEAR_PERCENT { Tone::Plain } else { style::of_percent(plan.used_percent) };
        parts.push((tone, format!("{host}plan {window} {} %", plan.used_percent)));
    }
    let is_other = |name: &str| name != "daily_usd";
    for cap in header.caps.iter().filter(|cap| is_other(&cap.name) && cap.percent >= NEAR_PERCENT) {
        parts.push((style::of_percent(cap.percent), format!("{} {} %", plain(&cap.name), cap.percent)));
    }
    parts
}

/// Why the store cannot be read.
pub(super) fn trouble(state: &TopState, columns: usize) -> Vec<Line<'static>> {
    let Some(trouble) = &state.trouble else { return Vec::new() };
    let palette = state.palette;
    let mut shown = Vec::new();
    for (label, tone, text) in [("error: ", Tone::Bad, &trouble.message), ("hint:  ", Tone::Accent, &trouble.hint)] {
        for (at, line) in words::wrap(&plain(text), columns.saturating_sub(label.len()), 4).into_iter().enumerate() {
            let label = if at == 0 { label } else { "       " };
            shown.push(Line::from(vec![palette.span(tone, label), palette.span(Tone::Plain, line)]));
        }
    }
    shown.push(palette.line(Tone::Quiet, words::cut("       it is tried again every two seconds", columns)));
    shown
}

/// What the user types, without its beginning if it does not fit.
fn typed_end(typed: &str, room: usize) -> String {
    let mut end = plain(typed);
    if typed.ends_with(' ') {
        end.push(' ');
    }
    while words::width(&end) > room {
        end.remove(0);
    }
    end
}

/// What is before the typed words, and the words.
fn typing(state: &TopState, columns: usize) -> Option<(String, String)> {
    let (label, typed) = match &state.mode {
        Mode::Search => ("/".to_owned(), &state.search),
        Mode::Prompt(prompt) => (format!("{}: ", prompt.label), &prompt.typed),
        _ => return None,
    };
    let room = columns.saturating_sub(words::width(&label) + 1);
    Some((label, typed_end(typed, room)))
}

/// Where the cursor is while the user types.
pub(super) fn cursor(state: &TopState, columns: usize) -> Option<usize> {
    typing(state, columns).map(|(label, typed)| words::width(&label) + words::width(&typed))
}

/// The message or prompt above the keys; at least one line.
pub(super) fn message(state: &TopState, columns: usize) -> Vec<Line<'static>> {
    let palette = state.palette;
    if let Some((label, typed)) = typing(state, columns) {
        return vec![Line::from(vec![palette.span(Tone::Accent, label), palette.span(Tone::Plain, typed)])];
    }
    let Some(status) = &state.status else {
        let note = match state.place {
            TopPlace::Now if !state.search.is_empty() => {
                format!("only what matches “{}”; esc shows all", plain(&state.search))
            }
            TopPlace::Runs => "only runs; esc shows all".to_owned(),
            _ => String::new(),
        };
        return vec![palette.line(Tone::Quiet, words::cut(&note, columns))];
    };
    let (tone, shape) = match status.kind {
        StatusKind::Busy => (Tone::Accent, "…"),
        StatusKind::Done => (Tone::Good, "✓"),
        StatusKind::Failed => (Tone::Bad, "✗"),
    };
    let text = format!("{shape} {}", status.text);
    words::wrap(&text, columns, MESSAGE_LINES).into_iter().map(|line| palette.line(tone, line)).collect()
}

/// A key and what it does.
type Offer = (String, String);

/// The keys that do something now.
pub(super) fn keys(state: &TopState, columns: usize) -> Line<'static> {
    let palette = state.palette;
    let (offers, end): (Vec<Offer>, Vec<(&str, &str)>) = match &state.mode {
        Mode::Confirm(_) => (Vec::new(), vec![("y", "yes"), ("any other key", "no")]),
        Mode::Search => (Vec::new(), vec![("enter", "search everything"), ("esc", "leave")]),
        Mode::Go => (Vec::new(), vec![("n", "now"), ("r", "runs"), ("u", "usage"), ("g", "first")]),
        Mode::Help => (Vec::new(), vec![("any key", "close")]),
        Mode::Prompt(prompt) => {
            let amounts = (prompt.action == steadfast_app::overview::now::Action::Extend)
                .then(|| asking::amounts(&prompt.typed))
                .filter(|_| !prompt.typed.trim().is_empty());
            let help = match amounts {
                Some(Ok(amounts)) => asking::effect_of(&amounts),
                Some(Err(why)) => why,
                None => prompt.help.to_owned(),
            };
            let left = vec![palette.span(Tone::Quiet, help)];
            return sides(
                left,
                vec![
                    palette.span(Tone::Accent, "enter"),
                    Span::raw(" ok · "),
                    palette.span(Tone::Accent, "esc"),
                    Span::raw(" leave"),
                ],
                columns,
            );
        }
        Mode::Normal => {
            let mut offers = Vec::new();
            let mut offer = |key: &str, does: &str| offers.push((key.to_owned(), does.to_owned()));
            if state.is_open || state.place == TopPlace::Usage {
                offer("esc", "back");
            } else if !state.rows.is_empty() {
                offer("enter", "open");
            }
            if let Some(row) = state.row().filter(|_| state.place != TopPlace::Usage) {
                for key in asking::KEYS {
                    if let Some(action) = asking::action_of(key, row) {
                        offer(&key.to_string(), asking::word(key, action, row));
                    }
                }
            }
            offer("/", "search");
            offer("j k", "move");
            offer("g", "go");
            (offers, vec![("?", "help"), ("q", "quit")])
        }
    };
    let pair = |key: &str, does: &str| {
        vec![palette.span(Tone::Accent, key.to_owned()), palette.span(Tone::Plain, format!(" {does}  "))]
    };
    let right: Vec<Span<'static>> = end.into_iter().flat_map(|(key, does)| pair(key, does)).collect();
    let mut room = columns.saturating_sub(right.iter().map(Span::width).sum::<usize>() + 2);
    let mut left = Vec::new();
    for (key, does) in &offers {
        let spans = pair(key, does);
        let needs: usize = spans.iter().map(Span::width).sum();
        if needs <= room {
            room -= needs;
            left.extend(spans);
        }
    }
    if left.is_empty() { Line::from(fit(right, columns)) } else { sides(left, right, columns) }
}
