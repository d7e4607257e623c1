//! The fields of a result: our own, and those of other tools: `status.json` (`decision`, `reason`, `work`, `errors`) and
//! the newer `result.json` (`work`, `artifacts`, `signals`). Those tools count the `stop` of an agent as its vote where
//! iterations vote, so that is what it is here too; a `stop` of our own result file ends the stage.

use serde_json::{Map, Value};
use steadfast_model::run::{AgentDecision, AgentResult};

use super::{boolean, harmless};
use crate::excerpt;

/// A longer list is cut.
const MOST_ENTRIES: usize = 200;
const ENTRY_CHARS: usize = 1_000;

type Fields = Map<String, Value>;

/// The fields of a result; `None` if none of them is there.
pub(super) fn own(object: &Fields, votes: bool) -> Option<AgentResult> {
    let mut result = AgentResult {
        summary: string(object, "summary"),
        plateau: object.get("plateau").and_then(boolean),
        reasoning: string(object, "reasoning").or_else(|| string(object, "reason")),
        decision: decision(object),
        files: list(object, &["files"]),
        items: list(object, &["items"]),
        errors: list(object, &["errors"]),
        branches: list(object, &["branches"]),
        ..AgentResult::default()
    };
    if let Some(work) = object.get("work").and_then(Value::as_object) {
        add_new(&mut result.items, list(work, &["items_completed"]));
        add_new(&mut result.files, list(work, &["files_touched"]));
    }
    if let Some(artifacts) = object.get("artifacts").and_then(Value::as_object) {
        add_new(&mut result.files, list(artifacts, &["outputs", "paths"]));
    }
    if let Some(signals) = object.get("signals").and_then(Value::as_object) {
        result.reasoning = result.reasoning.take().or_else(|| string(signals, "notes"));
        if string(signals, "risk").is_some_and(|risk| risk.eq_ignore_ascii_case("high")) {
            result.decision = Some(AgentDecision::Error);
        } else if let Some(stop) = signals.get("plateau_suspected").and_then(boolean) {
            let decision = if stop { AgentDecision::Stop } else { AgentDecision::Continue };
            fill_in(&mut result, AgentResult { decision: Some(decision), ..AgentResult::default() }, votes);
        }
    }
    (result != AgentResult::default()).then_some(result)
}

/// Adds what a status file says to a result that lacks it.
pub(super) fn fill_in(result: &mut AgentResult, mut status: AgentResult, votes: bool) {
    result.summary = result.summary.take().or(status.summary);
    result.reasoning = result.reasoning.take().or(status.reasoning);
    for (own, other) in [
        (&mut result.files, &mut status.files),
        (&mut result.items, &mut status.items),
        (&mut result.errors, &mut status.errors),
        (&mut result.branches, &mut status.branches),
    ] {
        if own.is_empty() {
            std::mem::swap(own, other);
        }
    }
    if result.plateau.is_some() || result.decision.is_some() {
        return;
    }
    result.plateau = status.plateau;
    match status.decision {
        Some(AgentDecision::Stop) if votes => result.plateau = Some(true),
        Some(AgentDecision::Continue) if votes => result.plateau = result.plateau.or(Some(false)),
        decision => result.decision = decision,
    }
}

fn string(object: &Fields, name: &str) -> Option<String> {
    Some(harmless(object.get(name)?.as_str()?)).filter(|text| !text.is_empty())
}

fn decision(object: &Fields) -> Option<AgentDecision> {
    string(object, "decision").and_then(|word| word.to_lowercase().parse().ok())
}

/// The texts of these lists, each once. Agents also write single texts, numbers and objects.
fn list(object: &Fields, names: &[&str]) -> Vec<String> {
    let mut texts = Vec::new();
    for value in names.iter().filter_map(|name| object.get(*name)) {
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        add_new(&mut texts, values.iter().take(MOST_ENTRIES).filter_map(entry).collect());
    }
    texts
}

fn entry(value: &Value) -> Option<String> {
    let words = match value {
        Value::Null | Value::Bool(_) => return None,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let words = excerpt::head(&words, ENTRY_CHARS);
    (!words.is_empty()).then_some(words)
}

fn add_new(texts: &mut Vec<String>, more: Vec<String>) {
    for one in more {
        if texts.len() < MOST_ENTRIES && !texts.contains(&one) {
            texts.push(one);
        }
    }
}
