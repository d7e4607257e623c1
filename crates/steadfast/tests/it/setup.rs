//! `setup claude` and its uninstall, which restores files byte for byte.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::env::Env;

pub(crate) fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                files.insert(path.clone(), std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

#[test]
fn setup_merges_is_idempotent_and_uninstalls_exactly() {
    let env = Env::new();
    let settings = "{\n\t\"model\": \"opus\",   \"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}]}\n}";
    std::fs::write(env.claude_config().join("settings.json"), settings).unwrap();
    std::fs::create_dir(env.claude_config().join("commands")).unwrap();
    std::fs::write(env.claude_config().join("commands/goal-pause.md"), "my own command").unwrap();
    let before = tree(&env.path("user"));

    let shown = env.run(&["setup", "claude", "--yes", "--dry-run"]);
    assert!(shown.succeeds().stdout.contains("settings.json"), "{shown:?}");
    assert_eq!(tree(&env.path("user")), before, "a dry run changes nothing");

    env.run(&["setup", "claude", "--yes"]).succeeds();
    let text = std::fs::read_to_string(env.claude_config().join("settings.json")).unwrap();
    let merged: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&merged["model"], &merged["hooks"]["Stop"][0]["hooks"][0]["command"]),
        (&json!("opus"), &json!("mine"))
    );
    assert_eq!(merged["enabledPlugins"]["steadfast@steadfast"], true);
    assert!(merged["statusLine"]["command"].as_str().unwrap().ends_with(" statusline"), "{merged:#}");
    assert!(env.claude_config().join("commands/goal-start.md").exists());
    assert_eq!(std::fs::read_to_string(env.claude_config().join("commands/goal-pause.md")).unwrap(), "my own command");
    let hooks = std::fs::read_to_string(env.home().join("claude/plugin/hooks/hooks.json")).unwrap();
    assert!(hooks.contains(env!("CARGO_BIN_EXE_steadfast")), "{hooks}");
    serde_json::from_str::<Value>(&hooks).unwrap();
    let doctor = env.run(&["doctor", "--json"]).json();
    let plugin = doctor["checks"].as_array().unwrap().iter().find(|check| check["id"] == "claude_plugin").unwrap();
    assert_eq!(plugin["status"], "ok");
    let config = std::fs::read_to_string(env.home().join("config.toml")).unwrap();
    assert!(config.contains("goals.db"), "{config}");

    let after = tree(&env.path("user"));
    assert!(env.run(&["setup", "claude", "--yes"]).succeeds().stdout.starts_with("nothing to change"));
    assert_eq!(tree(&env.path("user")), after);

    env.run(&["setup", "--uninstall"]).succeeds();
    assert_eq!(tree(&env.path("user")), before);
    assert!(env.run(&["setup", "--uninstall"]).succeeds().stdout.starts_with("nothing to change"));
}

#[test]
fn uninstall_finds_the_directories_of_an_earlier_environment() {
    let env = Env::new();
    let before = tree(&env.path("user"));
    let other = env.path("other");
    std::fs::create_dir(&other).unwrap();
    let set_up = |host: &str, variable: &str| {
        let mut command = env.command(&["setup", host, "--yes"]);
        crate::env::finish(command.env(variable, &other), b"").succeeds();
    };
    set_up("claude", "CLAUDE_CONFIG_DIR");
    set_up("codex", "CODEX_HOME");
    env.run(&["setup", "claude", "--yes"]).succeeds();
    let named = env.run(&["setup", "claude", "--uninstall"]);
    let hint = format!("also set up in {}; `steadfast setup --uninstall` removes it", other.display());
    assert!(named.succeeds().stdout.contains(&hint), "{named:?}");
    env.run(&["setup", "--uninstall"]).succeeds();
    assert_eq!(tree(&other).into_keys().collect::<Vec<_>>(), Vec::<PathBuf>::new());
    assert_eq!(tree(&env.path("user")), before);
}

