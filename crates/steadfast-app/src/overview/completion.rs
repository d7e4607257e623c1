//! How the end of a goal is shown: its items, what is asked for, and who said that it is met.

use serde::Serialize;

use super::{GoalView, next};
use steadfast_model::clock::Millis;
use steadfast_model::goal::item::Item;
use steadfast_model::goal::proof::CompletedBy;
use steadfast_model::goal::{Goal, GoalStatus, PausedReason};
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

/// What counts as done, and who said that it is.
#[derive(Debug, Clone, Serialize)]
pub struct CompletionView {
    pub items: Vec<ItemView>,
    /// The evaluator must agree.
    pub judge: bool,
    /// A person must agree.
    pub sign_off: bool,
    /// Null unless the goal is complete.
    pub completed_by: Option<CompletedBy>,
    /// Whether more than the worker's own word says so.
    pub verified: bool,
    /// What must happen before it is complete.
    #[serde(skip)]
    pub when: Option<String>,
    /// It is complete by the worker's own word.
    #[serde(skip)]
    is_unverified: bool,
}

impl CompletionView {
    pub(super) fn of(goal: &Goal) -> Self {
        Self {
            items: goal.items.iter().map(ItemView::from).collect(),
            judge: goal.judge,
            sign_off: goal.sign_off,
            completed_by: goal.completed_by,
            verified: goal.is_verified(),
            when: done_when(goal),
            is_unverified: goal.is_unverified(),
        }
    }

    /// The lines of `goal status`.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let when = self.when.as_ref().map(|parts| format!("done when: {parts}"));
        when.into_iter().chain(item_lines(&self.items))
    }
}

/// How the goal that a run pursues stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunGoal {
    pub status: GoalStatus,
    pub paused_reason: Option<PausedReason>,
    pub completed_by: Option<CompletedBy>,
    pub verified: bool,
    /// In words: `complete (unverified)`.
    #[serde(skip)]
    pub state: String,
    /// What the user can do.
    #[serde(skip)]
    pub next: String,
}

impl From<&Goal> for RunGoal {
    fn from(goal: &Goal) -> Self {
        Self {
            status: goal.status,
            paused_reason: goal.paused_reason,
            completed_by: goal.completed_by,
            verified: goal.is_verified(),
            state: goal.state(),
            next: next::of_run(goal),
        }
    }
}

/// What must happen before the goal is complete; `None` if the worker's own word is enough.
fn done_when(goal: &Goal) -> Option<String> {
    let count = |number: usize, noun| text::count(number, noun);
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
fn item_lines(items: &[ItemView]) -> Vec<String> {
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
        if self.done.is_unverified { format!("{} (unverified)", self.status) } else { self.status.to_string() }
    }
}
