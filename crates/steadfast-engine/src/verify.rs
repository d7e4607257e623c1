//! Verification of a goal: the user's own commands, run in the goal's directory, with their results as evidence.

use std::path::Path;
use std::time::Duration;

use steadfast_model::clock;
use steadfast_model::clock::Millis;
use steadfast_model::text;
use steadfast_store::Verification;

use crate::process::LimitedCommand;

/// Git answers at once unless something is wrong with the repository.
const GIT_LIMIT: Duration = Duration::from_secs(10);

/// Runs the commands of a goal and stores the evidence; an error if one of them failed.
pub fn verify_goal(
    store: &mut Store,
    goal: &Goal,
    config: &GoalConfig,
    origin: Origin,
) -> Result<Vec<Verification>, ActionError> {
    let directory = goal.project_dir.as_deref().map_or_else(|| Path::new("."), Path::new);
    let limit = Duration::from_secs(config.verify_timeout_seconds);
    let runs = run(&goal.verify, directory, |command| LimitedCommand::shell(command, directory, limit));
    let runs = runs.map_err(StoreError::Io)?;
    action::add_evidence(store, goal, &runs, origin, clock::now())?;
    Ok(runs)
}

/// Runs the commands one after the other and stops at the first that fails. The text comes from the user's own command
/// line or slash command, never from a model, and goes to the shell unchanged.
pub(crate) fn run(
    commands: &[String],
    directory: &Path,
    shell: impl Fn(&str) -> LimitedCommand,
) -> std::io::Result<Vec<Verification>> {
    let git_commit = git(&["rev-parse", "HEAD"], directory);
    let git_dirty =
        git_commit.as_ref().and_then(|_| git(&["status", "--porcelain"], directory)).map(|changes| !changes.is_empty());
    let mut runs = Vec::new();
    for command in commands {
        let created_at_ms: Millis = clock::now();
        let outcome = shell(command).run()?;
        let run = Verification {
            command: command.clone(),
            exit_code: outcome.exit_code,
            timed_out: outcome.timed_out,
            duration_ms: i64::try_from(outcome.duration.as_millis()).unwrap_or(i64::MAX),
            output_sha256: outcome.output_sha256,
            output_tail: text::printable(&outcome.output_tail),
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

fn git(arguments: &[&str], directory: &Path) -> Option<String> {
    let git = LimitedCommand::new("git", directory, GIT_LIMIT).args(arguments.iter().copied());
    let outcome = git.run().ok()?;
    (outcome.exit_code == Some(0)).then(|| outcome.output_tail.trim().to_owned())
}
