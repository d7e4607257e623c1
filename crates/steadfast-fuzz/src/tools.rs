//! The arguments of tool calls, which a model writes.

use serde_json::{Map, Value};
use steadfast_app::tool_args::{
    ArgumentError, CreateGoal, GetGoal, Recall, RecordVerdict, UpdateGoal, UpdateObjective, WaitGoal, WhichGoal,
    objective, read,
};
use steadfast_model::goal::wait::WaitCondition;

const NOW: i64 = 1_800_000_000_000;
const LONGEST: usize = 600;

/// Every tool gets the same arguments: each takes them, or says in one line what is wrong.
pub(crate) fn arguments(data: &[u8]) {
    let Ok(Value::Object(given)) = serde_json::from_slice(data) else { return };
    said(read::<GetGoal>(&given).map(|_| ()));
    said(read::<WhichGoal>(&given).map(|_| ()));
    said(create(&given));
    said(update(&given));
    said(verdict(&given));
    said(read::<UpdateObjective>(&given).and_then(|new| objective(&new.objective)).map(|new| assert_objective(&new)));
    said(wait(&given));
    said(search(&given));
}

fn said(done: Result<(), ArgumentError>) {
    let Err(error) = done else { return };
    let text = error.to_string();
    assert!(!text.is_empty() && text.chars().count() <= LONGEST, "{text}");
    assert!(!text.chars().any(char::is_control), "{text:?}");
    assert!(!error.hint().is_empty());
}

fn assert_objective(objective: &str) {
    assert!(!objective.trim().is_empty() && objective.chars().count() <= 4_000);
}

fn create(given: &Map<String, Value>) -> Result<(), ArgumentError> {
    let new = read::<CreateGoal>(given)?.new_goal()?;
    assert_objective(&new.objective);
    assert!(new.budget.limits.iter().all(|(_, amount)| amount > 0), "{:?}", new.budget);
    assert!(new.verify.is_empty(), "only the user names commands");
    Ok(())
}

fn update(given: &Map<String, Value>) -> Result<(), ArgumentError> {
    let update = read::<UpdateGoal>(given)?;
    assert!(update.proofs().is_err() || update.has_items());
    let reason = update.blocked_reason()?;
    assert!(!reason.is_empty() && reason.chars().count() <= 1_000);
    Ok(())
}

fn verdict(given: &Map<String, Value>) -> Result<(), ArgumentError> {
    let verdict = read::<RecordVerdict>(given)?;
    assert!(verdict.reason()?.is_none_or(|reason| reason.chars().count() <= 1_000));
    let evidence = verdict.evidence()?;
    assert!(evidence.len() <= 20 && evidence.iter().all(|item| item.chars().count() <= 501), "{evidence:?}");
    Ok(())
}

fn wait(given: &Map<String, Value>) -> Result<(), ArgumentError> {
    let request = read::<WaitGoal>(given)?.request(NOW)?;
    assert!(request.until.is_some() || request.condition.is_some());
    assert!(request.until.is_none_or(|until| until > NOW), "{request:?}");
    if let Some(WaitCondition::Command(command)) = &request.condition {
        assert!(given.get("command").and_then(Value::as_str) == Some(command), "no other command");
    }
    Ok(())
}

fn search(given: &Map<String, Value>) -> Result<(), ArgumentError> {
    let recall = read::<Recall>(given)?;
    let search = recall.search()?;
    assert!((1..=50).contains(&search.limit) && !search.query.is_empty() && search.query.chars().count() <= 400);
    Ok(())
}
