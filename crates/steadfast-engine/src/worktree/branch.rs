//! The branch of a worktree: which name it gets, and that it holds what its agent left, wherever that agent went. An
//! agent may detach HEAD, take another branch or stop in the middle of a rebase; its work is at HEAD then.

use std::path::Path;

use steadfast_model::run::name;

use super::git::{Guard, WorktreeError, git};
use super::{BRANCH, Worktree};
use crate::durable;

/// So many branches of one name are looked at.
const MOST_BRANCHES: u32 = 1_000;

/// How the branch of a part of a run may be called, the best first. The user may have a branch of that name, and one
/// called `steadfast` leaves no room for any below it.
pub(super) fn candidates(run: &str, part: &str, run_id: &str) -> impl Iterator<Item = String> {
    let run = name::in_branch(run);
    let short: String = run_id.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    let (below, beside) = (format!("steadfast/{run}/{part}"), format!("steadfast-{run}-{part}"));
    let named = [below.clone(), format!("{below}-{short}"), beside.clone(), format!("{beside}-{short}")];
    named.into_iter().chain((2..MOST_BRANCHES).map(move |number| format!("{beside}-{short}-{number}")))
}

impl Worktree {
    /// The branch that was chosen when the worktree was made for the first time.
    pub(super) fn chosen(&self) -> Result<Option<String>, WorktreeError> {
        match fs_err::read_to_string(self.beside(BRANCH)) {
            Ok(branch) => Ok(Some(branch.trim().to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Chooses a branch that is not there, once: one that was made and not used yet looks like that of an earlier run.
    pub(super) fn choose(&self, guard: &Guard) -> Result<String, WorktreeError> {
        for branch in candidates(&self.name, &self.part, &self.run_id) {
            if self.is_free(guard, &branch)? {
                durable::replace(&self.beside(BRANCH), format!("{branch}\n").as_bytes())?;
                return Ok(branch);
            }
        }
        Err(WorktreeError::Taken(format!("steadfast/{}/{}", self.name, self.part)))
    }

    /// Whether git could make it: no branch has that name, one below it or one above it.
    fn is_free(&self, guard: &Guard, branch: &str) -> Result<bool, WorktreeError> {
        let above = branch.match_indices('/').filter_map(|(at, _)| branch.get(..at));
        if above.into_iter().any(|above| self.has_branch(guard, above)) {
            return Ok(false);
        }
        let pattern = format!("refs/heads/{branch}");
        let found =
            git(Some(guard), &self.project, "for-each-ref", &["for-each-ref", "--format=%(refname)", &pattern])?;
        Ok(found.is_empty())
    }

    pub(super) fn has_branch(&self, guard: &Guard, branch: &str) -> bool {
        let name = format!("refs/heads/{branch}");
        git(Some(guard), &self.project, "show-ref", &["show-ref", "--verify", "--quiet", &name]).is_ok()
    }

    /// Leaves another branch that the agent took, where it is: what is committed from here on is not for that one.
    pub(super) fn detach(&self, guard: &Guard) -> Result<(), WorktreeError> {
        let branch = format!("refs/heads/{}", self.chosen()?.unwrap_or_default());
        let current = git(Some(guard), &self.path, "symbolic-ref", &["symbolic-ref", "-q", "HEAD"]);
        let is_elsewhere = current.is_ok_and(|current| current != branch);
        // One without a commit has nothing that could be left.
        if is_elsewhere && let Some(head) = commit_of(guard, &self.path, "HEAD") {
            let update = ["update-ref", "--no-deref", "HEAD", &head];
            self.git_despite_locks(guard, &self.path, "update-ref", &update)?;
        }
        Ok(())
    }

    /// Moves the branch to HEAD unless it has all of it. What it had besides stays on a branch that is returned.
    pub(super) fn follow_head(&self, guard: &Guard) -> Result<Option<String>, WorktreeError> {
        let Some(branch) = self.chosen()? else { return Ok(None) };
        let Some(head) = commit_of(guard, &self.path, "HEAD") else { return Ok(None) };
        let full = format!("refs/heads/{branch}");
        let tip = commit_of(guard, &self.project, &full);
        let has = |newer: &str, older: &str| {
            git(Some(guard), &self.project, "merge-base", &["merge-base", "--is-ancestor", older, newer]).is_ok()
        };
        let former = match &tip {
            Some(tip) if has(tip, &head) => return Ok(None),
            Some(tip) if !has(&head, tip) => Some(self.keep_former(guard, &branch, tip)?),
            _ => None,
        };
        self.git_despite_locks(guard, &self.project, "update-ref", &["update-ref", &full, &head])?;
        Ok(former)
    }

    /// A branch for where ours was: `BRANCH-former-N`. Made once, however often we die meanwhile.
    fn keep_former(&self, guard: &Guard, branch: &str, tip: &str) -> Result<String, WorktreeError> {
        for number in 1..MOST_BRANCHES {
            let former = format!("{branch}-former-{number}");
            match commit_of(guard, &self.project, &format!("refs/heads/{former}")) {
                Some(there) if there == tip => return Ok(former),
                Some(_) => {}
                None => {
                    git(Some(guard), &self.project, "branch", &["branch", "--no-track", &former, tip])?;
                    return Ok(former);
                }
            }
        }
        Err(WorktreeError::Taken(format!("{branch}-former-1")))
    }

    /// Whether all that is committed in the worktree is on a branch.
    pub(super) fn is_on_branch(&self, guard: &Guard) -> Result<bool, WorktreeError> {
        let Some(head) = commit_of(guard, &self.path, "HEAD") else { return Ok(true) };
        let contains = ["for-each-ref", "--count=1", "--contains", &head, "refs/heads"];
        Ok(!git(Some(guard), &self.path, "for-each-ref", &contains)?.is_empty())
    }
}

fn commit_of(guard: &Guard, directory: &Path, revision: &str) -> Option<String> {
    let peeled = format!("{revision}^{{commit}}");
    git(Some(guard), directory, "rev-parse", &["rev-parse", "--quiet", "--verify", &peeled]).ok()
}
