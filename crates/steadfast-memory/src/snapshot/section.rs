//! The sections of a snapshot: lists of items, of which as many are shown as there is room for. The last prompts and the
//! next tasks come first; then every section gets a few items, the most valuable first; the remaining room is filled in
//! the same order.

use super::item::attribute;
use steadfast_model::host::TextCap;
use steadfast_model::memory::Category::{
    self, Decision, Environment, Error, File, Fix, Git, Intent, Prompt, Rule, Skill, Subagent, Task,
};
use steadfast_model::text;

/// The sections in the order of the snapshot: what they list, their tag, and the most items that are shown.
pub(super) const SECTIONS: [(Category, &str, usize); 12] = [
    (File, "files", 12),
    (Error, "errors", 8),
    (Fix, "fixes", 6),
    (Decision, "decisions", 8),
    (Rule, "rules", 8),
    (Git, "git", 8),
    (Task, "task_state", 20),
    (Environment, "environment", 4),
    (Subagent, "subagents", 6),
    (Skill, "skills", 12),
    (Intent, "intent", 1),
    (Prompt, "recent_user_messages", 3),
];

/// The sections that share the remaining room, the most valuable first: what the user required, what is broken, where
/// work happened, and last what can be looked up elsewhere.
const VALUE: [Category; 10] = [Intent, Rule, Decision, Error, File, Environment, Git, Fix, Subagent, Skill];

/// Items of each section before any section gets more.
const FAIR_SHARE: usize = 3;
/// Open tasks that precede everything that is not pinned.
const PINNED_TASKS: usize = 10;

pub(super) struct SnapshotSection {
    pub(super) category: Category,
    pub(super) tag: &'static str,
    /// Not escaped. Oldest first, of which the newest are shown; tasks are in their order, of which the first are.
    pub(super) items: Vec<String>,
    /// How many there are, including those beyond the most that are shown.
    pub(super) total: usize,
}

impl SnapshotSection {
    /// The section with `shown` items; empty without any.
    pub(super) fn render(&self, shown: usize) -> String {
        if shown == 0 {
            return String::new();
        }
        let from = if self.category == Task { 0 } else { self.items.len().saturating_sub(shown) };
        let line = |item: &String| match self.category {
            Intent => format!("<intent mode=\"{}\"/>\n", attribute(item)),
            Prompt => format!("<message>{}</message>\n", text::escape_xml(item)),
            _ => format!("- {}\n", text::escape_xml(item)),
        };
        let lines: String = self.items.iter().skip(from).take(shown).map(line).collect();
        if self.category == Intent {
            return lines;
        }
        format!("<{tag} count=\"{}\">\n{lines}</{tag}>\n", self.total, tag = self.tag)
    }
}

/// For each section, how many items fit into the room together.
pub(super) fn choose(sections: &[SnapshotSection], cap: TextCap, mut room: usize) -> Vec<usize> {
    let pinned = [(Prompt, 1), (Task, FAIR_SHARE), (Prompt, usize::MAX), (Task, PINNED_TASKS)];
    let each = |most: usize| VALUE.map(|category| (category, most));
    let steps = [pinned.as_slice(), &each(1), &each(FAIR_SHARE), &[(Task, usize::MAX)], &each(usize::MAX)].concat();
    let mut shown = vec![0; sections.len()];
    for (category, wanted) in steps {
        let mut with_shown = sections.iter().zip(&mut shown);
        let Some((section, shown)) = with_shown.find(|(section, _)| section.category == category) else { continue };
        let taken = cap.measure(&section.render(*shown));
        for more in (*shown + 1..=wanted.min(section.items.len())).rev() {
            let cost = cap.measure(&section.render(more)).saturating_sub(taken);
            if cost <= room {
                room -= cost;
                *shown = more;
                break;
            }
        }
    }
    shown
}
