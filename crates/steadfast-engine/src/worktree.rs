//! Git worktrees for agents that must not get in each other's way. A worktree belongs to one iteration of a run (or to
//! a whole run), lives below our home, and has a branch of its own that stays; what an agent forgot to commit is
//! committed there before the worktree goes. Beside each worktree it is written down how far it is, so that one which
//! was half made or half removed when everything died is never taken for somebody's work.

mod git;
mod kept;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::git::{GIT_LIMIT, Guard, git};
use crate::crash::{self, Point};
use crate::durable;
use crate::process::Cancel;

const LOCK_PAUSE: Duration = Duration::from_millis(20);

pub use self::kept::{Kept, kept, remove_clean};

#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error("{0} is not in a git repository with a commit, so no worktree can be made of it")]
    NoRepository(PathBuf),
    #[error("git {what} failed: {message}")]
    Git { what: &'static str, message: String },
    #[error("a git of an earlier engine still works on {0}")]
    Busy(PathBuf),
    #[error("{0} is not a worktree of git any more")]
    Broken(PathBuf),
    #[error("the run is being ended")]
    Ending,
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl WorktreeError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoRepository(_) => {
                "run `git init` and make a first commit, or do without --worktree and parallel stages"
            }
            Self::Git { .. } => "look at `git worktree list` and `git branch --list 'steadfast/*'`",
            Self::Busy(_) => "wait for it to end, then go on with `resume`",
            Self::Broken(_) => "save what you need of it, remove it, then go on with `resume`",
            Self::Ending => "go on with `resume`",
            Self::Io(_) => "check the rights on the directory",
        }
    }
}

/// Whether worktrees can be made of a project at all.
pub fn require_repository(project: &Path) -> Result<(), WorktreeError> {
    match git(None, project, "rev-parse", &["rev-parse", "HEAD"]) {
        Ok(_) => Ok(()),
        Err(_) => Err(WorktreeError::NoRepository(project.to_owned())),
    }
}

/// Which part of a run a worktree is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Worktree {
    /// Where it is.
    path: PathBuf,
    project: PathBuf,
    branch: String,
    /// Used if an earlier run of that name left its branch.
    other_branch: String,
}

impl Worktree {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// `part` is `<stage>-<iteration>`, or a word for the whole run.
    pub(crate) fn new(home: &Path, project: &Path, run_id: &str, name: &str, part: &str) -> Self {
        let short: String = run_id.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
        Self {
            path: home.join("worktrees").join(run_id).join(part),
            project: project.to_owned(),
            branch: format!("steadfast/{name}/{part}"),
            other_branch: format!("steadfast/{name}/{part}-{short}"),
        }
    }

    /// The place in the worktree that the project has in its repository, whether it is there or not.
    pub(crate) fn inside(&self) -> Result<PathBuf, WorktreeError> {
        let answer = git(None, &self.project, "rev-parse", &["rev-parse", "HEAD", "--show-prefix"])
            .map_err(|_| WorktreeError::NoRepository(self.project.clone()))?;
        let prefix = answer.lines().nth(1).unwrap_or_default();
        Ok(self.path.join(prefix.trim_end_matches('/')))
    }

    /// Makes the worktree if it is not there, and says where to work in it. Given up half-way when it is cancelled, as
    /// if everything had died there.
    pub(crate) fn enter(&self, cancel: &Cancel) -> Result<PathBuf, WorktreeError> {
        let inside = self.inside()?;
        let guard = self.lock(cancel)?;
        if self.is(READY) && !self.is(KEPT) {
            if self.path.join(".git").exists() {
                return Ok(inside);
            }
            // Somebody worked in what is left of it.
            if self.path.exists() {
                return Err(WorktreeError::Broken(self.path.clone()));
            }
        }
        // Once more if git was killed, or met the remains of one that was: the second time begins by removing them.
        let made = self.make(&guard).or_else(|_| if cancel.is_cancelled() { Ok(()) } else { self.make(&guard) });
        if cancel.is_cancelled() {
            return Err(WorktreeError::Ending);
        }
        made.map(|()| inside)
    }

    fn make(&self, guard: &Guard) -> Result<(), WorktreeError> {
        let (branch, is_there) = match self.chosen()? {
            Some(branch) => {
                // Nobody has worked in what is there, or all of it is committed.
                self.clear(guard)?;
                let is_there = self.has_branch(guard, &branch);
                (branch, is_there)
            }
            None => (self.choose(guard)?, false),
        };
        crash::point(Point::WorktreeChosen);
        let path = self.path.display().to_string();
        let arguments: &[&str] = if is_there {
            &["worktree", "add", &path, &branch]
        } else {
            &["worktree", "add", "-b", &branch, &path, "HEAD"]
        };
        self.git_despite_locks(guard, &self.project, "worktree add", arguments)?;
        crash::point(Point::WorktreeMade);
        Ok(durable::mark(&self.beside(READY))?)
    }

    /// Commits what is left uncommitted, then removes the worktree; its branch stays. Where there is none any more,
    /// nothing is done.
    pub(crate) fn leave(&self, message: &str) -> Result<(), WorktreeError> {
        if !self.is(READY) && !self.is(KEPT) {
            return Ok(());
        }
        let guard = self.lock(&Cancel::default())?;
        if !self.is(KEPT) {
            self.commit_all(&guard, message)?;
            durable::mark(&self.beside(KEPT))?;
        }
        crash::point(Point::WorktreeKept);
        self.clear(&guard)?;
        crash::point(Point::WorktreeRemoved);
        Ok(())
    }

