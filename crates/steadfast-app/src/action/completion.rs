//! Completing a goal: evidence is stored, and a proof is made from what the store holds now.

use serde_json::Value;
use steadfast_model::clock::Millis;
use steadfast_model::goal::event::EventKind;
use steadfast_model::goal::proof::{Basis, Evidence, Proof, Verdict, Verified};
use steadfast_model::goal::{Goal, change};
use steadfast_model::redact::redact;
use steadfast_model::text;
use steadfast_store::{Db, EventRow, Origin, Store, StoreError};

use super::{ActionError, goal_of, refresh, save, still_the_goal};

/// What the caller offers as proof.
#[derive(Debug, Clone)]
pub enum Claim {
    /// An agent says so. `judged`: it says that the evaluator agrees. `verified`: the goal's commands passed; see
    /// [`add_evidence`].
    Agent { judged: bool, verified: Option<Verified> },
    /// A person's word.
    User,
}

/// Stores evidence. Returns what it proves if all commands of the goal passed.
pub fn add_evidence(
    store: &mut Store,
    goal: &Goal,
    evidence: &[Evidence],
    origin: Origin,
    now: Millis,
) -> Result<Verified, ActionError> {
    store.write(|db| {
        let Some(current) = db.goal(&goal.session_id)?.filter(|current| current.goal_id == goal.goal_id) else {
            return Err(ActionError::NoGoal(goal.session_id.clone()));
        };
        Ok(db.record_evidence(&current, evidence, origin, now)?)
    })?;
    match evidence.iter().find(|run| !run.passed()) {
        None => Ok(Verified::from_evidence(goal, evidence)?),
        Some(run) => {
            let how = match (run.timed_out, run.exit_code) {
                (true, _) => "took longer than its time limit".to_owned(),
                (false, Some(code)) => format!("exited with {code}"),
                (false, None) => "was ended by a signal".to_owned(),
            };
            let tail = text::tail(run.output_tail.trim_end(), 1_500);
            let shown = if tail.is_empty() { String::new() } else { format!("\n{tail}") };
            Err(ActionError::VerificationFailed(format!("`{}` {how}{shown}", redact(&run.command))))
        }
    }
}

/// Completes the goal of a session. The proof is made in the transaction that completes it, from the newest facts.
pub fn complete(
    store: &mut Store,
    session_id: &str,
    claim: &Claim,
    origin: Origin,
    now: Millis,
) -> Result<Goal, ActionError> {
    let goal = goal_of(store.read(), session_id)?;
    refresh(store, &goal, origin, now)?;
    store.write(|db| {
        let goal = still_the_goal(db, &goal)?;
        let proof = match claim {
            Claim::Agent { judged, verified } => {
                let verdicts = verdicts(db, &goal)?;
                Proof::from_agent(&goal, &Basis { judged: *judged, verified: verified.clone(), verdicts })?
            }
            Claim::User => Proof::from_user(&goal, origin.actor)?,
        };
        save(db, &goal, change::complete(&goal, &proof, now)?, origin)
    })
}

/// All verdicts on a goal, the newest first.
fn verdicts(db: Db<'_>, goal: &Goal) -> Result<Vec<Verdict>, StoreError> {
    let events = db.events_of_kinds(&goal.goal_id, &[EventKind::EvaluatorVerdict])?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let verdict = |event: EventRow| Verdict {
        verdict: text(&event.payload["verdict"]).unwrap_or_else(|| "unknown".to_owned()),
        reason: text(&event.payload["reason"]),
        objective_hash: text(&event.payload["objective_hash"]).unwrap_or_default(),
    };
    Ok(events.into_iter().rev().map(verdict).collect())
}
