//! `setup codex` and its uninstall, which restores files byte for byte; `doctor` about trust.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::env::{Env, finish};
use crate::setup::tree;

const CONFIG: &str = "# mine\nmodel = \"gpt-6.1\"\n\n[mcp_servers.other]\ncommand = \"x\" # theirs\n# end";

fn codex(env: &Env) -> PathBuf {
    let directory = env.path("user/.codex");
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

fn check(env: &Env, id: &str) -> Value {
    let doctor = env.run(&["doctor", "--json"]).json();
    doctor["checks"].as_array().unwrap().iter().find(|check| check["id"] == id).cloned().unwrap_or(Value::Null)
}

#[test]
fn setup_merges_reports_the_trust_question_and_uninstalls_exactly() {
    let env = Env::new();
    let codex = codex(&env);
    std::fs::write(codex.join("config.toml"), CONFIG).unwrap();
    let hooks = "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}]}}";
    std::fs::write(codex.join("hooks.json"), hooks).unwrap();
    let before = tree(&env.path("user"));

    let shown = env.run(&["setup", "codex", "--dry-run"]);
    assert!(shown.succeeds().stdout.contains("+ [mcp_servers.steadfast]"), "{shown:?}");
    assert!(shown.stdout.contains("trust"), "{shown:?}");
    assert_eq!(tree(&env.path("user")), before, "a dry run changes nothing");

    let done = env.run(&["setup", "codex", "--yes"]);
    assert!(done.succeeds().stdout.contains("until you do, they are silent"), "{done:?}");
    let program = env!("CARGO_BIN_EXE_steadfast");
    let merged: Value = serde_json::from_slice(&std::fs::read(codex.join("hooks.json")).unwrap()).unwrap();
    assert_eq!(merged["hooks"]["Stop"][0]["hooks"][0]["command"], json!("mine"));
    let command =
        |event: &str, at: usize| merged["hooks"][event][at]["hooks"][0]["command"].as_str().unwrap().to_owned();
    let script = r#"command -v "$0" >/dev/null || exit 0; exec "$0" "$@""#;
    assert_eq!(command("Stop", 1), format!("exec /bin/sh -c '{script}' {program} hook codex"));
    let start = command("SessionStart", 0).replace(program, "/nowhere/steadfast");
    // Codex runs it in the user's own shell.
    for shell in ["sh", "bash", "zsh", "fish"] {
        let missing = match std::process::Command::new(shell).args(["-c", &start]).output() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            missing => missing.unwrap(),
        };
        let missing: Value = serde_json::from_slice(&missing.stdout).unwrap();
        let message = missing["systemMessage"].as_str().unwrap();
        assert!(message.contains("type in a terminal: steadfast setup"), "{shell}: {missing}");
    }
    let config = std::fs::read_to_string(codex.join("config.toml")).unwrap();
    assert!(config.starts_with(CONFIG), "{config}");
    assert!(config.contains(&format!("STEADFAST_HOME = \"{}\"", env.home().display())), "{config}");
    assert!(config.contains("\"CODEX_HOME\""), "{config}");
    assert!(!config.contains("trusted_hash"), "the trust is the user's to give");
    let skill = std::fs::read_to_string(codex.join("skills/goal-start/SKILL.md")).unwrap();
    assert!(skill.contains("name: goal-start") && skill.contains("steadfast doctor"), "{skill}");

    let after = tree(&env.path("user"));
    let again = env.run(&["setup", "codex"]);
    assert!(again.succeeds().stdout.starts_with("nothing to change"), "{again:?}");
    assert_eq!(tree(&env.path("user")), after);

    let hooks = check(&env, "codex_hooks");
    assert_eq!(hooks["status"], "warn");
    assert!(hooks["detail"].as_str().unwrap().starts_with("NOT TRUSTED"), "{hooks}");
    std::fs::write(codex.join("config.toml"), format!("{config}\n[features]\nhooks = false\n")).unwrap();
    let hooks = check(&env, "codex_hooks");
    assert!(hooks["status"] == "fail" && hooks["detail"].as_str().unwrap().contains("switched off"), "{hooks}");
    std::fs::write(codex.join("config.toml"), config).unwrap();

    env.run(&["setup", "codex", "--uninstall"]).succeeds();
    assert_eq!(tree(&env.path("user")), before);
    let again = env.run(&["setup", "codex", "--uninstall"]);
    assert!(again.succeeds().stdout.starts_with("nothing to change"), "{again:?}");
    assert!(!env.home().exists());
}

