//! Git worktrees for agents that must not get in each other's way. A worktree belongs to one iteration of a run (or to
//! a whole run), lives below our home, and has a branch of its own that stays; what an agent forgot to commit is
//! committed there before the worktree goes. Beside each worktree it is written down how far it is, so that one which
//! was half made or half removed when everything died is never taken for somebody's work.

mod branch;
mod commit;
mod git;
mod kept;
mod unsaved;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use steadfast_model::text;

use self::git::{GIT_LIMIT, Guard, git, git_with_hooks};
use crate::crash::{self, Point};
use crate::process::Cancel;
use crate::{durable, footprint};

pub use self::git::WorktreeError;
pub use self::kept::{Kept, are_there, kept, remove_clean};

const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// So many of the files that are in no worktree are named.
const MOST_NAMED: usize = 3;

/// Which branch it has.
const BRANCH: &str = "branch";
/// Whoever works in it may begin.
const READY: &str = "ready";
/// All that was worked in it is committed.
const KEPT: &str = "kept";
/// Its work is done, and why it is still there.
const STAYS: &str = "stays";

/// Whether worktrees can be made of a project at all.
pub fn require_repository(project: &Path) -> Result<(), WorktreeError> {
    let asked = git(None, project, "rev-parse", &["rev-parse", "--verify", "HEAD"]);
    asked.map(drop).map_err(|error| error.of_project(project))
}

/// What people have to know before agents work in worktrees: what they did not commit is not in them.
pub fn not_in_worktrees(project: &Path) -> Option<String> {
    let status = ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal"];
    let changes = git(None, project, "status", &status).ok()?;
    let prefix = git(None, project, "rev-parse", &["rev-parse", "--show-prefix"]).ok()?;
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

/// Which part of a run a worktree is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Worktree {
    /// Where it is.
    path: PathBuf,
    project: PathBuf,
    run_id: String,
    name: String,
    part: String,
    /// The worktree that it starts from, where that is not the project.
    from: Option<Box<Self>>,
}

impl Worktree {
    /// `part` is `<stage>-<iteration>`, or a word for the whole run.
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

    /// It starts with the work in another one of the same run.
    pub(crate) fn starting_from(self, other: Self) -> Self {
        Self { from: Some(Box::new(other)), ..self }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The place in the worktree that the project has in its repository, whether it is there or not.
    pub(crate) fn inside(&self) -> Result<PathBuf, WorktreeError> {
        let answer = git(None, &self.project, "rev-parse", &["rev-parse", "HEAD", "--show-prefix"])
            .map_err(|error| error.of_project(&self.project))?;
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
        // Once more if git was killed, met the remains of one that was, or a hook of the project did not like it: the
        // second time begins by removing what is there.
        let made = self.make(&guard, true).or_else(|error| match error {
            error if cancel.is_cancelled() => Err(error),
            _ => {
                self.forget_half_made(&guard)?;
                self.make(&guard, false)
            }
        });
        if cancel.is_cancelled() {
            return Err(WorktreeError::Ending);
        }
        made.map(|()| inside)
    }

    fn make(&self, guard: &Guard, with_hooks: bool) -> Result<(), WorktreeError> {
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
        let start = if is_there { branch.clone() } else { self.start(guard)? };
        let arguments: &[&str] = if is_there {
            &["worktree", "add", &path, &start]
        } else {
            &["worktree", "add", "--no-track", "-b", &branch, &path, &start]
        };
        if with_hooks {
            git_with_hooks(guard, &self.project, "worktree add", arguments)?;
        } else {
            self.git_despite_locks(guard, &self.project, "worktree add", arguments)?;
        }
        crash::point(Point::WorktreeMade);
        Ok(durable::mark(&self.beside(READY))?)
    }

    /// The commit that it begins with.
    fn start(&self, guard: &Guard) -> Result<String, WorktreeError> {
        if let Some(from) = &self.from
            && let Some(branch) = from.chosen()?
            && from.has_branch(guard, &branch)
        {
            if from.is(READY) && from.path.exists() {
                from.keep(guard, "Work before a parallel stage")?;
            }
            return Ok(format!("refs/heads/{branch}"));
        }
        Ok("HEAD".to_owned())
    }

    /// Commits what is left uncommitted, then removes the worktree; its branch stays. So does the worktree if anything
    /// would be lost with it. Where there is none any more, nothing is done. Returns what people should know.
    pub(crate) fn leave(&self, message: &str) -> Result<Vec<String>, WorktreeError> {
        if !self.is(READY) && !self.is(KEPT) {
            return Ok(Vec::new());
        }
        let guard = self.lock(&Cancel::default())?;
        let mut told = Vec::new();
        if !self.is(KEPT) {
            self.require_own(&guard)?;
            self.detach(&guard)?;
            told = self.keep(&guard, message)?;
            if let Some(reason) = self.unsaved(&guard)? {
                durable::replace(&self.beside(STAYS), reason.as_bytes())?;
                told.push(format!("the worktree {} stays: {reason}", self.path.display()));
                return Ok(told);
            }
            durable::mark(&self.beside(KEPT))?;
        }
        crash::point(Point::WorktreeKept);
        self.clear(&guard)?;
        crash::point(Point::WorktreeRemoved);
        Ok(told)
    }

    /// Commits everything that is not ignored. Returns what people should know.
    pub(crate) fn commit(&self, message: &str) -> Result<Vec<String>, WorktreeError> {
        self.keep(&self.lock(&Cancel::default())?, message)
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
            // If git has none in its books, that is what we want. To prune them would take those of others as well, whose
            // disk is not there at the moment.
            let removed = git(Some(guard), &self.project, "worktree remove", &remove);
            if self.is_in_books(guard)? {
                removed?;
            }
        }
        forget(&self.beside(STAYS))?;
        Ok(forget(&self.beside(KEPT))?)
    }

    fn is_in_books(&self, guard: &Guard) -> Result<bool, WorktreeError> {
        let listed = git(Some(guard), &self.project, "worktree list", &["worktree", "list", "--porcelain"])?;
        // Git has resolved the links on the way.
        let end = format!("/{}/{}", self.run_id, self.part);
        Ok(listed.lines().any(|line| line.starts_with("worktree ") && line.ends_with(&end)))
    }

    /// Git refuses everything about worktrees while its books have one of which it wrote only the beginning. Those of
    /// this run are nobody's: we hold its lock, and so would a git that still writes.
    fn forget_half_made(&self, guard: &Guard) -> Result<(), WorktreeError> {
        let books = git(Some(guard), &self.project, "rev-parse", &["rev-parse", "--git-common-dir"])?;
        let Some(ours) = self.path.parent().and_then(|parent| parent.canonicalize().ok()) else { return Ok(()) };
        let Ok(entries) = fs_err::read_dir(self.project.join(books).join("worktrees")) else { return Ok(()) };
        for entry in entries.flatten().map(|entry| entry.path()) {
            let read = |name: &str| fs_err::read_to_string(entry.join(name)).unwrap_or_default();
            let is_half_made = read("commondir").is_empty();
            if is_half_made && Path::new(read("gitdir").trim()).starts_with(&ours) {
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

    fn lock(&self, cancel: &Cancel) -> Result<Guard, WorktreeError> {
        let path = self.path.with_file_name("lock");
        if let Some(parent) = path.parent() {
            steadfast_system::paths::create_private_dir(parent)?;
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
}

fn forget(mark: &Path) -> std::io::Result<()> {
    match fs_err::remove_file(mark) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
