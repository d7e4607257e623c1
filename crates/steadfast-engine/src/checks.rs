//! Looking up what a rule needs to know about the world: the user's own commands, a checklist, the beads tracker, or
//! another agent's verdict. What cannot be told is `None`, with a detail for people, and never counts as yes.

mod beads;
mod checklist;
pub(crate) mod judge;
mod left;

use std::path::PathBuf;
use std::time::Duration;

use steadfast_model::run::{Check, Checked};
use steadfast_model::text;
use steadfast_store::Verification;

use crate::process::{self, Watch};
use crate::{durable, shim, verify};

pub use self::left::{are_under_way, stop};
pub(crate) use self::left::{end_commands, mark_of};

const LONGEST_DETAIL: usize = 300;

/// Where and how checks are made.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) directory: PathBuf,
    /// For each command.
    pub(crate) limit: Duration,
    pub(crate) watch: Watch,
    pub(crate) judge: Option<judge::Request>,
    /// Where it is kept how verify commands went.
    pub(crate) evidence: PathBuf,
}

/// Whether it holds, and a word about it.
type Finding = (Option<bool>, String);

pub(crate) fn carry_out(check: &Check, here: &Surroundings) -> Checked {
    let (holds, detail) = match check {
        Check::Command(command) => command_holds(command, here),
        Check::Verify(commands) => commands_hold(commands, here),
        Check::Checklist(file) => checklist::is_ticked(&here.directory.join(file)),
        Check::BeadsEmpty(label) => beads::are_empty(label, here),
        Check::Judge => match &here.judge {
            Some(request) => judge::ask(request, here),
            None => (None, "no judge is named".to_owned()),
        },
    };
    Checked { check: check.clone(), holds, detail: text::cut(text::printable(&detail).trim(), LONGEST_DETAIL) }
}

/// A check that could not be made.
pub(crate) fn not_known(check: &Check, why: &str) -> Checked {
    Checked { check: check.clone(), holds: None, detail: text::cut(text::printable(why).trim(), LONGEST_DETAIL) }
}

/// The text is the user's own, from their command line or plan.
fn command_holds(command: &str, here: &Surroundings) -> Finding {
    match process::run_watched(&here.watch, &["sh", "-c", command], &here.directory, here.limit) {
        Err(error) => (None, format!("cannot be run: {error}")),
        Ok(outcome) if outcome.timed_out => (None, "its time limit was reached".to_owned()),
        Ok(outcome) => {
            let last = outcome.output_tail.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            let code = outcome.exit_code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
            (Some(outcome.exit_code == Some(0)), with_last_line(&code, last))
        }
    }
}

/// What happened and the last thing that was printed, if anything was.
fn with_last_line(what: &str, last: &str) -> String {
    if last.trim().is_empty() { what.to_owned() } else { format!("{what}: {last}") }
}

fn commands_hold(commands: &[String], here: &Surroundings) -> Finding {
    match verify::run_watched(&here.watch, commands, &here.directory, here.limit) {
        Err(error) => (None, format!("cannot be run: {error}")),
        Ok(runs) if keep(&runs, here).is_err() => (None, "the evidence cannot be kept".to_owned()),
        Ok(runs) => match runs.iter().find(|run| !run.passed()) {
            Some(failed) => {
                let last = failed.output_tail.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
                (Some(false), with_last_line(&format!("`{}` failed", text::headline(&failed.command, 100)), last))
            }
            None => (Some(runs.len() == commands.len() && !runs.is_empty()), format!("{} passed", runs.len())),
        },
    }
}

/// Before an iteration there is no attempt yet, and so nothing that the evidence could be about.
fn keep(runs: &[Verification], here: &Surroundings) -> std::io::Result<()> {
    if !here.evidence.parent().is_some_and(std::path::Path::is_dir) {
        return Ok(());
    }
    durable::replace(&here.evidence, shim::json(&runs).as_bytes())
}

#[cfg(test)]
mod tests;
