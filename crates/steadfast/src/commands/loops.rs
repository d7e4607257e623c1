//! `steadfast loop` and `steadfast pipeline`: start runs, and list, create and check their definitions. Verbs about
//! existing runs are in `runs.rs`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use steadfast_engine::plan::{
    DefinitionOrigin, Level, ListedDefinition, Overrides, PlanError, Planned, plan_loop, plan_pipeline, scaffold,
};
use steadfast_model::run::RunKind;
use steadfast_model::{clock, text};

use super::definitions;
use super::runs::{self, How, NewRun, RunContext};
use crate::cli::{LoopVerb, PipelineVerb, RunHow};
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};

pub(crate) fn run(db: Option<&Path>, verb: LoopVerb, json: bool) -> CommandResult {
    let context = match &verb {
        LoopVerb::OnRun(verb) => RunContext::on_run(db, RunKind::Loop, json, verb)?,
        _ => RunContext::new(db, RunKind::Loop, json)?,
    };
    let catalogue = context.catalogue();
    match verb {
        LoopVerb::Run(arguments) => {
            let mut overrides = run_overrides(&context, arguments.max, &arguments.how)?;
            overrides.items = arguments.items;
            let loop_type = named_loop(&context, &arguments.loop_type);
            let planned = plan_loop(&catalogue, &loop_type, arguments.name.as_deref(), &overrides);
            start_planned(&context, planned, &arguments.loop_type, arguments.name.as_deref(), &arguments.how)
        }
        LoopVerb::OnRun(verb) => runs::on_run(&context, &verb),
        LoopVerb::Types => Ok(listed(&catalogue.list(RunKind::Loop)?, "loop types")),
        LoopVerb::New { name, user } => {
            let (base, readers) = new_place(&context, user);
            let files = scaffold::new_loop(&base.join("loops"), &name, readers)?;
            trust_new(&context, plan_loop(&catalogue, &name, None, &Overrides::default()))?;
            Ok(created(&files, &format!("try it: steadfast loop run {name} --dry-run")))
        }
        LoopVerb::Validate { name } => {
            let name = name.map(|name| named_loop(&context, &name));
            definitions::validate(&catalogue, RunKind::Loop, name.as_deref())
        }
    }
}

pub(crate) fn run_pipelines(db: Option<&Path>, verb: PipelineVerb, json: bool) -> CommandResult {
    let context = match &verb {
        PipelineVerb::OnRun(verb) => RunContext::on_run(db, RunKind::Pipeline, json, verb)?,
        _ => RunContext::new(db, RunKind::Pipeline, json)?,
    };
    let catalogue = context.catalogue();
    match verb {
        PipelineVerb::Run(arguments) => {
            let overrides = run_overrides(&context, arguments.max, &arguments.how)?;
            let (file, name) = (named_file(&context, &arguments.file), arguments.name.as_deref());
            let planned = plan_pipeline(&catalogue, &file, name, &overrides, context.now);
            start_planned(&context, planned, &arguments.file, name, &arguments.how)
        }
        PipelineVerb::OnRun(verb) => runs::on_run(&context, &verb),
        PipelineVerb::Approve(arguments) => runs::answer(&context, &arguments, true),
        PipelineVerb::Reject(arguments) => runs::answer(&context, &arguments, false),
        PipelineVerb::Types => Ok(listed(&catalogue.list(RunKind::Pipeline)?, "pipelines")),
        PipelineVerb::New { name, user } => {
            let (base, readers) = new_place(&context, user);
            let path = base.join("pipelines").join(format!("{name}.yaml"));
            scaffold::new_pipeline(&path, &name, readers)?;
            trust_new(&context, plan_pipeline(&catalogue, &name, None, &Overrides::default(), context.now))?;
            Ok(created(&[path], &format!("check it: steadfast pipeline validate {name}")))
        }
        PipelineVerb::Validate { file } => {
            let file = file.map(|file| named_file(&context, &file));
            definitions::validate(&catalogue, RunKind::Pipeline, file.as_deref())
        }
        PipelineVerb::Graph { file, mermaid } => definitions::graph(&catalogue, &named_file(&context, &file), mermaid),
    }
}

/// A loop type that is named by a path is looked for in the user's directory first.
fn named_loop(context: &RunContext, name: &str) -> String {
    if name.contains('/') { context.resolve(name) } else { name.to_owned() }
}

/// The same for a pipeline, whose path may also be a plain file name.
fn named_file(context: &RunContext, file: &str) -> String {
    let is_yaml = Path::new(file)
        .extension()
        .is_some_and(|end| ["yaml", "yml"].iter().any(|known| end.eq_ignore_ascii_case(known)));
    let is_path = file.contains('/') || (is_yaml && context.named_below(file).is_some_and(|path| path.is_file()));
    if is_path { context.resolve(file) } else { file.to_owned() }
}