/// npm deletes the program of npx whenever it likes.
#[test]
fn no_hook_calls_a_program_of_npx() {
    let env = Env::new();
    let directory = env.path("_npx/0123");
    std::fs::create_dir_all(&directory).unwrap();
    let program = directory.join("steadfast");
    std::fs::copy(env!("CARGO_BIN_EXE_steadfast"), &program).unwrap();
    let run = |arguments: &[&str]| {
        let command = env.command(arguments);
        let mut of_npx = std::process::Command::new(&program);
        of_npx.args(command.get_args()).env_clear();
        of_npx.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(directory) = command.get_current_dir() {
            of_npx.current_dir(directory);
        }
        crate::env::finish(&mut of_npx, b"")
    };
    let before = tree(&env.path("user"));
    let refused = run(&["--json", "setup", "claude", "--yes"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.stdout.contains("npm install -g steadfast"), "{refused:?}");
    assert_eq!(tree(&env.path("user")), before);
    run(&["setup", "claude", "--dry-run"]).succeeds();

    env.run(&["setup", "claude", "--yes"]).succeeds();
    let installed = tree(&env.path("user"));
    let fixed = run(&["doctor", "--fix"]);
    assert!(fixed.stdout.contains("npx keeps steadfast only for a while"), "{fixed:?}");
    assert_eq!(tree(&env.path("user")), installed);
    run(&["setup", "--uninstall"]).succeeds();
    assert_eq!(tree(&env.path("user")), before);
}

#[test]
fn without_consent_the_status_line_and_the_cap_are_left_alone() {
    let env = Env::new();
    env.run(&["setup", "claude"]).succeeds();
    let text = std::fs::read_to_string(env.claude_config().join("settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&text).unwrap();
    assert!(settings.get("statusLine").is_none() && settings.get("env").is_none(), "{settings:#}");
    env.run(&["setup", "claude", "--block-cap", "0"]).succeeds();
    let text = std::fs::read_to_string(env.claude_config().join("settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(settings["env"]["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"], "0");
    let report = env.run(&["doctor"]).stdout;
    assert!(report.contains("stop_hook_block_cap   lifted"), "{report}");
}

#[test]
fn the_limit_dialog_is_skipped_only_if_the_user_asks_for_it() {
    let env = Env::new();
    let before = tree(&env.path("user"));
    let file = env.claude_config().join("commands/rate-limit-options.md");
    env.run(&["setup", "claude", "--yes"]).succeeds();
    assert!(!file.exists());
    env.run(&["setup", "claude", "--skip-limit-dialog"]).succeeds();
    assert!(file.exists());
    env.run(&["setup", "claude", "--yes"]).succeeds();
    assert!(file.exists(), "an earlier choice stays");
    env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    let dialog = json!({"hook_event_name": "UserPromptExpansion", "command_name": "rate-limit-options"});
    let reply = env.hook("s1", &dialog);
    assert!(reply["decision"] == "block" && reply["reason"].as_str().unwrap().contains("used up"), "{reply}");
    env.run(&["setup", "claude", "--keep-limit-dialog"]).succeeds();
    assert!(!file.exists());
    env.run(&["setup", "--uninstall"]).succeeds();
    assert_eq!(tree(&env.path("user")), before);
}

#[test]
fn broken_settings_are_refused_and_nothing_is_changed() {
    let env = Env::new();
    std::fs::write(env.claude_config().join("settings.json"), "{ // comment\n}").unwrap();
    let before = tree(&env.path("user"));
    env.run(&["setup", "claude", "--yes"]).fails_with(4, "not valid JSON");
    assert_eq!(tree(&env.path("user")), before);
}

#[test]
fn hooks_of_another_version_are_reported() {
    let env = Env::new();
    env.run(&["setup", "claude"]).succeeds();
    let check = || {
        let report = env.run(&["doctor", "--json"]).json();
        let found = report["checks"].as_array().unwrap().iter().find(|check| check["id"] == "plugin_hooks").cloned();
        found.unwrap()["status"].clone()
    };
    assert_eq!(check(), "ok");
    let hooks = env.home().join("claude/plugin/hooks/hooks.json");
    let text = std::fs::read_to_string(&hooks).unwrap();
    std::fs::write(&hooks, text.replace("\"Notification\"", "\"Other\"")).unwrap();
    assert_eq!(check(), "warn");
}

#[test]
fn the_plugin_in_the_repository_is_the_one_in_the_binary() {
    let env = Env::new();
    env.run(&["setup", "claude"]).succeeds();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin");
    let installed = env.home().join("claude/plugin");
    let names = |root: &Path| -> Vec<PathBuf> {
        tree(root).into_keys().map(|path| path.strip_prefix(root).unwrap().to_owned()).collect()
    };
    assert_eq!(names(&repository), names(&installed));
    for name in ["commands/goal-start.md", "agents/goal-evaluator.md", ".claude-plugin/plugin.json"] {
        assert_eq!(
            std::fs::read(repository.join(name)).unwrap(),
            std::fs::read(installed.join(name)).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn setup_reports_goals_of_the_other_plugin() {
    let env = Env::new();
    let data = env.claude_config().join("plugins/data/claude-goal-market");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("goals.db"), "x").unwrap();
    assert!(env.run(&["setup", "claude"]).succeeds().stdout.contains("steadfast db import"));
    let doctor = env.run(&["doctor", "--json"]).json();
    assert!(doctor["checks"].as_array().unwrap().iter().any(|check| check["id"] == "claude_goal_plugin"), "{doctor:#}");
}

#[test]
fn the_service_is_enabled_only_with_consent_and_removed_without_a_trace() {
    let env = Env::new();
    let (bin, asked) = (env.path("bin"), env.path("asked"));
    std::fs::create_dir(&bin).unwrap();
    for name in ["systemctl", "launchctl"] {
        let text = format!("#!/bin/sh\necho \"$@\" >> '{}'\n", asked.display());
        std::fs::write(bin.join(name), text).unwrap();
        std::process::Command::new("chmod").arg("+x").arg(bin.join(name)).status().unwrap();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let run = |arguments: &[&str]| {
        crate::env::finish(env.command(arguments).env("PATH", &path).env("STEADFAST_DB", "/my/goals.db"), b"")
    };
    let before = tree(&env.path("user"));

    let output = run(&["setup", "watch", "--dry-run"]);
    assert!(output.succeeds().stdout.contains("steadfast-watch"), "{output:?}");
    assert_eq!(tree(&env.path("user")), before, "a dry run changes nothing");
    let output = run(&["setup", "watch"]);
    assert!(output.succeeds().stdout.contains("to enable it: "), "{output:?}");
    assert!(!asked.exists());
    let written = tree(&env.path("user"));
    let unit = written.iter().find(|(path, _)| path.to_string_lossy().contains("steadfast-watch")).unwrap().1;
    let unit = String::from_utf8_lossy(unit);
    for word in [env!("CARGO_BIN_EXE_steadfast"), &path, "STEADFAST_DB=/my/goals.db"] {
        assert!(unit.contains(word), "{word}: {unit}");
    }
    run(&["setup", "watch", "--yes"]).succeeds();
    assert_eq!(std::fs::read_to_string(&asked).unwrap().lines().count(), 1);
    run(&["setup", "--uninstall"]).succeeds();
    assert_eq!(std::fs::read_to_string(&asked).unwrap().lines().count(), 2);
    assert_eq!(tree(&env.path("user")), before);
    assert!(!env.path("user/.config").exists());
}
