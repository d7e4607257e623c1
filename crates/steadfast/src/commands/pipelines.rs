//! `steadfast pipeline`: starts, lists, creates and checks pipelines. Verbs about existing runs are in `runs.rs`.

use std::path::Path;

use steadfast_engine::plan::{plan_pipeline, scaffold, validate_pipeline};
use steadfast_model::run::RunKind;

use super::loops::{created, listed, new_place, start_planned, validated};
use super::runs::{self, RunContext};
use crate::cli::{PipelineArgs, PipelineRunArgs, PipelineVerb};
use crate::error::CliError;
use crate::output::CommandOutput;

pub(crate) fn run(db: Option<&Path>, arguments: PipelineArgs) -> Result<CommandOutput, CliError> {
    let context = RunContext::new(db, RunKind::Pipeline, arguments.json)?;
    match arguments.verb {
        PipelineVerb::Run(arguments) => start(&context, &arguments),
        PipelineVerb::OnRun(verb) => runs::on_run(&context, &verb),
        PipelineVerb::Types => Ok(listed(&context.catalogue().list(RunKind::Pipeline), "pipelines")),
        PipelineVerb::New { name, user } => {
            let (base, readers) = new_place(&context, user);
            let path = base.join("pipelines").join(format!("{name}.yaml"));
            scaffold::new_pipeline(&path, &name, readers)?;
            Ok(created(&[path], &format!("check it: steadfast pipeline validate {name}")))
        }
        PipelineVerb::Validate { file } => {
            let faults = validate_pipeline(&context.catalogue(), &file)?;
            Ok(validated(&faults, &file))
        }
    }
}

fn start(context: &RunContext, arguments: &PipelineRunArgs) -> Result<CommandOutput, CliError> {
    let overrides = runs::run_overrides(arguments.max, &arguments.how)?;
    let planned =
        plan_pipeline(&context.catalogue(), &arguments.file, arguments.name.as_deref(), &overrides, context.now);
    start_planned(context, planned, &arguments.file, &arguments.how)
}
