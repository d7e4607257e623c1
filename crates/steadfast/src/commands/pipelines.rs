//! `steadfast pipeline`: making pipelines and checking their files. What is done with one that exists is in `runs.rs`.

use std::path::Path;

use steadfast_engine::plan::{plan_pipeline, scaffold, validate_pipeline};
use steadfast_model::run::RunKind;

use super::loops::{judged, listed, made, new_place, new_run, refused};
use super::runs::{self, Here};
use crate::cli::{PipelineArgs, PipelineRunArgs, PipelineVerb};
use crate::error::CliError;
use crate::output::CommandOutput;

pub(crate) fn run(db: Option<&Path>, arguments: PipelineArgs) -> Result<CommandOutput, CliError> {
    let here = Here::new(db, RunKind::Pipeline, arguments.json)?;
    match arguments.verb {
        PipelineVerb::Run(arguments) => start(&here, &arguments),
        PipelineVerb::OnRun(verb) => runs::on_run(&here, &verb),
        PipelineVerb::Types => Ok(listed(&here.catalogue().pipelines(), "pipelines")),
        PipelineVerb::New { name, user } => {
            let (base, readers) = new_place(&here, user);
            let path = base.join("pipelines").join(format!("{name}.yaml"));
            scaffold::new_pipeline(&path, &name, readers)?;
            Ok(made(&[path], &format!("check it: steadfast pipeline validate {name}")))
        }
        PipelineVerb::Validate { file } => {
            let faults = validate_pipeline(&here.catalogue(), &file)?;
            Ok(judged(&faults, &file))
        }
    }
}

fn start(here: &Here, arguments: &PipelineRunArgs) -> Result<CommandOutput, CliError> {
    let overrides = runs::run_overrides(arguments.max, &arguments.how)?;
    let planned = plan_pipeline(&here.catalogue(), &arguments.file, arguments.name.as_deref(), &overrides, here.now);
    let planned = planned.map_err(|error| refused(error, RunKind::Pipeline, &arguments.file))?;
    if !arguments.how.dry_run {
        runs::require_trust(here, &planned, arguments.how.trust)?;
    }
    runs::start(here, &new_run(planned, &arguments.how)?, |_| Ok(()))
}
