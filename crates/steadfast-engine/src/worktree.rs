//! Git worktrees that keep agents apart. A worktree belongs to one iteration or to a whole run, is below
//! `$STEADFAST_HOME`, and has a branch of its own, which stays. What an agent did not commit is committed before the
//! worktree is removed. Files beside each worktree record its progress, so that one that was half created or half
//! removed in a crash is never taken for an agent's work.

mod branch;
mod commit;
mod git;
mod kept;
mod merge;
mod merged;
mod unsaved;

use std::path::{Path, PathBuf};

use steadfast_model::text;

use self::git::{Git, Guard};
use crate::crash::{self, CrashPoint};
use crate::process::Cancel;
use crate::{durable, footprint};

pub use self::git::WorktreeError;
pub use self::kept::{KeptWork, are_there, kept, remove_clean};
pub(crate) use self::kept::{OF_RUN, part_of, part_of_lane};
pub(crate) use self::merge::{Merge, Merged, not_merged};
pub use self::merged::{MergedBranches, remove_merged};

/// How many uncommitted files a warning names.
const MOST_NAMED: usize = 3;

/// Contains the branch name.
const BRANCH: &str = "branch";
/// The agent may start in it.
const READY: &str = "ready";
/// All work in it is committed.
const KEPT: &str = "kept";
/// The iteration has ended; contains why the worktree is not removed.
const STAYS: &str = "stays";

/// Fails if no worktrees can be created of a project.
pub fn require_repository(project: &Path) -> Result<(), WorktreeError> {
    let asked = Git::reading(project).text(&["rev-parse", "--verify", "HEAD"]);
    asked.map(drop).map_err(|error| error.of_project(project))
}

/// A warning about uncommitted changes, which worktrees do not contain.
pub fn not_in_worktrees(project: &Path) -> Option<String> {
    let status = ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal"];
    let changes = Git::reading(project).text(&status).ok()?;
    let prefix = Git::reading(project).text(&["rev-parse", "--show-prefix"]).ok()?;
    let is_ours = |name: &str| {
        let inside = name.strip_prefix(&prefix).unwrap_or(name);
        inside == ".claude/" || footprint::is_ours(Path::new(inside))
    };
    let names: Vec<&str> =
        changes.split('\0').filter_map(|entry| entry.get(3..)).filter(|name| !is_ours(name)).collect();
    let shown: Vec<String> = names.iter().take(MOST_NAMED).map(|name| text::headline(name, 60)).collect();
    let more = if names.len() > MOST_NAMED { ", …" } else { "" };
    let files = if names.len() == 1 { "file" } else { "files" };
    (!names.is_empty()).then(|| {
        let (count, shown) = (names.len(), shown.join(", "));
        format!(
            "worktrees start at the last commit: uncommitted changes ({count} {files}: {shown}{more}) are not in them"
        )
    })
}

/// The worktree of an iteration or of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Worktree {
    path: PathBuf,
    project: PathBuf,
    run_id: String,
    name: String,
    part: String,
    /// The worktree whose branch it starts from, if not from the project.
    from: Option<Box<Self>>,
}

impl Worktree {
    /// `part` is one of [`part_of`].
    pub(crate) fn new(home: &Path, project: &Path, run_id: &str, name: &str, part: &str) -> Self {
        Self {
            path: home.join("worktrees").join(run_id).join(part),
            project: project.to_owned(),
            run_id: run_id.to_owned(),
            name: name.to_owned(),
            part: part.to_owned(),
            from: None,
        }
    }

