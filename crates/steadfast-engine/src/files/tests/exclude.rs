//! The exclude file of real repositories.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::exclude::{Lines, has_state_files, matches, stop_excluding};
use super::super::ignore::{GitGuard, stop_ignoring};
use super::super::restored::is_restored;

fn git(directory: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"];
    let output = Command::new("git").current_dir(directory).args(identity).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn repository() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join("repository");
    fs_err::create_dir(&path).unwrap();
    git(&path, &["init", "-q", "-b", "main"]);
    git(&path, &["commit", "-q", "--allow-empty", "-m", "first"]);
    (directory, path)
}

fn exclude(project: &Path) -> Vec<String> {
    GitGuard::of(project).look()
}

/// Creates all our files, and others that people commit.
fn fill(project: &Path) {
    let ours = [
        "loop-sessions.json",
        "loop-sessions.json.broken-1",
        "loop-state-a.json",
        "loop-state-a.json.previous-2",
        "loop-completions.json",
        "loop-progress/progress-a.txt",
        "pipeline-runs/a/stage-1-a/output.md",
        "pipeline-runs/a.previous-1/state.json",
        ".steadfast.lock",
        ".steadfast-loop-a.lock",
        ".steadfast-abc.tmp",
    ];
    for name in ours.into_iter().chain(["settings.json", "loops/a/loop.yaml", "loop-notes.md", "pipelines/p.yaml"]) {
        let path = project.join(".claude").join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, "x").unwrap();
    }
}

fn seen(project: &Path) -> Vec<String> {
    let names = git(project, &["ls-files", "-o", "--exclude-standard", "."]);
    names.lines().map(str::to_owned).collect()
}

const THEIRS: [&str; 4] =
    [".claude/loop-notes.md", ".claude/loops/a/loop.yaml", ".claude/pipelines/p.yaml", ".claude/settings.json"];

#[test]
fn only_our_own_files_are_excluded_and_the_rest_of_the_file_stays() {
    for before in ["", "# mine\n*.log", "\u{feff}*.log\r\n!x.log\r\n\n"] {
        let (_directory, project) = repository();
        let file = project.join(".git/info/exclude");
        let _ = fs_err::create_dir(file.parent().unwrap());
        fs_err::write(&file, before).unwrap();
        fill(&project);
        fs_err::write(project.join("a.log"), "").unwrap();
        assert_eq!(exclude(&project), Vec::<String>::new());
        assert_eq!(exclude(&project), Vec::<String>::new());
        let ignored = if before.is_empty() { &["a.log"][..] } else { &[] };
        assert_eq!(seen(&project), [&THEIRS[..], ignored].concat(), "{before:?}");
        assert!(has_state_files(&project));
        let text = fs_err::read_to_string(&file).unwrap();
        assert_eq!(text.matches("# steadfast: end").count(), 1);
        assert_eq!(stop_excluding(&project, true).unwrap(), Some(file.clone()));
        assert_eq!(fs_err::read_to_string(&file).unwrap(), text);
        assert_eq!(stop_excluding(&project, false).unwrap(), Some(file.clone()));
        assert_eq!(fs_err::read_to_string(&file).unwrap_or_default(), before);
        assert_eq!(stop_excluding(&project, false).unwrap(), None);
        assert_eq!(fs_err::read_dir(file.parent().unwrap()).unwrap().count(), usize::from(!before.is_empty()));
    }
}

#[test]
fn projects_in_subdirectories_worktrees_and_submodules_are_excluded_too() {
    let (directory, repository) = repository();
    let odd = repository.join("sub/o[d]d * \\ name");
    fs_err::create_dir_all(&odd).unwrap();
    let worktree = directory.path().canonicalize().unwrap().join("worktree");
    git(&repository, &["worktree", "add", "-q", worktree.to_str().unwrap()]);
    let parent = directory.path().canonicalize().unwrap().join("parent");
    fs_err::create_dir(&parent).unwrap();
    git(&parent, &["init", "-q"]);
    git(&parent, &["submodule", "--quiet", "add", repository.to_str().unwrap(), "module"]);
    for project in [&odd, &worktree, &parent.join("module")] {
        fill(project);
        assert_eq!(exclude(project), Vec::<String>::new());
        assert_eq!(seen(project), THEIRS, "{}", project.display());
    }
    assert!(worktree.join(".git").is_file());
    assert!(has_state_files(&repository), "its worktree has some");
    // Each project removes its own lines.
    stop_excluding(&worktree, false).unwrap();
    assert_eq!((seen(&odd).len(), seen(&worktree).len()), (4, 15));
    stop_excluding(&odd, false).unwrap();
    assert_eq!(seen(&odd).len(), 15);
}

#[test]
fn an_exclude_file_that_cannot_be_written_is_a_note() {
    type Break = fn(&Path, &Path);
    let ways: [(&str, Break); 5] = [
        ("is a link", |git, out| {
            let _ = fs_err::remove_file(git.join("info/exclude"));
            fs_err::create_dir_all(git.join("info")).unwrap();
            std::os::unix::fs::symlink(out.join("file"), git.join("info/exclude")).unwrap();
        }),
        ("is a link", |git, out| {
            let _ = fs_err::remove_dir_all(git.join("info"));
            std::os::unix::fs::symlink(out, git.join("info")).unwrap();
        }),
        ("is a link", |git, out| {
            fs_err::rename(git, out.join("git")).unwrap();
            std::os::unix::fs::symlink(out.join("git"), git).unwrap();
        }),
        ("too large", |git, _| {
            fs_err::create_dir_all(git.join("info")).unwrap();
            fs_err::write(git.join("info/exclude"), "x\n".repeat(600_000)).unwrap();
        }),
        ("not a", |git, _| {
            let _ = fs_err::remove_file(git.join("info/exclude"));
            fs_err::create_dir_all(git.join("info/exclude")).unwrap();
        }),
    ];
    for (why, damage) in ways {
        let (_directory, project) = repository();
        let out = tempfile::tempdir().unwrap();
        damage(&project.join(".git"), out.path());
        let notes = exclude(&project);
        assert!(notes.len() == 1 && notes[0].contains(why), "{why}: {notes:?}");
        assert!(!out.path().join("file").exists() && !out.path().join("exclude").exists());
    }
}

