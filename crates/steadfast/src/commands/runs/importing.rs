//! `import`: runs that older tools left in `.claude` become runs of ours that are over and can be resumed. Their files are
//! only read, and a run that is in the store already stays as it is. One whose definition was missing gets it later.

use std::path::Path;

use serde_json::{Value, json};
use steadfast_engine::old_state::{self, OldIteration, OldRun};
use steadfast_engine::plan::{Overrides, PlanError, Planned, plan_loop, plan_pipeline};
use steadfast_engine::run_folder::RunFolder;
use steadfast_model::run::{
    AgentResult, AttemptId, AttemptUsage, Outcome, Plan, Record, Rule, Run, RunKind, RunLimits, RunPurpose, RunStatus,
    StagePlan, StageState, StageStatus, Step, Success, machine,
};
use steadfast_model::text;
use steadfast_store::{RunRow, Store, StoreError};

use super::{RunContext, starting, trust};
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};

/// The name of the definition in the run's folder.
const DEFINITION: &str = "pipeline.yaml";

pub(super) fn import(context: &RunContext, dry_run: bool, trusted: bool) -> CommandResult {
    let found = old_state::read(&context.project)?;
    for warning in &found.warnings {
        output::note(&text::printable(warning));
    }
    let mut lines = Vec::new();
    let mut objects = Vec::new();
    for old in &found.runs {
        let taken = match take_over(context, old, dry_run, trusted) {
            Err(error) if error.code == code::WRONG_STATE => {
                output::note(&format!("{}; {}", error.message, error.hint));
                continue;
            }
            taken => taken?,
        };
        for warning in old.warnings.iter().chain(&taken.missing) {
            output::note(&text::printable(&format!("{} {}: {warning}", old.kind, old.name)));
        }
        let count = old.iterations.len();
        lines.push(format!("{} {} ({}, {count} iterations): {}", old.kind, old.name, old.status, taken.words()));
        objects.push(json!({
            "name": old.name, "kind": old.kind, "status": old.status, "iterations": count, "file": old.file,
            "imported": taken.is_new && !dry_run, "resumable": taken.missing.is_empty(), "missing": taken.missing,
        }));
    }
    if lines.is_empty() {
        lines.push("nothing to import".into());
    }
    let json = json!({"runs": Value::from(objects), "warnings": found.warnings});
    Ok(CommandOutput { text: lines.join("\n"), json, code: 0 })
}

/// What came of a run.
struct Taken {
    is_new: bool,
    dry_run: bool,
    /// It was here with its history only, and has its definition now.
    is_completed: bool,
    /// Why it cannot be resumed.
    missing: Vec<String>,
}

impl Taken {
    fn words(&self) -> String {
        let done = match (self.is_new, self.is_completed, self.dry_run) {
            (true, _, true) => "would be imported",
            (true, _, false) => "imported",
            (false, true, true) => "would get its definition",
            (false, true, false) => "has its definition now",
            (false, false, _) => "is here already",
        };
        let history = if self.missing.is_empty() { "" } else { ", with its history only" };
        format!("{done}{history}")
    }
}

fn take_over(context: &RunContext, old: &OldRun, dry_run: bool, trusted: bool) -> Result<Taken, CliError> {
    let mut store = Store::open(&context.paths.store)?;
    let known = store.read().run(&old.id)?;
    if known.as_ref().is_some_and(|row| !row.plan.is_history_only() || row.run.status == RunStatus::Running) {
        return Ok(Taken { is_new: false, dry_run, is_completed: false, missing: Vec::new() });
    }
    let (plan, missing) = match plan_of(context, old, trusted) {
        Ok(plan) => (plan, Vec::new()),
        Err(why) => (history_only(old), vec![why]),
    };
    // The history that is stored has the numbers of the old stages.
    let is_alike = |stage: u32| number_in(&plan, old, stage) == Some(stage);
    let is_alike = old.iterations.iter().all(|iteration| is_alike(iteration.row.id.stage));
    let is_completed = known.is_some() && missing.is_empty() && is_alike;
    let taken = Taken { is_new: known.is_none(), dry_run, is_completed, missing };
    if dry_run {
        return Ok(taken);
    }
    let numbers = |stage: u32| number_in(&plan, old, stage);
    if known.is_none() || is_completed {
        let inputs = starting::inputs_text(&plan, &old.inputs).unwrap_or_default();
        let definition = old.definition.as_ref().and_then(|own| own.text(&context.project, &types(context)));
        let definition = definition.filter(|_| plan.kind == RunKind::Pipeline);
        RunFolder::create(&context.paths.home, &old.id, definition.as_deref(), inputs.as_deref(), false)?;
        old_state::keep_files(&context.paths.home, old, numbers)?;
    }
    match known {
        None => add(context, &mut store, old, &plan)?,
        Some(row) if is_completed => complete(context, &mut store, &row, old, &plan)?,
        Some(_) => {}
    }
    if plan.kind == RunKind::Loop {
        old_state::make_room(&context.paths.home, &context.project, &old.id, &plan)?;
    }
    Ok(taken)
}

