//! How runs are shown: the table of `list`, the page of `status`, and the JSON behind both.

use serde_json::{Map, Value, json};
use steadfast_core::clock::{self, Millis};
use steadfast_core::run::{Flight, Phase, Plan, Run, RunStatus};
use steadfast_core::store::{Db, IterationRow, RunFilter, RunLine, RunRow, StoreError};
use steadfast_core::text;
use steadfast_engine::files::{self, RegistryEntry};
use steadfast_engine::plan::{Fault, Level};

use super::Here;
use super::finding::called;
use crate::failure::Failure;
use crate::output::Done;

/// Iterations that a person is shown; scripts get all of them.
const ITERATIONS_SHOWN: usize = 15;
const MOST_RUNS: usize = 1_000;

fn dollars(micros: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "amounts of money are far below 2^53 millionths")]
    let micros = micros as f64;
    micros / 1_000_000.0
}

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
        let is_live = line.status == RunStatus::Running && here.is_driven(&line.run_id)?;
        objects.push(line_json(line, is_live));
        rows.push(line_row(line, is_live, all));
    }
    for entry in by_hand(here, &lines) {
        objects.push(entry_json(here, &entry));
        rows.push(entry_row(here, &entry, all));
    }
    let text = if rows.is_empty() {
        format!("no {}s here yet\nstart one: steadfast {0} run …; `steadfast {0} types` shows what there is", here.kind)
    } else {
        let mut heads = vec!["NAME", "TYPE", "STATUS", "ITERATION", "TOKENS", "COST", "STARTED"];
        if all {
            heads.push("PROJECT");
        }
        let mut text = table(&heads, &rows);
        if lines.iter().zip(&objects).any(|(line, object)| is_gone(line.status, object["live"] == json!(true))) {
            text.push_str(&format!(
                "\n\nthe engine of a run marked `gone` died: `steadfast {0} resume NAME` goes on, `kill NAME` ends it",
                here.kind
            ));
        }
        text
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

fn name_of(here: &Here, entry: &RegistryEntry) -> String {
    let prefix = format!("{}-", here.kind);
    text::headline(entry.key.strip_prefix(&prefix).unwrap_or(&entry.key), 64)
}

fn entry_json(here: &Here, entry: &RegistryEntry) -> Value {
    json!({
        "name": name_of(here, entry), "kind": here.kind, "status": entry.status, "iteration": null,
        "max_iterations": null, "started_at": entry.started_at, "completed_at": null, "reason": entry.note,
        "tokens": null, "cost_usd": null, "pid": null, "live": false, "by_hand": true,
    })
}

fn entry_row(here: &Here, entry: &RegistryEntry, all: bool) -> Vec<String> {
    let dash = || "-".to_owned();
    let started = entry.started_at.as_deref().and_then(clock::parse_rfc3339).map_or_else(dash, clock::to_local);
    let status = format!("{} (entered by hand)", text::headline(&entry.status, 30));
    let mut row = vec![name_of(here, entry), dash(), status, dash(), dash(), dash(), started];
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

/// Columns as wide as their widest cell.
fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
        cells.chain(heads.get(at).map(|head| head.len())).max().unwrap_or(0)
    };
    let line = |cells: &[String]| {
        let cells: Vec<String> =
            cells.iter().enumerate().map(|(at, cell)| format!("{cell:<width$}", width = width(at))).collect();
        cells.join("  ").trim_end().to_owned()
    };
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    std::iter::once(line(&heads)).chain(rows.iter().map(|row| line(row))).collect::<Vec<_>>().join("\n")
}

pub(super) fn status(here: &Here, name: &str) -> Result<Done, Failure> {
    let (store, row) = here.find(name)?;
    let is_live = row.run.status == RunStatus::Running && here.is_driven(&row.run_id)?;
    let json = status_json(store.read(), &row, is_live)?;
    let text = status_text(here, store.read(), &row, is_live)?;
    Ok(Done { text, json, code: 0 })
}