#[test]
fn one_command_uninstalls_all_hosts() {
    let env = Env::new();
    codex(&env);
    let before = tree(&env.path("user"));
    env.run(&["setup", "claude", "--yes"]).succeeds();
    env.run(&["setup", "codex"]).succeeds();
    env.run(&["setup", "claude", "--uninstall"]).succeeds();
    assert!(env.home().join("config.toml").exists(), "Codex still needs the store");
    env.run(&["setup", "claude", "--yes"]).succeeds();
    let done = env.run(&["setup", "--uninstall"]);
    assert!(done.succeeds().stdout.starts_with("removed steadfast from Claude Code and Codex"), "{done:?}");
    assert_eq!(tree(&env.path("user")), before);
    assert!(!env.home().exists());
}

#[test]
fn a_broken_configuration_is_refused_and_nothing_is_changed() {
    let env = Env::new();
    let codex = codex(&env);
    std::fs::write(codex.join("config.toml"), "model = ").unwrap();
    let before = tree(&env.path("user"));
    env.run(&["setup", "codex"]).fails_with(4, "not valid TOML");
    assert_eq!(tree(&env.path("user")), before);
    assert_eq!(check(&env, "codex_hooks")["status"], "fail");
}

#[test]
fn codex_home_is_honoured() {
    let env = Env::new();
    let elsewhere = env.path("elsewhere");
    finish(env.command(&["setup", "codex"]).env("CODEX_HOME", &elsewhere), b"").succeeds();
    assert!(elsewhere.join("hooks.json").exists() && !env.path("user/.codex").exists());
    finish(env.command(&["setup", "codex", "--uninstall"]).env("CODEX_HOME", &elsewhere), b"").succeeds();
    assert!(!elsewhere.exists());
}

#[test]
fn the_hook_command_uses_the_link_on_path_so_an_upgrade_keeps_trust() {
    let env = Env::new();
    let codex = codex(&env);
    let bin = env.path("my bin");
    std::fs::create_dir(&bin).unwrap();
    symlink(env!("CARGO_BIN_EXE_steadfast"), bin.join("steadfast")).unwrap();
    finish(env.command(&["setup", "codex"]).env("PATH", &bin), b"").succeeds();
    let hooks: Value = serde_json::from_slice(&std::fs::read(codex.join("hooks.json")).unwrap()).unwrap();
    let expected = format!("' '{}' hook codex", bin.join("steadfast").display());
    let command = hooks["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap();
    assert!(command.ends_with(&expected), "{command}");
}

#[test]
fn doctor_reports_an_old_codex_and_does_not_wait_for_a_hanging_one() {
    let env = Env::new();
    let bin = env.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let doctor = |script: &str| {
        std::fs::write(bin.join("codex"), format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(bin.join("codex"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", bin.display());
        let doctor = finish(env.command(&["doctor", "--json"]).env("PATH", path), b"").json();
        let checks = doctor["checks"].as_array().unwrap();
        checks.iter().find(|check| check["id"] == "codex_version").cloned().unwrap()
    };
    let new = doctor("echo 'WARNING: x' >&2; echo codex-cli 0.166.0");
    assert_eq!((&new["status"], &new["detail"]), (&json!("ok"), &json!("0.166.0")));
    let old = doctor("echo codex-cli 0.98.1");
    assert_eq!(old["status"], "warn");
    assert!(old["detail"].as_str().unwrap().contains("too old"), "{old}");
    let hanging = doctor("exec sleep 60");
    assert!(hanging["detail"].as_str().unwrap().contains("did not answer"), "{hanging}");
}