    /// Starts it from another worktree of the same run.
    pub(crate) fn starting_from(self, other: Self) -> Self {
        Self { from: Some(Box::new(other)), ..self }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The project's directory inside the worktree, whether it exists or not.
    pub(crate) fn inside(&self) -> Result<PathBuf, WorktreeError> {
        let answer = Git::reading(&self.project)
            .text(&["rev-parse", "HEAD", "--show-prefix"])
            .map_err(|error| error.of_project(&self.project))?;
        let prefix = answer.lines().nth(1).unwrap_or_default();
        Ok(self.path.join(prefix.trim_end_matches('/')))
    }

    /// Creates the worktree if it does not exist, and returns the directory to work in. Cancelling it has the effect of a
    /// crash at that point.
    pub(crate) fn enter(&self, cancel: &Cancel) -> Result<PathBuf, WorktreeError> {
        let inside = self.inside()?;
        let guard = self.lock(cancel)?;
        if self.is(READY) && !self.is(KEPT) {
            if self.path.join(".git").exists() {
                return Ok(inside);
            }
            // An agent may have worked in it, so it is not removed.
            if self.path.exists() {
                return Err(WorktreeError::Broken(self.path.clone()));
            }
        }
        // Try again without hooks if git was killed, found the remains of a killed git, or a hook of the project failed.
        // The second time removes what exists first.
        let created = self.create(&guard, true).or_else(|error| match error {
            error if cancel.is_cancelled() => Err(error),
            _ => {
                self.remove_half_created(&guard)?;
                self.create(&guard, false)
            }
        });
        if cancel.is_cancelled() {
            return Err(WorktreeError::Ending);
        }
        created.map(|()| inside)
    }

    fn create(&self, guard: &Guard, with_hooks: bool) -> Result<(), WorktreeError> {
        let (branch, exists) = match self.chosen()? {
            Some(branch) => {
                // What exists is unused, or all of it is committed.
                self.clear(guard)?;
                let exists = self.has_branch(guard, &branch);
                (branch, exists)
            }
            None => (self.choose(guard)?, false),
        };
        crash::point(CrashPoint::WorktreeChosen);
        let path = self.path.display().to_string();
        let start = if exists { branch.clone() } else { self.start(guard)? };
        let arguments: &[&str] = if exists {
            &["worktree", "add", &path, &start]
        } else {
            &["worktree", "add", "--no-track", "-b", &branch, &path, &start]
        };
        if with_hooks {
            Git::locked(guard, &self.project).with_hooks().text(arguments)?;
        } else {
            self.git_despite_locks(guard, &self.project, arguments)?;
        }
        crash::point(CrashPoint::WorktreeMade);
        // Git syncs neither the files nor what makes the directory a worktree.
        durable::sync_file_system(&self.path)?;
        durable::sync_file_system(&self.project)?;
        Ok(durable::mark(&self.beside(READY))?)
    }

    /// The commit that it starts from.
    fn start(&self, guard: &Guard) -> Result<String, WorktreeError> {
        let Some(from) = &self.from else { return Ok("HEAD".to_owned()) };
        match from.chosen()? {
            Some(branch) if from.has_branch(guard, &branch) => {
                if from.is(READY) && from.path.exists() {
                    from.keep(guard, "Work before a parallel stage")?;
                }
                Ok(format!("refs/heads/{branch}"))
            }
            // Nothing has worked in it yet.
            _ => from.start(guard),
        }
    }

    /// Commits what is uncommitted, then removes the worktree, unless work would be lost with it. Its branch stays.
    /// Returns notes for the user.
    pub(crate) fn leave(&self, message: &str) -> Result<Vec<String>, WorktreeError> {
        if !self.is(READY) && !self.is(KEPT) {
            return Ok(Vec::new());
        }
        let guard = self.lock(&Cancel::default())?;
        let mut notes = Vec::new();
        if !self.is(KEPT) {
            self.require_own(&guard)?;
            self.detach(&guard)?;
            notes = self.keep(&guard, message)?;
            if let Some(reason) = self.unsaved(&guard)? {
                durable::replace(&self.beside(STAYS), reason.as_bytes())?;
                notes.push(format!("the worktree {} stays: {reason}", self.path.display()));
                return Ok(notes);
            }
            durable::mark(&self.beside(KEPT))?;
        }
        crash::point(CrashPoint::WorktreeKept);
        self.clear(&guard)?;
        crash::point(CrashPoint::WorktreeRemoved);
        Ok(notes)
    }

    /// Commits everything that is not ignored. Returns notes for the user.
    pub(crate) fn commit(&self, message: &str) -> Result<Vec<String>, WorktreeError> {
        self.keep(&self.lock(&Cancel::default())?, message)
    }

    /// Removes the worktree, whole or half removed, from the disk and from git's list.
    fn clear(&self, guard: &Guard) -> Result<(), WorktreeError> {
        self.forget(READY)?;
        let path = self.path.display().to_string();
        let remove = ["worktree", "remove", "--force", "--force", &path];
        let is_removed = self.path.join(".git").exists()
            && Git::locked(guard, &self.project).text(&remove).is_ok()
            && !self.path.exists();
        if !is_removed {
            durable::if_exists(fs_err::remove_dir_all(&self.path))?;
            // An error is fine if git does not list it. `git worktree prune` would also remove worktrees whose disk is not
            // mounted now.
            let removed = Git::locked(guard, &self.project).text(&remove);
            if self.is_listed(guard)? {
                removed?;
            }
        }
        self.forget(STAYS)?;
        self.forget(KEPT)
    }

    fn is_listed(&self, guard: &Guard) -> Result<bool, WorktreeError> {
        let listed = Git::locked(guard, &self.project).text(&["worktree", "list", "--porcelain"])?;
        // Git lists paths with resolved symbolic links.
        let end = format!("/{}/{}", self.run_id, self.part);
        Ok(listed.lines().any(|line| line.starts_with("worktree ") && line.ends_with(&end)))
    }

    /// Removes half written entries of this run from git's list: with one of them, git refuses all worktree commands. This
    /// process holds the lock that a writing git would hold, so they are stale.
    fn remove_half_created(&self, guard: &Guard) -> Result<(), WorktreeError> {
        let common = Git::locked(guard, &self.project).text(&["rev-parse", "--git-common-dir"])?;
        let Some(ours) = self.path.parent().and_then(|parent| parent.canonicalize().ok()) else { return Ok(()) };
        let Ok(entries) = fs_err::read_dir(self.project.join(common).join("worktrees")) else { return Ok(()) };
        for entry in entries.flatten().map(|entry| entry.path()) {
            let read = |name: &str| fs_err::read_to_string(entry.join(name)).unwrap_or_default();
            let is_half_created = read("commondir").is_empty();
            if is_half_created && Path::new(read("gitdir").trim()).starts_with(&ours) {
                fs_err::remove_dir_all(&entry)?;
            }
        }
        Ok(())
    }

    fn beside(&self, what: &str) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{what}"));
        self.path.with_file_name(name)
    }

    fn is(&self, what: &str) -> bool {
        self.beside(what).exists()
    }

    fn forget(&self, what: &str) -> Result<(), WorktreeError> {
        durable::if_exists(fs_err::remove_file(self.beside(what)))?;
        Ok(())
    }

    /// Waits for the lock of the run's worktrees: a git process of a killed engine may hold it.
    fn lock(&self, cancel: &Cancel) -> Result<Guard, WorktreeError> {
        Guard::take(self.path.parent().unwrap_or(&self.path), cancel)
    }
}

#[cfg(test)]
mod tests;
