//! The open items of a goal, as a model reads them.

use super::TURN_CAP;
use crate::goal::Goal;
use crate::host::TextCap;
use crate::text;

/// How many open items a prompt lists; the tool has all of them.
const LISTED: usize = 20;
/// How much of an item a prompt quotes.
const SHOWN: usize = 120;

/// The open items, a line each, bounded and escaped; empty without any.
pub(super) fn open(goal: &Goal) -> String {
    let line = |(number, item): (usize, &crate::goal::item::Item)| {
        format!("  {number}. {}", text::escape_xml(&text::headline(&item.text, SHOWN)))
    };
    let mut lines: Vec<String> = goal.open_items().take(LISTED).map(line).collect();
    let more = goal.open_items().count().saturating_sub(LISTED);
    if more > 0 {
        lines.push(format!("  {more} more: get_goal lists them"));
    }
    lines.join("\n")
}

/// `1 of 3 items open`; empty if none is.
pub(super) fn count(goal: &Goal) -> String {
    match goal.open_items().count() {
        0 => String::new(),
        open => format!("{open} of {} items open", goal.items.len()),
    }
}

/// The cap of a prompt that lists the open items.
pub(super) fn turn_cap(goal: &Goal) -> TextCap {
    TextCap::Characters(TURN_CAP + open(goal).chars().count())
}
