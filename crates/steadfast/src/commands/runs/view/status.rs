//! The page of one run, and its JSON with stages and iterations.

use std::path::Path;

use serde_json::{Map, Value, json};
use steadfast_core::clock::{self, Millis};
use steadfast_core::run::machine::{BUDGET_TOKENS, BUDGET_USD, COST_CAP, MAX_HOURS};
use steadfast_core::run::{AttemptId, Flight, Phase, Plan, Run, RunStatus};
use steadfast_core::store::{Db, IterationRow, RunLine, RunRow, StoreError};
use steadfast_core::text;
use steadfast_engine::worktree::{self, KeptWork};

use super::{dollars, entry_by_hand, entry_page, line_json, status_words};
use crate::commands::runs::finding::called;
use crate::commands::runs::progress::doubts;
use crate::commands::runs::{Here, driving};
use crate::failure::{Failure, code};
use crate::output::Done;

/// Iterations that a person is shown; scripts get all of them.
const ITERATIONS_SHOWN: usize = 15;

pub(in crate::commands::runs) fn status(here: &Here, name: &str) -> Result<Done, Failure> {
    let (store, row) = match here.find(name) {
        Ok(found) => found,
        Err(failure) if failure.code == code::NOT_FOUND => {
            return entry_by_hand(here, name).map(|entry| entry_page(here, &entry)).ok_or(failure);
        }
        Err(failure) => return Err(failure),
    };
    let is_live = here.is_live(&row)?;
    let json = status_json(here, store.read(), &row, is_live)?;
    let text = status_text(here, store.read(), &row, is_live)?;
    Ok(Done { text, json, code: 0 })
}

/// One run with its stages and iterations, if somebody wants to read all that.
pub(in crate::commands::runs) fn status_json(
    here: &Here,
    db: Db<'_>,
    row: &RunRow,
    is_live: bool,
) -> Result<Value, StoreError> {
    if !here.json {
        return Ok(Value::Null);
    }
    let home = home_of_worktrees(here, row);
    let mut object = line_json(&line_of(row), is_live);
    let history: Vec<Value> = db
        .run_history(&row.run_id, None, usize::MAX)?
        .iter()
        .map(|iteration| iteration_json(home, row, iteration))
        .collect();
    let stages: Vec<Value> =
        (1_u32..).zip(&row.plan.stages).map(|(number, _)| stage_json(&row.plan, &row.run, number)).collect();
    let now: Vec<Value> = row.run.flights.iter().map(|flight| flight_json(home, row, flight)).collect();
    let more = [
        ("limits", limits_json(&row.plan)),
        ("stopping", json!(row.stop_requested.is_some() || row.run.stopping.is_some())),
        ("waiting_until", json!(row.run.wait.as_ref().map(|wait| clock::to_rfc3339(wait.until_ms)))),
        ("waiting_for", json!(row.run.wait.as_ref().map(|wait| wait.why))),
        ("under_way", json!(now)),
        ("stages", json!(stages)),
        ("history", Value::Array(history)),
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
    let planned = plan.stage(number);
    let state = run.stage_state(number).cloned().unwrap_or_default();
    json!({
        "stage": number,
        "name": planned.map(|stage| stage.name.as_str()),
        "loop": planned.and_then(|stage| stage.loop_type.as_deref()),
        "runs": run.max_iterations(plan, number),
        "parallel": planned.is_some_and(|stage| stage.parallel),
        "status": state.status,
        "started_at": state.started_at_ms.map(clock::to_rfc3339),
        "completed_at": state.completed_at_ms.map(clock::to_rfc3339),
        "iterations_run": state.iterations,
        "reason": state.reason,
    })
}

fn flight_json(home: Option<&Path>, row: &RunRow, flight: &Flight) -> Value {
    let kept = kept(home, row, flight.id);
    json!({
        "stage": flight.id.stage, "iteration": flight.id.iteration, "attempt": flight.id.attempt,
        "phase": phase(flight), "errors": flight.errors,
        "branch": kept.as_ref().map(|kept| &kept.branch),
        "worktree": kept.as_ref().map(|kept| &kept.worktree),
        "waiting_until": flight.wait.as_ref().map(|wait| clock::to_rfc3339(wait.until_ms)),
    })
}

/// The home, if there are worktrees of the run in it: looking for thousands that never were takes long.
fn home_of_worktrees<'a>(here: &'a Here, row: &RunRow) -> Option<&'a Path> {
    let home = here.paths.home.as_path();
    worktree::are_there(home, &row.run_id).then_some(home)
}

