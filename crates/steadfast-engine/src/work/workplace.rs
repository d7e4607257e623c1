//! Where an iteration works: in the project, or in a worktree that is created when an attempt enters it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::process::Cancel;
use crate::worktree::{Worktree, WorktreeError};

/// Where an iteration works.
#[derive(Debug, Clone)]
pub struct Workplace {
    project: PathBuf,
    worktree: Option<Worktree>,
    /// Two git processes at the same time fail on each other's locks.
    git: Arc<Mutex<()>>,
}

impl Workplace {
    /// A directory that exists.
    pub fn at(project: PathBuf) -> Self {
        Self::new(project, None, Arc::default())
    }

    pub(crate) fn new(project: PathBuf, worktree: Option<Worktree>, git: Arc<Mutex<()>>) -> Self {
        Self { project, worktree, git }
    }

    pub(crate) fn worktree(&self) -> Option<&Worktree> {
        self.worktree.as_ref()
    }

    /// Held by a thread that calls git for any of the run's worktrees.
    pub(crate) fn git(&self) -> Arc<Mutex<()>> {
        self.git.clone()
    }

    /// The directory to work in, created if it does not exist.
    pub(crate) fn enter(&self, cancel: &Cancel) -> Result<PathBuf, WorktreeError> {
        let Some(worktree) = &self.worktree else { return Ok(self.project.clone()) };
        let _one_at_a_time = self.git.lock();
        worktree.enter(cancel)
    }

    pub(crate) fn project(&self) -> &Path {
        &self.project
    }

    /// The directory that was worked in, whether or not it still exists.
    pub(crate) fn inside(&self) -> Result<PathBuf, WorktreeError> {
        self.worktree.as_ref().map_or_else(|| Ok(self.project.clone()), Worktree::inside)
    }

    /// Commits what the agent left uncommitted in a worktree. A worktree of its own is removed then, unless work would be
    /// lost with it. Returns notes for the user.
    pub(crate) fn keep(&self, message: &str, is_own: bool) -> Result<Vec<String>, (PathBuf, WorktreeError)> {
        let Some(worktree) = &self.worktree else { return Ok(Vec::new()) };
        let _one_at_a_time = self.git.lock();
        let kept = if is_own { worktree.leave(message) } else { worktree.commit(message) };
        kept.map_err(|error| (worktree.path().to_owned(), error))
    }
}
