//! Work that would be lost with a worktree although its branch stays: the state of a rebase, repositories inside it,
//! whose commits exist nowhere else, and files that git did not commit. A worktree with any of it is not removed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use steadfast_model::text;
use steadfast_system::folder;

use super::Worktree;
use super::git::{Git, Guard, WorktreeError};

/// Enough for the list of all files of a large repository.
const MOST_LISTED: u64 = 256 << 20;
/// How many ignored directories are searched for repositories.
const MOST_IGNORED: usize = 1_000;
const NAME_CHARS: usize = 100;
const GITLINK: &[u8] = b"160000 ";

/// Files in git's directory of a worktree, and the operation that each stands for.
const OPERATIONS: [(&str, &str); 6] = [
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick or revert"),
];

impl Worktree {
    /// Why the worktree must not be removed, if there is a reason.
    pub(super) fn unsaved(&self, guard: &Guard) -> Result<Option<String>, WorktreeError> {
        let directory = self.path.join(Git::locked(guard, &self.path).text(&["rev-parse", "--git-dir"])?);
        if let Some((_, what)) = OPERATIONS.iter().find(|(file, _)| directory.join(file).exists()) {
            return Ok(Some(format!("a {what} is in progress")));
        }
        if let Some(inner) = self.unsaved_repository(guard)? {
            let name = text::headline(&inner.to_string_lossy(), NAME_CHARS);
            return Ok(Some(format!("`{name}` is another repository, whose work exists nowhere else")));
        }
        let left = self.status(guard)?;
        let first = left.lines().next().and_then(|line| line.get(3..)).map(|name| text::headline(name, NAME_CHARS));
        let more = left.lines().count().saturating_sub(1);
        Ok(first.map(|name| match more {
            0 => format!("git does not commit `{name}`"),
            more => format!("git does not commit `{name}` and {more} more"),
        }))
    }

    /// A repository in the worktree whose work would be lost with it.
    fn unsaved_repository(&self, guard: &Guard) -> Result<Option<PathBuf>, WorktreeError> {
        let exists = |inner: &PathBuf| self.path.join(inner).join(".git").exists();
        let submodules = self.submodules(guard);
        for inner in self.linked(guard)?.into_iter().filter(exists) {
            // The branch records where a submodule comes from. Of other repositories it has only a commit id.
            if !submodules.contains(&inner) || self.has_commits_of_its_own(guard, &inner) {
                return Ok(Some(inner));
            }
        }
        // Ignored files are removed with the worktree, but commits are work.
        let ignored = self.ignored_repositories(guard)?;
        Ok(ignored.into_iter().find(|inner| self.has_commits_of_its_own(guard, inner)))
    }

    /// Paths for which the index has a commit of another repository.
    fn linked(&self, guard: &Guard) -> Result<Vec<PathBuf>, WorktreeError> {
        let listed = Git::locked(guard, &self.path).bytes(&["ls-files", "--stage", "-z"], MOST_LISTED)?;
        let entries = listed.split(|byte| *byte == 0).filter(|entry| entry.starts_with(GITLINK));
        let names = entries.filter_map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1));
        Ok(names.map(as_path).collect())
    }

    fn submodules(&self, guard: &Guard) -> BTreeSet<PathBuf> {
        let arguments = ["config", "-z", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$"];
        // It fails without such a file; then there are none.
        let listed = Git::locked(guard, &self.path).bytes(&arguments, MOST_LISTED).unwrap_or_default();
        let entries = listed.split(|byte| *byte == 0);
        entries.filter_map(|entry| entry.splitn(2, |byte| *byte == b'\n').nth(1)).map(as_path).collect()
    }

    fn ignored_repositories(&self, guard: &Guard) -> Result<Vec<PathBuf>, WorktreeError> {
        let arguments = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
        let listed = Git::locked(guard, &self.path).bytes(&arguments, MOST_LISTED)?;
        let directories = listed.split(|byte| *byte == 0).filter_map(|entry| entry.strip_suffix(b"/")).map(as_path);
        let mut found = Vec::new();
        for directory in directories.take(MOST_IGNORED) {
            let inside = folder::paths(&self.path.join(&directory), MOST_IGNORED)?;
            let below = inside.iter().filter_map(|path| Some(directory.join(path.file_name()?)));
            let all = std::iter::once(directory.clone()).chain(below);
            found.extend(all.filter(|inner| self.path.join(inner).join(".git").exists()));
        }
        Ok(found)
    }

    /// Whether a repository has commits that are neither on its remotes nor recorded in the project. If git fails, yes.
    fn has_commits_of_its_own(&self, guard: &Guard, inner: &Path) -> bool {
        let place = self.path.join(inner);
        let git = Git::locked(guard, &place);
        if git.text(&["rev-parse", "--quiet", "--verify", "refs/stash"]).is_ok() {
            return true;
        }
        let recorded = format!("HEAD:{}", inner.display());
        let recorded = Git::locked(guard, &self.project).text(&["rev-parse", "--quiet", "--verify", &recorded]);
        let mut arguments =
            vec!["rev-list", "--max-count=1", "--ignore-missing", "HEAD", "--branches", "--not", "--remotes"];
        arguments.extend(recorded.as_deref().ok());
        git.text(&arguments).map_or(true, |found| !found.is_empty())
    }
}

fn as_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}
