//! Calls of git for worktrees: which settings they have, whose lock they hold, and what is told of those that fail.
//! The project's hooks have no say in what keeps work safe, and nothing goes on in the background.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use steadfast_system::env_vars;

use super::Worktree;
use crate::process::{self, Cancel, Watch};

pub(super) const GIT_LIMIT: Duration = Duration::from_mins(2);
/// Of what git prints.
const MOST_OUTPUT: u64 = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error("{0} is not in a git repository with a commit, so no worktree can be made of it")]
    NoRepository(PathBuf),
    #[error("git cannot be run, and worktrees need it: {0}")]
    NoGit(std::io::Error),
    #[error("git {what} failed: {message}")]
    Git { what: &'static str, message: String },
    #[error("no name is free for the branch {0}")]
    Taken(String),
    #[error("a git of an earlier engine still works on {0}")]
    Busy(PathBuf),
    #[error("{0} is not a worktree of git any more")]
    Broken(PathBuf),
    #[error("the run is being ended")]
    Ending,
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl WorktreeError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoRepository(_) => {
                "run `git init` and make a first commit, or do without --worktree and parallel stages"
            }
            Self::NoGit(_) => "install git, or add its directory to PATH",
            Self::Git { message, .. } if message.contains("dubious ownership") => {
                "`git config --global --add safe.directory DIR` with that directory, or change its owner"
            }
            Self::Git { .. } => "look at `git worktree list` and `git branch --list 'steadfast*'`",
            Self::Taken(_) => "rename or delete branches that begin with `steadfast`, or give the run another name",
            Self::Busy(_) => "wait for it to end, then go on with `resume`",
            Self::Broken(_) => "save what you need of it, remove it, then go on with `resume`",
            Self::Ending => "go on with `resume`",
            Self::Io(_) => "check the rights on the directory",
        }
    }

    /// What it means when the project itself cannot be asked.
    pub(super) fn of_project(self, project: &Path) -> Self {
        let is_none = |message: &str| {
            ["not a git repository (or any", "ambiguous argument 'HEAD'", "Needed a single revision"]
                .iter()
                .any(|words| message.contains(words))
        };
        match self {
            Self::Git { message, .. } if is_none(&message) => Self::NoRepository(project.to_owned()),
            Self::Io(error) if error.kind() == std::io::ErrorKind::NotFound && project.is_dir() => Self::NoGit(error),
            other => other,
        }
    }
}

/// Held while git works on the worktrees of a run. Git holds it too, as its stdin: when we are killed and git is not,
/// whoever comes next waits for it.
pub(super) struct Guard {
    pub(super) file: std::fs::File,
    /// Ends git when it is set: nobody needs what it makes any more.
    pub(super) cancel: Cancel,
}

/// Runs git without the project's hooks, and says what it printed.
pub(super) fn git(
    guard: Option<&Guard>,
    directory: &Path,
    what: &'static str,
    arguments: &[&str],
) -> Result<String, WorktreeError> {
    let printed = git_for(guard, directory, what, arguments, MOST_OUTPUT)?;
    Ok(String::from_utf8_lossy(&printed).trim_end().to_owned())
}

/// The same, for names that may be anything and for more of it.
pub(super) fn git_for(
    guard: Option<&Guard>,
    directory: &Path,
    what: &'static str,
    arguments: &[&str],
    most: u64,
) -> Result<Vec<u8>, WorktreeError> {
    let arguments = [&["-c", "core.hooksPath=/dev/null"], arguments].concat();
    call(guard, directory, what, &arguments, most)
}

/// Runs git with the project's hooks: some prepare new worktrees.
pub(super) fn git_with_hooks(
    guard: &Guard,
    directory: &Path,
    what: &'static str,
    arguments: &[&str],
) -> Result<(), WorktreeError> {
    call(Some(guard), directory, what, arguments, MOST_OUTPUT).map(drop)
}

fn call(
    guard: Option<&Guard>,
    directory: &Path,
    what: &'static str,
    arguments: &[&str],
    most: u64,
) -> Result<Vec<u8>, WorktreeError> {
    // Nothing of it goes on in the background once it has ended, and repositories in the worktree name no program.
    let settings = ["-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.fsmonitor=false"];
    let argv = [&["git"], &settings[..], arguments].concat();
    let (stdin, cancel) = match guard {
        Some(guard) => (Stdio::from(guard.file.try_clone()?), guard.cancel.clone()),
        None => (Stdio::null(), Cancel::default()),
    };
    let watch = Watch { cancel, mark: None };
    // We read its messages.
    let env = [(env_vars::LC_ALL, "C")];
    let captured = process::capture_with(&watch, stdin, &env, &argv, directory, GIT_LIMIT, most)?;
    if captured.exit_code == Some(0) {
        return Ok(captured.stdout);
    }
    let message = if captured.timed_out { "it took too long" } else { telling_line(&captured.stderr_tail) };
    Err(WorktreeError::Git { what, message: message.to_owned() })
}

/// The line that says why. Others around it are progress and advice.
fn telling_line(errors: &str) -> &str {
    let lines = || errors.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_lock = |line: &&str| line.contains(".lock'");
    let is_reason = |line: &&str| line.starts_with("error:") || line.starts_with("fatal:");
    let found = lines().find(is_lock).or_else(|| lines().find(is_reason));
    found.or_else(|| lines().next_back()).unwrap_or("no message")
}

impl Worktree {
    /// A git that was killed leaves its locks. We hold the run's own, and no agent works here now: those of this
    /// worktree and of its branch are nobody's.
    pub(super) fn git_despite_locks(
        &self,
        guard: &Guard,
        directory: &Path,
        what: &'static str,
        arguments: &[&str],
    ) -> Result<String, WorktreeError> {
        let done = git(Some(guard), directory, what, arguments);
        if !matches!(&done, Err(WorktreeError::Git { message, .. }) if message.contains(".lock")) {
            return done;
        }
        let of_branch = format!("refs/heads/{}.lock", self.chosen()?.unwrap_or_default());
        let mut stale = vec![(&self.project, of_branch.as_str())];
        // Elsewhere they would be those of a repository that is not ours.
        if self.path.join(".git").exists() {
            stale.extend([(&self.path, "index.lock"), (&self.path, "HEAD.lock")]);
        }
        for (place, name) in stale {
            if let Ok(path) = git(Some(guard), place, "rev-parse", &["rev-parse", "--git-path", name]) {
                // Usually only one of them is there.
                let _ = fs_err::remove_file(place.join(path));
            }
        }
        git(Some(guard), directory, what, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_git_says_the_reason_is_told() {
        for (errors, expected) in [
            (
                "Preparing worktree (new branch 'a')\nfatal: detected dubious ownership in repository at '/r'\n\
                 To add an exception for this directory, call:\n\n\tgit config --global --add safe.directory /r\n",
                "fatal: detected dubious ownership in repository at '/r'",
            ),
            ("warning: w\nerror: open(\"x\"): No\nfatal: adding files failed\n", "error: open(\"x\"): No"),
            (
                "error: could not lock\nfatal: Unable to create '/r/index.lock': File exists.\n\nAnother git process\n",
                "fatal: Unable to create '/r/index.lock': File exists.",
            ),
            ("the hook says no\n\n", "the hook says no"),
            ("", "no message"),
        ] {
            assert_eq!(telling_line(errors), expected);
        }
    }
}
