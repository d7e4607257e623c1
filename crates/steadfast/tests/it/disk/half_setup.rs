//! A setup or uninstall that does only a part says so, killed ones leave nothing for ever, and racing ones take turns.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use crate::env::{Env, finish};
use crate::setup::tree;

fn codex(env: &Env) -> PathBuf {
    let directory = env.path("user/.codex");
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

fn set_up(env: &Env) {
    env.run(&["setup", "claude", "--yes"]).succeeds();
    env.run(&["setup", "codex", "--yes"]).succeeds();
}

#[test]
fn half_of_an_uninstall_is_told_as_half() {
    let env = Env::new();
    let config = codex(&env).join("config.toml");
    std::fs::write(&config, "model = \"x\"\n").unwrap();
    let before = tree(&env.path("user"));
    set_up(&env);
    let set_up = std::fs::read(&config).unwrap();
    std::fs::write(&config, "model = ").unwrap();
    let half = env.run(&["setup", "--uninstall"]);
    half.fails_with(4, "removed steadfast from Claude Code (");
    for part in ["but not from Codex: ", "config.toml", "not valid TOML", "`steadfast setup codex --uninstall`"] {
        assert!(half.stderr.contains(part), "{part} in {half:?}");
    }
    assert!(!half.stderr.contains("nothing was changed"), "{half:?}");
    assert!(!env.claude_config().join("commands/goal-start.md").exists());
    std::fs::write(&config, set_up).unwrap();
    env.run(&["setup", "codex", "--uninstall"]).succeeds();
    assert_eq!(tree(&env.path("user")), before);
    assert!(!env.home().exists());
}

#[test]
fn a_part_that_failed_is_told_beside_what_was_done() {
    let env = Env::new();
    let (whole, broken) = (env.path("whole"), env.path("broken"));
    std::fs::create_dir_all(&broken).unwrap();
    std::fs::write(broken.join("settings.json"), "{").unwrap();
    let both = format!("{},{}", whole.display(), broken.display());
    let half = finish(env.command(&["setup", "claude", "--yes"]).env("CLAUDE_CONFIG_DIR", both), b"");
    half.fails_with(4, "set up Claude Code (");
    assert!(
        half.stderr.contains("broken/settings.json") && half.stderr.contains("`steadfast setup claude`"),
        "{half:?}"
    );
    assert!(whole.join("commands/goal-start.md").exists());
    let none = finish(env.command(&["setup", "claude"]).env("CLAUDE_CONFIG_DIR", &broken), b"");
    assert!(none.code == 4 && none.stderr.contains("nothing was changed"), "{none:?}");
}

fn strays(env: &Env) -> Vec<PathBuf> {
    let all = [tree(&env.path("user")), if env.home().exists() { tree(&env.home()) } else { tree(&env.project()) }];
    let is_stray = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(".steadfast-");
    all.into_iter().flat_map(std::collections::BTreeMap::into_keys).filter(is_stray).collect()
}

fn age(path: &Path) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_hours(2)).unwrap();
}

#[test]
fn what_a_killed_setup_left_is_removed_by_the_next_one_or_by_doctor() {
    let env = Env::new();
    let codex = codex(&env);
    set_up(&env);
    let left = [
        env.claude_config().join(".steadfast-aB3xY9.tmp"),
        env.claude_config().join("commands/.steadfast-aB3xY9.tmp"),
        codex.join(".steadfast-0cDeF1.tmp"),
        env.home().join("claude/plugin/hooks/.steadfast-aB3xY9.tmp"),
        env.home().join(".steadfast-backupaB3xY9"),
    ];
    let own = env.claude_config().join(".steadfast-notes.tmp");
    let young = codex.join(".steadfast-Young1.tmp");
    for verb in [&["doctor"][..], &["setup", "codex", "--yes"], &["setup", "--uninstall"]] {
        for path in left.iter().chain([&own]) {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
            age(path);
        }
        std::fs::write(&young, "").unwrap();
        let output = env.run(verb);
        let found = strays(&env);
        // A setup knows that no other one is about to write; doctor does not.
        let is_doctor = verb[0] == "doctor";
        assert_eq!(found.len(), if is_doctor { 2 } else { 1 }, "{verb:?}: {found:?} {output:?}");
        assert!(own.exists() && young.exists() == is_doctor);
        assert!(!is_doctor || output.stdout.contains("unfinished_files"), "{output:?}");
    }
}

#[test]
fn kills_at_any_moment_leave_files_that_the_next_uninstall_removes() {
    let env = Env::new();
    codex(&env);
    let before = tree(&env.path("user"));
    for delay in 0..12 {
        let mut child =
            env.command(&["setup", "claude", "--yes"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay * 4));
        let _ = child.kill();
        child.wait().unwrap();
    }
    for path in strays(&env) {
        age(&path);
    }
    set_up(&env);
    env.run(&["setup", "--uninstall"]).succeeds();
    assert_eq!(strays(&env), Vec::<PathBuf>::new());
    assert_eq!(tree(&env.path("user")), before);
}

#[test]
fn a_setup_waits_for_another_one() {
    let env = Env::new();
    let before = tree(&env.path("user"));
    // What setups lock: the directory above their home.
    let other = std::fs::File::open(env.home().parent().unwrap()).unwrap();
    other.lock().unwrap();
    let mut setup =
        env.command(&["setup", "claude", "--yes"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Long enough for a whole setup.
    std::thread::sleep(Duration::from_secs(2));
    assert!(setup.try_wait().unwrap().is_none() && tree(&env.path("user")) == before);
    drop(other);
    assert!(setup.wait().unwrap().success());
    assert!(env.claude_config().join("commands/goal-start.md").exists());
}

#[test]
fn racing_setups_and_uninstalls_take_turns() {
    let env = Env::new();
    codex(&env);
    let before = tree(&env.path("user"));
    for round in 0..3 {
        let start =
            |arguments: &[&str]| env.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let children: Vec<_> =
            (0..3).flat_map(|_| [start(&["setup", "claude", "--yes"]), start(&["setup", "--uninstall"])]).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "round {round}: {output:?}");
        }
        env.run(&["setup", "--uninstall"]).succeeds();
        assert_eq!(tree(&env.path("user")), before, "round {round}");
    }
}
