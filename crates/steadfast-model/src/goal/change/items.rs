//! Proofs of items, and the request for a person's sign-off.

use serde_json::json;

use super::{Change, Refusal, Span, may_complete, pause_for};
use crate::clock::Millis;
use crate::goal::event::{Event, EventKind};
use crate::goal::item::{self, ItemError};
use crate::goal::proof::CompletedBy;
use crate::goal::{Goal, PausedReason};

/// Adds proofs to items, each with the number of its item from 1. A new proof replaces an older one.
pub fn prove_items(goal: &Goal, proofs: &[(i64, String)], now: Millis) -> Result<Change, Refusal> {
    may_complete(goal, CompletedBy::Verification)?;
    let mut after = goal.changed(now);
    let mut events = Vec::new();
    for (number, given) in proofs {
        let index = number.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        let found = index.and_then(|index| after.items.get_mut(index)).ok_or(ItemError::Unknown(*number));
        let item = found.map_err(refused)?;
        let proof = item::proof(*number, &item.text, given, now).map_err(refused)?;
        events.push(Event::new(EventKind::ItemProven, json!({"item": number, "text": item.text, "proof": proof.text})));
        item.proof = Some(proof);
    }
    Ok(Change { goal: after, events, span: Span::Keep })
}

fn refused(error: ItemError) -> Refusal {
    Refusal::NotProven { message: error.to_string(), hint: error.hint().to_owned() }
}

/// Everything that the goal asks of the agent is done; a person must agree.
pub(super) fn request_sign_off(goal: &Goal, by: CompletedBy, now: Millis) -> Change {
    let event = Event::new(EventKind::SignOffRequested, json!({"claimed_by": by}));
    // The rest of the turn that asked for it is still this goal's.
    Change { span: Span::Keep, ..pause_for(goal, PausedReason::SignOff, event, now) }
}

impl Goal {
    pub(super) fn clear_proofs(&mut self) {
        for item in &mut self.items {
            item.proof = None;
        }
    }
}
