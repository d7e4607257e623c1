//! Shows runs: the table of `list`, the page of `status` (`view/status.rs`), and entries of the registry that a user
//! wrote by hand. The values come from `overview::runs`.

mod status;

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};
use steadfast_app::overview::runs::page::{HEADS, run_row};
use steadfast_app::overview::runs::{EntryView, ListedRun, RunList, RunView, is_starting};
use steadfast_engine::files::{self, RegistryEntry};
use steadfast_engine::plan::Fault;
use steadfast_model::redact::redact;
use steadfast_model::run::RunStatus;
use steadfast_model::{clock, text};
use steadfast_store::{RunFilter, Store};

use super::appointments::list_lines;
use super::{RunContext, publish_owed};
use crate::error::CliError;
use crate::output::{self, CommandOutput, CommandResult, columns};

pub(super) use status::{show_detail, show_status, status};

const MOST_RUNS: usize = 1_000;

/// Answers with JSON or text. JSON is written at once, without a [`Value`] in between: histories are long.
fn answer(context: &RunContext, view: &impl Serialize, code: u8, text: impl FnOnce() -> String) -> CommandResult {
    if context.json {
        output::write_json(view).map_err(|error| CliError::unwritten(&error))?;
        return Ok(CommandOutput { code, ..CommandOutput::default() });
    }
    Ok(CommandOutput { text: text(), code, ..CommandOutput::default() })
}

pub(super) fn list(context: &RunContext, all: bool) -> CommandResult {
    let project = context.project_dir();
    let (mut runs, mut appointments) = (Vec::new(), Vec::new());
    if let Some(store) = context.existing_store()? {
        appointments = super::appointments::listed(context, &store, all)?;
        publish_owed(&context.paths, &store, Some(&context.project), MOST_RUNS, &output::note)?;
        let filter = RunFilter {
            project_dir: (!all).then_some(project.as_str()),
            kind: Some(context.kind),
            ..RunFilter::default()
        };
        // Without --all, a name means its newest run only.
        let mut seen = BTreeSet::new();
        for line in store.read().runs(filter, MOST_RUNS)? {
            if all || seen.insert(line.name.clone()) {
                let is_starting = is_starting(line.status, line.engine, line.updated_at_ms, clock::now());
                let is_live = line.status == RunStatus::Running && (is_starting || context.is_driven(&line.run_id)?);
                runs.push(RunView::new(line, is_live));
            }
        }
        repair_registry(context, &store)?;
    }
    let entries = manual_entries(context, &runs);
    let runs = runs.into_iter().map(ListedRun::Run).chain(entries.into_iter().map(ListedRun::Entry)).collect();
    let list = RunList { runs, appointments };
    answer(context, &list, 0, || {
        let mut lines = vec![list_text(context, &list, all)];
        lines.extend(list_lines(context, &list.appointments));
        lines.join("\n")
    })
}

/// Publishes the end of runs that the registry still lists as running: another tool that writes the whole file may have
/// undone our last change.
fn repair_registry(context: &RunContext, store: &Store) -> Result<(), CliError> {
    // An unreadable registry is reported when it has to be written.
    for entry in files::registry(&context.project).unwrap_or_default() {
        let is_listed_running = entry.kind == Some(context.kind) && entry.status == RunStatus::Running.to_string();
        let Some(run_id) = entry.run_id.filter(|_| is_listed_running) else { continue };
        let row = store.read().run(&run_id)?.filter(|row| row.project_dir == context.project_dir());
        if let Some(row) = row {
            context.publish_end(&row)?;
        }
    }
    Ok(())
}

