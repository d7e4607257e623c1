//! `attach`: prints the output of a run's agents and the progress line until the run ends. Detaching does not affect it.

use steadfast_engine::interrupt;
use steadfast_model::run::RunStatus;

use super::finding::stored;
use super::logs::{Follower, LOOK_EVERY};
use super::progress::Progress;
use super::{RunContext, driving, view};
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, StdoutReader};

/// Lines of the current iteration that are printed first.
const LINES_BEFORE: usize = 20;

pub(super) fn attach(context: &RunContext, name: &str) -> Result<CommandOutput, CliError> {
    let (store, row) = context.find(name)?;
    let (kind, name) = (row.plan.kind, row.plan.name.clone());
    if row.run.status != RunStatus::Running {
        return Err(CliError::new(
            code::WRONG_STATE,
            format!("{kind} {name} is over ({})", row.run.status),
            format!("`steadfast {kind} status {name}` or `logs {name}` shows what it did"),
        ));
    }
    let interrupted = interrupt::flag()?;
    let mut follower = Follower::new(context, &row, false);
    follower.begin_at_last(LINES_BEFORE);
    let mut progress = Progress::new();
    loop {
        let now = stored(&store, &row.run_id)?;
        let is_live = now.run.status == RunStatus::Running;
        let is_driven = context.is_live(&now)? || context.is_driven(&row.run_id)?;
        let mut lines = Vec::new();
        while follower.step(|_, line| lines.push(line.to_owned())) {}
        // With --json, stdout has only the status at the end.
        if context.json {
            lines.clear();
        }
        if !lines.is_empty() {
            progress.clear();
        }
        if output::lines(lines.iter().map(String::as_str))? == StdoutReader::Closed {
            return Ok(CommandOutput::default());
        }
        progress.show(&now.plan, &now.run);
        if !is_live && !is_driven {
            drop(progress);
            return driving::ended(context, &row.run_id);
        }
        if is_live && !is_driven {
            drop(progress);
            return Err(CliError::new(
                code::WRONG_STATE,
                format!("the engine of {kind} {name} is gone"),
                format!("`steadfast {kind} resume {name}` resumes it, `kill {name}` ends it"),
            ));
        }
        if interrupted.is_set() {
            drop(progress);
            output::note(&format!("detached; {kind} {name} is still running (`steadfast {kind} kill {name}` ends it)"));
            let done = view::show_status(context, store.read(), &now, is_live, 0)?;
            return Ok(CommandOutput { text: String::new(), ..done });
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
