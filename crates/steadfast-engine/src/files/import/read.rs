//! One state file of an older tool. Words differ (`complete`, `completion_reason`), votes are texts, stages count from 0,
//! histories hold an iteration twice after a crash or go on from an earlier run: all of it is brought into our shape.

use serde_json::Value;
use steadfast_model::clock;
use steadfast_model::clock::Millis;
use steadfast_model::run::name::RunName;
use steadfast_model::run::{AgentDecision, AttemptId, RunKind, RunStatus};
use steadfast_model::text;
use steadfast_store::IterationRow;

use super::{Imported, ImportedStage, loop_of, pipeline_state};

const LONGEST_TEXT: usize = 2_000;

/// Reads a state; an error says why it is none. `parts` is its path in the project.
pub(super) fn run(state: &Value, parts: &[&str]) -> Result<Imported, String> {
    let in_directory = parts.contains(&pipeline_state::DIRECTORY);
    let from_path = if in_directory { parts.get(2).copied() } else { parts.last().and_then(|file| loop_of(file)) };
    let name = word(state, "session").or_else(|| from_path.map(str::to_owned)).ok_or("names no session")?;
    let _: RunName = name.parse().map_err(|error| format!("is of a session that cannot be: {error}"))?;
    let said = word(state, "status").ok_or("has no status")?;
    let status = status(&said).ok_or_else(|| format!("has the status `{}`", text::headline(&said, 40)))?;
    let kind = match word(state, "type").as_deref() {
        Some("pipeline") => RunKind::Pipeline,
        None if in_directory => RunKind::Pipeline,
        _ => RunKind::Loop,
    };
    let mut warnings = Vec::new();
    let current = number(state, "current_stage").unwrap_or(0);
    let stages: Vec<ImportedStage> = list(state, "stages").map(stage).collect();
    let title = ["loop_type", "pipeline"].iter().find_map(|key| word(state, key));
    let title = title.or_else(|| stages.first().filter(|_| kind == RunKind::Loop).map(|stage| stage.name.clone()));
    let reason = ["reason", "completion_reason"].iter().find_map(|key| words(state, key));
    let error = state.get("error").and_then(|error| words(error, "message"));
    let reached = if counts_from_zero(state, parts) { current.saturating_add(1) } else { current };
    let reached = reached.clamp(1, u32::try_from(stages.len().max(1)).unwrap_or(u32::MAX));
    Ok(Imported {
        id: String::new(),
        file: std::path::PathBuf::new(),
        kind,
        title: title.unwrap_or_else(|| name.clone()),
        status,
        reason: reason.or(error),
        started_at_ms: time(state, "started_at"),
        completed_at_ms: time(state, "completed_at").or_else(|| time(state, "failed_at")),
        max_iterations: number(state, "max_iterations"),
        stage: reached,
        iterations: iterations(state, &stages, &mut warnings),
        progress: None,
        stages,
        warnings,
        name,
    })
}

/// All tools but the one whose fields were documented count stages from 0.
fn counts_from_zero(state: &Value, parts: &[&str]) -> bool {
    let has = |name: &str| state.get(name).is_some();
    let is_alone = parts.len() == 2;
    // One file for all sessions; a directory for each run; pipelines, and loops of the first engine.
    (is_alone && parts.last() == Some(&"state.json"))
        || ["iteration_completed", "event_offset", "iteration_started"].into_iter().any(has)
        || list(state, "stages").any(|stage| stage.get("index").is_some())
        || (is_alone && !has("type"))
}

pub(super) fn status(word: &str) -> Option<RunStatus> {
    match word {
        "complete" | "max_iterations" => Some(RunStatus::Completed),
        other => other.parse().ok(),
    }
}

