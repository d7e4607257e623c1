//! `attach`: what the agents of a run print, with the progress line, until the run is over. Leaving changes nothing.

use steadfast_engine::interrupt;
use steadfast_model::run::RunStatus;

use super::finding::{called, stored};
use super::logs::{Follower, LOOK_EVERY};
use super::progress::Progress;
use super::{Here, driving, view};
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, StdoutReader};

/// What is shown of the iteration under way when somebody comes late.
const LINES_BEFORE: usize = 20;

pub(super) fn attach(here: &Here, name: &str) -> Result<CommandOutput, CliError> {
    let (store, row) = here.find(name)?;
    let (kind, name) = (row.plan.kind, row.plan.name.clone());
    if row.run.status != RunStatus::Running {
        return Err(CliError::new(
            code::WRONG_STATE,
            format!("{} is over ({})", called(kind, &name), row.run.status),
            format!("`steadfast {kind} status {name}` or `logs {name}` shows what it did"),
        ));
    }
    let interrupted = interrupt::flag()?;
    let mut follower = Follower::new(here, &row, false);
    follower.begin_at_last(LINES_BEFORE);
    let mut progress = Progress::new();
    loop {
        let now = stored(&store, &row.run_id)?;
        let is_live = now.run.status == RunStatus::Running;
        let is_driven = here.is_live(&now)? || here.is_driven(&row.run_id)?;
        let mut lines = Vec::new();
        while follower.step(|_, line| lines.push(line.to_owned())) {}
        // With `--json`, nothing but the status at the end.
        if here.json {
            lines.clear();
        }
        if !lines.is_empty() {
            progress.clear();
        }
        if output::lines(lines.iter().map(String::as_str))? == StdoutReader::Closed {
            // Nobody looks on any more; the run goes on.
            return Ok(CommandOutput::default());
        }
        progress.show(&now.plan, &now.run);
        if !is_live && !is_driven {
            drop(progress);
            return driving::ended(here, &row.run_id);
        }
        if is_live && !is_driven {
            drop(progress);
            return Err(CliError::new(
                code::WRONG_STATE,
                format!("the engine of {} is gone", called(kind, &name)),
                format!("`steadfast {kind} resume {name}` goes on, `kill {name}` ends it"),
            ));
        }
        if interrupted.is_set() {
            drop(progress);
            output::note(&format!(
                "detached; {} goes on (`steadfast {kind} kill {name}` ends it)",
                called(kind, &name)
            ));
            let json = view::status_json(here, store.read(), &now, is_live)?;
            return Ok(CommandOutput { json, ..CommandOutput::default() });
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
