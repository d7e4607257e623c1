//! The first minute: `steadfast` alone, `setup` without a name, `doctor --fix`, `--version`.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::env::{Env, Output, finish};
use crate::setup::tree;

/// A machine with these clients on its PATH, and nothing else but the system's programs.
struct Machine {
    env: Env,
}

impl Machine {
    fn with(clients: &[(&str, &str, &str)]) -> Self {
        let env = Env::new();
        std::fs::create_dir_all(env.path("bin")).unwrap();
        for (program, package, version) in clients {
            let directory = env.path("packages").join(package);
            std::fs::create_dir_all(&directory).unwrap();
            let manifest = json!({"name": format!("@x/{package}"), "version": version});
            std::fs::write(directory.join("package.json"), manifest.to_string()).unwrap();
            let file = directory.join(program);
            std::fs::write(&file, "#!/bin/sh\nexit 1\n").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            std::os::unix::fs::symlink(&file, env.path("bin").join(program)).unwrap();
        }
        Self { env }
    }

    fn claude() -> Self {
        Self::with(&[("claude", "claude-code", "2.1.197")])
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let path = format!("{}:/usr/bin:/bin", self.env.path("bin").display());
        finish(self.env.command_as_typed(arguments).env("PATH", path), b"")
    }

    /// What a command says at a real terminal; each line is an answer. `None` where there is no `script`, which makes one.
    fn at_terminal(&self, arguments: &str, answers: &str) -> Option<String> {
        if std::process::Command::new("script").arg("--version").output().is_err() {
            crate::outages::skipped("no `script` here, which gives a command a terminal");
            return None;
        }
        let program = env!("CARGO_BIN_EXE_steadfast");
        let command = self.env.command_as_typed(&[]);
        let mut script = std::process::Command::new("script");
        script.args(["-qec", &format!("{program} {arguments}"), "/dev/null"]).env_clear();
        script.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        script.env("PATH", format!("{}:/usr/bin:/bin", self.env.path("bin").display()));
        script.current_dir(self.env.project());
        Some(finish(&mut script, answers.as_bytes()).stdout)
    }

    fn next(&self) -> String {
        self.run(&["--json"]).succeeds().json()["next"].as_str().unwrap().to_owned()
    }
}

#[test]
fn without_arguments_the_next_command_follows_from_what_is_there() {
    let bare = Machine::with(&[]);
    let said = bare.run(&[]);
    assert!(said.succeeds().stdout.contains("Claude Code  not found on PATH"), "{said:?}");
    assert!(said.stdout.contains("next: install Claude Code or Codex"), "{said:?}");
    assert_eq!(tree(&bare.env.path("user")).len(), 0, "it only looks");
    assert!(!bare.env.home().exists());

    let machine = Machine::claude();
    let said = machine.run(&[]);
    assert!(said.succeeds().stdout.contains("Claude Code 2.1.197  found, not set up"), "{said:?}");
    assert_eq!(machine.next(), "steadfast setup");
    machine.run(&["setup", "--yes"]).succeeds();
    let said = machine.run(&[]);
    assert!(said.stdout.contains("Claude Code 2.1.197  set up"), "{said:?}");
    assert!(machine.next().contains("type /goal-start"), "{}", machine.next());
    machine.env.start(&["Ship it"]);
    let said = machine.run(&["--json"]).json();
    assert_eq!((&said["goals"], &said["clients"][0]["hooks"]), (&json!(1), &json!("ready")), "{said:#}");
    machine.env.goal(&["block", "--reason", "needs a key"]).succeeds();
    let said = machine.run(&[]);
    assert!(said.stdout.contains("1 needs you") && said.stdout.contains("goal resume"), "{said:?}");

    std::fs::write(machine.env.home().join("config.toml"), "[limits\n").unwrap();
    assert_eq!(machine.next(), "steadfast doctor");
    let help = machine.run(&["--help"]);
    assert!(help.succeeds().stdout.contains("Usage: steadfast"), "{help:?}");
}

#[test]
fn what_is_typed_next_fits_the_place_and_the_plugin() {
    let machine = Machine::claude();
    let enabled = json!({"enabledPlugins": {"steadfast@steadfast": true}}).to_string();
    std::fs::write(machine.env.claude_config().join("settings.json"), enabled).unwrap();
    assert!(machine.next().contains("type /steadfast:goal-start"), "{}", machine.next());

    machine.env.start(&["Ship it"]);
    machine.env.goal(&["block", "--reason", "needs a key"]).succeeds();
    assert!(!machine.next().starts_with("in "), "{}", machine.next());
    let elsewhere = machine.env.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let said = finish(machine.env.command_as_typed(&["--json"]).current_dir(&elsewhere), b"").json();
    let project = format!("in {}: ", machine.env.project().display());
    assert!(said["next"].as_str().unwrap().starts_with(&project), "{said:#}");
}

