//! Git worktrees for agents that must not get in each other's way. A worktree belongs to one iteration of a run (or to
//! a whole run), lives below our home, and has a branch of its own that stays; what an agent forgot to commit is
//! committed there before the worktree goes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process;

const GIT_LIMIT: Duration = Duration::from_mins(2);

#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error("{0} is not in a git repository with a commit, so no worktree can be made of it")]
    NoRepository(PathBuf),
    #[error("git {what} failed: {message}")]
    Git { what: &'static str, message: String },
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl WorktreeError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoRepository(_) => "run `git init` and make a first commit, or do without parallel stages",
            Self::Git { .. } => "look at `git worktree list` and `git branch --list 'steadfast/*'`",
            Self::Io(_) => "check the rights on the directory",
        }
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
        let prefix = git(&self.project, "rev-parse", &["rev-parse", "--verify", "--quiet", "HEAD"])
            .and_then(|_| git(&self.project, "rev-parse", &["rev-parse", "--show-prefix"]))
            .map_err(|_| WorktreeError::NoRepository(self.project.clone()))?;
        Ok(self.path.join(prefix.trim_end_matches('/')))
    }

    /// Makes the worktree if it is not there, and says where to work in it.
    pub(crate) fn enter(&self) -> Result<PathBuf, WorktreeError> {
        let inside = self.inside()?;
        if self.path.join(".git").exists() {
            return Ok(inside);
        }
        if let Some(parent) = self.path.parent() {
            steadfast_core::paths::create_private_dir(parent)?;
        }
        // One that was removed by hand is still in git's books.
        git(&self.project, "worktree prune", &["worktree", "prune"])?;
        let path = self.path.display().to_string();
        let exists = |branch: &str| {
            git(&self.project, "show-ref", &["show-ref", "--verify", "--quiet", &format!("refs/heads/{branch}")])
                .is_ok()
        };
        let what = "worktree add";
        if !exists(&self.branch) {
            git(&self.project, what, &["worktree", "add", "-b", &self.branch, &path, "HEAD"])?;
        } else if !exists(&self.other_branch) {
            git(&self.project, what, &["worktree", "add", "-b", &self.other_branch, &path, "HEAD"])?;
        } else {
            git(&self.project, what, &["worktree", "add", &path, &self.other_branch])?;
        }
        Ok(inside)
    }

    /// Commits what is left uncommitted, then removes the worktree; its branch stays. Where there is none any more,
    /// nothing is done.
    pub(crate) fn leave(&self, message: &str) -> Result<(), WorktreeError> {
        if !self.path.join(".git").exists() {
            return Ok(());
        }
        self.commit(message)?;
        // Refused while anything in it would be lost.
        git(&self.project, "worktree remove", &["worktree", "remove", &self.path.display().to_string()])?;
        Ok(())
    }

    /// Commits everything that is not ignored.
    pub(crate) fn commit(&self, message: &str) -> Result<(), WorktreeError> {
        if git(&self.path, "status", &["status", "--porcelain"])?.is_empty() {
            return Ok(());
        }
        git(&self.path, "add", &["add", "-A"])?;
        // The commit keeps work safe; whether it is good is not for the project's hooks to say here.
        let commit = ["commit", "--no-verify", "--quiet", "-m", message];
        git(&self.path, "commit", &commit).or_else(|_| {
            let nobody =
                ["-c", "user.name=Steadfast", "-c", "user.email=steadfast@localhost", "-c", "commit.gpgsign=false"];
            git(&self.path, "commit", &[&nobody[..], &commit].concat())
        })?;
        Ok(())
    }
}

fn git(directory: &Path, what: &'static str, arguments: &[&str]) -> Result<String, WorktreeError> {
    let argv: Vec<&str> = ["git"].into_iter().chain(arguments.iter().copied()).collect();
    let captured = process::capture(&argv, directory, GIT_LIMIT, 1 << 20)?;
    if captured.exit_code == Some(0) {
        return Ok(String::from_utf8_lossy(&captured.stdout).trim().to_owned());
    }
    let message = captured.stderr_tail.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message").to_owned();
    Err(WorktreeError::Git { what, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let project = directory.path().join("project");
        fs_err::create_dir_all(project.join("part")).unwrap();
        fs_err::write(project.join("part/a.txt"), "one\n").unwrap();
        fs_err::write(project.join(".gitignore"), "built\n").unwrap();
        for arguments in [
            &["init", "-q", "-b", "main"][..],
            &["config", "user.name", "T"],
            &["config", "user.email", "t@example.org"],
            &["add", "-A"],
            &["commit", "-q", "-m", "first"],
        ] {
            git(&project, "set up", arguments).unwrap();
        }
        directory
    }

    #[test]
    fn an_iteration_works_on_a_branch_that_stays() {
        let world = repository();
        let (home, project) = (world.path().join("home"), world.path().join("project"));
        let worktree = Worktree::new(&home, &project.join("part"), "run-1", "fix", "2-1");
        let inside = worktree.enter().unwrap();
        assert_eq!(inside, home.join("worktrees/run-1/2-1/part"));
        assert_eq!(worktree.enter().unwrap(), inside, "entered again after a crash");
        fs_err::write(inside.join("a.txt"), "two\n").unwrap();
        fs_err::write(inside.join("new.txt"), "new\n").unwrap();
        fs_err::write(inside.join("built"), "ignored\n").unwrap();
        worktree.leave("Work of iteration 1").unwrap();
        worktree.leave("Work of iteration 1").unwrap();
        assert!(!inside.exists());
        assert_eq!(fs_err::read_to_string(project.join("part/a.txt")).unwrap(), "one\n");
        let show = |what: &str| git(&project, "show", &["show", &format!("steadfast/fix/2-1:part/{what}")]).unwrap();
        assert_eq!((show("a.txt").as_str(), show("new.txt").as_str()), ("two", "new"));
        let subject = git(&project, "log", &["log", "-1", "--format=%s", "steadfast/fix/2-1"]).unwrap();
        assert_eq!(subject, "Work of iteration 1");
    }

    #[test]
    fn a_later_run_of_the_same_name_gets_another_branch() {
        let world = repository();
        let (home, project) = (world.path().join("home"), world.path().join("project"));
        for run in ["aaaaaaaa-1", "bbbbbbbb-2"] {
            let worktree = Worktree::new(&home, &project, run, "fix", "1-1");
            worktree.enter().unwrap();
            worktree.leave("nothing to commit").unwrap();
        }
        let branches =
            git(&project, "branch", &["branch", "--list", "steadfast/*", "--format=%(refname:short)"]).unwrap();
        assert_eq!(branches.lines().collect::<Vec<_>>(), ["steadfast/fix/1-1", "steadfast/fix/1-1-bbbbbbbb"]);
    }

    #[test]
    fn without_a_repository_there_is_no_worktree() {
        let directory = tempfile::tempdir().unwrap();
        let worktree = Worktree::new(&directory.path().join("home"), directory.path(), "r", "n", "1-1");
        assert!(matches!(worktree.enter(), Err(WorktreeError::NoRepository(_))));
    }
}
