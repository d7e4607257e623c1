//! How runs are shown: the table of `list`, the page of `status` (`view/status.rs`), and the JSON behind both.

mod status;

use serde_json::{Value, json};
use steadfast_core::clock;
use steadfast_core::price::dollars;
use steadfast_core::run::RunStatus;
use steadfast_core::store::{RunFilter, RunLine};
use steadfast_core::text;
use steadfast_engine::files::{self, RegistryEntry};
use steadfast_engine::plan::{Fault, Level};

use super::Here;
use super::finding::is_starting;
use crate::failure::Failure;
use crate::output::{Done, columns};

pub(super) use status::{status, status_json, status_text};

const MOST_RUNS: usize = 1_000;

pub(super) fn list(here: &Here, all: bool) -> Result<Done, Failure> {
    let project = here.project_dir();
    let mut lines = Vec::new();
    if let Some(store) = here.existing_store()? {
        let filter = RunFilter {
            project_dir: (!all).then_some(project.as_str()),
            kind: Some(here.kind),
            ..RunFilter::default()
        };
        lines = store.read().runs(filter, MOST_RUNS)?;
    }
    if !all {
        // An earlier run of the same name is history; the name means the newest.
        let mut seen = std::collections::BTreeSet::new();
        lines.retain(|line| seen.insert(line.name.clone()));
    }
    let mut rows = Vec::new();
    let mut objects = Vec::new();
    for line in &lines {
        let is_starting = is_starting(line.status, line.engine, line.updated_at_ms, clock::now());
        let is_live = line.status == RunStatus::Running && (is_starting || here.is_driven(&line.run_id)?);
        objects.push(line_json(line, is_live));
        rows.push(line_row(line, is_live, all));
    }
    for entry in by_hand(here, &lines) {
        objects.push(entry_json(here, &entry));
        rows.push(entry_row(here, &entry, all));
    }
    let text = if rows.is_empty() {
        let up = here.go_up();
        format!(
            "no {}s here yet\nstart one: steadfast {0} run …; `steadfast {0} types` shows what there is{up}",
            here.kind
        )
    } else {
        let mut heads = vec!["NAME", "TYPE", "STATUS", "ITERATION", "TOKENS", "COST", "STARTED"];
        if all {
            heads.push("PROJECT");
        }
        let is_gone = |(line, object): (&RunLine, &Value)| is_gone(line.status, object["live"] == json!(true));
        let kind = here.kind;
        let advice = "\n\nthe engine of a run marked `gone` died";
        let advice = format!("{advice}: `steadfast {kind} resume NAME` goes on, `kill NAME` ends it");
        let is_told = lines.iter().zip(&objects).any(is_gone);
        table(&heads, &rows) + if is_told { &advice } else { "" }
    };
    Ok(Done { text, json: json!({"runs": objects}), code: 0 })
}

fn is_gone(status: RunStatus, is_live: bool) -> bool {
    status == RunStatus::Running && !is_live
}

/// Entries of the registry that no run of ours stands behind. They are shown as they are.
fn by_hand(here: &Here, lines: &[RunLine]) -> Vec<RegistryEntry> {
    // Who cannot read the registry still sees the store.
    let entries = files::registry(&here.project).unwrap_or_default();
    let is_ours = |entry: &RegistryEntry| {
        entry.run_id.is_some() || lines.iter().any(|line| files::registry_key(line.kind, &line.name) == entry.key)
    };
    entries.into_iter().filter(|entry| entry.kind == Some(here.kind) && !is_ours(entry)).collect()
}

/// The entry of a name that no run of ours stands behind.
pub(super) fn entry_by_hand(here: &Here, name: &str) -> Option<RegistryEntry> {
    let key = files::registry_key(here.kind, name);
    by_hand(here, &[]).into_iter().find(|entry| entry.key == key)
}

/// The page of an entry that somebody wrote by hand.
pub(super) fn entry_page(here: &Here, entry: &RegistryEntry) -> Done {
    let heads = ["NAME", "TYPE", "STATUS", "ITERATION", "TOKENS", "COST", "STARTED"];
    let mut text = table(&heads, &[entry_row(here, entry, false)]);
    if let Some(note) = &entry.note {
        text = format!("{text}\nnote: {}", text::headline(note, 200));
    }
    let mut json = entry_json(here, entry);
    // Nothing is known of what it did.
    json["history"] = json!([]);
    Done { text, json, code: 0 }
}

