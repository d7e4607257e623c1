//! Branch names, project hooks, and reports when git is missing or refuses.

use super::*;

fn branch_of(existing: &[&str], name: &str) -> String {
    let directory = repository();
    let (home, project) = (directory.path().join("home"), directory.path().join("project"));
    for branch in existing {
        Git::reading(&project).text(&["branch", branch]).unwrap();
    }
    let worktree = Worktree::new(&home, &project, "11111111-run", name, "1-1");
    let inside = worktree.enter(&Cancel::default()).unwrap();
    fs_err::write(inside.join("new.txt"), "new\n").unwrap();
    worktree.leave("Work").unwrap();
    let branch = worktree.chosen().unwrap().unwrap();
    assert_eq!(Git::reading(&project).text(&["show", &format!("{branch}:new.txt")]).unwrap(), "new");
    branch
}

#[test]
fn a_users_branch_of_the_same_name_is_avoided() {
    for (existing, name, expected) in [
        (&[][..], "fix", "steadfast/fix/1-1"),
        (&["steadfast"], "fix", "steadfast-fix-1-1"),
        (&["steadfast/fix"], "fix", "steadfast-fix-1-1"),
        (&["steadfast/fix/1-1/deep"], "fix", "steadfast/fix/1-1-11111111"),
        (&["steadfast", "steadfast-fix-1-1"], "fix", "steadfast-fix-1-1-11111111"),
        (&["steadfast", "steadfast-fix-1-1", "steadfast-fix-1-1-11111111"], "fix", "steadfast-fix-1-1-11111111-2"),
        (&[], "a.lock", "steadfast/a-lock/1-1"),
        (&[], "v1.", "steadfast/v1./1-1"),
    ] {
        assert_eq!(branch_of(existing, name), expected, "{existing:?} {name}");
    }
}

#[test]
fn project_hooks_do_not_prevent_commits_to_the_branch() {
    let world = World::new();
    let hooks = world.project().join(".git/hooks");
    let names = ["pre-commit", "prepare-commit-msg", "commit-msg", "reference-transaction", "post-checkout"];
    let fails = |name: &str| format!("echo '#!/bin/sh\nexit 1' > {name}; chmod +x {name}");
    shell(&hooks, &names.map(fails).join(";"));
    fs_err::write(world.worktree.path.join("f"), "").unwrap();
    assert_eq!(world.leaves(), Vec::<String>::new());
    assert_eq!(world.branches(), of(&[("steadfast/fix/1-1", "f")]));
    let home = world.directory.path().join("home");
    let inside =
        Worktree::new(&home, &world.project(), "11111111-run", "fix", "1-2").enter(&Cancel::default()).unwrap();
    assert!(inside.join("part/a.txt").exists());
}

#[test]
fn the_post_checkout_hook_runs() {
    let directory = repository();
    let (home, project) = (directory.path().join("home"), directory.path().join("project"));
    shell(&project, "echo '#!/bin/sh\ntouch built' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout");
    let worktree = Worktree::new(&home, &project, "11111111-run", "fix", "1-1");
    assert!(worktree.enter(&Cancel::default()).unwrap().join("built").exists());
}

#[test]
fn the_reason_why_no_worktree_can_be_created_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let told = |path: &Path| require_repository(path).unwrap_err();
    assert!(matches!(told(directory.path()), WorktreeError::NoRepository(_)));
    shell(directory.path(), "git init -q");
    assert!(matches!(told(directory.path()), WorktreeError::NoRepository(_)), "it has no commit");
    fs_err::write(directory.path().join(".git/config"), "[core\n").unwrap();
    let error = told(directory.path());
    assert!(error.to_string().starts_with("git rev-parse failed: fatal: bad config line 1 in file"), "{error}");
    let message = "fatal: detected dubious ownership in repository at '/r'".to_owned();
    let error = WorktreeError::Git { what: "rev-parse".into(), message }.of_project(directory.path());
    assert!(error.hint().contains("safe.directory"), "{error:?}");
    let error = std::io::Error::from(std::io::ErrorKind::NotFound);
    let error = WorktreeError::from(error).of_project(directory.path());
    assert_eq!(error.to_string(), "cannot run git, which worktrees need: entity not found");
}

#[test]
fn uncommitted_files_are_named_except_our_own() {
    let world = repository();
    let project = world.path().join("project");
    assert_eq!(not_in_worktrees(&project), None);
    shell(&project, "mkdir -p .claude/pipeline-runs built; touch .claude/pipeline-runs/x built/x");
    assert_eq!(not_in_worktrees(&project), None);
    shell(&project, "echo two > part/a.txt; echo n > new.txt");
    let told = |files: &str| {
        Some(format!("worktrees start at the last commit: uncommitted changes ({files}) are not in them"))
    };
    assert_eq!(not_in_worktrees(&project), told("2 files: part/a.txt, new.txt"));
    assert_eq!(not_in_worktrees(&project.join("part")), told("2 files: part/a.txt, new.txt"));
    shell(&project, "git add -A; touch b c");
    assert_eq!(not_in_worktrees(&project), told("4 files: new.txt, part/a.txt, b, …"));
}