/// The folder of a new definition, and who may read it.
fn new_place(context: &RunContext, user: bool) -> (PathBuf, scaffold::Readers) {
    if user {
        (context.paths.home.clone(), scaffold::Readers::Owner)
    } else {
        (context.project.join(".claude"), scaffold::Readers::Project)
    }
}

/// The user made the definition, so its first text is trusted. One of the user's home needs no trust.
fn trust_new(context: &RunContext, planned: Result<Planned, PlanError>) -> Result<(), CliError> {
    planned.ok().map_or(Ok(()), |planned| runs::trust_new(context, &planned))
}

/// The flags that loops and pipelines share. The turns of a budget profile are a limit unless `--max` is given.
fn run_overrides(context: &RunContext, max: Option<u32>, how: &RunHow) -> Result<Overrides, CliError> {
    runs::check_commands(&how.verify)?;
    let limits = how.limits.budget("", clock::now())?.limits;
    let (verify, text) = (how.verify.clone(), how.context.clone());
    Ok(Overrides { max, limits, verify, context: text, ..runs::agent_overrides(context, &how.agent)? })
}

/// Starts the run of a plan that was made from the definition `what`.
fn start_planned(
    context: &RunContext,
    planned: Result<Planned, PlanError>,
    what: &str,
    name: Option<&str>,
    how: &RunHow,
) -> CommandResult {
    let planned = planned.map_err(|error| refused(error, context.kind, "run", what))?;
    if (how.at.is_some() || how.every.is_some()) && !how.dry_run {
        if how.agent.fleet.fleet {
            return Err(runs::senseless_on_fleet(
                "--at or --every",
                "use --cron \"0 3 * * *\": Temporal keeps the time",
            ));
        }
        return runs::make_appointment(context, &planned, name, how);
    }
    let input_files = runs::input_files(context, &planned.inputs, &how.input)?;
    let new = NewRun {
        run_id: how.run_id.unwrap_or_else(uuid::Uuid::new_v4).to_string(),
        inputs: runs::inputs_text(&planned.plan, &input_files)?,
        input_files,
        planned,
        worktree: how.worktree,
        trust: how.agent.trust,
        sandbox: how.agent.sandbox,
        how: match (how.tmux, how.agent.detach) {
            (true, _) => How::Tmux,
            (false, true) => How::Detached,
            (false, false) => How::Foreground,
        },
        dry_run: how.dry_run,
        fleet: how.agent.fleet.fleet.then(|| how.agent.fleet.clone()),
        objective: None,
    };
    runs::start(context, &new, |_, _| Ok(()))
}

/// Prints all faults on stderr and returns an error that counts them.
pub(super) fn refused(error: PlanError, kind: RunKind, verb: &str, what: &str) -> CliError {
    match &error {
        PlanError::Faults(faults) => {
            output::note(&runs::format_faults(faults));
            let errors = faults.iter().filter(|fault| fault.level == Level::Error).count();
            let message = format!("cannot {verb} {what}: {errors} error{}", if errors == 1 { "" } else { "s" });
            let shown = text::headline(what, 200);
            let hint = format!("fix the errors above, then check with `steadfast {kind} validate {shown}`");
            let faults = Some(Box::new(runs::faults_json(faults)));
            CliError { faults, ..CliError::new(code::USAGE, message, hint) }
        }
        _ => error.into(),
    }
}

fn listed(types: &[ListedDefinition], what: &str) -> CommandOutput {
    let origin = |listed: &ListedDefinition| match listed.origin {
        DefinitionOrigin::Path | DefinitionOrigin::Project => "project",
        DefinitionOrigin::User => "user",
        DefinitionOrigin::BuiltIn => "built in",
    };
    let row = |listed: &ListedDefinition| {
        vec![listed.name.clone(), origin(listed).to_owned(), listed.description.clone().unwrap_or_default()]
    };
    let rows: Vec<Vec<String>> = types.iter().map(row).collect();
    let object = |listed: &ListedDefinition| json!({"name": listed.name, "description": listed.description, "origin": origin(listed), "file": listed.file});
    let objects: Value = types.iter().map(object).collect();
    let text = if rows.is_empty() { format!("no {what}") } else { output::columns(&rows) };
    CommandOutput { text, json: json!({"types": objects}), code: 0 }
}

fn created(files: &[PathBuf], next: &str) -> CommandOutput {
    let mut lines: Vec<String> = files.iter().map(|path| format!("created {}", path.display())).collect();
    lines.push(next.to_owned());
    CommandOutput { text: lines.join("\n"), json: json!({"files": files}), code: 0 }
}