    /// Commits everything that is not ignored.
    pub(crate) fn commit(&self, message: &str) -> Result<(), WorktreeError> {
        self.commit_all(&self.lock(&Cancel::default())?, message)
    }

    fn commit_all(&self, guard: &Guard, message: &str) -> Result<(), WorktreeError> {
        // Git would look further up, and find a repository that is none of our business.
        if !self.path.join(".git").exists() {
            return Err(WorktreeError::Broken(self.path.clone()));
        }
        if git(Some(guard), &self.path, "status", &["status", "--porcelain"])?.is_empty() {
            return Ok(());
        }
        self.git_despite_locks(guard, &self.path, "add", &["add", "-A"])?;
        // The commit keeps work safe; whether it is good is not for the project's hooks to say here.
        let commit = ["commit", "--no-verify", "--quiet", "-m", message];
        self.git_despite_locks(guard, &self.path, "commit", &commit).or_else(|_| {
            let nobody =
                ["-c", "user.name=Steadfast", "-c", "user.email=steadfast@localhost", "-c", "commit.gpgsign=false"];
            self.git_despite_locks(guard, &self.path, "commit", &[&nobody[..], &commit].concat())
        })?;
        Ok(())
    }

    /// The branch that was chosen when the worktree was made for the first time.
    fn chosen(&self) -> Result<Option<String>, WorktreeError> {
        match fs_err::read_to_string(self.beside(BRANCH)) {
            Ok(branch) => Ok(Some(branch.trim().to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Chooses a branch that is not there, once: one that was made and not used yet looks like that of an earlier run.
    fn choose(&self, guard: &Guard) -> Result<String, WorktreeError> {
        let is_taken = self.has_branch(guard, &self.branch);
        let branch = if is_taken { &self.other_branch } else { &self.branch };
        durable::replace(&self.beside(BRANCH), format!("{branch}\n").as_bytes())?;
        Ok(branch.clone())
    }

    fn has_branch(&self, guard: &Guard, branch: &str) -> bool {
        let name = format!("refs/heads/{branch}");
        git(Some(guard), &self.project, "show-ref", &["show-ref", "--verify", "--quiet", &name]).is_ok()
    }

    /// Removes the worktree, whole or in parts, from the disk and from git's books.
    fn clear(&self, guard: &Guard) -> Result<(), WorktreeError> {
        forget(&self.beside(READY))?;
        let path = self.path.display().to_string();
        let remove = ["worktree", "remove", "--force", "--force", &path];
        let is_removed = self.path.join(".git").exists()
            && git(Some(guard), &self.project, "worktree remove", &remove).is_ok()
            && !self.path.exists();
        if !is_removed {
            match fs_err::remove_dir_all(&self.path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
            // One that was being made is locked, and if there is none, that is what we want.
            let _ = git(Some(guard), &self.project, "worktree unlock", &["worktree", "unlock", &path]);
            git(Some(guard), &self.project, "worktree prune", &["worktree", "prune"])?;
        }
        Ok(forget(&self.beside(KEPT))?)
    }

    fn beside(&self, what: &str) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{what}"));
        self.path.with_file_name(name)
    }

    fn is(&self, what: &str) -> bool {
        self.beside(what).exists()
    }

    fn lock(&self, cancel: &Cancel) -> Result<Guard, WorktreeError> {
        let path = self.path.with_file_name("lock");
        if let Some(parent) = path.parent() {
            steadfast_core::paths::create_private_dir(parent)?;
        }
        let file = durable::open_lock(&path)?;
        let patience = Instant::now() + GIT_LIMIT;
        while !durable::try_lock(&file)? {
            if cancel.is_cancelled() {
                return Err(WorktreeError::Ending);
            }
            if Instant::now() >= patience {
                return Err(WorktreeError::Busy(self.path.clone()));
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        Ok(Guard { file, cancel: cancel.clone() })
    }

    /// A git that was killed leaves its locks. We hold the run's own, and no agent works here now: those of this
    /// worktree and of its branch are nobody's.
    fn git_despite_locks(
        &self,
        guard: &Guard,
        directory: &Path,
        what: &'static str,
        arguments: &[&str],
    ) -> Result<String, WorktreeError> {
        let done = git(Some(guard), directory, what, arguments);
        let Err(WorktreeError::Git { message, .. }) = &done else { return done };
        if !message.contains(".lock") {
            return done;
        }
        let of_branch = format!("refs/heads/{}.lock", self.chosen()?.unwrap_or_default());
        let mut stale = vec![(&self.project, of_branch.as_str())];
        // Elsewhere they would be those of a repository that is not ours.
        if self.path.join(".git").exists() {
            stale.extend([(&self.path, "index.lock"), (&self.path, "HEAD.lock")]);
        }
        for (place, name) in stale {
            if let Ok(path) = git(Some(guard), place, "rev-parse", &["rev-parse", "--git-path", name]) {
                // Usually only one of them is there.
                let _ = fs_err::remove_file(place.join(path));
            }
        }
        git(Some(guard), directory, what, arguments)
    }
}

/// Which branch it has.
const BRANCH: &str = "branch";
/// Whoever works in it may begin.
const READY: &str = "ready";
/// All that was worked in it is committed.
const KEPT: &str = "kept";

fn forget(mark: &Path) -> std::io::Result<()> {
    match fs_err::remove_file(mark) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
