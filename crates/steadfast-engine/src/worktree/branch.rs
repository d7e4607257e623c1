//! The branch of a worktree: how it is named, and how it gets the agent's work. An agent may detach HEAD, switch to
//! another branch or stop in the middle of a rebase; its work is then at HEAD.

use std::path::Path;

use steadfast_model::run::name;

use super::git::{Git, Guard, WorktreeError};
use super::{BRANCH, Worktree};
use crate::durable;

/// How many names are tried.
const MOST_BRANCHES: u32 = 1_000;

/// Possible names for the branch of a part of a run, the best first. The user may have a branch of that name, and a
/// branch called `steadfast` prevents all names below it.
pub(super) fn candidates(run: &str, part: &str, run_id: &str) -> impl Iterator<Item = String> {
    let run = name::in_branch(run);
    let short: String = run_id.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    let (below, beside) = (format!("steadfast/{run}/{part}"), format!("steadfast-{run}-{part}"));
    let named = [below.clone(), format!("{below}-{short}"), beside.clone(), format!("{beside}-{short}")];
    named.into_iter().chain((2..MOST_BRANCHES).map(move |number| format!("{beside}-{short}-{number}")))
}

impl Worktree {
    /// The branch that was chosen when the worktree was created for the first time.
    pub(super) fn chosen(&self) -> Result<Option<String>, WorktreeError> {
        let branch = durable::if_exists(fs_err::read_to_string(self.beside(BRANCH)))?;
        Ok(branch.map(|branch| branch.trim().to_owned()))
    }

    /// Chooses a free branch name and records it: after a crash, a branch that was just created looks like that of an
    /// earlier run.
    pub(super) fn choose(&self, guard: &Guard) -> Result<String, WorktreeError> {
        for branch in candidates(&self.name, &self.part, &self.run_id) {
            if self.is_free(guard, &branch)? {
                durable::replace(&self.beside(BRANCH), format!("{branch}\n").as_bytes())?;
                return Ok(branch);
            }
        }
        Err(WorktreeError::Taken(format!("steadfast/{}/{}", self.name, self.part)))
    }

    /// Whether git could create it: no branch has that name, a name below it or a name above it.
    fn is_free(&self, guard: &Guard, branch: &str) -> Result<bool, WorktreeError> {
        let above = branch.match_indices('/').filter_map(|(at, _)| branch.get(..at));
        if above.into_iter().any(|above| self.has_branch(guard, above)) {
            return Ok(false);
        }
        let pattern = format!("refs/heads/{branch}");
        let found = Git::locked(guard, &self.project).text(&["for-each-ref", "--format=%(refname)", &pattern])?;
        Ok(found.is_empty())
    }

    pub(super) fn has_branch(&self, guard: &Guard, branch: &str) -> bool {
        let name = format!("refs/heads/{branch}");
        Git::locked(guard, &self.project).text(&["show-ref", "--verify", "--quiet", &name]).is_ok()
    }

    /// Detaches HEAD if the agent switched to another branch: later commits do not belong on that one.
    pub(super) fn detach(&self, guard: &Guard) -> Result<(), WorktreeError> {
        let branch = format!("refs/heads/{}", self.chosen()?.unwrap_or_default());
        let current = Git::locked(guard, &self.path).text(&["symbolic-ref", "-q", "HEAD"]);
        let is_elsewhere = current.is_ok_and(|current| current != branch);
        // A branch without a commit has nothing to detach from.
        if is_elsewhere && let Some(head) = commit_of(guard, &self.path, "HEAD") {
            let update = ["update-ref", "--no-deref", "HEAD", &head];
            self.git_despite_locks(guard, &self.path, &update)?;
        }
        Ok(())
    }

    /// Moves the branch to HEAD unless it contains HEAD. If it had other commits, they stay on a branch that is returned.
    pub(super) fn follow_head(&self, guard: &Guard) -> Result<Option<String>, WorktreeError> {
        let Some(branch) = self.chosen()? else { return Ok(None) };
        let Some(head) = commit_of(guard, &self.path, "HEAD") else { return Ok(None) };
        let full = format!("refs/heads/{branch}");
        let tip = commit_of(guard, &self.project, &full);
        let has = |newer: &str, older: &str| {
            Git::locked(guard, &self.project).text(&["merge-base", "--is-ancestor", older, newer]).is_ok()
        };
        let former = match &tip {
            Some(tip) if has(tip, &head) => return Ok(None),
            Some(tip) if !has(&head, tip) => Some(self.keep_former(guard, &branch, tip)?),
            _ => None,
        };
        self.git_despite_locks(guard, &self.project, &["update-ref", &full, &head])?;
        Ok(former)
    }

    /// A branch at the former commit of ours, `BRANCH-former-N`. Calling it again after a crash creates no second one.
    fn keep_former(&self, guard: &Guard, branch: &str, tip: &str) -> Result<String, WorktreeError> {
        for number in 1..MOST_BRANCHES {
            let former = format!("{branch}-former-{number}");
            match commit_of(guard, &self.project, &format!("refs/heads/{former}")) {
                Some(found) if found == tip => return Ok(former),
                Some(_) => {}
                None => {
                    Git::locked(guard, &self.project).text(&["branch", "--no-track", &former, tip])?;
                    return Ok(former);
                }
            }
        }
        Err(WorktreeError::Taken(format!("{branch}-former-1")))
    }

    /// Whether the commit of the worktree is on a branch.
    pub(super) fn is_on_branch(&self, guard: &Guard) -> Result<bool, WorktreeError> {
        let Some(head) = commit_of(guard, &self.path, "HEAD") else { return Ok(true) };
        let contains = ["for-each-ref", "--count=1", "--contains", &head, "refs/heads"];
        Ok(!Git::locked(guard, &self.path).text(&contains)?.is_empty())
    }
}

fn commit_of(guard: &Guard, directory: &Path, revision: &str) -> Option<String> {
    let peeled = format!("{revision}^{{commit}}");
    Git::locked(guard, directory).text(&["rev-parse", "--quiet", "--verify", &peeled]).ok()
}
