//! The text that restores a session after its context was lost: a pure function of the stored memory, within the host's
//! cap at any size. How to search, the goal, the last prompts and open tasks are always there; `<left_out …/>` counts what
//! did not fit. The text of the goal appears once: items that repeat it contain a short mark instead.

mod collect;
mod goal;
mod item;
mod section;

use strum::{Display, EnumIter, IntoStaticStr};

use item::{Cleaner, attribute};
use section::SnapshotSection;
use steadfast_model::host::TextCap;
use steadfast_model::memory::SessionMemory;
use steadfast_model::text;

/// What happened to the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum After {
    Compaction,
    Resume,
    Fork,
    /// The user emptied the conversation on purpose: the snapshot is an offer, not an order.
    Clear,
}

/// Why the snapshot is needed, and what the model still has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Framing {
    pub after: After,
    /// The text of the durable goal is still in the conversation and is not repeated.
    pub goal_in_context: bool,
    /// The same for the goal that the user stated in a prompt.
    pub stated_in_context: bool,
    /// The id of the durable goal, if it belongs to another session and can be adopted.
    pub adopt: Option<String>,
    /// Another sentence about the goal, for instance that its accounting became uncertain.
    pub note: Option<String>,
}

impl Framing {
    /// Assumes that the model has nothing left.
    pub fn after(after: After) -> Self {
        Self { after, goal_in_context: false, stated_in_context: false, adopt: None, note: None }
    }
}

/// The text for the model; empty if there is no memory.
pub fn render(memory: &SessionMemory, cap: TextCap, framing: &Framing) -> String {
    let sections = collect::sections(memory, &Cleaner::of(memory));
    if sections.is_empty() && memory.goal.is_none() && memory.stated.is_none() {
        return String::new();
    }
    let opening = format!(
        "<session_resume session=\"{}\" after=\"{}\" events=\"{}\" compactions=\"{}\">\n",
        attribute(&memory.session_id),
        framing.after,
        memory.events.len(),
        memory.compactions
    );
    let frame = cap.measure(&opening) + cap.measure(CLOSING) + cap.measure(&left_out(&sections, &[]));
    let head = goal::head(memory, framing, cap, cap.room().saturating_sub(frame));
    let room = cap.room().saturating_sub(frame + cap.measure(&head));
    let shown = section::choose(&sections, cap, room);

    let mut snapshot = opening + &head;
    for (section, shown) in sections.iter().zip(&shown) {
        snapshot += &section.render(*shown);
    }
    snapshot += &left_out(&sections, &shown);
    snapshot += CLOSING;
    if cap.fits(&snapshot) {
        return snapshot;
    }
    // Not reached with the caps of the hosts: the fixed text is shorter.
    text::cut(&snapshot, cap.safe_characters())
}

const CLOSING: &str = "</session_resume>";

/// How many items of each section are not shown; longest when none is.
fn left_out(sections: &[SnapshotSection], shown: &[usize]) -> String {
    let shown = shown.iter().copied().chain(std::iter::repeat(0));
    let left = sections.iter().zip(shown).map(|(section, shown)| (section.tag, section.total - shown));
    let left: Vec<String> =
        left.filter(|(_, left)| *left > 0).map(|(tag, left)| format!(" {tag}=\"{left}\"")).collect();
    if left.is_empty() { String::new() } else { format!("<left_out{}/>\n", left.concat()) }
}

#[cfg(test)]
mod tests;