fn stage(stage: &Value) -> ImportedStage {
    let said = word(stage, "status").unwrap_or_else(|| "running".into());
    let ended = said == "complete" || said == "completed";
    // Those who wrote one time only wrote the last change.
    let changed = time(stage, "timestamp");
    ImportedStage {
        name: word(stage, "name").unwrap_or_default(),
        loop_type: word(stage, "loop"),
        runs: number(stage, "runs"),
        status: if ended { "completed".into() } else { said },
        started_at_ms: time(stage, "started_at").or(changed.filter(|_| !ended)),
        completed_at_ms: time(stage, "completed_at").or(changed.filter(|_| ended)),
        reason: words(stage, "reason"),
    }
}

/// The history, each iteration of a stage once and numbered in order.
fn iterations(state: &Value, stages: &[ImportedStage], warnings: &mut Vec<String>) -> Vec<IterationRow> {
    let mut all: Vec<IterationRow> = Vec::new();
    let mut last_said = 0;
    let mut before = time(state, "started_at").unwrap_or_default();
    for entry in list(state, "history") {
        let Some(said) = number(entry, "iteration") else { continue };
        let own = stage_of(entry, stages);
        let at = time(entry, "timestamp").unwrap_or(before);
        let attempt = number(entry, "attempts").unwrap_or(1).max(1);
        let mut row = IterationRow {
            id: AttemptId { stage: own, iteration: said, attempt },
            plateau: vote(entry),
            reasoning: words(entry, "reasoning").or_else(|| words(entry, "reason")),
            summary: words(entry, "summary"),
            decision: decision(entry),
            started_at_ms: before.min(at),
            committed_at_ms: at,
            ..IterationRow::default()
        };
        before = at;
        let previous = all.iter().rev().find(|other| other.id.stage == own).map_or(0, |other| other.id.iteration);
        if said == last_said && all.last().is_some_and(|other| other.id.stage == own) {
            warnings.push(format!("iteration {said} was written twice; the last one is kept"));
            row.id.iteration = previous;
            all.pop();
        } else if said <= previous {
            if said == 1 {
                warnings.push(format!("an earlier run of that name is in the same history, up to {previous}"));
            }
            row.id.iteration = previous.saturating_add(1);
        }
        last_said = said;
        all.push(row);
    }
    all
}

/// The stage of an entry, from 1: by number or by name; without any, the only one.
fn stage_of(entry: &Value, stages: &[ImportedStage]) -> u32 {
    let by_name = word(entry, "stage").and_then(|name| stages.iter().position(|stage| stage.name == name));
    let by_name = by_name.and_then(|at| u32::try_from(at).ok()).map(|at| at.saturating_add(1));
    by_name.or_else(|| number(entry, "stage")).unwrap_or(1).max(1)
}

/// A vote was a boolean on paper, a text in fact, and later a signal or a decision.
fn vote(entry: &Value) -> Option<bool> {
    match entry.get("plateau") {
        Some(Value::Bool(vote)) => return Some(*vote),
        Some(Value::String(vote)) => {
            let vote = vote.trim().to_lowercase();
            return Some(vote.starts_with("true") || vote.starts_with("yes"));
        }
        _ => {}
    }
    let signal = entry.get("signals").and_then(|signals| signals.get("plateau_suspected")).and_then(Value::as_bool);
    signal.or_else(|| match decision(entry)? {
        AgentDecision::Stop => Some(true),
        AgentDecision::Continue => Some(false),
        AgentDecision::Error => None,
    })
}

fn decision(entry: &Value) -> Option<AgentDecision> {
    word(entry, "decision")?.parse().ok()
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn word(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(str::to_owned).filter(|word| !word.is_empty())
}

fn words(value: &Value, name: &str) -> Option<String> {
    word(value, name).map(|words| text::cut(text::printable(&words).trim(), LONGEST_TEXT))
}

/// A whole number, also one that was written as a text.
pub(super) fn number(value: &Value, name: &str) -> Option<u32> {
    match value.get(name)? {
        Value::Number(number) => u32::try_from(number.as_u64()?).ok(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn time(value: &Value, name: &str) -> Option<Millis> {
    moment(value.get(name)?.as_str()?)
}

/// Times in UTC, or with an offset as the first engine wrote them.
pub(super) fn moment(text: &str) -> Option<Millis> {
    clock::parse_rfc3339(text.trim())
}