#[test]
fn where_there_is_no_repository_an_ignore_file_of_ours_waits_for_one() {
    let outside = tempfile::tempdir().unwrap();
    let project = outside.path().canonicalize().unwrap();
    let mut guard = GitGuard::of(&project);
    assert_eq!(guard.look(), Vec::<String>::new());
    fill(&project);
    git(&project, &["init", "-q"]);
    assert_eq!(seen(&project), THEIRS, "before the engine looked again");
    let [ours, exclude] = [".claude/.gitignore", ".git/info/exclude"].map(|name| project.join(name));
    assert_eq!(guard.look(), Vec::<String>::new());
    assert!(fs_err::read_to_string(&exclude).unwrap().contains("/.claude/loop-progress/"));

    // What a person adds to our file stays.
    let text = fs_err::read_to_string(&ours).unwrap();
    fs_err::write(&ours, format!("{text}*.log\n")).unwrap();
    assert_eq!(stop_ignoring(&project, true).unwrap(), Some(ours.clone()));
    assert_eq!(stop_ignoring(&project, false).unwrap(), Some(ours.clone()));
    assert_eq!(fs_err::read_to_string(&ours).unwrap(), "*.log\n");
    assert_eq!(stop_ignoring(&project, false).unwrap(), None);
    assert_eq!(seen(&project).len(), 1 + THEIRS.len());
    assert_eq!(stop_ignoring(&project.join("nowhere"), false).unwrap(), None);
}

#[test]
fn a_look_writes_again_what_is_gone_and_else_starts_no_git() {
    let (_directory, project) = repository();
    let file = project.join(".git/info/exclude");
    let mut guard = GitGuard::of(&project);
    for _ in 0..3 {
        guard.look();
    }
    // Tracked files would be a note, if git were asked.
    fill(&project);
    git(&project, &["add", "-f", ".claude/loop-sessions.json"]);
    assert_eq!(guard.look(), Vec::<String>::new());
    fs_err::remove_file(&file).unwrap();
    assert_eq!(guard.look().len(), 1);
    assert!(fs_err::read_to_string(&file).unwrap().contains("/.claude/loop-progress/"));
    // A repository that begins anew.
    fs_err::remove_dir_all(project.join(".git")).unwrap();
    guard.look();
    git(&project, &["init", "-q"]);
    guard.look();
    assert!(fs_err::read_to_string(&file).unwrap().contains("/.claude/loop-progress/"));
    assert_eq!(seen(&project), THEIRS);
}

#[test]
fn files_that_git_tracks_are_named_with_the_command_that_helps() {
    let (_directory, project) = repository();
    fill(&project);
    git(&project, &["add", "-f", ".claude/loop-state-a.json", ".claude/pipeline-runs", ".claude/settings.json"]);
    git(&project, &["commit", "-q", "-m", "state"]);
    let notes = exclude(&project);
    let command = "git rm -r --cached -- '.claude/loop-state-*.json' '.claude/pipeline-runs/'";
    assert!(notes.len() == 1 && notes[0].ends_with(command), "{notes:?}");
    let done = Command::new("sh").current_dir(&project).args(["-c", command]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(git(&project, &["ls-files"]), ".claude/settings.json\n");
    assert_eq!(exclude(&project), Vec::<String>::new());
}

#[test]
fn a_file_that_git_put_back_is_told_from_one_that_was_edited() {
    let (_directory, project) = repository();
    fill(&project);
    let file = project.join(".claude/loop-sessions.json");
    assert!(!is_restored(&project, &file), "git does not know it");
    git(&project, &["add", "-f", ".claude"]);
    git(&project, &["commit", "-q", "-m", "state"]);
    fs_err::write(&file, "edited").unwrap();
    assert!(!is_restored(&project, &file));
    git(&project, &["reset", "-q", "--hard"]);
    assert!(is_restored(&project, &file));
    fs_err::remove_file(&file).unwrap();
    assert!(!is_restored(&project, &file));
}

#[test]
fn lines_of_people_between_the_markers_stay() {
    let text = Lines::below(b"").added(b"mine");
    let text =
        String::from_utf8(text).unwrap().replace("/.claude/loop-progress/\n", "/.claude/loop-progress/\nyours\n");
    assert_eq!(Lines::below(b"").removed(text.as_bytes()), b"yours\nmine");
    // The end is gone.
    let text = text.replace("# steadfast: end of /\n", "");
    assert_eq!(Lines::below(b"").removed(text.as_bytes()), b"yours\nmine");
    assert!(matches("loop-state-*.json.*-*", "loop-state-x.json.previous-1"));
    assert!(!matches("loop-state-*.json", "loop-state-x.json.previous-1"));
    assert!(!matches("loop-progress/", "loop-progress.md"));
}