fn kept(home: Option<&Path>, row: &RunRow, id: AttemptId) -> Option<KeptWork> {
    let is_parallel = row.plan.stage(id.stage).is_some_and(|stage| stage.parallel);
    worktree::kept(home?, &row.run_id, id, is_parallel)
}

/// The branches that iterations worked on, each once.
fn branch_lines(home: Option<&Path>, row: &RunRow, iterations: &[IterationRow]) -> Vec<String> {
    let flying = row.run.flights.iter().map(|flight| flight.id);
    let mut lines: Vec<String> = Vec::new();
    for kept in iterations.iter().map(|iteration| iteration.id).chain(flying).filter_map(|id| kept(home, row, id)) {
        let stays = kept.stays.map(|why| format!(" stays: {}", text::printable(&why))).unwrap_or_default();
        let place = kept.worktree.map(|path| format!(" (worktree {}{stays})", path.display())).unwrap_or_default();
        let line = format!("branch {}{place}", text::printable(&kept.branch));
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn phase(flight: &Flight) -> &'static str {
    match flight.phase {
        Phase::CheckingBefore | Phase::Checking(_) => "checking",
        Phase::Running => "running",
        Phase::Resting => "resting",
    }
}

fn iteration_json(home: Option<&Path>, row: &RunRow, iteration: &IterationRow) -> Value {
    let kept = kept(home, row, iteration.id);
    // There may be thousands of them.
    let mut object = Map::with_capacity(18);
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
    set("branch", json!(kept.as_ref().map(|kept| &kept.branch)));
    set("worktree", json!(kept.as_ref().map(|kept| &kept.worktree)));
    let facts = iteration.facts.iter().map(|fact| json!({"holds": fact.holds, "detail": fact.detail}));
    set("checks", facts.collect());
    let fields: Map<String, Value> =
        iteration.fields.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    set("fields", Value::Object(fields));
    Value::Object(object)
}

fn seconds(iteration: &IterationRow) -> Millis {
    iteration.committed_at_ms.saturating_sub(iteration.started_at_ms).max(0) / 1_000
}

/// The page of one run.
pub(in crate::commands::runs) fn status_text(
    here: &Here,
    db: Db<'_>,
    row: &RunRow,
    is_live: bool,
) -> Result<String, StoreError> {
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
    lines.extend(branch_lines(home_of_worktrees(here, row), row, &shown));
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
        "  #{number}  {:>7}  {:>7}  {}{vote}{}",
        text::duration(seconds(iteration)),
        text::short_number(iteration.tokens),
        text::headline(said, 90),
        doubts(&iteration.facts)
    );
    line.trim_end().to_owned()
}

/// What to type next, if anything.
fn advice(plan: &Plan, run: &Run, is_live: bool) -> Option<String> {
    let (kind, name) = (plan.kind, &plan.name);
    // Only the history of what was brought in from an older tool is known.
    if plan.stages.iter().any(|stage| stage.prompt.is_empty()) {
        return None;
    }
    match run.status {
        RunStatus::Running if is_live => Some(format!("next: steadfast {kind} attach {name} (or kill, logs -f)")),
        RunStatus::Running => {
            Some(format!("its engine is gone; next: steadfast {kind} resume {name} goes on, kill {name} ends it"))
        }
        RunStatus::Completed if run.reason.as_deref() == Some(COST_CAP) => {
            let when = "once the cap of the day or week (`[limits]` in config.toml) allows";
            Some(format!("next: steadfast {kind} resume {name}, {when}"))
        }
        RunStatus::Completed if driving::is_limited(run) => {
            let flag = match run.reason.as_deref() {
                Some(BUDGET_TOKENS) => "--budget N",
                Some(BUDGET_USD) => "--usd X",
                Some(MAX_HOURS) => "--max-hours H",
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
