//! Bringing what an agent left in its worktree to the branch. Everything that is not ignored is committed; what git
//! cannot commit keeps nothing else out.

use std::path::{Path, PathBuf};

use super::Worktree;
use super::git::{Guard, WorktreeError, git};

/// What a commit brings back into the worktree (git puts changes aside for a merge) is committed as well.
const MOST_COMMITS: usize = 3;

impl Worktree {
    /// Brings everything that git commits to the branch.
    pub(super) fn keep(&self, guard: &Guard, message: &str) -> Result<Vec<String>, WorktreeError> {
        self.require_own(guard)?;
        let left_out = self.commit_all(guard, message)?;
        let former = self.follow_head(guard)?;
        let branch = self.chosen()?.unwrap_or_default();
        let left_out = left_out.map(|error| format!("not everything is committed: {error}"));
        let former = former.map(|former| {
            format!("the agent ended beside its branch {branch}: that is its work now, {former} was it before")
        });
        Ok([left_out, former].into_iter().flatten().collect())
    }

    /// Git would look further up, and find a repository that is none of our business.
    pub(super) fn require_own(&self, guard: &Guard) -> Result<(), WorktreeError> {
        let broken = || WorktreeError::Broken(self.path.clone());
        if !self.path.is_dir() {
            return Err(broken());
        }
        if !self.path.join(".git").exists() {
            // It fails on others that it cannot mend. Whether ours has its file again is what counts.
            let _ = git(Some(guard), &self.project, "worktree repair", &["worktree", "repair"]);
        }
        let shared = |place: &Path| -> Result<PathBuf, WorktreeError> {
            let directory = git(Some(guard), place, "rev-parse", &["rev-parse", "--git-common-dir"])?;
            Ok(fs_err::canonicalize(place.join(directory))?)
        };
        let is_own = self.path.join(".git").is_file() && shared(&self.path).ok() == Some(shared(&self.project)?);
        if is_own { Ok(()) } else { Err(broken()) }
    }

    /// Commits what can be, and says why anything is left out.
    pub(super) fn commit_all(&self, guard: &Guard, message: &str) -> Result<Option<WorktreeError>, WorktreeError> {
        let mut left_out = None;
        for _ in 0..MOST_COMMITS {
            if self.status(guard)?.is_empty() {
                break;
            }
            let add = ["-c", "core.safecrlf=false", "add", "--all"];
            left_out = self.git_despite_locks(guard, &self.path, "add", &add).err();
            if left_out.is_some() {
                // What cannot be read keeps nothing else out.
                let _ = git(Some(guard), &self.path, "add", &[&add[..], &["--ignore-errors"]].concat());
            }
            let staged = ["diff", "--cached", "--quiet", "--ignore-submodules=none"];
            if git(Some(guard), &self.path, "diff", &staged).is_ok() {
                break;
            }
            // The commit keeps work safe; whether it is good is not for the project's hooks to say here.
            let commit = ["commit", "--no-verify", "--quiet", "-m", message];
            self.git_despite_locks(guard, &self.path, "commit", &commit).or_else(|_| {
                let nobody =
                    ["-c", "user.name=Steadfast", "-c", "user.email=steadfast@localhost", "-c", "commit.gpgsign=false"];
                self.git_despite_locks(guard, &self.path, "commit", &[&nobody[..], &commit].concat())
            })?;
        }
        Ok(left_out)
    }

    /// Everything that is not committed and not ignored, whatever the user's settings hide.
    pub(super) fn status(&self, guard: &Guard) -> Result<String, WorktreeError> {
        let status = ["status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=none"];
        git(Some(guard), &self.path, "status", &status)
    }
}