/// One run with its stages and iterations.
pub(super) fn status_json(db: Db<'_>, row: &RunRow, is_live: bool) -> Result<Value, StoreError> {
    let mut object = line_json(&line_of(row), is_live);
    let history: Vec<Value> =
        db.run_history(&row.run_id, None, usize::MAX)?.iter().map(|iteration| iteration_json(row, iteration)).collect();
    let stages: Vec<Value> =
        (1_u32..).zip(&row.plan.stages).map(|(number, _)| stage_json(&row.plan, &row.run, number)).collect();
    let now: Vec<Value> = row.run.flights.iter().map(flight_json).collect();
    let more = [
        ("limits", limits_json(&row.plan)),
        ("stopping", json!(row.stop_requested.is_some() || row.run.stopping.is_some())),
        ("waiting_until", json!(row.run.wait.as_ref().map(|wait| clock::to_rfc3339(wait.until_ms)))),
        ("waiting_for", json!(row.run.wait.as_ref().map(|wait| wait.why))),
        ("under_way", json!(now)),
        ("stages", json!(stages)),
        ("history", json!(history)),
    ];
    if let Some(object) = object.as_object_mut() {
        object.extend(more.map(|(name, value)| (name.to_owned(), value)));
    }
    Ok(object)
}

fn line_of(row: &RunRow) -> RunLine {
    let (plan, run) = (&row.plan, &row.run);
    RunLine {
        run_id: row.run_id.clone(),
        name: plan.name.clone(),
        kind: plan.kind,
        title: plan.title.clone(),
        project_dir: row.project_dir.clone(),
        status: run.status,
        reason: run.reason.clone(),
        stage: run.stage,
        iterations: run.stage_state(run.stage).map_or(0, |stage| stage.iterations),
        max_iterations: run.max_iterations(plan, run.stage),
        tokens: run.tokens,
        cost_micros: run.cost_micros,
        engine: row.engine,
        is_stop_requested: row.stop_requested.is_some(),
        started_at_ms: run.started_at_ms,
        updated_at_ms: row.updated_at_ms,
        completed_at_ms: run.completed_at_ms,
    }
}

fn limits_json(plan: &Plan) -> Value {
    let limits = &plan.limits;
    json!({
        "tokens": limits.tokens,
        "usd": limits.cost_micros.map(dollars),
        "hours": limits.wall_ms.map(|ms| dollars(ms.saturating_mul(1_000)) / 3_600.0),
    })
}

fn stage_json(plan: &Plan, run: &Run, number: u32) -> Value {
    let stage = plan.stage(number);
    let state = run.stage_state(number).cloned().unwrap_or_default();
    json!({
        "stage": number,
        "name": stage.map(|stage| stage.name.as_str()),
        "loop": stage.and_then(|stage| stage.loop_type.as_deref()),
        "runs": run.max_iterations(plan, number),
        "parallel": stage.is_some_and(|stage| stage.parallel),
        "status": state.status,
        "started_at": state.started_at_ms.map(clock::to_rfc3339),
        "completed_at": state.completed_at_ms.map(clock::to_rfc3339),
        "iterations_run": state.iterations,
        "reason": state.reason,
    })
}

fn flight_json(flight: &Flight) -> Value {
    json!({
        "stage": flight.id.stage, "iteration": flight.id.iteration, "attempt": flight.id.attempt,
        "phase": phase(flight), "errors": flight.errors,
        "waiting_until": flight.wait.as_ref().map(|wait| clock::to_rfc3339(wait.until_ms)),
    })
}

fn phase(flight: &Flight) -> &'static str {
    match flight.phase {
        Phase::CheckingBefore | Phase::Checking(_) => "checking",
        Phase::Running => "running",
        Phase::Resting => "resting",
    }
}

fn iteration_json(row: &RunRow, iteration: &IterationRow) -> Value {
    let mut object = Map::new();
    let mut set = |name: &str, value: Value| object.insert(name.to_owned(), value);
    set("stage", json!(iteration.id.stage));
    set("stage_name", json!(row.plan.stage(iteration.id.stage).map(|stage| stage.name.as_str())));
    set("iteration", json!(iteration.id.iteration));
    set("timestamp", json!(clock::to_rfc3339(iteration.committed_at_ms)));
    set("plateau", json!(iteration.plateau.unwrap_or(false)));
    set("reasoning", json!(iteration.reasoning));
    set("summary", json!(iteration.summary));
    set("decision", json!(iteration.decision));
    set("attempts", json!(iteration.id.attempt));
    set("tokens", json!(iteration.tokens));
    set("cost_usd", json!(dollars(iteration.cost_micros)));
    set("duration_seconds", json!(seconds(iteration)));
    let facts = iteration.facts.iter().map(|fact| json!({"holds": fact.holds, "detail": fact.detail}));
    set("checks", json!(facts.collect::<Vec<_>>()));
    let fields: Map<String, Value> =
        iteration.fields.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    set("fields", Value::Object(fields));
    Value::Object(object)
}

