//! What a model is told about a session whose context is gone or going: a pure function of what is remembered, the
//! same text for the same memory, within the host's cap at any size.
//!
//! Always there: how to search, the goal, the last prompts, open tasks. The other sections share the room that is left,
//! in the order of [`section::Kind::VALUE`], and `<left_out …/>` tells what did not fit. The text of the goal is there
//! once: where a prompt or an event repeats it, a short mark stands in its place.

mod collect;
mod fit;
mod goal;
mod item;
mod section;

use std::fmt::Write as _;

use strum::{Display, EnumIter, IntoStaticStr};

use item::{Cleaner, attribute};
use section::Section;
use steadfast_model::host::Cap;
use steadfast_model::memory::Recollection;
use steadfast_model::text;

/// What happened to the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum After {
    Compaction,
    Resume,
    Fork,
    /// The user emptied the conversation on purpose: what is told is an offer, not an order.
    Clear,
}

/// What the snapshot is told for, and what the model still has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Framing {
    pub after: After,
    /// The text of the durable goal is still in the conversation, so that it is not told again.
    pub goal_in_context: bool,
    /// The same for the goal that the user stated in a prompt.
    pub stated_in_context: bool,
    /// The id of the durable goal, if it is another session's that can be taken over here.
    pub adopt: Option<String>,
    /// One more sentence about the goal, for instance that its accounting became uncertain.
    pub note: Option<String>,
}

impl Framing {
    /// A snapshot that takes nothing for granted.
    pub fn after(after: After) -> Self {
        Self { after, goal_in_context: false, stated_in_context: false, adopt: None, note: None }
    }
}

/// The text for the model. Empty if nothing is remembered.
pub fn render(recollection: &Recollection, cap: Cap, framing: &Framing) -> String {
    let sections = collect::sections(recollection, &Cleaner::of(recollection));
    if sections.is_empty() && recollection.goal.is_none() && recollection.stated.is_none() {
        return String::new();
    }
    let opening = opening(recollection, framing.after);
    let frame = cap.measure(&opening) + cap.measure(CLOSING) + cap.measure(&left_out(&sections, &[]));
    let head = goal::head(recollection, framing, cap, cap.room().saturating_sub(frame));
    let room = cap.room().saturating_sub(frame + cap.measure(&head));
    let shown = fit::choose(&sections, cap, room);

    let mut snapshot = opening + &head;
    for (section, shown) in sections.iter().zip(&shown) {
        snapshot += &section.render(*shown);
    }
    snapshot += &left_out(&sections, &shown);
    snapshot += CLOSING;
    if cap.fits(&snapshot) {
        return snapshot;
    }
    // No host's cap is too small for the fixed words.
    text::cut(&snapshot, cap.safe_characters())
}

const CLOSING: &str = "</session_resume>";

fn opening(recollection: &Recollection, after: After) -> String {
    format!(
        "<session_resume session=\"{}\" after=\"{after}\" events=\"{}\" compactions=\"{}\">\n",
        attribute(&recollection.session_id),
        recollection.events.len(),
        recollection.compactions
    )
}

/// What is not told of the sections, in numbers; longest when nothing is shown.
fn left_out(sections: &[Section], shown: &[usize]) -> String {
    let mut numbers = String::new();
    for (at, section) in sections.iter().enumerate() {
        let left = section.total - shown.get(at).copied().unwrap_or(0);
        if left > 0 {
            // Writing to a string cannot fail.
            let _ = write!(numbers, " {}=\"{left}\"", section.kind);
        }
    }
    if numbers.is_empty() { numbers } else { format!("<left_out{numbers}/>\n") }
}

#[cfg(test)]
mod tests;
