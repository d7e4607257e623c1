//! How the end of a goal is shown: its items, what is asked for, and who said that it is met.

use serde::Serialize;

use super::GoalView;
use steadfast_model::clock::Millis;
use steadfast_model::goal::Goal;
use steadfast_model::goal::item::Item;
use steadfast_model::text;

/// How much of an item and of its proof `goal status` shows; `goal report` shows all of it.
const SHOWN: usize = 120;

/// An acceptance item; `proof` is null while it is open.
#[derive(Debug, Clone, Serialize)]
pub struct ItemView {
    pub text: String,
    pub proof: Option<String>,
    pub at_ms: Option<Millis>,
}

impl From<&Item> for ItemView {
    fn from(item: &Item) -> Self {
        let proof = item.proof.as_ref();
        Self {
            text: item.text.clone(),
            proof: proof.map(|proof| proof.text.clone()),
            at_ms: proof.map(|proof| proof.at_ms),
        }
    }
}

/// What must happen before the goal is complete; `None` if the worker's own word is enough.
pub fn done_when(goal: &Goal) -> Option<String> {
    let count = |number: usize, noun| text::count(i64::try_from(number).unwrap_or(i64::MAX), noun);
    let mut parts = Vec::new();
    if !goal.verify.is_empty() {
        let verb = if goal.verify.len() == 1 { "passes" } else { "pass" };
        parts.push(format!("{} {verb}", count(goal.verify.len(), "command")));
    }
    if !goal.items.is_empty() {
        let verb = if goal.items.len() == 1 { "has its proof" } else { "have their proofs" };
        parts.push(format!("{} {verb}", count(goal.items.len(), "item")));
    }
    parts.extend(goal.judge.then(|| "the evaluator agrees".to_owned()));
    parts.extend(goal.sign_off.then(|| "you sign off".to_owned()));
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The lines of `goal status` about the items.
pub(super) fn item_lines(items: &[ItemView]) -> Vec<String> {
    if items.is_empty() {
        return Vec::new();
    }
    let proven = items.iter().filter(|item| item.proof.is_some()).count();
    let heading = format!("items: {proven} of {} proven", items.len());
    let line = |(number, item): (usize, &ItemView)| {
        let shown = |text: &str| text::headline(&text::one_line(text), SHOWN);
        match &item.proof {
            Some(proof) => format!("  ✓ {number}. {}: {}", shown(&item.text), shown(proof)),
            None => format!("  ☐ {number}. {}", shown(&item.text)),
        }
    };
    std::iter::once(heading).chain((1..).zip(items).map(line)).collect()
}

impl GoalView {
    /// The status in words: `complete (unverified)`.
    pub fn state(&self) -> String {
        if self.is_unverified { format!("{} (unverified)", self.status) } else { self.status.to_string() }
    }
}
