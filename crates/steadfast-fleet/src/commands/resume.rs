//! `fleet resume`: starts a run again from its run directory, so that it does not matter whether the server still knows
//! the old one.

use steadfast_model::clock;
use steadfast_model::goal::budget::Budget;
use steadfast_model::limit::{Axis, Limits};
use steadfast_model::run::{Plan, RunStatus, machine};

use super::{FoundRun, Here, follow, status};
use crate::cli::{FleetResumeArgs, NamedRunArgs};
use crate::output::{CommandError, CommandResult, Output, code};
use crate::wire::{Carried, RunInput, RunRef};
use crate::work;

pub(super) async fn resume(here: &Here, run: &NamedRunArgs, changes: &FleetResumeArgs, detach: bool) -> CommandResult {
    let fleet = here.connect().await?;
    let found = here.find_run(run).await?;
    let name = run.name.as_str();
    if found.is_live() {
        let hint = format!("`steadfast fleet attach {name}` watches it, `kill {name}` ends it");
        return Err(CommandError::new(code::WRONG_STATE, format!("run {name} is running"), hint));
    }
    let plan =
        machine::with_limits(found.directory.plan.as_ref().clone(), &found.directory.state.run, limits(changes)?);
    let state = found.directory.state.clone();
    let now = clock::now();
    let mut records = Vec::new();
    let mut reopened = state.run;
    if reopened.status == RunStatus::Running {
        // The server lost the workflow: what was under way is lost too.
        let step = machine::orphaned(&plan, reopened, now);
        records.extend(step.records);
        reopened = step.run;
    }
    let step = machine::reopen(&plan, &reopened, changes.max, now)
        .map_err(|error| CommandError::new(code::WRONG_STATE, format!("run {name}: {error}"), error.hint()))?;
    records.extend(step.records);
    let seen = state.seq;
    let run_ref = with_plan(here, &found, plan.clone()).await?;
    let carried =
        Carried { run: step.run, heads: state.heads, seq: state.seq, shas: state.shas, records, ..Carried::default() };
    fleet.start(RunInput { run: run_ref, options: state.options, carried: Some(carried) }).await?;
    if !detach {
        return follow::follow(here, run, seen).await;
    }
    let found = here.find_run(run).await?;
    let text = format!("{} {name} runs on the fleet again\n  watch:  steadfast fleet attach {name}", plan.kind);
    Ok(Output { text, ..status::show(&found, here.json)? })
}

/// The limits that the flags ask for.
fn limits(changes: &FleetResumeArgs) -> Result<Limits, CommandError> {
    let wrong =
        |error: steadfast_model::limit::AmountError| CommandError::new(code::USAGE, error.to_string(), error.hint());
    let profile = changes.budget.as_deref().map(|text| Budget::parse(text, "")).transpose().map_err(wrong)?;
    let mut limits = profile.unwrap_or_default().limits;
    for (axis, text) in [(Axis::Usd, &changes.usd), (Axis::Hours, &changes.max_hours)] {
        if let Some(text) = text {
            limits.set(axis, Some(axis.parse(text, clock::now()).map_err(wrong)?));
        }
    }
    Ok(limits)
}

/// The run with a changed plan, which is pushed to its run directory first.
async fn with_plan(here: &Here, found: &FoundRun, plan: Plan) -> Result<RunRef, CommandError> {
    let directory = found.directory.clone();
    if plan == *directory.plan {
        return Ok(directory.state.run_ref);
    }
    let home = here.home.clone();
    let changed = tokio::task::spawn_blocking(move || work::change_plan(&home, &directory, &plan)).await;
    Ok(changed.map_err(|error| std::io::Error::other(error.to_string()))??)
}
