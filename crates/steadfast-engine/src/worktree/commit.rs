//! Commits what an agent left in its worktree. Everything that is not ignored is committed; a file that git cannot add
//! does not prevent the rest.

use std::path::{Path, PathBuf};

use super::Worktree;
use super::git::{FALLBACK, Git, Guard, WorktreeError};

/// A commit can bring changes back that git had put aside for a merge; these are committed as well.
const MOST_COMMITS: usize = 3;

impl Worktree {
    /// Commits everything to the branch. Returns notes for the user.
    pub(super) fn keep(&self, guard: &Guard, message: &str) -> Result<Vec<String>, WorktreeError> {
        self.require_own(guard)?;
        let left_out = self.commit_all(guard, message)?;
        let former = self.follow_head(guard)?;
        let branch = self.chosen()?.unwrap_or_default();
        let left_out = left_out.map(|error| format!("some files are not committed: {error}"));
        let former = former.map(|former| {
            format!(
                "the agent left its branch {branch}, which was moved to its last commit; the former one is on {former}"
            )
        });
        Ok([left_out, former].into_iter().flatten().collect())
    }

    /// Fails unless this is a worktree of the project. Git would look further up and find another repository.
    pub(super) fn require_own(&self, guard: &Guard) -> Result<(), WorktreeError> {
        let broken = || WorktreeError::Broken(self.path.clone());
        if !self.path.is_dir() {
            return Err(broken());
        }
        if !self.path.join(".git").exists() {
            // It also fails for other worktrees that it cannot repair, so only the result for ours counts.
            let _ = Git::locked(guard, &self.project).text(&["worktree", "repair"]);
        }
        let shared = |place: &Path| -> Result<PathBuf, WorktreeError> {
            let directory = Git::locked(guard, place).text(&["rev-parse", "--git-common-dir"])?;
            Ok(fs_err::canonicalize(place.join(directory))?)
        };
        let is_own = self.path.join(".git").is_file() && shared(&self.path).ok() == Some(shared(&self.project)?);
        if is_own { Ok(()) } else { Err(broken()) }
    }

    /// Commits what git can add; returns the error for the rest.
    pub(super) fn commit_all(&self, guard: &Guard, message: &str) -> Result<Option<WorktreeError>, WorktreeError> {
        let mut left_out = None;
        for _ in 0..MOST_COMMITS {
            if self.status(guard)?.is_empty() {
                break;
            }
            let add = ["-c", "core.safecrlf=false", "add", "--all"];
            left_out = self.git_despite_locks(guard, &self.path, &add).err();
            if left_out.is_some() {
                // Add the files that can be read.
                let _ = Git::locked(guard, &self.path).text(&[&add[..], &["--ignore-errors"]].concat());
            }
            let staged = ["diff", "--cached", "--quiet", "--ignore-submodules=none"];
            if Git::locked(guard, &self.path).text(&staged).is_ok() {
                break;
            }
            // The commit keeps work safe, so the project's hooks must not reject it.
            let commit = ["commit", "--no-verify", "--quiet", "-m", message];
            self.git_despite_locks(guard, &self.path, &commit)
                .or_else(|_| self.git_despite_locks(guard, &self.path, &[&FALLBACK[..], &commit].concat()))?;
        }
        Ok(left_out)
    }

    /// Everything that is not committed and not ignored, whatever the user's settings say.
    pub(super) fn status(&self, guard: &Guard) -> Result<String, WorktreeError> {
        let status = ["status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=none"];
        Git::locked(guard, &self.path).text(&status)
    }
}
