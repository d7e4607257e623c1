//! `fleet resume`: starts a run again from its run directory, so that it does not matter whether the server still knows
//! the old one.

use steadfast_model::clock;
use steadfast_model::run::{RunStatus, machine};

use super::{Here, follow, status};
use crate::cli::NamedRunArgs;
use crate::output::{CommandError, CommandResult, Output, code};
use crate::wire::{Carried, RunInput};

pub(super) async fn resume(here: &Here, run: &NamedRunArgs, max: Option<u32>, detach: bool) -> CommandResult {
    let fleet = here.connect().await?;
    let found = here.find_run(run).await?;
    let name = run.name.as_str();
    if found.is_live() {
        let hint = format!("`steadfast fleet attach {name}` watches it, `kill {name}` ends it");
        return Err(CommandError::new(code::WRONG_STATE, format!("run {name} is running"), hint));
    }
    let (plan, state) = (&found.directory.plan, found.directory.state.clone());
    let now = clock::now();
    let mut records = Vec::new();
    let mut reopened = state.run;
    if reopened.status == RunStatus::Running {
        // The server lost the workflow: what was under way is lost too.
        let step = machine::orphaned(plan, reopened, now);
        records.extend(step.records);
        reopened = step.run;
    }
    let step = machine::reopen(plan, &reopened, max, now)
        .map_err(|error| CommandError::new(code::WRONG_STATE, format!("run {name}: {error}"), error.hint()))?;
    records.extend(step.records);
    let seen = state.seq;
    let carried =
        Carried { run: step.run, heads: state.heads, seq: state.seq, shas: state.shas, records, ..Carried::default() };
    fleet.start(RunInput { run: state.run_ref, options: state.options, carried: Some(carried) }).await?;
    if !detach {
        return follow::follow(here, run, seen).await;
    }
    let found = here.find_run(run).await?;
    let text = format!("{} {name} runs on the fleet again\n  watch:  steadfast fleet attach {name}", plan.kind);
    Ok(Output { text, ..status::show(&found, here.json)? })
}