fn seconds(iteration: &IterationRow) -> Millis {
    iteration.committed_at_ms.saturating_sub(iteration.started_at_ms).max(0) / 1_000
}

/// The page of one run.
pub(super) fn status_text(here: &Here, db: Db<'_>, row: &RunRow, is_live: bool) -> Result<String, StoreError> {
    let (plan, run) = (&row.plan, &row.run);
    let state = status_words(run.status, run.reason.as_deref(), is_live, row.stop_requested.is_some());
    let mut lines = vec![format!("{} ({}): {state}", called(plan.kind, &plan.name), plan.title)];
    let until = run.completed_at_ms.unwrap_or(here.now);
    let took = (until - run.started_at_ms - run.closed_ms).max(0) / 1_000;
    let mut facts = vec![format!(
        "iteration {}/{}",
        run.stage_state(run.stage).map_or(0, |stage| stage.iterations),
        run.max_iterations(plan, run.stage)
    )];
    facts.push(format!("{} tokens", text::short_number(run.tokens)));
    facts.push(text::usd(run.cost_micros));
    facts.push(text::duration(took));
    lines.push(facts.join(" · "));
    if is_live && let Some(engine) = row.engine {
        lines.push(format!("engine: pid {}", engine.pid));
    }
    if let Some(wait) = run.wait.as_ref().filter(|_| is_live) {
        lines.push(format!(
            "waits until {} ({})",
            clock::to_local(wait.until_ms),
            wait.why.to_string().replace('_', " ")
        ));
    }
    if plan.stages.len() > 1 {
        lines.extend((1_u32..).zip(&plan.stages).map(|(number, stage)| {
            let state = run.stage_state(number).cloned().unwrap_or_default();
            let reason = state.reason.map(|reason| format!(" ({})", text::headline(&reason, 60))).unwrap_or_default();
            let most = run.max_iterations(plan, number);
            format!("  {number}. {}: {}{reason}, {}/{most}", stage.name, state.status, state.iterations)
        }));
    }
    let mut shown = db.last_iterations(&row.run_id, ITERATIONS_SHOWN)?;
    shown.reverse();
    lines.extend(shown.iter().map(|iteration| iteration_line(plan, iteration)));
    lines.extend(advice(plan, run, is_live));
    Ok(lines.join("\n"))
}

fn iteration_line(plan: &Plan, iteration: &IterationRow) -> String {
    let number = if plan.stages.len() > 1 {
        format!("{}.{}", iteration.id.stage, iteration.id.iteration)
    } else {
        iteration.id.iteration.to_string()
    };
    let said = iteration.summary.as_deref().or(iteration.reasoning.as_deref()).unwrap_or("");
    let vote = if iteration.plateau == Some(true) { " [nothing left]" } else { "" };
    let line = format!(
        "  #{number}  {:>7}  {:>7}  {}{vote}",
        text::duration(seconds(iteration)),
        text::short_number(iteration.tokens),
        text::headline(said, 90)
    );
    line.trim_end().to_owned()
}

/// What to type next, if anything.
fn advice(plan: &Plan, run: &Run, is_live: bool) -> Option<String> {
    let (kind, name) = (plan.kind, &plan.name);
    match run.status {
        RunStatus::Running if is_live => Some(format!("next: steadfast {kind} attach {name} (or kill, logs -f)")),
        RunStatus::Running => {
            Some(format!("its engine is gone; next: steadfast {kind} resume {name} goes on, kill {name} ends it"))
        }
        RunStatus::Completed if super::driving::is_limited(run) => {
            let flag = match run.reason.as_deref() {
                Some(steadfast_core::run::machine::BUDGET_TOKENS) => "--budget N",
                Some(steadfast_core::run::machine::BUDGET_USD) => "--usd X",
                Some(steadfast_core::run::machine::MAX_HOURS) => "--max-hours H",
                _ => "--max N",
            };
            Some(format!("next: steadfast {kind} resume {name} {flag}"))
        }
        RunStatus::Completed => None,
        RunStatus::Failed | RunStatus::Killed | RunStatus::UnknownTermination => {
            Some(format!("next: steadfast {kind} resume {name}"))
        }
    }
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
