//! The checks of completion rules: the user's own commands, a checklist, the beads tracker, or another agent's verdict.
//! A check that could not be made is `None` with a detail for people, and never counts as passed.

mod beads;
mod checklist;
pub(crate) mod judge;

use std::path::PathBuf;
use std::time::Duration;

use steadfast_model::goal::proof::Evidence;
use steadfast_model::redact::redact;
use steadfast_model::run::{Check, Checked};
use steadfast_model::text;
use steadfast_system::env_vars;

use crate::attempt::{Attempt, AttemptState};
use crate::descendants::FoundProcess;
use crate::environment::StageEnvironment;
use crate::process::{Cancel, LimitedCommand};
use crate::{descendants, durable, excerpt, outage, verify, worktree};

const DETAIL_CHARS: usize = 300;

/// Where and how checks are made.
#[derive(Debug, Clone)]
pub(crate) struct CheckContext {
    pub(crate) directory: PathBuf,
    /// For each command.
    pub(crate) limit: Duration,
    pub(crate) cancel: Cancel,
    /// See [`mark_of`].
    pub(crate) mark: Option<(&'static str, String)>,
    pub(crate) judge: Option<judge::JudgeRequest>,
    pub(crate) environment: StageEnvironment,
    /// The branches that a stage merges, or why they are not known.
    pub(crate) branches: Option<Result<Vec<String>, String>>,
    /// The file for the results of verify commands.
    pub(crate) evidence: PathBuf,
}

impl CheckContext {
    fn command(&self, program: &str) -> LimitedCommand {
        let command = LimitedCommand::new(program, &self.directory, self.limit).cancelled_by(&self.cancel);
        let command = self.environment.of_check(command);
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
    let mut usage = None;
    let (holds, detail) = match check {
        Check::Command(command) => command_holds(command, context),
        Check::Verify(commands) => commands_hold(commands, context),
        Check::Checklist(file) => checklist::is_ticked(&context.directory.join(file)),
        Check::BeadsEmpty(label) => beads::are_empty_by("bd", label, context),
        Check::Merged => are_merged(context),
        Check::Judge => match &context.judge {
            Some(request) => {
                let (verdict, used) = judge::ask(request, context);
                usage = used;
                verdict
            }
            None => (None, "the stage has no judge".to_owned()),
        },
    };
    Checked { usage, ..checked(check, holds, &detail) }
}

/// The result of a check; `None` if it could not be made.
pub(crate) fn checked(check: &Check, holds: Option<bool>, detail: &str) -> Checked {
    let detail = excerpt::head(detail, DETAIL_CHARS);
    Checked { check: check.clone(), holds, detail, usage: None }
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

fn are_merged(context: &CheckContext) -> CheckResult {
    match &context.branches {
        None => (None, "the stage merges nothing".to_owned()),
        Some(Err(why)) => (None, why.clone()),
        Some(Ok(branches)) => match worktree::not_merged(&context.directory, branches) {
            Ok(left) if left.is_empty() => (Some(true), format!("merged: {}", branches.join(", "))),
            Ok(left) => (Some(false), format!("not merged: {}", left.join(", "))),
            Err(error) => (None, error.to_string()),
        },
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
                let what = format!("`{}` failed", text::headline(&redact(&failed.command), 100));
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
    let save = || durable::replace(&context.evidence, durable::json(&runs).as_bytes());
    outage::wait_for_room(|| context.cancel.is_cancelled(), |_| {}, save)
}

/// The entry in the environment of the commands that check an attempt, by which those of a killed engine are found.
pub(crate) fn mark_of(attempt: &Attempt) -> (&'static str, String) {
    (env_vars::CHECK, attempt.directory().display().to_string())
}

fn left_commands(attempt: &Attempt) -> Vec<FoundProcess> {
    let (name, value) = mark_of(attempt);
    descendants::marked(&format!("{name}={value}"))
}

/// The judges of an attempt that run; they are attempts beside it.
fn left_judges(attempt: &Attempt) -> std::io::Result<Vec<Attempt>> {
    let judges = (1..).map(|number| judge::beside(attempt, number));
    let mut live = Vec::new();
    for judge in judges.take_while(|judge| judge.directory().is_dir()) {
        if matches!(judge.inspect()?, AttemptState::Supervised | AttemptState::Orphaned { .. }) {
            live.push(judge);
        }
    }
    Ok(live)
}

/// Whether a check of this attempt is running. Only for runs without an engine.
pub fn are_under_way(attempt: &Attempt) -> std::io::Result<bool> {
    Ok(!left_commands(attempt).is_empty() || !left_judges(attempt)?.is_empty())
}

/// Ends all checks of this attempt that a killed engine left running. Only for runs without an engine.
pub fn stop(attempt: &Attempt, grace: Duration) -> std::io::Result<()> {
    end_commands(attempt, grace);
    left_judges(attempt)?.iter().try_for_each(|judge| judge.stop(grace))
}

/// Ends the commands that an earlier engine started, because their results are lost. Its judges are waited for.
pub(crate) fn end_commands(attempt: &Attempt, grace: Duration) {
    descendants::end(grace, || left_commands(attempt));
}

#[cfg(test)]
mod tests;
