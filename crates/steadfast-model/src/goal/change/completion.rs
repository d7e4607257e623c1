//! The end of a goal: who may complete it when, proofs of items, verdicts, and the request for a person's sign-off.

use serde_json::json;

use super::{Change, Refusal, Span, pause_for};
use crate::clock::Millis;
use crate::goal::event::{Event, EventKind};
use crate::goal::item::{self, ItemError};
use crate::goal::proof::{CompletedBy, Proof};
use crate::goal::{Goal, GoalStatus, PausedReason};
use crate::text;

/// Completes the goal. A worker's word counts only while the goal is active; a verdict or passing verification
/// commands also close one that its budget or its accounting stopped; a person always may. A goal that needs a person's
/// sign-off waits for it instead.
pub fn complete(goal: &Goal, proof: &Proof, now: Millis) -> Result<Change, Refusal> {
    may_complete(goal, proof.by())?;
    if !proof.is_for(goal) {
        return Err(Refusal::NotProven {
            message: "the proof is for another goal, or for an earlier text of the objective".into(),
            hint: "prove the goal again".into(),
        });
    }
    if goal.sign_off && proof.by() != CompletedBy::User {
        return Ok(request_sign_off(goal, proof.by(), now));
    }
    let mut payload = json!({"completed_by": proof.by().to_string()});
    if goal.status != GoalStatus::Active {
        payload["from_status"] = json!(goal.status);
        payload["paused_reason"] = json!(goal.paused_reason);
    }
    let mut after = goal.changed(now);
    after.leave_active(GoalStatus::Complete, None, now);
    after.completed_by = Some(proof.by());
    after.accounting_uncertain = false;
    let span = if proof.by() == CompletedBy::User { Span::Close } else { Span::Keep };
    Ok(Change::new(after, proof.by().event_kind(), payload, span))
}

/// Whether such a proof can complete the goal in its status; asked before checks that take minutes.
pub fn may_complete(goal: &Goal, by: CompletedBy) -> Result<(), Refusal> {
    let guarded = goal.status == GoalStatus::BudgetLimited
        || matches!(goal.paused_reason, Some(PausedReason::AccountingError | PausedReason::AccountingUncertain));
    let allowed = match by {
        CompletedBy::User => goal.status.is_live(),
        CompletedBy::SelfUpdate => goal.status == GoalStatus::Active,
        CompletedBy::Evaluator | CompletedBy::Verification => goal.status == GoalStatus::Active || guarded,
    };
    if allowed {
        return Ok(());
    }
    let hint = match goal.status {
        GoalStatus::Complete | GoalStatus::Abandoned => "it is over already",
        _ if goal.paused_reason == Some(PausedReason::SignOff) => "it waits for the user to agree: `/goal-complete`",
        _ if guarded => "only a complete verdict of the goal-evaluator, or the user, can close it now",
        _ => "the user must resume it first",
    };
    Err(goal.wrong_state(hint))
}

/// A verdict of the evaluator, kept as an event. It is bound to the text it judged.
pub fn verdict(
    goal: &Goal,
    verdict: &str,
    reason: Option<&str>,
    evidence: &[String],
    now: Millis,
) -> Result<Change, Refusal> {
    if !goal.status.is_live() {
        return Err(goal.wrong_state("it is over already"));
    }
    let payload = json!({
        "verdict": verdict,
        "reason": reason,
        "evidence": evidence,
        "objective_hash": text::fingerprint(&goal.objective),
    });
    Ok(Change::new(goal.changed(now), EventKind::EvaluatorVerdict, payload, Span::Keep))
}

/// Adds proofs to items, each with the number of its item from 1. A new proof replaces an older one.
pub fn prove_items(goal: &Goal, proofs: &[(i64, String)], now: Millis) -> Result<Change, Refusal> {
    may_complete(goal, CompletedBy::Verification)?;
    let mut after = goal.changed(now);
    let mut events = Vec::new();
    for (number, given) in proofs {
        let index = number.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        let found = index.and_then(|index| after.items.get_mut(index)).ok_or(ItemError::Unknown(*number));
        let item = found.map_err(|error| refused(&error))?;
        let proof = item::proof(*number, &item.text, given, now).map_err(|error| refused(&error))?;
        events.push(Event::new(EventKind::ItemProven, json!({"item": number, "text": item.text, "proof": proof.text})));
        item.proof = Some(proof);
    }
    Ok(Change { goal: after, events, span: Span::Keep })
}

fn refused(error: &ItemError) -> Refusal {
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
