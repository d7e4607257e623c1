//! The checks of completion rules: the user's own commands, a checklist, the beads tracker, or another agent's verdict.
//! A check that could not be made is `None` with a detail for people, and never counts as passed.

mod beads;
mod checklist;
pub(crate) mod judge;
mod leftover;

use std::path::PathBuf;
use std::time::Duration;

use steadfast_model::goal::proof::Evidence;
use steadfast_model::run::{Check, Checked};
use steadfast_model::text;

use crate::process::{Cancel, LimitedCommand};
use crate::{durable, verify};

pub use self::leftover::{are_under_way, stop};
pub(crate) use self::leftover::{end_commands, mark_of};

const DETAIL_CHARS: usize = 300;

/// Where and how checks are made.
#[derive(Debug, Clone)]
pub(crate) struct CheckContext {
    pub(crate) directory: PathBuf,
    /// For each command.
    pub(crate) limit: Duration,
    pub(crate) cancel: Cancel,
    /// An entry for the environment of commands, by which those of a killed engine are found.
    pub(crate) mark: Option<(&'static str, String)>,
    pub(crate) judge: Option<judge::JudgeRequest>,
    /// The file for the results of verify commands.
    pub(crate) evidence: PathBuf,
}

impl CheckContext {
    fn command(&self, program: &str) -> LimitedCommand {
        let command = LimitedCommand::new(program, &self.directory, self.limit).cancelled_by(&self.cancel);
        self.mark.iter().fold(command, |command, (name, value)| command.env(name, value))
    }

    /// A command of the user's, from their command line or plan.
    fn shell(&self, text: &str) -> LimitedCommand {
        self.command("sh").args(["-c", text])
    }
}

/// Whether the check passed, and a detail for people.
type CheckResult = (Option<bool>, String);

pub(crate) fn carry_out(check: &Check, context: &CheckContext) -> Checked {
    let (holds, detail) = match check {
        Check::Command(command) => command_holds(command, context),
        Check::Verify(commands) => commands_hold(commands, context),
        Check::Checklist(file) => checklist::is_ticked(&context.directory.join(file)),
        Check::BeadsEmpty(label) => beads::are_empty_by("bd", label, context),
        Check::Judge => match &context.judge {
            Some(request) => judge::ask(request, context),
            None => (None, "the stage has no judge".to_owned()),
        },
    };
    checked(check, holds, &detail)
}

/// The result of a check; `None` if it could not be made.
pub(crate) fn checked(check: &Check, holds: Option<bool>, detail: &str) -> Checked {
    Checked { check: check.clone(), holds, detail: text::cut(text::printable(detail).trim(), DETAIL_CHARS) }
}

fn command_holds(command: &str, context: &CheckContext) -> CheckResult {
    match context.shell(command).run() {
        Err(error) => (None, format!("cannot run: {error}")),
        Ok(outcome) if outcome.timed_out => (None, "time limit reached".to_owned()),
        Ok(outcome) => {
            let code = outcome.exit_code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
            (Some(outcome.exit_code == Some(0)), with_last_line(&code, &outcome.output_tail))
        }
    }
}

/// What happened and the last printed line, if there is one.
fn with_last_line(what: &str, output: &str) -> String {
    let last = last_line(output);
    if last.is_empty() { what.to_owned() } else { format!("{what}: {last}") }
}

fn last_line(output: &str) -> &str {
    output.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default()
}

fn commands_hold(commands: &[String], context: &CheckContext) -> CheckResult {
    match verify::run(commands, &context.directory, |command| context.shell(command)) {
        Err(error) => (None, format!("cannot run: {error}")),
        Ok(runs) if save_evidence(&runs, context).is_err() => (None, "cannot save the evidence".to_owned()),
        Ok(runs) => match runs.iter().find(|run| !run.passed()) {
            Some(failed) => {
                let what = format!("`{}` failed", text::headline(&failed.command, 100));
                (Some(false), with_last_line(&what, &failed.output_tail))
            }
            None => (Some(runs.len() == commands.len() && !runs.is_empty()), format!("{} passed", runs.len())),
        },
    }
}

/// Saves the results beside the attempt they are about. A check before an iteration has no attempt yet.
fn save_evidence(runs: &[Evidence], context: &CheckContext) -> std::io::Result<()> {
    if !context.evidence.parent().is_some_and(std::path::Path::is_dir) {
        return Ok(());
    }
    durable::replace(&context.evidence, durable::json(&runs).as_bytes())
}

#[cfg(test)]
mod tests;
