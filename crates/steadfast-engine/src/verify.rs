//! Verification of a goal: the user's own commands, run where the goal lives, with evidence of how they went.

use std::path::Path;
use std::time::Duration;

use steadfast_model::clock;
use steadfast_model::clock::Millis;
use steadfast_model::text;
use steadfast_store::Verification;

use crate::process::{self, Watch};

/// Git answers at once, or something is wrong with the repository.
const GIT_LIMIT: Duration = Duration::from_secs(10);

/// Runs the commands one after the other and stops at the first that fails. The text comes from the user's
/// own command line or slash command, never from a model, and is given to the shell as they wrote it.
pub fn run(commands: &[String], directory: &Path, limit: Duration) -> std::io::Result<Vec<Verification>> {
    run_watched(&Watch::default(), commands, directory, limit)
}

/// Like [`run`], for commands that may be cancelled.
pub(crate) fn run_watched(
    watch: &Watch,
    commands: &[String],
    directory: &Path,
    limit: Duration,
) -> std::io::Result<Vec<Verification>> {
    let git_commit = git(&["git", "rev-parse", "HEAD"], directory);
    let git_dirty = git_commit
        .as_ref()
        .and_then(|_| git(&["git", "status", "--porcelain"], directory))
        .map(|changes| !changes.is_empty());
    let mut runs = Vec::new();
    for command in commands {
        let created_at_ms: Millis = clock::now();
        let outcome = process::run_watched(watch, &["sh", "-c", command], directory, limit)?;
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

fn git(argv: &[&str], directory: &Path) -> Option<String> {
    let outcome = process::run(argv, directory, GIT_LIMIT).ok()?;
    (outcome.exit_code == Some(0)).then(|| outcome.output_tail.trim().to_owned())
}
