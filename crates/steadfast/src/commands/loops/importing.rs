//! `loop import`: runs that older tools left in `.claude` become runs of ours that are over, loops and pipelines alike.
//! Their files are only read, and what is in the store already is left as it is.

use serde_json::json;
use steadfast_engine::files::import::{self, Imported, ImportedStage};
use steadfast_engine::plan::{Overrides, plan_loop};
use steadfast_model::clock::Millis;
use steadfast_model::run::machine;
use steadfast_model::run::{
    AgentResult, AttemptUsage, Outcome, Plan, Record, Rule, Run, RunKind, RunLimits, StagePlan, StageStatus, Step,
    Success,
};
use steadfast_store::{IterationRow, Store, StoreError};

use crate::commands::runs::RunContext;
use crate::error::CliError;
use crate::output::{self, CommandOutput};

pub(super) fn import(here: &RunContext, dry_run: bool) -> Result<CommandOutput, CliError> {
    let found = import::import(&here.project)?;
    for warning in &found.warnings {
        output::note(warning);
    }
    let mut store = if found.runs.is_empty() { None } else { Some(Store::open(&here.paths.store)?) };
    let mut lines = Vec::new();
    let mut objects = Vec::new();
    for run in &found.runs {
        for warning in &run.warnings {
            output::note(&format!("{}: {warning}", run.name));
        }
        let Some(store) = store.as_mut() else { continue };
        let is_known = store.read().run(&run.id)?.is_some();
        if !is_known && !dry_run {
            add(here, store, run)?;
            if let Err(error) = import::bring_progress(&here.project, run) {
                output::note(&format!("{}: its progress file cannot be brought along: {error}", run.name));
            }
        }
        let what = match (is_known, dry_run) {
            (true, _) => "is here already",
            (false, true) => "would be brought in",
            (false, false) => "brought in",
        };
        let count = run.iterations.len();
        lines.push(format!("{} {} ({}, {count} iterations): {what}", run.kind, run.name, run.status));
        objects.push(json!({
            "name": run.name, "kind": run.kind, "status": run.status, "iterations": count, "file": run.file,
            "imported": !is_known && !dry_run,
        }));
    }
    if lines.is_empty() {
        lines.push("nothing to bring in".into());
    }
    Ok(CommandOutput { text: lines.join("\n"), json: json!({"runs": objects, "warnings": found.warnings}), code: 0 })
}

fn add(here: &RunContext, store: &mut Store, imported: &Imported) -> Result<(), CliError> {
    let plan = plan_of(here, imported);
    let started = imported.started_at_ms.unwrap_or(here.now);
    let id = &imported.id;
    store.write(|db| {
        let mut run = machine::begin(&plan, started);
        let mut version = db.create_run(id, &here.project_dir(), &plan, &run, started)?.version;
        for iteration in &imported.iterations {
            count(&mut run, iteration);
            let step = Step { run: run.clone(), records: records_of(iteration), acts: Vec::new() };
            version = db.save_step(id, version, &step, iteration.committed_at_ms)?;
        }
        finish(&mut run, imported, here.now);
        let reason = run.reason.clone().unwrap_or_default();
        let mut records: Vec<Record> = (1_u32..)
            .zip(&run.stages)
            .map(|(stage, state)| Record::StageEnded {
                stage,
                status: state.status,
                reason: state.reason.clone().unwrap_or_default(),
            })
            .collect();
        records.push(Record::Finished { status: run.status, reason });
        let ended = run.completed_at_ms.unwrap_or(started);
        db.save_step(id, version, &Step { run, records, acts: Vec::new() }, ended)?;
        Ok::<(), StoreError>(())
    })?;
    Ok(())
}

