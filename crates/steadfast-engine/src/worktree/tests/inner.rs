//! Repositories inside a worktree: commits that exist nowhere else keep the worktree.

use super::*;

/// Adds a submodule to the project before the worktree is created.
fn with_submodule() -> World {
    let directory = repository();
    let root = directory.path();
    shell(root, "git init -q -b main upstream; cd upstream; echo s > s; git add -A; git commit -qm sub");
    let allow = "git -c protocol.file.allow=always";
    let project = root.join("project");
    shell(&project, &format!("{allow} submodule --quiet add ../upstream sub; git commit -qm 'add sub'"));
    let worktree = Worktree::new(&root.join("home"), &project, "11111111-run", "fix", "1-1");
    worktree.enter(&Cancel::default()).unwrap();
    shell(&worktree.path, &format!("{allow} submodule --quiet update --init"));
    World { directory, worktree }
}

#[track_caller]
fn stays(world: &World, before: &[&str], why: &str) {
    let told = world.leaves();
    let stays = format!("the worktree {} stays: {why}", world.worktree.path.display());
    assert_eq!(told, [before, &[&stays]].concat());
    assert!(world.worktree.path.is_dir());
    assert_eq!(world.leaves(), told, "as after a crash");
}

const NOWHERE_ELSE: &str = "is another repository, whose work exists nowhere else";

#[test]
fn an_unchanged_submodule_does_not_keep_the_worktree() {
    let world = with_submodule();
    assert_eq!(world.does("echo w > f").leaves(), Vec::<String>::new());
    assert_eq!(world.branches(), of(&[("steadfast/fix/1-1", "f")]));
    assert!(world.is_gone());
}

#[test]
fn work_in_a_submodule_is_not_removed() {
    let commits = "cd sub; git checkout -q -b topic; echo w > w; git add -A; git commit -qm w";
    for script in [commits, "cd sub; echo w > w; git add -A; git stash -q"] {
        let world = with_submodule();
        world.does(script);
        stays(&world, &[], &format!("`sub` {NOWHERE_ELSE}"));
    }
    let world = with_submodule();
    world.does("echo f > f; cd sub; echo w > w");
    stays(&world, &[], "git does not commit `sub`");
    assert_eq!(world.branches(), of(&[("steadfast/fix/1-1", "f")]));
    // Commits in its remote are not lost.
    let world = with_submodule();
    world.does(&format!("{commits}; git -c protocol.file.allow=always push -q origin topic"));
    assert_eq!(world.leaves(), Vec::<String>::new());
    assert!(world.is_gone());
}

#[test]
fn a_repository_created_by_an_agent_is_not_removed() {
    let makes = "mkdir lib; cd lib; git init -q; echo c > c; git add -A; git commit -qm lib";
    let world = World::new();
    world.does(&format!("echo f > f; ({makes})"));
    stays(&world, &[], &format!("`lib` {NOWHERE_ELSE}"));
    assert_eq!(world.branches(), of(&[("steadfast/fix/1-1", "f lib")]));
    let home = world.directory.path().join("home");
    assert_eq!(remove_clean(&home, &world.project(), "11111111-run", "fix", false).unwrap(), Vec::<PathBuf>::new());
    // With a repository without a commit, `git add --all` adds nothing.
    let world = World::new();
    world.does("echo f > f; mkdir lib; cd lib; git init -q; echo c > c");
    let why = "some files are not committed: git add failed: error: 'lib/' does not have a commit checked out";
    stays(&world, &[why], "git does not commit `lib/`");
    assert_eq!(world.branches(), of(&[("steadfast/fix/1-1", "f")]));
    // Commits in ignored directories count as work.
    let world = World::new();
    world.does(&format!("mkdir built; cd built; {makes}"));
    stays(&world, &[], &format!("`built/lib` {NOWHERE_ELSE}"));
}

#[test]
fn an_unreadable_file_does_not_keep_others_from_the_branch() {
    let world = World::new();
    world.does("echo f > f; ln -s nowhere link; mkdir -p odd; mkfifo odd/pipe; echo g > g");
    assert_eq!(world.leaves(), Vec::<String>::new(), "git knows no pipes");
    assert_eq!(world.branches(), of(&[("steadfast/fix/1-1", "f g link")]));
}
