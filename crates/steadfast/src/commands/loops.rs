//! `steadfast loop`: start loops and manage loop types. Commands on an existing loop are in `runs.rs`.

use std::path::{Path, PathBuf};

use serde_json::json;
use steadfast_core::run::RunKind;
use steadfast_core::text;
use steadfast_engine::plan::{Fault, Level, Listed, Origin, PlanError, plan_loop, scaffold, validate_loop};

use super::runs::{self, Here, How, NewRun};
use crate::cli::{LoopArgs, LoopRunArgs, LoopVerb, RunHow};
use crate::failure::{Failure, code};
use crate::output::{self, Done};

pub(crate) fn run(db: Option<&Path>, arguments: LoopArgs) -> Result<Done, Failure> {
    let here = Here::new(db, RunKind::Loop, arguments.json)?;
    match arguments.verb {
        LoopVerb::Run(arguments) => start(&here, &arguments),
        LoopVerb::OnRun(verb) => runs::on_run(&here, &verb),
        LoopVerb::Types => Ok(listed(&here.catalogue().loop_types(), "loop types")),
        LoopVerb::New { name, user } => {
            let (base, readers) = new_place(&here, user);
            let files = scaffold::new_loop(&base.join("loops"), &name, readers)?;
            Ok(made(&files, &format!("try it: steadfast loop run {name} --dry-run")))
        }
        LoopVerb::Validate { name } => {
            let faults = validate_loop(&here.catalogue(), &name)?;
            Ok(judged(&faults, &name))
        }
    }
}

/// Where a new definition goes, and who may read it.
pub(super) fn new_place(here: &Here, user: bool) -> (PathBuf, scaffold::Readers) {
    if user {
        (here.paths.home.clone(), scaffold::Readers::Owner)
    } else {
        (here.project.join(".claude"), scaffold::Readers::Project)
    }
}

fn start(here: &Here, arguments: &LoopRunArgs) -> Result<Done, Failure> {
    let mut overrides = runs::run_overrides(arguments.max, &arguments.how)?;
    overrides.items.clone_from(&arguments.items);
    let planned = plan_loop(&here.catalogue(), &arguments.loop_type, arguments.name.as_deref(), &overrides);
    let planned = planned.map_err(|error| refused(error, RunKind::Loop, &arguments.loop_type))?;
    if !arguments.how.dry_run {
        runs::require_trust(here, &planned, arguments.how.trust)?;
    }
    runs::start(here, &new_run(planned, &arguments.how)?, |_| Ok(()))
}

pub(super) fn new_run(planned: steadfast_engine::plan::Planned, how: &RunHow) -> Result<NewRun, Failure> {
    Ok(NewRun {
        run_id: uuid::Uuid::new_v4().to_string(),
        planned,
        inputs: runs::inputs_text(&how.input)?,
        worktree: how.worktree,
        how: match (how.tmux, how.agent.detach) {
            (true, _) => How::Tmux,
            (false, true) => How::Detached,
            (false, false) => How::Here,
        },
        dry_run: how.dry_run,
    })
}

/// All faults on stderr, and one line that says so.
pub(super) fn refused(error: PlanError, kind: RunKind, what: &str) -> Failure {
    match &error {
        PlanError::Faults(faults) => {
            output::note(&runs::told(faults));
            let errors = faults.iter().filter(|fault| fault.level == Level::Error).count();
            let message = format!("{what} cannot be run: {errors} error{}", if errors == 1 { "" } else { "s" });
            let shown = text::headline(what, 200);
            let hint = format!("mend what is told, then check with `steadfast {kind} validate {shown}`");
            let faults = Some(Box::new(runs::faults_json(faults)));
            Failure { faults, ..Failure::new(code::USAGE, message, hint) }
        }
        _ => error.into(),
    }
}

pub(super) fn judged(faults: &[Fault], what: &str) -> Done {
    let errors = faults.iter().filter(|fault| fault.level == Level::Error).count();
    let warnings = faults.len() - errors;
    let verdict = match (errors, warnings) {
        (0, 0) => format!("{what} is fine"),
        (0, _) => format!("{what} can be run; {warnings} to look at"),
        _ => format!("{what} cannot be run: {errors} to mend"),
    };
    let text = if faults.is_empty() { verdict } else { format!("{}\n{verdict}", runs::told(faults)) };
    let json = json!({"valid": errors == 0, "faults": runs::faults_json(faults)});
    Done { text, json, code: if errors == 0 { 0 } else { code::USAGE } }
}

pub(super) fn listed(types: &[Listed], what: &str) -> Done {
    let origin = |listed: &Listed| match listed.origin {
        Origin::Path | Origin::Project => "project",
        Origin::User => "user",
        Origin::BuiltIn => "built in",
    };
    let rows: Vec<Vec<String>> = types
        .iter()
        .map(|listed| {
            vec![listed.name.clone(), origin(listed).to_owned(), listed.description.clone().unwrap_or_default()]
        })
        .collect();
    let objects: Vec<_> = types
        .iter()
        .map(|listed| {
            json!({"name": listed.name, "description": listed.description, "origin": origin(listed), "file": listed.file})
        })
        .collect();
    let text = if rows.is_empty() { format!("no {what}") } else { output::columns(&rows) };
    Done { text, json: json!({"types": objects}), code: 0 }
}

pub(super) fn made(files: &[PathBuf], next: &str) -> Done {
    let mut lines: Vec<String> = files.iter().map(|path| format!("made {}", path.display())).collect();
    lines.push(next.to_owned());
    Done { text: lines.join("\n"), json: json!({"files": files}), code: 0 }
}
