//! Home and store are for their user alone: what is open is closed, what belongs to another user is refused.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::env::Env;

const START: &str = "SessionStart";
/// `nobody` on every system.
const OTHER: u32 = 65_534;

fn set(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

fn log(env: &Env) -> String {
    std::fs::read_to_string(env.home().join("log/hooks.log")).unwrap_or_default()
}

/// Whether files can be given to another user; says so if not.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        crate::outages::skipped("only root can give files to another user");
    }
    is_root
}

fn give(path: &Path, user: u32) {
    std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
}

#[test]
fn an_open_home_and_store_are_closed_by_commands_and_hooks_and_logged() {
    let env = Env::new();
    env.start(&["x"]);
    let open = || {
        set(&env.home(), 0o777);
        set(&env.store(), 0o666);
    };
    let is_closed = || (mode(&env.home()), mode(&env.store())) == (0o700, 0o600);
    open();
    env.goal(&["status"]).succeeds();
    assert!(is_closed());
    let said = log(&env);
    assert_eq!(said.matches("closed to other users").count(), 1, "{said}");
    assert!(said.contains("(mode 0777)") && said.contains("goals.db (mode 0666)"), "{said}");

    open();
    env.hook("s1", &json!({"hook_event_name": "UserPromptSubmit", "prompt": "hello"}));
    assert!(is_closed());
    assert_eq!(env.status()["status"], "active");

    open();
    let doctor = env.run(&["doctor", "--json"]).json();
    let check = doctor["checks"].as_array().unwrap().iter().find(|check| check["id"] == "permissions").unwrap().clone();
    assert!(is_closed() && check["status"] == "ok", "{check}");
    assert!(check["detail"].as_str().unwrap().starts_with("repaired: closed to other users: "), "{check}");
    assert!(env.run(&["doctor"]).stdout.contains("for your user alone"));
    let log_check = doctor["checks"].as_array().unwrap().iter().find(|check| check["id"] == "log").unwrap();
    assert_eq!(log_check["status"], "ok", "a repair is no error: {log_check}");
    // With a closed home, an open store alone is closed, too.
    set(&env.store(), 0o644);
    env.goal(&["status"]).succeeds();
    assert!(is_closed());
}

#[test]
fn a_directory_with_other_uses_keeps_its_mode_and_doctor_says_so() {
    let env = Env::new();
    std::fs::create_dir_all(env.home()).unwrap();
    std::fs::write(env.home().join("letter.txt"), "").unwrap();
    set(&env.home(), 0o755);
    let doctor = env.run(&["doctor"]);
    assert!(doctor.stdout.contains("other users can use") && mode(&env.home()) == 0o755, "{doctor:?}");
    set(&env.home(), 0o777);
    env.run(&["goal", "status", "--session", "s1"]).fails_with(4, "other users can write to");
}

#[test]
fn a_linked_home_and_store_are_judged_by_what_they_lead_to() {
    let env = Env::new();
    env.start(&["x"]);
    let (real_home, real_store) = (env.path("real-home"), env.path("elsewhere.db"));
    std::fs::rename(env.home(), &real_home).unwrap();
    symlink(&real_home, env.home()).unwrap();
    std::fs::rename(real_home.join("goals.db"), &real_store).unwrap();
    symlink(&real_store, real_home.join("goals.db")).unwrap();
    set(&real_home, 0o755);
    set(&real_store, 0o664);
    assert_eq!(env.status()["objective"], "x");
    assert_eq!((mode(&real_home), mode(&real_store)), (0o700, 0o600));
    if is_root() {
        give(&real_store, OTHER);
        env.goal(&["status"]).fails_with(4, "goals.db` belongs to another user (uid 65534)");
    }
}

#[test]
fn a_home_of_another_user_is_refused_with_a_message() {
    let env = Env::new();
    env.start(&["x"]);
    if !is_root() {
        return;
    }
    give(&env.home(), OTHER);
    let before = log(&env);
    for verb in [&["goal", "status", "--session", "s1"][..], &["doctor"], &["goal", "start", "y", "--session", "s2"]] {
        env.run(verb).fails_with(4, "belongs to another user (uid 65534)");
    }
    let reply = env.hook("s1", &json!({"hook_event_name": START, "source": "startup"}));
    let said = reply["systemMessage"].as_str().unwrap();
    assert!(said.contains("belongs to another user") && said.contains("STEADFAST_HOME"), "{reply}");
    env.hook("s1", &json!({"hook_event_name": "PostToolBatch", "tool_calls": []}));
    assert_eq!(log(&env), before, "nothing is written there");
    give(&env.home(), 0);
    assert_eq!(env.status()["status"], "active");
}

#[test]
fn what_another_user_put_into_an_open_home_is_refused() {
    let env = Env::new();
    env.start(&["x"]);
    if !is_root() {
        return;
    }
    let config = env.home().join("config.toml");
    std::fs::write(&config, "[notify]\ncommand = ['touch', '/tmp/never']\n").unwrap();
    give(&config, OTHER);
    set(&env.home(), 0o777);
    for _ in 0..2 {
        env.goal(&["status"]).fails_with(4, "config.toml` belongs to another user");
        assert_eq!(mode(&env.home()), 0o777, "it stays refused");
    }
    std::fs::remove_file(&config).unwrap();
    env.goal(&["status"]).succeeds();
    assert_eq!(mode(&env.home()), 0o700);
}

#[test]
fn another_user_reads_nothing_after_the_repair() {
    let env = Env::new();
    env.start(&["x"]);
    if !is_root() {
        return;
    }
    set(env.home().parent().unwrap(), 0o755);
    set(&env.home(), 0o777);
    set(&env.store(), 0o666);
    let other_reads = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "cat"]).arg(env.store());
        command.output().unwrap().status.success()
    };
    assert!(other_reads(), "the test can see the difference");
    env.goal(&["status"]).succeeds();
    assert!(!other_reads());
}
