//! Where a merge happens: what git says about the checkout there, and the calls that change it.

use std::path::{Path, PathBuf};

use steadfast_system::{bounded, process};

use super::{FILE_BYTES, MOST_LISTED, MergeRecord, has, named};
use crate::durable;
use crate::footprint;
use crate::worktree::Worktree;
use crate::worktree::git::{FALLBACK, Git, Guard, WorktreeError};

/// What git locks in the git directory of a checkout while it merges.
const LOCKS: [&str; 4] = ["index.lock", "HEAD.lock", "ORIG_HEAD.lock", "AUTO_MERGE.lock"];

/// Where a merge happens.
pub(super) struct MergePlace<'a> {
    pub(super) guard: &'a Guard,
    pub(super) directory: &'a Path,
    pub(super) worktree: Option<&'a Worktree>,
}

impl MergePlace<'_> {
    pub(super) fn reading(&self) -> Git<'_> {
        Git::locked(self.guard, self.directory)
    }

    /// Calls git; locks that a killed git left in a worktree of ours are removed.
    pub(super) fn git(&self, arguments: &[&str]) -> Result<String, WorktreeError> {
        match self.worktree {
            Some(worktree) => worktree.git_despite_locks(self.guard, self.directory, arguments),
            None => self.reading().text(arguments),
        }
    }

    /// Removes lock files that a killed git left in the checkout. The user's own git may work there as well: a lock is stale
    /// only if it is newer than the record of our merge and no git runs there.
    pub(super) fn remove_stale_locks(&self, record: &Path) -> Result<(), WorktreeError> {
        let written = |path: &Path| fs_err::metadata(path).and_then(|found| found.modified());
        let Ok(recorded) = written(record) else { return Ok(()) };
        for name in LOCKS {
            let lock = self.directory.join(self.reading().text(&["rev-parse", "--git-path", name])?);
            let is_newer = written(&lock).is_ok_and(|locked| locked >= recorded);
            if is_newer && !process::works_in("git", &self.root()?) {
                durable::if_exists(fs_err::remove_file(lock))?;
            }
        }
        Ok(())
    }

    pub(super) fn commit_of(&self, revision: &str) -> Result<String, WorktreeError> {
        self.reading().text(&["rev-parse", "--verify", &format!("{revision}^{{commit}}")])
    }

    /// The commit that a merge in progress takes in.
    pub(super) fn merge_head(&self) -> Option<String> {
        self.reading().text(&["rev-parse", "--quiet", "--verify", "MERGE_HEAD"]).ok()
    }

    pub(super) fn has(&self, commit: &str) -> Result<bool, WorktreeError> {
        has(self.reading(), commit)
    }

    /// Finishes a merge without conflicts.
    pub(super) fn commit(&self) -> Result<(), WorktreeError> {
        let commit = ["commit", "--no-verify", "--quiet", "--no-edit"];
        self.git(&commit).or_else(|_| self.git(&[&FALLBACK[..], &commit].concat())).map(drop)
    }

    /// Paths that git prints, each ended by a zero byte. Those that are no text are shown as well as possible.
    pub(super) fn paths(&self, arguments: &[&str]) -> Result<Vec<String>, WorktreeError> {
        let printed = self.reading().bytes(arguments, MOST_LISTED)?;
        let parts = printed.split(|byte| *byte == 0).filter(|part| !part.is_empty());
        Ok(parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect())
    }

    pub(super) fn unmerged(&self) -> Result<Vec<String>, WorktreeError> {
        self.paths(&["diff", "--name-only", "--diff-filter=U", "--no-relative", "-z"])
    }

    /// The root of the checkout, to which git's paths are relative.
    pub(super) fn root(&self) -> Result<PathBuf, WorktreeError> {
        Ok(self.reading().text(&["rev-parse", "--show-toplevel"])?.into())
    }

    /// Tracked files with changes that are not committed, without the state files of runs.
    pub(super) fn uncommitted(&self) -> Result<Vec<String>, WorktreeError> {
        let prefix = self.reading().text(&["rev-parse", "--show-prefix"])?;
        let status =
            ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=no", "--ignore-submodules=dirty"];
        let is_ours = |name: &str| footprint::is_ours(Path::new(name.strip_prefix(&prefix).unwrap_or(name)));
        let names = self.paths(&status)?.into_iter().filter_map(|entry| entry.get(3..).map(str::to_owned));
        Ok(names.filter(|name| !is_ours(name)).collect())
    }

    pub(super) fn require_clean(&self) -> Result<(), WorktreeError> {
        let files = self.uncommitted()?;
        if files.is_empty() {
            return Ok(());
        }
        Err(WorktreeError::Uncommitted { directory: self.directory.to_owned(), files: vec![named(&files)] })
    }

    /// The files of a conflict that have markers of git which neither side had.
    pub(super) fn marked(&self, record: &MergeRecord) -> Result<Vec<String>, WorktreeError> {
        let root = self.root()?;
        let has_before = |file: &str| {
            [&record.before, &record.tip].into_iter().any(|side| {
                self.reading().bytes(&["show", &format!("{side}:{file}")], FILE_BYTES).is_ok_and(|it| has_markers(&it))
            })
        };
        let is_marked = |file: &&String| {
            let content = bounded::start_of(&root.join(file), FILE_BYTES).map(|part| part.bytes).unwrap_or_default();
            has_markers(&content) && !has_before(file)
        };
        Ok(record.files.iter().filter(is_marked).cloned().collect())
    }
}

fn has_markers(content: &[u8]) -> bool {
    content.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"<<<<<<< ") || line.starts_with(b">>>>>>> "))
}
