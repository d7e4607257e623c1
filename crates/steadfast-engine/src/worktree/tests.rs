//! Worktrees with a real git: an agent's work survives any crash.

mod heads;
mod inner;
mod names;

use std::time::Duration;

use steadfast_model::run::AttemptId;

use super::*;
use crate::process::LimitedCommand;

/// A repository and a worktree of it.
struct World {
    directory: tempfile::TempDir,
    worktree: Worktree,
}

impl World {
    fn new() -> Self {
        let directory = repository();
        let (home, project) = (directory.path().join("home"), directory.path().join("project"));
        let worktree = Worktree::new(&home, &project, "11111111-run", "fix", "1-1");
        worktree.enter(&Cancel::default()).unwrap();
        Self { directory, worktree }
    }

    fn project(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    /// Runs an agent's command in its worktree.
    fn does(&self, script: &str) -> &Self {
        shell(&self.worktree.path, script);
        self
    }

    fn leaves(&self) -> Vec<String> {
        self.worktree.leave("Work").unwrap()
    }

    fn git(&self, arguments: &[&str]) -> String {
        Git::reading(&self.project()).text(arguments).unwrap()
    }

    /// Our branches, each with the files that `main` does not have.
    fn branches(&self) -> Vec<(String, String)> {
        let listed = self.git(&["branch", "--list", "steadfast*", "--format=%(refname:short)"]);
        let files = |branch: &str| self.git(&["diff", "--name-only", "main", branch]).replace('\n', " ");
        listed.lines().map(|branch| (branch.to_owned(), files(branch))).collect()
    }

    fn is_gone(&self) -> bool {
        !self.worktree.path.exists() && self.git(&["worktree", "list"]).lines().count() == 1
    }
}

fn of(branches: &[(&str, &str)]) -> Vec<(String, String)> {
    branches.iter().map(|(branch, files)| ((*branch).to_owned(), (*files).to_owned())).collect()
}

#[track_caller]
fn shell(directory: &Path, script: &str) {
    let script = format!(
        "set -e; export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b\n{script}"
    );
    let outcome = LimitedCommand::shell(&script, directory, Duration::from_mins(1)).run().unwrap();
    assert_eq!(outcome.exit_code, Some(0), "{}", outcome.output_tail);
}

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
        Git::reading(&project).text(arguments).unwrap();
    }
    directory
}

#[test]
fn an_iteration_works_on_a_branch_that_stays() {
    let world = repository();
    let (home, project) = (world.path().join("home"), world.path().join("project"));
    let worktree = Worktree::new(&home, &project.join("part"), "run-1", "fix", "2-1");
    let inside = worktree.enter(&Cancel::default()).unwrap();
    assert_eq!(inside, home.join("worktrees/run-1/2-1/part"));
    assert_eq!(worktree.enter(&Cancel::default()).unwrap(), inside, "entered again after a crash");
    fs_err::write(inside.join("a.txt"), "two\n").unwrap();
    fs_err::write(inside.join("new.txt"), "new\n").unwrap();
    fs_err::write(inside.join("built"), "ignored\n").unwrap();
    worktree.leave("Work of iteration 1").unwrap();
    worktree.leave("Work of iteration 1").unwrap();
    assert!(!inside.exists());
    assert_eq!(fs_err::read_to_string(project.join("part/a.txt")).unwrap(), "one\n");
    let show = |what: &str| Git::reading(&project).text(&["show", &format!("steadfast/fix/2-1:part/{what}")]).unwrap();
    assert_eq!((show("a.txt").as_str(), show("new.txt").as_str()), ("two", "new"));
    let subject = Git::reading(&project).text(&["log", "-1", "--format=%s", "steadfast/fix/2-1"]).unwrap();
    assert_eq!(subject, "Work of iteration 1");
}

#[test]
fn a_later_run_of_the_same_name_gets_another_branch() {
    let world = repository();
    let (home, project) = (world.path().join("home"), world.path().join("project"));
    for run in ["aaaaaaaa-1", "bbbbbbbb-2"] {
        let worktree = Worktree::new(&home, &project, run, "fix", "1-1");
        worktree.enter(&Cancel::default()).unwrap();
        worktree.leave("nothing to commit").unwrap();
    }
    let branches =
        Git::reading(&project).text(&["branch", "--list", "steadfast/*", "--format=%(refname:short)"]).unwrap();
    assert_eq!(branches.lines().collect::<Vec<_>>(), ["steadfast/fix/1-1", "steadfast/fix/1-1-bbbbbbbb"]);
}