/// The loop types that exist here.
fn types(context: &RunContext) -> Vec<String> {
    context.catalogue().list(RunKind::Loop).into_iter().map(|listed| listed.name).collect()
}

/// The plan that continues a run. An error says what is missing and how to give it.
fn plan_of(context: &RunContext, old: &OldRun, trusted: bool) -> Result<Plan, String> {
    let flags = Overrides { max: old.max_iterations.filter(|_| old.kind == RunKind::Loop), ..Overrides::default() };
    let again = format!("then `steadfast {} import` again", old.kind);
    let types = types(context);
    if old.kind == RunKind::Loop && types.contains(&old.title) {
        let planned = plan_loop(&context.catalogue(), &old.title, Some(&old.name), &flags);
        return accepted(context, planned, &again, trusted);
    }
    let definition = old.definition.as_ref();
    let text = definition.and_then(|definition| definition.text(&context.project, &types));
    let (Some(definition), Some(text)) = (definition, text) else {
        let title = text::headline(&old.title, 60);
        return Err(match old.kind {
            RunKind::Loop => format!(
                "there is no loop type `{title}` here: put its stage.yaml and prompt.md into .claude/loops/{title} \
                 (or scripts/stages/{title}), {again}"
            ),
            RunKind::Pipeline => {
                format!("its definition is missing: put it beside its state.json as pipeline.yaml, {again}")
            }
        });
    };
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = scratch.path().join(DEFINITION);
    fs_err::write(&file, &text).map_err(|error| error.to_string())?;
    let file = file.to_string_lossy().into_owned();
    let planned = plan_pipeline(&context.catalogue(), &file, Some(&old.name), &flags, context.now);
    // Trust is about the file that came with the project.
    let planned = planned.map(|planned| of_file(planned, definition.file()));
    let mut plan = accepted(context, planned, &again, trusted)?;
    if old.kind == RunKind::Loop {
        plan.kind = RunKind::Loop;
        plan.title.clone_from(&old.title);
        plan.pipeline_file = None;
        plan.stages.truncate(1);
    }
    Ok(plan)
}

fn of_file(mut planned: Planned, file: &Path) -> Planned {
    let shown = file.to_string_lossy().into_owned();
    if let Some(own) = planned.used.first_mut() {
        own.file.clone_from(&shown);
    }
    planned.file = shown;
    planned
}

/// The plan, if it is complete and its commands are trusted.
fn accepted(
    context: &RunContext,
    planned: Result<Planned, PlanError>,
    again: &str,
    trusted: bool,
) -> Result<Plan, String> {
    let planned = planned.map_err(|error| match &error {
        PlanError::Faults(faults) => {
            let what = faults.iter().map(|fault| format!("{} ({})", fault.what, fault.fix)).collect::<Vec<_>>();
            format!("its definition cannot be used: {}; correct it, {again}", what.join("; "))
        }
        _ => format!("{error}: {}, {again}", error.hint()),
    })?;
    trust::require(context, &planned.used, &planned.plan, trusted)
        .map_err(|error| format!("{}: {}, {again}", error.message, error.hint))?;
    Ok(planned.plan)
}

/// A plan without prompts: the run can be looked at and not resumed.
fn history_only(old: &OldRun) -> Plan {
    let done = |stage: u32| old.iterations.iter().filter(|it| it.row.id.stage == stage).count();
    let stages = (1_u32..).zip(&old.stages).map(|(number, stage)| {
        let done = u32::try_from(done(number)).unwrap_or(u32::MAX);
        let runs = stage.runs.or(old.max_iterations).unwrap_or(done).max(1);
        let name = if stage.name.is_empty() { format!("stage-{number}") } else { stage.name.clone() };
        StagePlan { loop_type: stage.loop_type.clone(), ..StagePlan::new(name, Rule::FixedN, runs) }
    });
    let mut stages: Vec<StagePlan> = stages.collect();
    if stages.is_empty() {
        stages.push(StagePlan::new(old.title.clone(), Rule::FixedN, 1));
    }
    Plan {
        name: old.name.clone(),
        kind: old.kind,
        title: old.title.clone(),
        pipeline_file: (old.kind == RunKind::Pipeline).then(|| DEFINITION.to_owned()),
        stages,
        limits: RunLimits::default(),
        purpose: RunPurpose::Definition,
    }
}

/// The stage of the plan for one of the old stages: by its name, or by its number if all are counted alike.
fn number_in(plan: &Plan, old: &OldRun, stage: u32) -> Option<u32> {
    let index = usize::try_from(stage).ok()?.checked_sub(1)?;
    let name = &old.stages.get(index)?.name;
    let by_name = plan.stages.iter().position(|planned| planned.name == *name);
    let at = by_name.or_else(|| Some(index).filter(|_| plan.stages.len() == old.stages.len()))?;
    u32::try_from(at).ok()?.checked_add(1)
}

