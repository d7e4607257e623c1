//! Adds what a goal spent to its numbers.

use serde_json::json;

use crate::clock::Millis;
use crate::goal::change::{Change, Span};
use crate::goal::event::{Event, EventKind};
use crate::goal::{Goal, GoalStatus};
use crate::limit::Axis;

/// What a pass over the transcripts adds to a goal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Charge {
    pub worker_tokens: i64,
    pub subagent_tokens: i64,
    /// The evaluator's part of `subagent_tokens`.
    pub evaluator_tokens: i64,
    pub cache_read_tokens: i64,
    pub cost_micros: i64,
    pub unpriced_tokens: i64,
}

impl Charge {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            worker_tokens: self.worker_tokens + other.worker_tokens,
            subagent_tokens: self.subagent_tokens + other.subagent_tokens,
            evaluator_tokens: self.evaluator_tokens + other.evaluator_tokens,
            cache_read_tokens: self.cache_read_tokens + other.cache_read_tokens,
            cost_micros: self.cost_micros + other.cost_micros,
            unpriced_tokens: self.unpriced_tokens + other.unpriced_tokens,
        }
    }
}

/// Adds tokens and money. An active goal that reaches its budget becomes `budget_limited` here, in the same
/// change, so that no reader ever sees an active goal above its budget.
pub fn charge(goal: &Goal, add: Charge, now: Millis) -> Option<Change> {
    if add.is_nothing() {
        return None;
    }
    let mut after = goal.changed(now);
    after.tokens_used = (after.tokens_used + add.worker_tokens).max(0);
    after.subagent_tokens = (after.subagent_tokens + add.subagent_tokens).max(0);
    after.evaluator_tokens = (after.evaluator_tokens + add.evaluator_tokens).max(0);
    after.cache_read_tokens = (after.cache_read_tokens + add.cache_read_tokens).max(0);
    after.cost_micros = (after.cost_micros + add.cost_micros).max(0);
    after.unpriced_tokens = (after.unpriced_tokens + add.unpriced_tokens).max(0);
    let spent = after.reached_limit(now).is_some_and(Axis::is_budget);
    if after.status == GoalStatus::Active && spent {
        after.stop_clock(now);
        after.status = GoalStatus::BudgetLimited;
    }
    let payload = json!({
        "worker_tokens": add.worker_tokens, "subagent_tokens": add.subagent_tokens,
        "cache_read_tokens": add.cache_read_tokens, "cost_micros": add.cost_micros,
    });
    let tokens_delta = Some(add.worker_tokens + add.subagent_tokens);
    let event = Event { tokens_delta, ..Event::new(EventKind::TokensAccounted, payload) };
    Some(Change { goal: after, events: vec![event], span: Span::Keep })
}
