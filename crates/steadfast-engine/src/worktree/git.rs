//! Calling git for worktrees: with a limit, with nothing left in the background, and with the run's lock as its stdin.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::WorktreeError;
use crate::process::{self, Cancel, Watch};

pub(super) const GIT_LIMIT: Duration = Duration::from_mins(2);

/// Held while git works on the worktrees of a run. Git holds it too, as its stdin: when we are killed and git is not,
/// whoever comes next waits for it.
pub(super) struct Guard {
    pub(super) file: std::fs::File,
    /// Ends git when it is set: nobody needs what it makes any more.
    pub(super) cancel: Cancel,
}

pub(super) fn git(
    guard: Option<&Guard>,
    directory: &Path,
    what: &'static str,
    arguments: &[&str],
) -> Result<String, WorktreeError> {
    // Nothing of it goes on in the background once it has ended.
    let argv: Vec<&str> = ["git", "-c", "gc.auto=0", "-c", "maintenance.auto=false"]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    let (stdin, cancel) = match guard {
        Some(guard) => (Stdio::from(guard.file.try_clone()?), guard.cancel.clone()),
        None => (Stdio::null(), Cancel::default()),
    };
    let watch = Watch { cancel, mark: None };
    let captured = process::capture_with(&watch, stdin, &argv, directory, GIT_LIMIT, 1 << 20)?;
    if captured.exit_code == Some(0) {
        return Ok(String::from_utf8_lossy(&captured.stdout).trim_end().to_owned());
    }
    let mut lines = captured.stderr_tail.lines().filter(|line| !line.trim().is_empty());
    let message = lines.clone().find(|line| line.contains(".lock")).or_else(|| lines.next_back());
    Err(WorktreeError::Git { what, message: message.unwrap_or("no message").to_owned() })
}
