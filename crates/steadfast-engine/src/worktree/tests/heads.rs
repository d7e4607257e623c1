//! Wherever an agent leaves HEAD, its branch has its work.

use steadfast_model::run::StagePlan;

use super::*;

fn parallel() -> StagePlan {
    StagePlan { parallel: true, ..StagePlan::default() }
}

const BRANCH_OF_OURS: &str = "steadfast/fix/1-1";

#[test]
fn work_beside_the_branch_ends_up_on_it() {
    for script in [
        "git checkout -q --detach; echo w > f; git add -A; git commit -qm x",
        "git checkout -q --detach; echo w > f",
        "git checkout -q -b feature; echo w > f; git add -A; git commit -qm x",
        "git checkout -q -b feature; echo w > f",
        "git branch -q -m renamed; echo w > f; git add -A; git commit -qm x",
        "git config status.showUntrackedFiles no; echo w > f",
    ] {
        let world = World::new();
        assert_eq!(world.does(script).leaves(), Vec::<String>::new(), "{script}");
        assert_eq!(world.branches(), of(&[(BRANCH_OF_OURS, "f")]), "{script}");
        assert!(world.is_gone(), "{script}");
    }
}

#[test]
fn uncommitted_work_is_not_committed_to_a_users_branch() {
    let world = World::new();
    world.git(&["branch", "develop"]);
    world.does("git checkout -q develop; echo w > f").leaves();
    assert_eq!(world.branches(), of(&[(BRANCH_OF_OURS, "f")]));
    assert_eq!(world.git(&["rev-parse", "develop"]), world.git(&["rev-parse", "main"]));
}

#[test]
fn diverged_work_is_kept_on_two_branches() {
    let world = World::new();
    world.does(
        "echo 1 > first; git add -A; git commit -qm first; git checkout -q --detach HEAD~1
         echo 2 > second; git add -A; git commit -qm second",
    );
    let former = "steadfast/fix/1-1-former-1";
    let told = format!(
        "the agent left its branch {BRANCH_OF_OURS}, which was moved to its last commit; the former one is on {former}"
    );
    assert_eq!(world.leaves(), [told]);
    assert_eq!(world.branches(), of(&[(BRANCH_OF_OURS, "second"), (former, "first")]));
    assert!(world.is_gone());
}

#[test]
fn a_branch_that_has_all_of_head_stays_where_it_is() {
    let world = World::new();
    world.does("echo 1 > first; git add -A; git commit -qm first; git checkout -q --detach HEAD~1").leaves();
    assert_eq!(world.branches(), of(&[(BRANCH_OF_OURS, "first")]));
}

#[test]
fn an_unrelated_history_keeps_both_histories() {
    let world = World::new();
    world.does(
        "echo 1 > first; git add -A; git commit -qm first; git checkout -q --orphan new; git rm -rqf .; echo 2 > f",
    );
    world.leaves();
    let expected = [(BRANCH_OF_OURS, ".gitignore f part/a.txt"), ("steadfast/fix/1-1-former-1", "first")];
    assert_eq!(world.branches(), of(&expected));
}

#[test]
fn in_the_middle_of_a_rebase_the_worktree_stays_and_everything_is_on_branches() {
    let world = World::new();
    world.does(
        "echo mine > part/a.txt; git commit -qam mine; echo more > more; git add -A; git commit -qm more
         git checkout -q -b other HEAD~2; echo theirs > part/a.txt; git commit -qam theirs
         git checkout -q -; git rebase -q other || true",
    );
    for _ in 0..2 {
        let told = world.leaves();
        let stays = format!("the worktree {} stays: a rebase is in progress", world.worktree.path.display());
        assert_eq!(told.last(), Some(&stays));
    }
    let expected = [(BRANCH_OF_OURS, "part/a.txt"), ("steadfast/fix/1-1-former-1", "more part/a.txt")];
    assert_eq!(world.branches(), of(&expected));
    let home = world.directory.path().join("home");
    let id = AttemptId { stage: 1, iteration: 1, attempt: 1 };
    let kept = kept(&home, "11111111-run", &parallel(), id).unwrap();
    assert_eq!(kept.stays.as_deref(), Some("a rebase is in progress"));
    let clean = || remove_clean(&home, &world.project(), "11111111-run", "fix", false).unwrap();
    assert_eq!(clean(), Vec::<PathBuf>::new());
    world.does("git rebase --quit");
    assert_eq!(clean(), std::slice::from_ref(&world.worktree.path));
    assert!(world.is_gone());
}

#[test]
fn a_merge_that_stopped_at_a_conflict_is_kept_with_both_its_parents() {
    let world = World::new();
    world.does(
        "echo mine > part/a.txt; git commit -qam mine; git checkout -q -b other HEAD~1
         echo theirs > part/a.txt; git commit -qam theirs; git checkout -q -; git merge -q other || true",
    );
    assert_eq!(world.leaves(), Vec::<String>::new());
    assert_eq!(world.git(&["log", "--format=%s", "--first-parent", "main..steadfast/fix/1-1"]), "Work\nmine");
    assert_eq!(world.git(&["rev-parse", "steadfast/fix/1-1^2"]), world.git(&["rev-parse", "other"]));
}

#[test]
fn the_branch_of_a_run_worktree_follows_head_too() {
    let world = World::new();
    world.does("git checkout -q -b feature; echo w > f; git add -A; git commit -qm x; echo v > g");
    assert_eq!(world.worktree.commit("Work").unwrap(), Vec::<String>::new());
    assert_eq!(world.branches(), of(&[(BRANCH_OF_OURS, "f g")]));
    world.does("git symbolic-ref HEAD | grep -qx refs/heads/feature; git checkout -q --detach; echo h > h");
    world.worktree.commit("Work").unwrap();
    assert_eq!(world.branches(), of(&[(BRANCH_OF_OURS, "f g h")]));
}

#[test]
fn a_parallel_worktree_starts_with_the_work_of_its_run() {
    let world = World::new();
    world.does("echo w > f; git add -A; git commit -qm x; echo v > g");
    let home = world.directory.path().join("home");
    let part = |part: &str| Worktree::new(&home, &world.project(), "11111111-run", "fix", part);
    let inside = part("2-1").starting_from(world.worktree.clone()).enter(&Cancel::default()).unwrap();
    assert!(inside.join("f").exists() && inside.join("g").exists());
    // A run without a worktree has no work yet.
    let first = part("2-2").starting_from(part("run")).enter(&Cancel::default()).unwrap();
    assert!(first.join("part").exists() && !first.join("f").exists());
}

#[test]
fn without_its_git_file_nothing_is_committed() {
    let world = World::new();
    // The repository that git would find further up.
    shell(&world.directory.path().join("home"), "git init -q");
    world.does("rm .git; git init -q; echo w > f");
    assert!(matches!(world.worktree.leave("Work"), Err(WorktreeError::Broken(_))));
    world.does("rm -rf .git");
    assert_eq!(world.leaves(), Vec::<String>::new(), "its own was mended");
    assert_eq!(world.branches(), of(&[(BRANCH_OF_OURS, "f")]));
    let world = World::new();
    fs_err::remove_dir_all(&world.worktree.path).unwrap();
    assert!(matches!(world.worktree.leave("Work"), Err(WorktreeError::Broken(_))));
}