#[test]
fn an_old_client_is_named_with_what_to_type() {
    let machine = Machine::with(&[("claude", "claude-code", "2.1.50"), ("codex", "codex", "0.130.0")]);
    let said = machine.run(&[]);
    assert!(said.stdout.contains("next: claude update "), "{said:?}");
    assert!(said.stdout.contains("2.1.118 is the oldest"), "{said:?}");
    let set_up = machine.run(&["setup", "claude"]);
    assert!(set_up.succeeds().stdout.contains("to update it: claude update"), "{set_up:?}");
    let report = machine.run(&["doctor", "--json"]).json();
    for (id, update) in [("claude_version", "claude update"), ("codex_version", "npm install -g @openai/codex")] {
        let check = report["checks"].as_array().unwrap().iter().find(|check| check["id"] == id).unwrap();
        assert_eq!(check["status"], "warn", "{check}");
        assert!(check["hint"].as_str().unwrap().contains(update), "{check}");
    }
}

/// The plugin by itself, without `setup`, beside goals of the terminal.
#[test]
fn two_stores_are_reported_when_a_client_starts() {
    let env = Env::new();
    let data = env.claude_config().join("plugins/data/steadfast-inline");
    let start = |source: &str| {
        let event = json!({"hook_event_name": "SessionStart", "source": source, "session_id": "s9", "cwd": env.project(),
                           "transcript_path": env.transcript("s9")});
        let mut command = env.command(&["hook", "claude"]);
        let output = finish(command.env("CLAUDE_PLUGIN_DATA", &data), event.to_string().as_bytes());
        assert_eq!(output.code, 0, "{output:?}");
        output.stdout
    };
    assert!(!start("startup").contains("setup claude"), "one store is no news");
    env.start(&["A goal of the terminal"]);
    let said = start("startup");
    assert!(said.contains("type in a terminal: steadfast setup claude"), "{said}");
    assert!(!start("compact").contains("setup claude"));
    env.run(&["setup", "claude", "--yes"]).succeeds();
    assert!(!start("startup").contains("setup claude"), "setup makes them one");
}

#[test]
fn setup_without_a_name_sets_up_what_is_found() {
    let bare = Machine::with(&[]);
    bare.run(&["setup", "--yes"]).fails_with(4, "no client found");
    let said = bare.run(&["doctor"]).stdout.clone();
    assert!(said.contains("warn  client ") && said.contains("neither claude nor codex is on PATH"), "{said}");

    let machine = Machine::with(&[("claude", "claude-code", "2.1.197"), ("codex", "codex", "0.166.0")]);
    let before = tree(&machine.env.path("user"));
    machine.run(&["setup"]).fails_with(1, "there is no terminal");
    let shown = machine.run(&["setup", "--dry-run"]);
    assert!(shown.succeeds().stdout.contains("settings.json") && shown.stdout.contains("hooks.json"), "{shown:?}");
    assert_eq!(tree(&machine.env.path("user")), before);
    let done = machine.run(&["setup", "--yes"]);
    let text = &done.succeeds().stdout;
    assert!(text.contains("set up Claude Code and Codex ("), "{text}");
    assert!(text.contains("/goal-start or $goal-start"), "{text}");
    assert!(text.contains("Claude Code 2.1.197  not set up -> set up"), "{text}");
    assert!(text.contains("NOT TRUSTED") && text.contains("next: steadfast"), "{text}");
    let again = machine.run(&["setup", "--yes", "--json"]).json();
    assert_eq!((&again["changes"], &again["clients"][0]["before"]), (&json!([]), &json!("ready")), "{again:#}");
    // Codex waits for the user's trust, and the next command says so.
    let said = machine.run(&["--json"]).json();
    assert!(said["also"].as_str().unwrap().contains("type /hooks"), "{said:#}");
    assert!(said["next"].as_str().unwrap().contains("/goal-start"), "Claude Code is ready: {said:#}");
    machine.run(&["setup", "--uninstall"]).succeeds();
    assert_eq!(tree(&machine.env.path("user")), before);
}

