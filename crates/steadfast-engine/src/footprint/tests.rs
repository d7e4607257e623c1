use std::process::Command;

use super::*;

#[test]
fn a_footprint_changes_with_answer_files_and_progress_only() {
    let directory = tempfile::tempdir().unwrap();
    let progress = directory.path().join(".claude/loop-progress/progress-x.txt");
    fs_err::create_dir_all(progress.parent().unwrap()).unwrap();
    fs_err::create_dir_all(directory.path().join("target")).unwrap();
    fs_err::write(directory.path().join("a.txt"), "one").unwrap();
    let tree = ProgressTree { directory: directory.path(), progress: Some(&progress), before: None };
    let of = |answer: &str, summary: Option<&str>, tree: &ProgressTree<'_>| of(answer, summary, &of_tree(tree));
    let first = of("Done in 3 steps", None, &tree);
    assert_eq!(of("done  in 14 steps", None, &tree), first);
    fs_err::write(directory.path().join(".claude/loop-state-x.json"), "{}").unwrap();
    fs_err::write(directory.path().join("target/out"), "built").unwrap();
    assert_eq!(of("Done in 3 steps", None, &tree), first);

    let mut seen = vec![first];
    seen.push(of("Something else", None, &tree));
    seen.push(of("Done in 3 steps", Some("a summary"), &tree));
    fs_err::write(&progress, "- learned something").unwrap();
    seen.push(of("Done in 3 steps", None, &tree));
    fs_err::write(directory.path().join("a.txt"), "three").unwrap();
    seen.push(of("Done in 3 steps", None, &tree));
    let different: std::collections::BTreeSet<&String> = seen.iter().collect();
    assert_eq!(different.len(), seen.len(), "{seen:?}");
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    for name in steadfast_system::env_vars::OF_ONE_REPOSITORY {
        command.env_remove(name);
    }
    let settings = ["-c", "user.name=T", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"];
    let output = command.args(settings).args(arguments).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository with a file in a directory, and an ignored file.
fn repository(root: &Path) -> PathBuf {
    let directory = root.join("first");
    fs_err::create_dir_all(directory.join("src")).unwrap();
    git(&directory, &["init", "-q", "-b", "main", "."]);
    for (name, content) in [("src/a.rs", "fn a() {}\n"), ("b.txt", "b\n"), (".gitignore", "*.log\n")] {
        fs_err::write(directory.join(name), content).unwrap();
    }
    git(&directory, &["add", "-A"]);
    git(&directory, &["commit", "-qm", "one"]);
    directory
}

fn print(directory: &Path) -> String {
    of_tree(&ProgressTree { directory, progress: None, before: None })
}

#[test]
fn equal_content_is_equal_in_every_clone() {
    let root = tempfile::tempdir().unwrap();
    let first = repository(root.path());
    git(root.path(), &["clone", "-q", "first", "second"]);
    let second = root.path().join("second");
    assert_eq!(print(&first), print(&second));
    for directory in [&first, &second] {
        fs_err::write(directory.join("new.txt"), "new").unwrap();
    }
    assert_eq!(print(&first), print(&second), "with a file that is not tracked");
    fs_err::write(second.join("new.txt"), "nex").unwrap();
    assert_ne!(print(&first), print(&second));
}

#[test]
fn only_content_counts_and_not_its_history_or_times() {
    let root = tempfile::tempdir().unwrap();
    let directory = repository(root.path());
    let first = print(&directory);
    let written = fs_err::metadata(directory.join("b.txt")).unwrap().modified().unwrap();
    let later = written + Duration::from_secs(100);
    let touched = fs_err::OpenOptions::new().write(true).open(directory.join("b.txt")).unwrap();
    touched.file().set_modified(later).unwrap();
    assert_eq!(print(&directory), first, "touched");
    git(&directory, &["commit", "-q", "--allow-empty", "-m", "nothing"]);
    assert_eq!(print(&directory), first, "committed without a change");
    fs_err::write(directory.join("x.log"), "ignored").unwrap();
    fs_err::create_dir_all(directory.join(".claude/loop-progress")).unwrap();
    fs_err::write(directory.join(".claude/loop-progress/progress-x.txt"), "ours").unwrap();
    fs_err::create_dir_all(directory.join("src/node_modules/m")).unwrap();
    fs_err::write(directory.join("src/node_modules/m/i.js"), "of a tool").unwrap();
    assert_eq!(print(&directory), first, "ignored, ours, of a tool");
    git(&directory, &["add", "-f", ".claude"]);
    git(&directory, &["commit", "-qm", "ours"]);
    assert_eq!(print(&directory), first, "our files, tracked");

    fs_err::write(directory.join("b.txt"), "c\n").unwrap();
    let changed = print(&directory);
    assert_ne!(changed, first, "one byte");
    git(&directory, &["add", "-A"]);
    assert_eq!(print(&directory), changed, "staged");
    git(&directory, &["commit", "-qm", "two"]);
    assert_eq!(print(&directory), changed, "committed");
    assert_eq!(print(&directory.join("src")), changed, "from a directory inside");
    fs_err::remove_file(directory.join("src/a.rs")).unwrap();
    assert_ne!(print(&directory), changed, "removed");
}

#[test]
fn taking_a_footprint_changes_nothing_in_the_repository() {
    let root = tempfile::tempdir().unwrap();
    let directory = repository(root.path());
    fs_err::write(directory.join("b.txt"), "changed\n").unwrap();
    fs_err::write(directory.join("new.txt"), "new").unwrap();
    let state = || (git(&directory, &["status", "--porcelain"]), git(&directory, &["count-objects", "-v"]));
    let before = state();
    let index = fs_err::read(directory.join(".git/index")).unwrap();
    print(&directory);
    assert_eq!(fs_err::read(directory.join(".git/index")).unwrap(), index);
    assert_eq!(state(), before);
}

/// Git trusts the size and time of a file that it read a while ago. A change in the same moment must be seen too.
#[test]
fn a_change_of_equal_length_right_after_a_commit_is_seen() {
    let root = tempfile::tempdir().unwrap();
    let directory = repository(root.path());
    for round in 0..5 {
        fs_err::write(directory.join("b.txt"), format!("{round}\n")).unwrap();
        git(&directory, &["commit", "-qam", "again"]);
        let before = print(&directory);
        fs_err::write(directory.join("b.txt"), format!("{}\n", round + 1)).unwrap();
        assert_ne!(print(&directory), before, "round {round}");
    }
}
