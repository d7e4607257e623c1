//! `import`: runs that older tools left in `.claude` become runs of ours that are over and can be resumed. Their files are
//! only read, and a run that is in the store already stays as it is. One whose definition was missing gets it later.

mod history;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use steadfast_engine::old_state::{self, OldRun};
use steadfast_engine::plan::{self, Overrides, PlanError, Planned, plan_loop, plan_pipeline};
use steadfast_engine::run_folder::RunFolder;
use steadfast_model::clock::Millis;
use steadfast_model::run::{Plan, RunKind, RunStatus, Step, machine};
use steadfast_model::text;
use steadfast_store::{Db, RunRow, Store, StoreError};

use self::history::{all_stages, history_only, number_in, records_of, state_of};
use super::{RunContext, starting, trust};
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};

/// The name of the definition in the run's folder.
const DEFINITION: &str = "pipeline.yaml";

pub(super) fn import(context: &RunContext, dry_run: bool, trusted: bool) -> CommandResult {
    let found = old_state::read(&context.project)?;
    let types = types(context)?;
    for warning in &found.warnings {
        output::note(&text::printable(warning));
    }
    let mut lines = Vec::new();
    let mut objects = Vec::new();
    for old in &found.runs {
        let taken = match take_over(context, &types, old, dry_run, trusted) {
            Err(error) if error.code == code::WRONG_STATE => {
                output::note(&format!("{}; {}", error.message, error.hint));
                continue;
            }
            taken => taken?,
        };
        for warning in old.warnings.iter().chain(&taken.missing).chain(&taken.notes) {
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
    /// What else the user should know.
    notes: Vec<String>,
}

/// What continues a run.
struct Ready {
    plan: Plan,
    /// Those of the repository that its definitions name.
    scripts: Vec<PathBuf>,
    /// The files that the run was given.
    inputs: Vec<PathBuf>,
    notes: Vec<String>,
}

impl Ready {
    fn of(plan: Plan) -> Self {
        Self { plan, scripts: Vec::new(), inputs: Vec::new(), notes: Vec::new() }
    }
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

fn take_over(
    context: &RunContext,
    types: &[String],
    old: &OldRun,
    dry_run: bool,
    trusted: bool,
) -> Result<Taken, CliError> {
    let mut store = Store::open(&context.paths.store)?;
    let known = store.read().run(&old.id)?;
    if let Some(row) = known.as_ref().filter(|row| !row.plan.is_history_only() || row.run.status == RunStatus::Running)
    {
        // An earlier import may have ended before its last files were there.
        if !dry_run && row.run.status != RunStatus::Running {
            make_room(context, old, &row.plan)?;
        }
        return Ok(Taken { is_new: false, dry_run, is_completed: false, missing: Vec::new(), notes: Vec::new() });
    }
    let (ready, missing) = match plan_of(context, types, old, trusted) {
        Ok(ready) => (ready, Vec::new()),
        Err(why) => (Ready { inputs: old.inputs.clone(), ..Ready::of(history_only(old)) }, vec![why]),
    };
    let Ready { plan, scripts, inputs, notes } = ready;
    let is_completed = known.is_some() && missing.is_empty();
    let taken = Taken { is_new: known.is_none(), dry_run, is_completed, missing, notes };
    if dry_run {
        return Ok(taken);
    }
    if known.is_none() || is_completed {
        let text = starting::inputs_text(&plan, &inputs).unwrap_or_default();
        let definition = old.definition.as_ref().and_then(|own| own.text(&context.project, types));
        let definition = definition.filter(|_| plan.kind == RunKind::Pipeline);
        RunFolder::create(&context.paths.home, &old.id, definition.as_deref(), text.as_deref(), false)?;
        let folder = RunFolder::at(&context.paths.home, &old.id);
        folder.set_scripts(&scripts)?;
        folder.set_input_files(&inputs)?;
        // What was kept with the history alone may have the numbers of other stages.
        folder.attempts().iter().try_for_each(fs_err::remove_dir_all)?;
        old_state::keep_files(&context.paths.home, old, |stage| number_in(&plan, old, stage))?;
    }
    match known {
        None => add(context, &mut store, old, &plan)?,
        Some(row) if is_completed => complete(context, &mut store, &row, old, &plan)?,
        Some(_) => {}
    }
    make_room(context, old, &plan)?;
    Ok(taken)
}

/// Puts the notes of a loop where its agents look for them. A pipeline's directory is moved only when it is resumed.
fn make_room(context: &RunContext, old: &OldRun, plan: &Plan) -> Result<(), CliError> {
    if plan.kind == RunKind::Loop {
        old_state::make_room(&context.paths.home, &context.project, &old.id, plan)?;
    }
    Ok(())
}

/// The loop types that exist here.
fn types(context: &RunContext) -> Result<Vec<String>, CliError> {
    Ok(context.catalogue().list(RunKind::Loop)?.into_iter().map(|listed| listed.name).collect())
}

/// The plan that continues a run, and its inputs. An error says what is missing and how to give it.
fn plan_of(context: &RunContext, types: &[String], old: &OldRun, trusted: bool) -> Result<Ready, String> {
    let flags = Overrides { max: old.max_iterations.filter(|_| old.kind == RunKind::Loop), ..Overrides::default() };
    let again = format!("then `steadfast {} import` again", old.kind);
    if old.kind == RunKind::Loop && types.contains(&old.title) {
        let planned = plan_loop(&context.catalogue(), &old.title, Some(&old.name), &flags);
        return accepted(context, planned, old, &again, trusted);
    }
    let definition = old.definition.as_ref();
    let text = definition.and_then(|definition| definition.text(&context.project, types));
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
    let mut ready = accepted(context, planned, old, &again, trusted)?;
    if old.kind == RunKind::Loop {
        let plan = &mut ready.plan;
        plan.kind = RunKind::Loop;
        plan.title.clone_from(&old.title);
        plan.pipeline_file = None;
        plan.stages.truncate(1);
    }
    Ok(ready)
}

fn of_file(mut planned: Planned, file: &Path) -> Planned {
    let shown = file.to_string_lossy().into_owned();
    if let Some(own) = planned.used.first_mut() {
        own.file.clone_from(&shown);
    }
    planned.file = shown;
    planned
}

/// What continues a run, if its plan is complete and its commands are trusted.
fn accepted(
    context: &RunContext,
    planned: Result<Planned, PlanError>,
    old: &OldRun,
    again: &str,
    trusted: bool,
) -> Result<Ready, String> {
    let planned = planned.map_err(|error| match &error {
        PlanError::Faults(faults) => {
            let what = faults.iter().map(|fault| format!("{} ({})", fault.what, fault.fix)).collect::<Vec<_>>();
            format!("its definition cannot be used: {}; correct it, {again}", what.join("; "))
        }
        _ => format!("{error}: {}, {again}", error.hint()),
    })?;
    let scripts = trust::require(context, &planned.used, &planned.plan, trusted)
        .map_err(|error| format!("{}: {}, {again}", error.message, error.hint))?;
    let mut ready = Ready { scripts, ..Ready::of(planned.plan) };
    for pattern in &planned.inputs {
        match plan::input_files(&context.project, pattern, true) {
            Ok(files) => ready.inputs.extend(files),
            Err(error) => ready.notes.push(error.to_string()),
        }
    }
    let given = old.inputs.iter().filter(|file| !ready.inputs.contains(file)).cloned().collect::<Vec<_>>();
    ready.inputs.extend(given);
    Ok(ready)
}

fn add(context: &RunContext, store: &mut Store, old: &OldRun, plan: &Plan) -> Result<(), CliError> {
    let started = old.started_at_ms.unwrap_or(context.now);
    let project = context.project_dir();
    RunFolder::at(&context.paths.home, &old.id).seal(plan)?;
    let added = store.write(|db| {
        let version = db.create_run(&old.id, &project, plan, &machine::begin(plan, started), started)?.version;
        add_history(db, version, old, plan, context.now)
    });
    added.map_err(|error| match error {
        StoreError::RunIsLive { kind, name } => {
            let message = format!("cannot import {kind} {name}: a run of that name is running");
            CliError::new(code::WRONG_STATE, message, format!("`steadfast {kind} kill {name}` ends it"))
        }
        other => other.into(),
    })
}

/// Gives a run that has only its history the plan that was missing, and its history the numbers of that plan.
fn complete(context: &RunContext, store: &mut Store, row: &RunRow, old: &OldRun, plan: &Plan) -> Result<(), CliError> {
    RunFolder::at(&context.paths.home, &row.run_id).seal(plan)?;
    store.write(|db| {
        let version = db.complete_plan(&row.run_id, row.version, plan, context.now)?;
        add_history(db, version, old, plan, context.now)
    })?;
    Ok(())
}

fn add_history(db: Db<'_>, mut version: i64, old: &OldRun, plan: &Plan, now: Millis) -> Result<(), StoreError> {
    let run = state_of(plan, old, now);
    for iteration in &old.iterations {
        let Some(stage) = number_in(plan, old, iteration.row.id.stage) else { continue };
        let step = Step { run: run.clone(), records: records_of(iteration, stage), acts: Vec::new() };
        version = db.save_step(&old.id, version, &step, iteration.row.committed_at_ms)?;
    }
    db.save_step(&old.id, version, &all_stages(run), now)?;
    Ok(())
}