#[test]
fn an_entry_half_written_by_a_killed_git_is_removed() {
    let world = repository();
    let (home, project) = (world.path().join("home"), world.path().join("project"));
    let other = Worktree::new(&home, &project, "run-1", "fix", "1-2");
    let books = project.join(".git/worktrees/1-2");
    fs_err::create_dir_all(&books).unwrap();
    fs_err::write(books.join("locked"), "initializing\n").unwrap();
    let gitdir = home.canonicalize().unwrap_or(home.clone()).join("worktrees/run-1/1-2/.git");
    fs_err::write(books.join("gitdir"), format!("{}\n", gitdir.display())).unwrap();
    fs_err::write(books.join("commondir"), "").unwrap();
    let list = || Git::reading(&project).text(&["worktree", "list"]);
    list().unwrap_err();
    // Another worktree of the same run is created first.
    Worktree::new(&home, &project, "run-1", "fix", "1-1").enter(&Cancel::default()).unwrap();
    other.enter(&Cancel::default()).unwrap();
    assert_eq!(list().unwrap().lines().count(), 3);
}

#[test]
fn without_a_repository_there_is_no_worktree() {
    let directory = tempfile::tempdir().unwrap();
    let worktree = Worktree::new(&directory.path().join("home"), directory.path(), "r", "n", "1-1");
    assert!(matches!(worktree.enter(&Cancel::default()), Err(WorktreeError::NoRepository(_))));
}

#[test]
fn a_half_created_or_half_removed_worktree_is_created_again() {
    let world = repository();
    let (home, project) = (world.path().join("home"), world.path().join("project"));
    let worktree = Worktree::new(&home, &project, "run-1", "fix", "1-1");
    worktree.enter(&Cancel::default()).unwrap();
    // Killed while git was checking files out, with the branch made already.
    worktree.forget(READY).unwrap();
    fs_err::remove_dir_all(worktree.path.join("part")).unwrap();
    let inside = worktree.enter(&Cancel::default()).unwrap();
    assert_eq!(fs_err::read_to_string(inside.join("part/a.txt")).unwrap(), "one\n");
    fs_err::write(inside.join("new.txt"), "new\n").unwrap();
    worktree.commit_all(&worktree.lock(&Cancel::default()).unwrap(), "Work").unwrap();
    // Killed while it was being removed.
    durable::mark(&worktree.beside(KEPT)).unwrap();
    worktree.forget(READY).unwrap();
    fs_err::remove_dir_all(worktree.path.join("part")).unwrap();
    worktree.leave("Work").unwrap();
    let log = Git::reading(&project).text(&["log", "--format=%s", "--name-status", "main..steadfast/fix/1-1"]).unwrap();
    assert_eq!(log, "Work\n\nA\tnew.txt");
    assert_eq!(Git::reading(&project).text(&["worktree", "list"]).unwrap().lines().count(), 1);
    // Going on is going on with the work.
    assert!(worktree.enter(&Cancel::default()).unwrap().join("new.txt").exists());
}

#[test]
fn locks_of_a_killed_git_are_removed() {
    let world = repository();
    let (home, project) = (world.path().join("home"), world.path().join("project"));
    let worktree = Worktree::new(&home, &project, "run-1", "fix", "1-1");
    fs_err::create_dir_all(project.join(".git/refs/heads/steadfast/fix")).unwrap();
    fs_err::write(project.join(".git/refs/heads/steadfast/fix/1-1.lock"), "").unwrap();
    let inside = worktree.enter(&Cancel::default()).unwrap();
    fs_err::write(inside.join("new.txt"), "new\n").unwrap();
    fs_err::write(project.join(".git/index.lock"), "").unwrap();
    for name in ["index.lock", "HEAD.lock"] {
        fs_err::write(project.join(".git/worktrees/1-1").join(name), "").unwrap();
    }
    worktree.leave("Work").unwrap();
    assert_eq!(Git::reading(&project).text(&["show", "steadfast/fix/1-1:new.txt"]).unwrap(), "new");
    assert!(project.join(".git/index.lock").exists(), "it is the user's");
}

#[test]
fn a_cancelled_worktree_is_created_later() {
    let world = repository();
    let (home, project) = (world.path().join("home"), world.path().join("project"));
    let worktree = Worktree::new(&home, &project, "run-1", "fix", "1-1");
    let cancel = Cancel::default();
    cancel.cancel();
    assert!(matches!(worktree.enter(&cancel), Err(WorktreeError::Ending)));
    let inside = worktree.enter(&Cancel::default()).unwrap();
    assert_eq!(fs_err::read_to_string(inside.join("part/a.txt")).unwrap(), "one\n");
    // It exists, so there is nothing to wait for.
    assert_eq!(worktree.enter(&cancel).unwrap(), inside);
}

#[test]
fn work_in_a_worktree_unknown_to_git_is_not_removed() {
    let world = repository();
    let (home, project) = (world.path().join("home"), world.path().join("project"));
    let worktree = Worktree::new(&home, &project, "run-1", "fix", "1-1");
    let inside = worktree.enter(&Cancel::default()).unwrap();
    fs_err::write(inside.join("new.txt"), "new\n").unwrap();
    fs_err::remove_file(inside.join(".git")).unwrap();
    assert!(matches!(worktree.enter(&Cancel::default()), Err(WorktreeError::Broken(_))));
    assert!(inside.join("new.txt").exists());
    fs_err::remove_dir_all(&inside).unwrap();
    assert_eq!(worktree.enter(&Cancel::default()).unwrap(), inside);
}