fn name_of(here: &Here, entry: &RegistryEntry) -> String {
    let prefix = format!("{}-", here.kind);
    text::headline(entry.key.strip_prefix(&prefix).unwrap_or(&entry.key), 64)
}

fn entry_json(here: &Here, entry: &RegistryEntry) -> Value {
    json!({
        "name": name_of(here, entry), "kind": here.kind, "status": entry.status, "iteration": null,
        "max_iterations": entry.max_iterations, "type": entry.title, "started_at": entry.started_at, "completed_at": null, "reason": entry.note,
        "tokens": null, "cost_usd": null, "pid": null, "live": false, "by_hand": true,
    })
}

fn entry_row(here: &Here, entry: &RegistryEntry, all: bool) -> Vec<String> {
    let dash = || "-".to_owned();
    let started = entry.started_at.as_deref().and_then(clock::parse_rfc3339).map_or_else(dash, clock::to_local);
    let status = format!("{} (entered by hand)", text::headline(&entry.status, 30));
    let title = entry.title.as_deref().map_or_else(dash, |title| text::headline(title, 40));
    let most = entry.max_iterations.map_or_else(dash, |most| format!("-/{most}"));
    let mut row = vec![name_of(here, entry), title, status, most, dash(), dash(), started];
    if all {
        row.push(here.project_dir());
    }
    row
}

fn line_json(line: &RunLine, is_live: bool) -> Value {
    json!({
        "name": line.name,
        "kind": line.kind,
        "status": line.status,
        "iteration": line.iterations,
        "max_iterations": line.max_iterations,
        "started_at": clock::to_rfc3339(line.started_at_ms),
        "completed_at": line.completed_at_ms.map(clock::to_rfc3339),
        "reason": line.reason,
        "tokens": line.tokens,
        "cost_usd": dollars(line.cost_micros),
        "pid": line.engine.filter(|_| is_live).map(|engine| engine.pid),
        "live": is_live,
        "type": line.title,
        "stage": line.stage,
        "project": line.project_dir,
        "run_id": line.run_id,
    })
}

fn line_row(line: &RunLine, is_live: bool, all: bool) -> Vec<String> {
    let mut row = vec![
        line.name.clone(),
        line.title.clone(),
        status_words(line.status, line.reason.as_deref(), is_live, line.is_stop_requested),
        format!("{}/{}", line.iterations, line.max_iterations),
        text::short_number(line.tokens),
        text::usd(line.cost_micros),
        clock::to_local(line.started_at_ms),
    ];
    if all {
        row.push(line.project_dir.clone());
    }
    row
}

fn status_words(status: RunStatus, reason: Option<&str>, is_live: bool, is_stopping: bool) -> String {
    let reason = reason.map(|reason| text::headline(reason, 60)).filter(|reason| *reason != status.to_string());
    match (status, reason) {
        (RunStatus::Running, _) if !is_live => "gone (was running)".to_owned(),
        (RunStatus::Running, _) if is_stopping => "running (stopping)".to_owned(),
        (status, Some(reason)) => format!("{status} ({reason})"),
        (status, None) => status.to_string(),
    }
}

/// A table with its heads.
fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    columns(&[&[heads], rows].concat())
}

/// Faults of a definition for scripts.
pub(in crate::commands) fn faults_json(faults: &[Fault]) -> Value {
    let level = |fault: &Fault| if fault.level == Level::Error { "error" } else { "warning" };
    let list: Vec<Value> = faults
        .iter()
        .map(|fault| {
            json!({"file": fault.file, "line": fault.line, "level": level(fault), "message": fault.what, "fix": fault.fix})
        })
        .collect();
    json!(list)
}

/// Faults of a definition for people.
pub(in crate::commands) fn told(faults: &[Fault]) -> String {
    faults.iter().map(|fault| text::printable(&fault.to_string())).collect::<Vec<_>>().join("\n")
}