fn list_text(context: &RunContext, list: &RunList, all: bool) -> String {
    let kind = context.kind;
    if list.runs.is_empty() {
        let hint = context.project_above_hint();
        return format!(
            "no {kind}s here yet\nstart one: steadfast {kind} run …; list types: steadfast {kind} types{hint}"
        );
    }
    let row = |run: &ListedRun| {
        let (mut row, project) = match run {
            ListedRun::Run(run) => (run_row(run), run.project.clone()),
            ListedRun::Entry(entry) => (entry_row(entry), context.project_dir()),
        };
        row.extend(all.then_some(project));
        row
    };
    let rows: Vec<Vec<String>> = list.runs.iter().map(row).collect();
    let heads: Vec<&str> = HEADS.into_iter().chain(all.then_some("PROJECT")).collect();
    let text = table(&heads, &rows);
    if !list.runs.iter().any(|run| matches!(run, ListedRun::Run(run) if run.is_orphaned)) {
        return text;
    }
    let advice = format!("`steadfast {kind} resume NAME` resumes it, `kill NAME` ends it");
    format!("{text}\n\nthe engine of a run marked `gone` died: {advice}")
}

/// Entries of the registry without a run of ours, shown as they are.
fn manual_entries(context: &RunContext, runs: &[RunView]) -> Vec<EntryView> {
    // A registry that cannot be read must not hide the store.
    let entries = files::registry(&context.project).unwrap_or_default();
    let is_ours = |entry: &RegistryEntry| {
        entry.run_id.is_some() || runs.iter().any(|run| files::registry_key(run.kind, &run.name) == entry.key)
    };
    let wanted = entries.into_iter().filter(|entry| entry.kind == Some(context.kind) && !is_ours(entry));
    wanted.map(|entry| entry_view(context, entry)).collect()
}

fn entry_view(context: &RunContext, entry: RegistryEntry) -> EntryView {
    let prefix = format!("{}-", context.kind);
    EntryView {
        name: text::headline(entry.key.strip_prefix(&prefix).unwrap_or(&entry.key), 64),
        kind: context.kind,
        status: entry.status,
        iteration: None,
        max_iterations: entry.max_iterations,
        title: entry.title,
        started_at: entry.started_at,
        completed_at: None,
        reason: entry.note,
        tokens: None,
        cost_usd: None,
        pid: None,
        is_live: false,
        by_hand: true,
        history: None,
    }
}

/// The entry of a name that has no run of ours.
pub(super) fn manual_entry(context: &RunContext, name: &str) -> Option<EntryView> {
    let key = files::registry_key(context.kind, name);
    let entry = files::registry(&context.project).ok()?.into_iter().find(|entry| entry.key == key)?;
    (entry.kind == Some(context.kind) && entry.run_id.is_none()).then(|| entry_view(context, entry))
}

pub(super) fn show_entry(context: &RunContext, entry: EntryView) -> CommandResult {
    let entry = EntryView { history: Some(Vec::new()), ..entry };
    answer(context, &entry, 0, || {
        let note = entry.reason.as_deref().map(|note| format!("\nnote: {}", text::headline(note, 200)));
        table(&HEADS, &[entry_row(&entry)]) + &note.unwrap_or_default()
    })
}

fn entry_row(entry: &EntryView) -> Vec<String> {
    let dash = || "-".to_owned();
    vec![
        entry.name.clone(),
        entry.title.as_deref().map_or_else(dash, |title| text::headline(title, 40)),
        format!("{} (entered by hand)", text::headline(&entry.status, 30)),
        entry.max_iterations.map_or_else(dash, |most| format!("-/{most}")),
        dash(),
        dash(),
        entry.started_at.as_deref().and_then(clock::parse_rfc3339).map_or_else(dash, clock::to_local),
    ]
}

fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    columns(&[&[heads], rows].concat())
}

pub(in crate::commands) fn faults_json(faults: &[Fault]) -> Value {
    let object = |fault: &Fault| {
        json!({
            "file": fault.file, "line": fault.line, "level": fault.level.to_string(),
            "message": redact(&fault.what), "fix": redact(&fault.fix),
        })
    };
    faults.iter().map(object).collect()
}

pub(in crate::commands) fn format_faults(faults: &[Fault]) -> String {
    faults.iter().map(|fault| redact(&text::printable(&fault.to_string())).into_owned()).collect::<Vec<_>>().join("\n")
}
