//! Verification of a goal: the user's own commands, run in the goal's directory, with their results as evidence.

use std::path::Path;
use std::time::Duration;

use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::Goal;
use steadfast_model::goal::environment::StartEnvironment;
use steadfast_model::goal::proof::Evidence;
use steadfast_system::env_vars;

use crate::process::LimitedCommand;

/// Git answers at once unless something is wrong with the repository.
const GIT_LIMIT: Duration = Duration::from_secs(10);
/// One line is enough to know that there are changes.
const GIT_BYTES: u64 = 4_096;

/// Runs the commands of a goal in its directory, with the environment of its start if that is known; the caller stores
/// the evidence.
pub fn run_for_goal(
    goal: &Goal,
    limit: Duration,
    environment: Option<&StartEnvironment>,
) -> std::io::Result<Vec<Evidence>> {
    let directory = goal.project_dir.as_deref().map_or_else(|| Path::new("."), Path::new);
    let variables = environment.map(|environment| environment.for_check(env_vars::all()));
    run(&goal.verify, directory, |command| {
        let command = LimitedCommand::shell(command, directory, limit);
        match &variables {
            Some(variables) => command.only_env(variables),
            None => command,
        }
    })
}

/// Runs the commands one after the other and stops at the first that fails. The text comes from the user's own command
/// line or slash command, never from a model, and goes to the shell unchanged.
pub(crate) fn run(
    commands: &[String],
    directory: &Path,
    shell: impl Fn(&str) -> LimitedCommand,
) -> std::io::Result<Vec<Evidence>> {
    let git = |arguments: &[&str]| LimitedCommand::ask_git(arguments, directory, GIT_LIMIT, GIT_BYTES);
    let git_commit =
        git(&["rev-parse", "HEAD"]).map(|commit| String::from_utf8_lossy(commit.trim_ascii()).into_owned());
    let git_dirty =
        git_commit.as_ref().and_then(|_| git(&["status", "--porcelain"])).map(|changes| !changes.is_empty());
    let mut runs = Vec::new();
    for command in commands {
        let created_at_ms: Millis = clock::now();
        let outcome = shell(command).run()?;
        let run = Evidence {
            command: command.clone(),
            exit_code: outcome.exit_code,
            timed_out: outcome.timed_out,
            duration_ms: i64::try_from(outcome.duration.as_millis()).unwrap_or(i64::MAX),
            output_sha256: outcome.output_sha256,
            output_tail: outcome.output_tail,
            git_commit: git_commit.clone(),
            git_dirty,
            created_at_ms,
        };
        let passed = run.passed();
        runs.push(run);
        if !passed {
            break;
        }
    }
    Ok(runs)
}