fn add(context: &RunContext, store: &mut Store, old: &OldRun, plan: &Plan) -> Result<(), CliError> {
    let started = old.started_at_ms.unwrap_or(context.now);
    let project = context.project_dir();
    RunFolder::at(&context.paths.home, &old.id).seal(plan)?;
    let added = store.write(|db| {
        let mut version = db.create_run(&old.id, &project, plan, &machine::begin(plan, started), started)?.version;
        let run = state_of(plan, old, context.now);
        for iteration in &old.iterations {
            let Some(stage) = number_in(plan, old, iteration.row.id.stage) else { continue };
            let step = Step { run: run.clone(), records: records_of(iteration, stage), acts: Vec::new() };
            version = db.save_step(&old.id, version, &step, iteration.row.committed_at_ms)?;
        }
        db.save_step(&old.id, version, &all_stages(run), context.now)?;
        Ok::<(), StoreError>(())
    });
    added.map_err(|error| match error {
        StoreError::RunIsLive { kind, name } => {
            let message = format!("cannot import {kind} {name}: a run of that name is running");
            CliError::new(code::WRONG_STATE, message, format!("`steadfast {kind} kill {name}` ends it"))
        }
        other => other.into(),
    })
}

/// Gives a run that has only its history the plan that was missing.
fn complete(context: &RunContext, store: &mut Store, row: &RunRow, old: &OldRun, plan: &Plan) -> Result<(), CliError> {
    RunFolder::at(&context.paths.home, &row.run_id).seal(plan)?;
    store.write(|db| {
        let version = db.complete_plan(&row.run_id, row.version, plan, context.now)?;
        db.save_step(&row.run_id, version, &all_stages(state_of(plan, old, context.now)), context.now)
    })?;
    Ok(())
}

/// A step that writes the rows of all stages. It is no end of a run that people have to hear of.
fn all_stages(run: Run) -> Step {
    let ended = |(stage, state): (u32, &StageState)| Record::StageEnded {
        stage,
        status: state.status,
        reason: state.reason.clone().unwrap_or_default(),
    };
    let records = (1_u32..).zip(&run.stages).map(ended).collect();
    Step { run, records, acts: Vec::new() }
}

/// The state in which the run ended, from which `resume` continues.
fn state_of(plan: &Plan, old: &OldRun, now: i64) -> Run {
    let started = old.started_at_ms.unwrap_or(now);
    let mut run = machine::begin(plan, started);
    let last = old.iterations.iter().map(|iteration| iteration.row.committed_at_ms).max();
    run.status = old.status;
    run.reason = old.reason.clone().or(Some("imported".into()));
    run.completed_at_ms = old.completed_at_ms.or(last).or(Some(started));
    // The older tools did not count.
    run.cost_unknown = !old.iterations.is_empty();
    for (number, stage) in (1_u32..).zip(&old.stages) {
        let Some(at) = number_in(plan, old, number) else { continue };
        let index = usize::try_from(at).unwrap_or(1) - 1;
        let (Some(state), Some(planned)) = (run.stages.get_mut(index), plan.stages.get(index)) else { continue };
        let own: Vec<&OldIteration> = old.iterations.iter().filter(|it| it.row.id.stage == number).collect();
        state.iterations = u32::try_from(own.len()).unwrap_or(u32::MAX);
        let agreeing = own.iter().rev().take_while(|iteration| iteration.row.plateau == Some(true)).count();
        state.agreeing = u32::try_from(agreeing).unwrap_or(u32::MAX);
        // A crash between the last iteration and the end of its stage left it open.
        let is_counted = planned.completion.only_counts() && state.iterations >= planned.runs;
        let has_begun = stage.status != StageStatus::Pending || state.iterations > 0;
        state.status = match stage.status {
            StageStatus::Completed => StageStatus::Completed,
            _ if is_counted => StageStatus::Completed,
            StageStatus::Failed => StageStatus::Failed,
            _ if has_begun => StageStatus::Running,
            other => other,
        };
        state.cut_off = state.status == StageStatus::Failed;
        state.started_at_ms = stage.started_at_ms.or_else(|| has_begun.then_some(started));
        state.completed_at_ms = stage.completed_at_ms.filter(|_| state.status.is_over());
        state.reason.clone_from(&stage.reason);
    }
    let open = run.stages.iter().position(|state| !state.status.is_over() || state.cut_off);
    let stage = open.map_or(plan.stages.len(), |at| at + 1);
    run.stage = u32::try_from(stage).unwrap_or(1).max(1);
    run
}

fn records_of(iteration: &OldIteration, stage: u32) -> Vec<Record> {
    let row = &iteration.row;
    let id = AttemptId { stage, ..row.id };
    let success = Box::new(Success {
        result: AgentResult {
            summary: row.summary.clone(),
            plateau: row.plateau,
            reasoning: row.reasoning.clone(),
            decision: row.decision,
            ..AgentResult::default()
        },
        usage: AttemptUsage { cost_unknown: true, tokens_unknown: true, ..AttemptUsage::default() },
        started_at_ms: row.started_at_ms,
        ended_at_ms: row.committed_at_ms,
        ..Success::default()
    });
    vec![
        Record::AttemptStarted { id },
        Record::AttemptEnded { id, outcome: Outcome::Succeeded(success.clone()) },
        Record::Committed { id, success, facts: Vec::new() },
    ]
}