/// The questions, at a real terminal.
#[test]
fn setup_asks_in_plain_words_and_an_empty_answer_is_the_default() {
    let machine = Machine::claude();
    let before = tree(&machine.env.path("user"));
    // A newcomer is asked in words of their own, and the client that is named is shown as the one that is found.
    for what in ["", " claude"] {
        let Some(said) = machine.at_terminal(&format!("setup{what}"), "n\nn\nn\nn\n") else { return };
        assert!(said.contains("Show the goal below the input line of Claude Code?"), "{said}");
        assert!(said.contains("If you never run `claude -p`, either answer is fine"), "{said}");
        assert!(said.contains("[Y/n]") && said.contains("[y/N]"), "{said}");
        assert!(said.contains("settings.json: adds enabledPlugins."), "{said}");
        assert!(said.contains("Change Claude Code like this?") && said.contains("--dry-run"), "{said}");
        assert!(said.contains("you said no"), "{said}");
        assert_eq!(tree(&machine.env.path("user")), before);
    }
    let said = machine.at_terminal("setup", "\n\n\n\n").unwrap();
    assert!(said.contains("not set up -> set up"), "{said}");
    let text = std::fs::read_to_string(machine.env.claude_config().join("settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&text).unwrap();
    assert!(settings["statusLine"].is_object(), "the default is yes: {settings:#}");
    assert!(!machine.env.claude_config().join("commands/rate-limit-options.md").exists(), "the default is no");
}

#[test]
fn codex_shows_a_short_list_before_it_asks() {
    let machine = Machine::with(&[("codex", "codex", "0.166.0")]);
    let Some(said) = machine.at_terminal("setup codex", "n\n") else { return };
    let list = said.split("Change Codex like this?").next().unwrap();
    assert!(list.lines().count() < 15, "{said}");
    for part in
        ["hooks.json: adds hooks (12 keys)", "config.toml: adds", "mcp_servers.steadfast", "setup codex --dry-run"]
    {
        assert!(list.contains(part), "{part}: {said}");
    }
    assert!(!list.contains("PostToolUse") && !list.contains("env_vars"), "{said}");
}

#[test]
fn a_dry_run_lists_the_questions() {
    let env = Env::new();
    let shown = env.run(&["setup", "claude", "--dry-run"]);
    let asked: Vec<&str> = shown.succeeds().stdout.lines().filter(|line| line.starts_with("asked: ")).collect();
    assert_eq!(asked.len(), 3, "{shown:?}");
    for (line, part) in asked.iter().zip(["statusLine", "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "rate-limit-options"]) {
        assert!(line.contains(part), "{part}: {shown:?}");
    }
    assert!(asked[0].ends_with("; with --yes the answer is yes)") && asked[2].ends_with(" is no)"), "{shown:?}");
    assert_eq!(env.run(&["setup", "claude", "--dry-run", "--json"]).json()["questions"].as_array().unwrap().len(), 3);
    let decided = env.run(&["setup", "claude", "--dry-run", "--yes"]);
    assert!(!decided.succeeds().stdout.lines().any(|line| line.starts_with("asked: ") && line.contains("statusLine")));
    assert!(decided.stdout.contains("+ statusLine"), "{decided:?}");
}

/// A run needs no client that is set up, and a person who is asked comes first.
#[test]
fn an_approval_is_a_run_that_needs_you_and_comes_next() {
    let world = crate::approvals::waiting(&[2]);
    let said = world.env.run(&[]);
    let row = |name: &str| said.stdout.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
    assert!(row("goals").ends_with("none"), "{said:?}");
    assert!(row("runs").ends_with("1 needs you"), "{said:?}");
    assert!(said.stdout.contains("next: steadfast pipeline "), "{said:?}");
    let json = world.env.run(&["--json"]).json();
    assert_eq!((&json["goals_need_you"], &json["runs_need_you"]), (&json!(0), &json!(1)), "{json:#}");
}

/// The goal of a run is that run for the user, who resumes it as a run.
#[test]
fn a_run_that_a_cap_stopped_needs_you_as_a_run() {
    let world = crate::runs::World::new();
    std::fs::write(world.env.home().join("config.toml"), "[limits]\ndaily_tokens = 10\n[notify]\ndesktop = false\n")
        .unwrap();
    let report = r#"echo '{"summary": "s", "usage": {"input_tokens": 90, "output_tokens": 10}}' > "$STEADFAST_RESULT""#;
    let agent = world.agent(report);
    world.run(&["run", "Ship it", "--agent", &agent]);
    let said = world.env.run(&[]);
    let row = |name: &str| said.stdout.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
    assert!(row("goals").ends_with("none") && row("runs").ends_with(" 1 needs you"), "{said:?}");
    assert!(said.stdout.contains(" continues, once the daily or weekly cap allows"), "{said:?}");
}

#[test]
fn doctor_fix_repairs_what_was_set_up_and_says_what_it_cannot() {
    let machine = Machine::claude();
    let fixed = |machine: &Machine| machine.run(&["doctor", "--fix", "--json"]).json();
    let nothing = fixed(&machine);
    assert_eq!(nothing["fixed"], json!([]), "nothing was set up: {nothing:#}");
    assert!(!machine.env.claude_config().join("settings.json").exists());

    machine.run(&["setup", "claude", "--yes"]).succeeds();
    let hooks = machine.env.home().join("claude/plugin/hooks/hooks.json");
    let command = machine.env.claude_config().join("commands/goal-status.md");
    let current = std::fs::read(&hooks).unwrap();
    std::fs::write(&hooks, "{}").unwrap();
    std::fs::remove_file(&command).unwrap();
    std::fs::write(machine.env.home().join(".steadfast-aB3xY9.tmp"), "half").unwrap();
    std::fs::set_permissions(machine.env.home(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let report = machine.run(&["doctor", "--json"]).json();
    assert!(report.get("fixed").is_none());
    std::fs::set_permissions(machine.env.home(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let report = fixed(&machine);
    let done = report["fixed"].to_string();
    for part in ["closed to other users", ".steadfast-aB3xY9.tmp", "set up Claude Code again (2 files)"] {
        assert!(done.contains(part), "{part}: {report:#}");
    }
    assert_eq!(std::fs::read(&hooks).unwrap(), current);
    assert!(command.exists());
    assert_eq!(fixed(&machine)["fixed"], json!([]), "nothing is left to repair");

    std::fs::write(machine.env.claude_config().join("settings.json"), "{ broken").unwrap();
    let report = fixed(&machine);
    assert!(report["not_fixed"].to_string().contains("not valid JSON"), "{report:#}");
    assert_eq!(report["overall"], "fail");
    let in_agent = finish(machine.env.command_as_typed(&["doctor", "--fix"]).env("CLAUDECODE", "1"), b"");
    in_agent.fails_with(3, "doctor --fix");
}

/// An upgrade may put the program elsewhere: hooks and status line follow it, and what the user refused stays refused.
#[test]
fn doctor_fix_follows_the_program_to_another_place() {
    let machine = Machine::claude();
    let link = machine.env.path("bin/steadfast");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_steadfast"), &link).unwrap();
    machine.run(&["setup", "claude", "--statusline", "--no-block-cap"]).succeeds();
    let read = || std::fs::read_to_string(machine.env.claude_config().join("settings.json")).unwrap();
    let command_in = |text: &str| serde_json::from_str::<Value>(text).unwrap()["statusLine"]["command"].clone();
    assert_eq!(command_in(&read()), format!("{} statusline", link.display()));
    std::fs::remove_file(&link).unwrap();
    let report = machine.run(&["doctor", "--fix", "--json"]).json();
    assert!(report["fixed"].to_string().contains("set up Claude Code again"), "{report:#}");
    let settings = read();
    assert_eq!(command_in(&settings), format!("{} statusline", env!("CARGO_BIN_EXE_steadfast")));
    assert!(!settings.contains("BLOCK_CAP"), "{settings}");
    let hooks = std::fs::read_to_string(machine.env.home().join("claude/plugin/hooks/hooks.json")).unwrap();
    assert!(!hooks.contains(link.to_str().unwrap()), "{hooks}");
    assert_eq!(machine.run(&["doctor", "--fix", "--json"]).json()["fixed"], json!([]));
}

#[test]
fn the_version_is_one_short_line_and_the_facts_of_the_build_follow() {
    let env = Env::new();
    let short = env.run(&["-V"]);
    assert_eq!(short.succeeds().stdout, format!("steadfast {}\n", env!("CARGO_PKG_VERSION")));
    let long = env.run(&["--version"]).succeeds().stdout.clone();
    assert!(long.starts_with(&short.stdout), "{long}");
    for fact in ["commit", "target", "profile", "SQLite   3."] {
        assert!(long.lines().any(|line| line.starts_with(fact)), "{fact}: {long}");
    }
    let facts = env.run(&["--version", "--json"]).json();
    assert!(facts["sqlite"].is_string() && facts["target"].is_string(), "{facts}");
}