fn count(run: &mut Run, iteration: &IterationRow) {
    run.tokens = run.tokens.saturating_add(iteration.tokens);
    run.cost_micros = run.cost_micros.saturating_add(iteration.cost_micros);
    run.stage = iteration.id.stage;
    let at = usize::try_from(run.stage).unwrap_or(1).saturating_sub(1);
    if let Some(stage) = run.stages.get_mut(at) {
        stage.iterations = stage.iterations.saturating_add(1);
    }
}

fn records_of(iteration: &IterationRow) -> Vec<Record> {
    let id = iteration.id;
    let success = Box::new(Success {
        result: AgentResult {
            summary: iteration.summary.clone(),
            plateau: iteration.plateau,
            reasoning: iteration.reasoning.clone(),
            decision: iteration.decision,
            fields: iteration.fields.clone(),
        },
        usage: AttemptUsage {
            input_tokens: iteration.tokens,
            cost_micros: iteration.cost_micros,
            ..AttemptUsage::default()
        },
        started_at_ms: iteration.started_at_ms,
        ended_at_ms: iteration.committed_at_ms,
        ..Success::default()
    });
    vec![
        Record::AttemptStarted { id },
        Record::AttemptEnded { id, outcome: Outcome::Succeeded(success.clone()) },
        Record::Committed { id, success, facts: Vec::new() },
    ]
}

fn finish(run: &mut Run, imported: &Imported, now: Millis) {
    let last = imported.iterations.last().map(|iteration| iteration.committed_at_ms);
    run.status = imported.status;
    run.reason = imported.reason.clone().or(Some("imported".into()));
    run.completed_at_ms = imported.completed_at_ms.or(last).or(imported.started_at_ms).or(Some(now));
    run.stage = imported.stage.clamp(1, u32::try_from(run.stages.len()).unwrap_or(1).max(1));
    for (state, stage) in run.stages.iter_mut().zip(&imported.stages) {
        state.status = match stage.status.as_str() {
            "completed" => StageStatus::Completed,
            "failed" => StageStatus::Failed,
            "running" => StageStatus::Running,
            _ => StageStatus::Pending,
        };
        state.started_at_ms = stage.started_at_ms;
        state.completed_at_ms = stage.completed_at_ms;
        state.reason.clone_from(&stage.reason);
    }
}

/// A loop whose type is known here can go on; of everything else only the history is known.
fn plan_of(here: &RunContext, imported: &Imported) -> Plan {
    if imported.kind == RunKind::Loop {
        let flags = Overrides { max: imported.max_iterations, ..Overrides::default() };
        if let Ok(planned) = plan_loop(&here.catalogue(), &imported.title, Some(&imported.name), &flags) {
            return planned.plan;
        }
    }
    let done = |stage: u32| imported.iterations.iter().filter(|it| it.id.stage == stage).count();
    let most = |stage: u32, runs: Option<u32>| {
        runs.or(imported.max_iterations).unwrap_or_else(|| u32::try_from(done(stage)).unwrap_or(1)).max(1)
    };
    let stages: Vec<StagePlan> = if imported.stages.is_empty() {
        vec![stage_of(&imported.title, None, most(1, None))]
    } else {
        let number =
            |stage: &ImportedStage, at: u32| stage_of(&stage.name, stage.loop_type.clone(), most(at, stage.runs));
        (1_u32..).zip(&imported.stages).map(|(at, stage)| number(stage, at)).collect()
    };
    Plan {
        name: imported.name.clone(),
        kind: imported.kind,
        title: imported.title.clone(),
        pipeline_file: (imported.kind == RunKind::Pipeline).then(|| format!("{}.yaml", imported.title)),
        stages,
        limits: RunLimits::default(),
        purpose: steadfast_model::run::RunPurpose::Definition,
    }
}

/// Without a prompt: nobody can go on with it.
fn stage_of(name: &str, loop_type: Option<String>, runs: u32) -> StagePlan {
    StagePlan { loop_type, min_iterations: 0, timeout_ms: 0, ..StagePlan::new(name, Rule::FixedN, runs) }
}
