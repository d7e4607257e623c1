//! Completing a goal: evidence is stored, and a verdict must be the newest one about this text of the objective.

use serde_json::json;

use super::{ActionError, apply};
use steadfast_model::clock::Millis;
use steadfast_model::goal::Goal;
use steadfast_model::goal::change;
use steadfast_model::goal::change::{CompletedBy, Refusal};
use steadfast_model::text;
use steadfast_store::{Db, Origin, Store, Verification};

/// Stores evidence and says whether all of it is good.
pub fn add_evidence(
    store: &mut Store,
    goal: &Goal,
    runs: &[Verification],
    origin: Origin,
    now: Millis,
) -> Result<(), ActionError> {
    store.write(|db| {
        let Some(current) = db.goal(&goal.session_id)?.filter(|current| current.goal_id == goal.goal_id) else {
            return Err(ActionError::NoGoal(goal.session_id.clone()));
        };
        Ok(db.record_evidence(&current, runs, origin, now)?)
    })?;
    match runs.iter().find(|run| !run.passed()) {
        None => Ok(()),
        Some(run) => {
            let how = match (run.timed_out, run.exit_code) {
                (true, _) => "took longer than its time limit".to_owned(),
                (false, Some(code)) => format!("exited with {code}"),
                (false, None) => "was ended by a signal".to_owned(),
            };
            let tail = text::tail(run.output_tail.trim_end(), 1_500);
            let shown = if tail.is_empty() { String::new() } else { format!("\n{tail}") };
            Err(ActionError::VerificationFailed(format!("`{}` {how}{shown}", run.command)))
        }
    }
}

/// Completes the goal of a session. Verification commands have passed before this is called.
pub fn complete(
    store: &mut Store,
    session_id: &str,
    by: CompletedBy,
    origin: Origin,
    now: Millis,
) -> Result<Goal, ActionError> {
    if by == CompletedBy::Evaluator {
        let goal = store.read().goal(session_id)?.ok_or_else(|| ActionError::NoGoal(session_id.to_owned()))?;
        require_verdict(store.read(), &goal)?;
    }
    apply(store, session_id, origin, now, |goal| {
        // Commands of the user that just passed weigh as much as the evaluator's word.
        let verified = by == CompletedBy::SelfUpdate && !goal.verify.is_empty();
        change::complete(goal, if verified { CompletedBy::Verification } else { by }, now)
    })
}

/// The newest verdict must say `complete`, about this goal and this text of its objective.
fn require_verdict(db: Db<'_>, goal: &Goal) -> Result<(), ActionError> {
    let not_proven = |message: &str| {
        let hint = "let the goal-evaluator subagent judge the goal and record its verdict";
        ActionError::Refused(Refusal::NotProven { message: message.to_owned(), hint: hint.to_owned() })
    };
    let verdict = db
        .last_event(&goal.goal_id, "evaluator_verdict")?
        .ok_or_else(|| not_proven("the evaluator has given no verdict on this goal"))?;
    if verdict.payload["objective_hash"] != json!(text::fingerprint(&goal.objective)) {
        return Err(not_proven("the newest verdict is about an earlier text of the objective"));
    }
    if verdict.payload["verdict"] != json!("complete") {
        let said = verdict.payload["verdict"].as_str().unwrap_or("unknown").to_owned();
        return Err(not_proven(&format!("the newest verdict is '{said}'")));
    }
    Ok(())
}
