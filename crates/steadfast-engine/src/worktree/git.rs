//! Calls of git for worktrees: their settings, the lock they hold, and their error messages. The project's hooks cannot
//! prevent a commit that keeps work safe, and git leaves nothing running in the background.

use std::path::{Path, PathBuf};
use std::time::Duration;

use steadfast_system::env_vars;

use super::Worktree;
use crate::lock::WorktreeLock;
use crate::process::{Cancel, Captured, LimitedCommand};

const GIT_LIMIT: Duration = Duration::from_mins(2);
const MOST_OUTPUT: u64 = 1 << 20;
/// Nothing runs in the background, repositories in the worktree cannot name a program to run, and commits and branches
/// are synced, with the index that made them, so that a power cut loses no work whose iteration is recorded.
const SETTINGS: [&str; 8] = [
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.fsync=added,reference",
];
/// For a commit that fails with the user's identity or signature.
pub(super) const FALLBACK: [&str; 6] =
    ["-c", "user.name=Steadfast", "-c", "user.email=steadfast@localhost", "-c", "commit.gpgsign=false"];
const WITHOUT_HOOKS: [&str; 2] = ["-c", "core.hooksPath=/dev/null"];

#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error("{0} is not in a git repository with a commit, which worktrees need")]
    NoRepository(PathBuf),
    #[error("cannot run git, which worktrees need: {0}")]
    NoGit(std::io::Error),
    #[error("git {what} failed: {message}")]
    Git { what: String, message: String },
    #[error("no free name for the branch {0}")]
    Taken(String),
    #[error("a git process from an earlier run is still using {0}")]
    Busy(PathBuf),
    #[error("{0} is no longer a git worktree")]
    Broken(PathBuf),
    #[error("files in {} have changes that are not committed: {}", directory.display(), files.join(", "))]
    Uncommitted { directory: PathBuf, files: Vec<String> },
    #[error("a merge that this run did not begin is in progress in {0}")]
    OtherMerge(PathBuf),
    #[error("the run is stopping")]
    Ending,
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl WorktreeError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoRepository(_) => {
                "run `git init` and make a first commit, or use no --worktree and no parallel stages"
            }
            Self::NoGit(_) => "install git, or add its directory to PATH",
            Self::Git { message, .. } if message.contains("dubious ownership") => {
                "run `git config --global --add safe.directory DIR` with that directory, or change its owner"
            }
            Self::Git { .. } => "check `git worktree list` and `git branch --list 'steadfast*'`",
            Self::Taken(_) => "rename or delete branches that start with `steadfast`, or choose another run name",
            Self::Busy(_) => "wait for it to end, then run `resume`",
            Self::Broken(_) => "save what you need from it, remove it, then run `resume`",
            Self::Uncommitted { .. } => "commit them or put them aside with `git stash`, then run `resume`",
            Self::OtherMerge(_) => "finish it, or abort it with `git merge --abort`, then run `resume`",
            Self::Ending => "continue it with `resume`",
            Self::Io(_) => "check the permissions of the directory",
        }
    }

    /// Names the reason why git failed in the project itself.
    pub(super) fn of_project(self, project: &Path) -> Self {
        let has_no_commit = |message: &str| {
            ["not a git repository (or any", "ambiguous argument 'HEAD'", "Needed a single revision"]
                .iter()
                .any(|text| message.contains(text))
        };
        match self {
            Self::Git { message, .. } if has_no_commit(&message) => Self::NoRepository(project.to_owned()),
            Self::Io(error) if error.kind() == std::io::ErrorKind::NotFound && project.is_dir() => Self::NoGit(error),
            other => other,
        }
    }
}

/// The right to run git on the worktrees of a run.
#[derive(Debug)]
pub(super) struct Guard {
    pub(super) lock: WorktreeLock,
    /// Ends git when it is set.
    pub(super) cancel: Cancel,
}

impl Guard {
    /// Waits for the lock of a run's worktrees: a git process of a killed engine may hold it.
    pub(super) fn take(worktrees: &Path, cancel: &Cancel) -> Result<Self, WorktreeError> {
        match WorktreeLock::take(worktrees, GIT_LIMIT, || cancel.is_cancelled())? {
            Some(lock) => Ok(Self { lock, cancel: cancel.clone() }),
            None if cancel.is_cancelled() => Err(WorktreeError::Ending),
            None => Err(WorktreeError::Busy(worktrees.to_owned())),
        }
    }
}

/// A call of git in a directory, without the project's hooks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Git<'a> {
    directory: &'a Path,
    guard: Option<&'a Guard>,
    with_hooks: bool,
}

impl<'a> Git<'a> {
    /// A call that only reads.
    pub(super) fn reading(directory: &'a Path) -> Self {
        Self { directory, guard: None, with_hooks: false }
    }

