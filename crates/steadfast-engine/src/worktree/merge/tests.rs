//! Merging in real repositories.

use super::*;
use crate::process::LimitedCommand;
use std::time::Duration;

const RUN: &str = "11111111-run";

struct World {
    directory: tempfile::TempDir,
}

impl World {
    /// A repository with a branch for each of these scripts, which all start from `main`.
    fn new(branches: &[(&str, &str)]) -> Self {
        let world = Self { directory: tempfile::tempdir().unwrap() };
        for part in ["project", "home/runs/11111111-run"] {
            fs_err::create_dir_all(world.directory.path().join(part)).unwrap();
        }
        world.does(
            "git init -q -b main; git config user.name T; git config user.email t@example.org
             printf '1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n' > a.txt; git add -A; git commit -q -m first",
        );
        for (branch, script) in branches {
            world.does(&format!("git checkout -q -b {branch} main; {script}; git add -A; git commit -q -m {branch}"));
        }
        world.does("git checkout -q main");
        world
    }

    fn project(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    #[track_caller]
    fn does(&self, script: &str) -> &Self {
        let outcome =
            LimitedCommand::shell(&format!("set -e; {script}"), &self.project(), Duration::from_mins(1)).run().unwrap();
        assert_eq!(outcome.exit_code, Some(0), "{}", outcome.output_tail);
        self
    }

    fn git(&self, arguments: &[&str]) -> String {
        Git::reading(&self.project()).text(arguments).unwrap()
    }

    fn merge(&self) -> Merge {
        Merge::new(&self.directory.path().join("home"), RUN, 3, None)
    }

    fn begin(&self, branches: &[&str]) -> Result<Merged, WorktreeError> {
        let branches: Vec<String> = branches.iter().map(|branch| (*branch).to_owned()).collect();
        self.merge().begin(&self.project(), &branches, &Cancel::default())
    }

    fn not_done(&self) -> Option<String> {
        self.merge().not_done(&self.project()).unwrap()
    }

    fn text(&self, file: &str) -> String {
        fs_err::read_to_string(self.project().join(file)).unwrap()
    }

    fn merges(&self) -> Vec<String> {
        self.git(&["log", "--merges", "--first-parent", "--reverse", "--format=%s"])
            .lines()
            .map(str::to_owned)
            .collect()
    }

    fn has_record(&self) -> bool {
        self.merge().record.exists()
    }
}

fn conflict(branch: &str) -> Merged {
    Merged::Conflict { branch: branch.into(), files: vec!["a.txt".into()] }
}

const TWO: [(&str, &str); 2] =
    [("one", "sed -i s/^1/one/ a.txt"), ("two", "sed -i s/^9/nine/ a.txt; echo new > b.txt")];
const AT_ODDS: [(&str, &str); 2] = [("one", "sed -i s/^5/one/ a.txt"), ("two", "sed -i s/^5/two/ a.txt")];

#[test]
fn branches_are_merged_once_however_often_it_is_repeated() {
    let world = World::new(&TWO);
    for _ in 0..2 {
        assert_eq!(world.begin(&["one", "two"]).unwrap(), Merged::All);
        assert_eq!(world.merges(), ["Merge branch 'one'", "Merge branch 'two'"]);
        assert_eq!(
            (world.text("a.txt").as_str(), world.text("b.txt").as_str()),
            ("one\n2\n3\n4\n5\n6\n7\n8\nnine\n", "new\n")
        );
        assert!(!world.has_record());
    }
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    let all = ["one".to_owned(), "two".to_owned()];
    assert_eq!(not_merged(&world.project(), &all).unwrap(), Vec::<String>::new());
    world.does("git checkout -q -b other main~1");
    assert_eq!(not_merged(&world.project(), &all).unwrap(), ["two"]);
    assert!(not_merged(&world.project(), &["none".to_owned()]).is_err());
    assert!(world.begin(&["none"]).is_err());
}

#[test]
fn a_conflict_is_handed_over_and_done_only_when_it_is_committed() {
    let world = World::new(&AT_ODDS);
    for _ in 0..2 {
        assert_eq!(world.begin(&["one", "two"]).unwrap(), conflict("two"));
        assert_eq!(world.not_done().unwrap(), "conflicts are not resolved: a.txt");
    }
    world.does("git add a.txt");
    assert_eq!(world.not_done().unwrap(), "the merge of two is not committed");
    assert_eq!(world.begin(&["one", "two"]).unwrap(), conflict("two"), "the next attempt continues");
    world.does("git commit -q --no-edit");
    assert_eq!(world.not_done().unwrap(), "conflict markers are left in a.txt");
    world.does("sed -i -e '/^[<>=|]/d' a.txt; git commit -q -a --amend --no-edit");
    assert_eq!(world.not_done(), None);
    assert_eq!(world.begin(&["one", "two"]).unwrap(), Merged::All);
    assert_eq!(world.merges(), ["Merge branch 'one'", "Merge branch 'two'"]);
}

#[test]
fn an_agent_that_aborts_the_merge_has_not_done_it() {
    let world = World::new(&AT_ODDS);
    assert_eq!(world.begin(&["one", "two"]).unwrap(), conflict("two"));
    world.does("git merge --abort");
    assert_eq!(world.not_done().unwrap(), "two is not merged");
    assert_eq!(world.begin(&["one", "two"]).unwrap(), conflict("two"));
}

#[test]
fn a_merge_that_is_given_up_leaves_the_files_as_before() {
    let world = World::new(&AT_ODDS);
    assert_eq!(world.begin(&["one", "two"]).unwrap(), conflict("two"));
    assert_eq!(world.merge().abort().unwrap(), Some(("two".to_owned(), world.project())));
    assert_eq!((world.git(&["status", "--porcelain"]).as_str(), world.has_record()), ("", false));
    assert_eq!(world.text("a.txt"), "1\n2\n3\n4\none\n6\n7\n8\n9\n");
    assert_eq!(world.merge().abort().unwrap(), None);
    // The user's own merge is left alone.
    world.does("git merge two || true");
    assert_eq!(world.merge().abort().unwrap(), None);
    assert!(matches!(world.begin(&["one", "two"]), Err(WorktreeError::OtherMerge(_))));
    assert!(world.text("a.txt").contains("<<<<<<<"));
}

#[test]
fn uncommitted_changes_are_not_touched() {
    let world = World::new(&TWO);
    world.does(
        "mkdir -p .claude/pipeline-runs; echo {} > .claude/pipeline-runs/s; git add -f .claude; git commit -qm s",
    );
    world.does("echo changed > .claude/pipeline-runs/s; echo mine >> a.txt; echo mine > b.txt");
    let refused = world.begin(&["one", "two"]).unwrap_err().to_string();
    assert!(refused.ends_with("have changes that are not committed: a.txt"), "{refused}");
    assert!(world.text("a.txt").ends_with("mine\n"));
    world.does("git checkout -q a.txt");
    // A file that git does not know would be overwritten.
    let refused = world.begin(&["two"]).unwrap_err().to_string();
    assert!(refused.starts_with("git merge failed: error: The following untracked"), "{refused}");
    assert_eq!((world.text("b.txt").as_str(), world.has_record()), ("mine\n", false));
}

#[test]
fn files_that_a_killed_git_wrote_are_taken_back_and_others_are_not() {
    let world = World::new(&TWO);
    let record = || MergeRecord {
        directory: world.project(),
        branch: "two".into(),
        before: world.git(&["rev-parse", "main"]),
        tip: world.git(&["rev-parse", "two"]),
        files: Vec::new(),
    };
    // The one is whole, the other cut off.
    world.does("sed -i s/^9/nine/ a.txt; printf ne > b.txt");
    world.merge().save(&record()).unwrap();
    assert_eq!(world.begin(&["two"]).unwrap(), Merged::All);
    assert_eq!((world.text("b.txt").as_str(), world.merges().len()), ("new\n", 1));

    let world = World::new(&TWO);
    let record = MergeRecord { directory: world.project(), before: world.git(&["rev-parse", "main"]), ..record() };
    let record = MergeRecord { tip: world.git(&["rev-parse", "two"]), ..record };
    world.does("echo mine >> a.txt");
    world.merge().save(&record).unwrap();
    assert!(matches!(world.begin(&["two"]), Err(WorktreeError::Uncommitted { .. })));
    assert!(world.text("a.txt").ends_with("mine\n"));
}

#[test]
fn a_lock_that_a_killed_git_left_is_removed_and_an_older_one_is_not() {
    let world = World::new(&TWO);
    let lock = world.project().join(".git/index.lock");
    let record = MergeRecord {
        directory: world.project(),
        branch: "two".into(),
        before: world.git(&["rev-parse", "main"]),
        tip: world.git(&["rev-parse", "two"]),
        files: Vec::new(),
    };
    fs_err::write(&lock, "").unwrap();
    let file = std::fs::File::options().write(true).open(&lock).unwrap();
    file.set_modified(file.metadata().unwrap().modified().unwrap() - Duration::from_mins(1)).unwrap();
    world.merge().save(&record).unwrap();
    world.begin(&["two"]).unwrap_err();
    assert!(lock.exists(), "it was there before the merge began");
    world.merge().save(&record).unwrap();
    fs_err::write(&lock, "").unwrap();
    assert_eq!(world.begin(&["two"]).unwrap(), Merged::All);
}

#[test]
fn a_merge_without_conflicts_that_was_not_committed_is_finished() {
    let world = World::new(&TWO);
    world.does("git merge -q --no-ff --no-commit two");
    let record = MergeRecord {
        directory: world.project(),
        branch: "two".into(),
        before: world.git(&["rev-parse", "main"]),
        tip: world.git(&["rev-parse", "two"]),
        files: Vec::new(),
    };
    world.merge().save(&record).unwrap();
    assert_eq!(world.begin(&["one", "two"]).unwrap(), Merged::All);
    assert_eq!(world.merges(), ["Merge branch 'two'", "Merge branch 'one'"]);
}
