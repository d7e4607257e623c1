//! All keys.

use ratatui::text::Line;

use crate::top::style::{Palette, Tone};

const KEYS: [(&str, &str); 17] = [
    ("j k ↓ ↑", "move, or scroll the details"),
    ("enter", "open the details; esc goes back"),
    ("space, PgUp", "a page down, a page up"),
    ("g g, G", "to the first, to the last"),
    ("/", "search this page; enter searches everything"),
    ("g n", "now: goals and runs"),
    ("g r", "only runs"),
    ("g u", "usage of the last 14 days"),
    ("p", "pause or resume"),
    ("e", "extend limits: +1M tokens, +$5, +5 turns, +2h"),
    ("v", "run the checks now"),
    ("a", "approve a stage, or sign off a goal"),
    ("r", "reject a stage, or send a goal back"),
    ("s", "say something to a run"),
    ("x", "kill a run or abandon a goal; asks first"),
    ("? ", "this help"),
    ("q, Ctrl-C", "quit"),
];

pub(super) fn lines(palette: Palette) -> Vec<Line<'static>> {
    let line = |(keys, does): &(&str, &str)| {
        Line::from(vec![palette.span(Tone::Accent, format!(" {keys:<12}")), palette.span(Tone::Plain, *does)])
    };
    KEYS.iter().map(line).collect()
}
