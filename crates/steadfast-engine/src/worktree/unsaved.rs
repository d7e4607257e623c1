//! What would be lost with a worktree although its branch is kept: the state of a rebase, repositories inside it (their
//! commits live nowhere else), and whatever git would not commit. Where there is any of it, the worktree stays.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use steadfast_model::text;

use super::Worktree;
use super::git::{Guard, WorktreeError, git, git_for};

/// The list of all files of a large repository.
const MOST_LISTED: u64 = 256 << 20;
/// So many ignored directories are looked into for repositories.
const MOST_IGNORED: usize = 1_000;
const LONGEST_NAME: usize = 100;
const GITLINK: &[u8] = b"160000 ";

/// Files in the directory that git has for a worktree, and what they say is under way.
const UNDER_WAY: [(&str, &str); 6] = [
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick or revert"),
];

impl Worktree {
    /// Why the worktree has to stay, if it has.
    pub(super) fn unsaved(&self, guard: &Guard) -> Result<Option<String>, WorktreeError> {
        let directory = self.path.join(git(Some(guard), &self.path, "rev-parse", &["rev-parse", "--git-dir"])?);
        if let Some((_, what)) = UNDER_WAY.iter().find(|(file, _)| directory.join(file).exists()) {
            return Ok(Some(format!("a {what} is under way in it")));
        }
        if let Some(inner) = self.unsaved_repository(guard)? {
            let name = text::headline(&inner.to_string_lossy(), LONGEST_NAME);
            return Ok(Some(format!("`{name}` in it is a repository of its own, whose work is nowhere else")));
        }
        let left = self.status(guard)?;
        let first = left.lines().next().and_then(|line| line.get(3..)).map(|name| text::headline(name, LONGEST_NAME));
        let more = left.lines().count().saturating_sub(1);
        Ok(first.map(|name| match more {
            0 => format!("git does not commit `{name}`"),
            more => format!("git does not commit `{name}` and {more} more"),
        }))
    }

    /// A repository in the worktree with work that would go with it.
    fn unsaved_repository(&self, guard: &Guard) -> Result<Option<PathBuf>, WorktreeError> {
        let is_there = |inner: &PathBuf| self.path.join(inner).join(".git").exists();
        let submodules = self.submodules(guard);
        for inner in self.linked(guard)?.into_iter().filter(is_there) {
            // The branch says where a submodule comes from. Of any other repository it knows one number.
            if !submodules.contains(&inner) || self.has_commits_of_its_own(guard, &inner) {
                return Ok(Some(inner));
            }
        }
        // Ignored files go with the worktree, and that is known; commits are somebody's work.
        let ignored = self.ignored_repositories(guard)?;
        Ok(ignored.into_iter().find(|inner| self.has_commits_of_its_own(guard, inner)))
    }

    /// Where the index has no file and no directory, but a commit of another repository.
    fn linked(&self, guard: &Guard) -> Result<Vec<PathBuf>, WorktreeError> {
        let listed = git_for(Some(guard), &self.path, "ls-files", &["ls-files", "--stage", "-z"], MOST_LISTED)?;
        let entries = listed.split(|byte| *byte == 0).filter(|entry| entry.starts_with(GITLINK));
        let names = entries.filter_map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1));
        Ok(names.map(as_path).collect())
    }

    fn submodules(&self, guard: &Guard) -> BTreeSet<PathBuf> {
        let arguments = ["config", "-z", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$"];
        // Without such a file there are none.
        let listed = git_for(Some(guard), &self.path, "config", &arguments, MOST_LISTED).unwrap_or_default();
        let entries = listed.split(|byte| *byte == 0);
        entries.filter_map(|entry| entry.splitn(2, |byte| *byte == b'\n').nth(1)).map(as_path).collect()
    }

    fn ignored_repositories(&self, guard: &Guard) -> Result<Vec<PathBuf>, WorktreeError> {
        let arguments = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
        let listed = git_for(Some(guard), &self.path, "ls-files", &arguments, MOST_LISTED)?;
        let directories = listed.split(|byte| *byte == 0).filter_map(|entry| entry.strip_suffix(b"/")).map(as_path);
        let mut found = Vec::new();
        for directory in directories.take(MOST_IGNORED) {
            let inside = fs_err::read_dir(self.path.join(&directory)).into_iter().flatten().flatten();
            let below = inside.take(MOST_IGNORED).map(|entry| directory.join(entry.file_name()));
            let all = std::iter::once(directory.clone()).chain(below);
            found.extend(all.filter(|inner| self.path.join(inner).join(".git").exists()));
        }
        Ok(found)
    }

    /// Whether a repository has commits that neither its remotes have nor the project knew before. What cannot be told
    /// counts as yes.
    fn has_commits_of_its_own(&self, guard: &Guard, inner: &Path) -> bool {
        let place = self.path.join(inner);
        let asked = |what, arguments: &[&str]| git(Some(guard), &place, what, arguments);
        if asked("rev-parse", &["rev-parse", "--quiet", "--verify", "refs/stash"]).is_ok() {
            return true;
        }
        let recorded = format!("HEAD:{}", inner.display());
        let recorded = git(Some(guard), &self.project, "rev-parse", &["rev-parse", "--quiet", "--verify", &recorded]);
        let mut arguments = vec!["rev-list", "--max-count=1", "--ignore-missing", "HEAD", "--branches", "--not"];
        arguments.push("--remotes");
        arguments.extend(recorded.as_deref().ok());
        asked("rev-list", &arguments).map_or(true, |found| !found.is_empty())
    }
}

fn as_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}