    /// A call that holds the lock of the run's worktrees, even if this process is killed.
    pub(super) fn locked(guard: &'a Guard, directory: &'a Path) -> Self {
        Self { directory, guard: Some(guard), with_hooks: false }
    }

    /// Runs the project's hooks: some prepare new worktrees.
    pub(super) fn with_hooks(self) -> Self {
        Self { with_hooks: true, ..self }
    }

    /// What git prints, as text.
    pub(super) fn text(self, arguments: &[&str]) -> Result<String, WorktreeError> {
        let printed = self.bytes(arguments, MOST_OUTPUT)?;
        Ok(String::from_utf8_lossy(&printed).trim_end().to_owned())
    }

    /// What git prints, up to `most` bytes, for names that may be no text.
    pub(super) fn bytes(self, arguments: &[&str], most: u64) -> Result<Vec<u8>, WorktreeError> {
        let captured = self.capture(arguments, most)?;
        if captured.exit_code == Some(0) {
            return Ok(captured.stdout);
        }
        let message = if captured.timed_out { "time limit reached" } else { reason(&captured.stderr_tail) };
        Err(WorktreeError::Git { what: subcommand(arguments), message: message.to_owned() })
    }

    /// What git prints, whatever its exit code is.
    pub(super) fn capture(self, arguments: &[&str], most: u64) -> Result<Captured, WorktreeError> {
        let mut command = LimitedCommand::new("git", self.directory, GIT_LIMIT).args(SETTINGS);
        if !self.with_hooks {
            command = command.args(WITHOUT_HOOKS);
        }
        if let Some(guard) = self.guard {
            command = command.stdin(guard.lock.as_stdin()?).cancelled_by(&guard.cancel);
        }
        // The messages of git are read below, so they must be English.
        let command = command.args(arguments.iter().copied()).env(env_vars::LC_ALL, "C");
        // A look at the user's checkout leaves no lock there when it is killed.
        Ok(command.env(env_vars::GIT_OPTIONAL_LOCKS, "0").capture(most)?)
    }
}

/// The name of a git command for error messages, such as `status` or `worktree add`.
fn subcommand(arguments: &[&str]) -> String {
    let mut words = arguments.iter().copied();
    let mut name = words.next().unwrap_or_default();
    // Skip settings: `-c NAME=VALUE`.
    while name == "-c" {
        name = words.nth(1).unwrap_or_default();
    }
    match words.next() {
        Some(verb) if name == "worktree" => format!("{name} {verb}"),
        _ => name.to_owned(),
    }
}

/// The line with the reason. Other lines are progress and advice.
fn reason(errors: &str) -> &str {
    let lines = || errors.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_lock = |line: &&str| line.contains(".lock'");
    let is_reason = |line: &&str| line.starts_with("error:") || line.starts_with("fatal:");
    let found = lines().find(is_lock).or_else(|| lines().find(is_reason));
    found.or_else(|| lines().next_back()).unwrap_or("no message")
}

impl Worktree {
    /// Removes stale lock files of git and tries again. A killed git leaves them behind. This process holds the lock of
    /// the run's worktrees and no agent works here now, so those of this worktree and of its branch are stale.
    pub(super) fn git_despite_locks(
        &self,
        guard: &Guard,
        directory: &Path,
        arguments: &[&str],
    ) -> Result<String, WorktreeError> {
        let done = Git::locked(guard, directory).text(arguments);
        if !matches!(&done, Err(WorktreeError::Git { message, .. }) if message.contains(".lock")) {
            return done;
        }
        let of_branch = format!("refs/heads/{}.lock", self.chosen()?.unwrap_or_default());
        let mut stale = vec![(&self.project, of_branch.as_str())];
        // Without `.git`, they would be those of a repository further up.
        if self.path.join(".git").exists() {
            stale.extend([(&self.path, "index.lock"), (&self.path, "HEAD.lock")]);
        }
        for (place, name) in stale {
            if let Ok(path) = Git::locked(guard, place).text(&["rev-parse", "--git-path", name]) {
                // Usually only one of them exists.
                let _ = fs_err::remove_file(place.join(path));
            }
        }
        Git::locked(guard, directory).text(arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_message_has_the_reason_that_git_printed() {
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
            assert_eq!(reason(errors), expected);
        }
    }

    #[test]
    fn an_error_message_names_the_git_command() {
        for (arguments, expected) in [
            (&["status", "--porcelain"][..], "status"),
            (&["worktree", "add", "x"], "worktree add"),
            (&["-c", "core.safecrlf=false", "add", "--all"], "add"),
            (&["-c", "a=1", "-c", "b=2", "commit"], "commit"),
            (&[], ""),
        ] {
            assert_eq!(subcommand(arguments), expected);
        }
    }
}
