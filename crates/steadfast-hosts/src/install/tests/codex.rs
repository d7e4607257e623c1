//! Codex: in and out, whatever the user has in `config.toml` and `hooks.json`, and whatever Codex writes there meanwhile.

use super::*;
use crate::codex::install::plan as plan_codex;
use crate::codex::install::trust::{HookTrust, codex_hooks, hash, key_name};

const COMMAND: &str =
    "exec /bin/sh -c 'command -v \"$0\" >/dev/null || exit 0; exec \"$0\" \"$@\"' /opt/steadfast hook codex";
/// Comments in every place, dotted keys, tables out of order, a comment at the end, no newline after it.
const CONFIG: &str = "# mine\nmodel = \"gpt-6.1\" # fast\nsandbox.mode = \"x\"\n\n[mcp_servers.other] # theirs\ncommand = \"other\"\n\n[projects.\"/a b\"]\ntrust_level = \"trusted\"\n\n# the end";

impl World {
    fn with_config(text: &str) -> Self {
        let world = Self::new();
        world.write("codex/config.toml", text);
        world
    }

    fn plan_codex_with(
        &self,
        change: impl FnOnce(&mut InstallRequest, &mut Value),
    ) -> Result<InstallPlan, InstallError> {
        let (home, codex_home) = (self.path("home"), self.path("codex"));
        let skills = [("goal-start/SKILL.md".to_owned(), "start\n".to_owned())];
        let mut request = request(&home, &codex_home);
        let mut server = json!({"command": "/opt/steadfast", "args": ["mcp"], "env_vars": ["CODEX_HOME"]});
        change(&mut request, &mut server);
        plan_codex(&request, &skills, server)
    }

    fn install_codex(&self) -> Report {
        self.plan_codex_with(|_, _| {}).unwrap().apply().unwrap()
    }

    fn uninstall_codex(&self) -> Report {
        uninstall(&self.path("home"), Host::Codex, &self.path("codex")).unwrap()
    }

    fn config(&self) -> toml::Table {
        self.read("codex/config.toml").parse().unwrap()
    }

    /// Notes all our hooks as trusted, as Codex does when the user says so.
    fn trust_all(&self) {
        let file = self.path("codex/hooks.json");
        let mut document: toml_edit::DocumentMut = self.read("codex/config.toml").parse().unwrap();
        for (event, groups) in self.json("codex/hooks.json")["hooks"].as_object().unwrap() {
            for (index, group) in groups.as_array().unwrap().iter().enumerate() {
                let key = format!("{}:{}:{index}:0", file.display(), key_name(event));
                document["hooks"]["state"][&key]["trusted_hash"] =
                    toml_edit::value(hash(event, group, &group["hooks"][0]));
            }
        }
        self.write("codex/config.toml", &document.to_string());
    }

    fn trust(&self) -> Vec<HookTrust> {
        codex_hooks(&self.path("codex")).unwrap().hooks.into_iter().map(|(_, _, trust)| trust).collect()
    }
}

#[test]
fn the_hash_is_the_one_that_codex_makes() {
    // From `hooks/list` of the app server of 0.166.0.
    let group = json!({ "matcher": "mcp__steadfast__.*",
        "hooks": [{ "type": "command", "command": "/opt/steadfast hook codex", "timeout": 30 }] });
    let known = "sha256:155822cdd807d854d3d09ac47f777e910f5a31e4c2edd0335675ce563ca6a805";
    assert_eq!(hash("PreToolUse", &group, &group["hooks"][0]), known);
    let group = json!({ "hooks": [{ "type": "command", "command": "true" }] });
    let known = "sha256:2ba34c7a02841fada06b868a093d041fd3d9de81883c789a321916b0aa118851";
    assert_eq!(hash("Stop", &group, &group["hooks"][0]), known);
    let group = json!({ "hooks": [{ "type": "command", "command": "true", "timeout": 30 }] });
    let known = "sha256:461557090d383e4523d199ab0e90511c3fb32340392f729fc9796e6b2b485219";
    assert_eq!(hash("Interrupt", &group, &group["hooks"][0]), known, "with the time limit that Codex allows");
}

#[test]
fn a_fresh_codex_gets_everything_and_loses_everything() {
    let world = World::new();
    world.install_codex();
    let hooks = world.json("codex/hooks.json");
    let stop = json!([{ "hooks": [{ "type": "command", "command": COMMAND, "timeout": 60 }] }]);
    assert_eq!(hooks["hooks"]["Stop"], stop);
    assert_eq!(hooks["hooks"]["PermissionRequest"][0]["matcher"], json!("mcp__steadfast__.*"));
    let server =
        "[mcp_servers.steadfast]\ncommand = \"/opt/steadfast\"\nargs = [\"mcp\"]\nenv_vars = [\"CODEX_HOME\"]\n";
    let config = world.read("codex/config.toml");
    assert!(config.starts_with(server), "{config}");
    let agent = &world.config()["agents"]["goal-evaluator"];
    let instructions = world.path("codex/agents/goal-evaluator.toml");
    assert_eq!(agent["config_file"].as_str(), instructions.to_str());
    assert!(world.read("codex/agents/goal-evaluator.toml").contains("developer_instructions = "));
    assert_eq!(world.read("codex/skills/goal-start/SKILL.md"), "start\n");
    assert!(world.read("home/config.toml").starts_with("db = "));
    world.uninstall_codex();
    assert_eq!(world.tree(), BTreeMap::new());
}

#[test]
fn uninstall_removes_the_trust_in_the_hooks_of_an_earlier_version() {
    let world = World::with_config(CONFIG);
    let before = world.tree();
    world.install_codex();
    world.trust_all();
    let later = world.plan_codex_with(|request, _| request.lasting_program = Path::new("/opt/later/steadfast"));
    later.unwrap().apply().unwrap();
    world.uninstall_codex();
    assert_eq!(world.tree(), before);
}

#[test]
fn an_evaluator_of_the_user_is_kept_with_a_note() {
    let theirs = "[agents.goal-evaluator]\ndescription = \"mine\"\nconfig_file = \"/mine.toml\"\n";
    let world = World::with_config(theirs);
    let before = world.tree();
    let report = world.install_codex();
    assert!(report.notes.iter().any(|note| note.contains("kept `agents.goal-evaluator`")), "{:?}", report.notes);
    assert_eq!(world.config()["agents"]["goal-evaluator"]["description"].as_str(), Some("mine"));
    assert!(!world.path("codex/agents/goal-evaluator.toml").exists());
    world.uninstall_codex();
    assert_eq!(world.tree(), before);
}

#[test]
fn any_layout_of_the_configuration_is_kept_and_comes_back() {
    let layouts = [
        "",
        "\n",
        CONFIG,
        "\u{feff}model = \"x\"\n",
        "a = 1\r\n# b\r\n[mcp_servers]\r\n",
        "mcp_servers = { other = { command = \"x\" } } # inline\n",
        "mcp_servers.other.command = \"x\" # dotted\nmodel = \"y\"\n",
        "[mcp_servers.other.env]\nA = \"1\"\n[mcp_servers.other]\ncommand = \"x\"\n",
        "[agents]\nmax_threads = 4 # enough\n[agents.mine]\nconfig_file = \"x\"\n",
        "agents = { mine = { config_file = \"x\" } }\n",
        "[hooks.state.\"/x:stop:0:0\"]\ntrusted_hash = \"sha256:1\"\n",
        "# hooks here\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"command\"\ncommand = \"mine\" # yes\n",
        "hooks.Stop = [{ hooks = [{ type = \"command\", command = \"mine\" }] }]\n[features]\nx = true\n",
        "hooks = { Stop = [], Start = [{ hooks = [] }] }\n",
        "[hooks]\nStop = [\n  { hooks = [{ type = \"command\", command = \"mine\" }] }, # keep\n]\n",
    ];
    for layout in layouts {
        let world = World::with_config(layout);
        let before = world.tree();
        let original = world.config();
        world.install_codex();
        let mut after = world.config();
        assert!(after["mcp_servers"]["steadfast"]["command"].is_str(), "{layout}");
        let text = world.read("codex/config.toml");
        assert!(layout.lines().filter_map(|line| line.split_once('#')).all(|(_, note)| text.contains(note)), "{text}");
        assert_eq!(world.trust().len(), 12, "{layout}: {after}");
        let again = world.plan_codex_with(|_, _| {}).unwrap();
        assert!(again.is_empty(), "{layout}: {}", again.describe());

        // A change by another program in between: everything but our part is still there afterwards.
        let changed =
            format!("model_provider = \"z\"\n{}", world.read("codex/config.toml").trim_start_matches('\u{feff}'));
        world.write("codex/config.toml", &changed);
        after = world.config();
        let again = world.plan_codex_with(|_, _| {}).unwrap();
        again.apply().unwrap();
        assert_eq!(world.config(), after, "{layout}");
        world.uninstall_codex();
        let mut rest = world.config();
        assert!(rest.remove("model_provider").is_some());
        assert_eq!(rest, original, "{layout}");

        let world = World::with_config(layout);
        let before_here: Vec<_> = before.values().cloned().collect();
        world.install_codex();
        world.uninstall_codex();
        assert_eq!(world.tree().into_values().collect::<Vec<_>>(), before_here, "{layout}");
    }
}

#[test]
fn our_part_comes_last_and_nothing_else_moves() {
    let world = World::with_config(CONFIG);
    world.install_codex();
    let text = world.read("codex/config.toml");
    assert!(text.starts_with(&format!("{CONFIG}\n\n[mcp_servers.steadfast]\n")), "{text}");
    // Codex adds something of its own: the comment before our part survives too.
    world.write("codex/config.toml", &format!("{text}\n[projects.\"/b\"]\ntrust_level = \"trusted\"\n"));
    world.uninstall_codex();
    let rest = world.read("codex/config.toml");
    assert_eq!(rest, format!("{CONFIG}\n\n[projects.\"/b\"]\ntrust_level = \"trusted\"\n"));
}

#[test]
fn hooks_of_the_user_stay_in_front_and_in_place() {
    let world = World::new();
    let theirs = "{\n  \"description\": \"mine\",\n  \"hooks\": {\n    \"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}]\n  }\n}\n";
    world.write("codex/hooks.json", theirs);
    let before = world.tree();
    world.install_codex();
    let stop = &world.json("codex/hooks.json")["hooks"]["Stop"];
    assert_eq!(stop[0]["hooks"][0]["command"], json!("mine"));
    assert_eq!(stop[1]["hooks"][0]["command"], json!(COMMAND));

    // Another one behind ours, and ours with another time limit: neither moves, ours is not added twice.
    let mut hooks = world.json("codex/hooks.json");
    let third = json!({ "hooks": [{ "type": "command", "command": "third" }] });
    hooks["hooks"]["Stop"].as_array_mut().unwrap().push(third.clone());
    world.write("codex/hooks.json", &hooks.to_string());
    let changed = world.read("codex/hooks.json");
    world.install_codex();
    assert_eq!(world.read("codex/hooks.json"), changed);
    hooks["hooks"]["Stop"][1]["hooks"][0]["timeout"] = json!(5);
    world.write("codex/hooks.json", &hooks.to_string());
    world.install_codex();
    assert_eq!(world.json("codex/hooks.json")["hooks"]["Stop"].as_array().unwrap().len(), 3);

    world.uninstall_codex();
    let mut expected: Value = serde_json::from_str(theirs).unwrap();
    expected["hooks"]["Stop"].as_array_mut().unwrap().push(third);
    assert_eq!(world.json("codex/hooks.json"), expected);
    world.write("codex/hooks.json", theirs);
    assert_eq!(world.tree(), before);
}

#[test]
fn the_trust_that_codex_notes_is_seen_and_goes_with_us() {
    let world = World::with_config(CONFIG);
    world.write("codex/hooks.json", r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"mine"}]}]}}"#);
    let before = world.tree();
    world.install_codex();
    assert_eq!(world.trust(), [HookTrust::Untrusted; 12]);
    world.trust_all();
    assert_eq!(world.trust(), [HookTrust::Trusted; 12]);
    let trusted = world.read("codex/config.toml");
    assert!(
        world
            .plan_codex_with(|_, _| {})
            .unwrap()
            .apply()
            .unwrap()
            .written
            .iter()
            .all(|path| path.starts_with(world.path("home")))
    );
    assert_eq!(world.read("codex/config.toml"), trusted, "trust survives another setup");

    // What Codex noted about our tools is ours as well; about the user's own hook it is theirs.
    let tools = "\n[mcp_servers.steadfast.tools.get_goal]\napproval_mode = \"approve\"\n";
    world.write("codex/config.toml", &format!("{trusted}{tools}"));
    world.install_codex();
    assert!(world.read("codex/config.toml").ends_with(tools));
    world.uninstall_codex();
    let state = &world.config()["hooks"]["state"];
    let keys: Vec<&String> = state.as_table().unwrap().keys().collect();
    assert!(matches!(keys.as_slice(), [key] if key.ends_with("hooks.json:stop:0:0")), "{keys:?}");
    world.write("codex/config.toml", CONFIG);
    assert_eq!(world.tree(), before);
}

#[test]
fn without_hooks_of_their_own_a_user_who_trusted_us_gets_every_byte_back() {
    let world = World::with_config(CONFIG);
    let before = world.tree();
    world.install_codex();
    world.trust_all();
    world.uninstall_codex();
    assert_eq!(world.tree(), before);

    let world = World::new();
    world.install_codex();
    world.trust_all();
    world.uninstall_codex();
    assert_eq!(world.tree(), BTreeMap::new());
}

#[test]
fn changed_disabled_and_switched_off_hooks_are_told_apart() {
    let world = World::with_config("");
    world.install_codex();
    world.trust_all();
    let text = world.read("codex/config.toml");
    world.write("codex/config.toml", &text.replacen("trusted_hash", "enabled = false, trusted_hash", 1));
    assert_eq!(world.trust().iter().filter(|trust| **trust == HookTrust::Disabled).count(), 1);
    world.write("codex/config.toml", &format!("{text}\n[features]\nhooks = false\n"));
    assert!(codex_hooks(&world.path("codex")).unwrap().switched_off);
    world.write("codex/config.toml", &text);
    let moved = world.plan_codex_with(|request, _| request.lasting_program = Path::new("/usr/bin/steadfast")).unwrap();
    moved.apply().unwrap();
    assert_eq!(world.trust(), [HookTrust::Changed; 12], "another command needs another review");
}

#[test]
fn the_users_own_server_and_skills_are_kept() {
    let world = World::with_config("[mcp_servers.steadfast]\ncommand = \"mine\"\n");
    world.write("codex/skills/goal-start/SKILL.md", "mine");
    let before = world.tree();
    let report = world.install_codex();
    assert_eq!(report.notes.len(), 2, "{:?}", report.notes);
    assert_eq!(world.config()["mcp_servers"]["steadfast"]["command"].as_str(), Some("mine"));
    assert_eq!(world.read("codex/skills/goal-start/SKILL.md"), "mine");
    world.uninstall_codex();
    assert_eq!(world.tree(), before);
}

#[test]
fn an_upgrade_changes_the_server_in_place() {
    let world = World::with_config(CONFIG);
    let before = world.tree();
    world.install_codex();
    let newer = world.plan_codex_with(|_, server| {
        server["command"] = json!("/new/steadfast");
        server["env"] = json!({"STEADFAST_HOME": "/somewhere"});
    });
    let newer = newer.unwrap();
    newer.apply().unwrap();
    let server = &world.config()["mcp_servers"]["steadfast"];
    assert_eq!(server["command"].as_str(), Some("/new/steadfast"));
    assert_eq!(server["env"]["STEADFAST_HOME"].as_str(), Some("/somewhere"));
    world.uninstall_codex();
    assert_eq!(world.tree(), before);
}

#[test]
fn broken_files_of_codex_are_refused_and_nothing_changes() {
    for (name, text) in [
        ("codex/config.toml", "model ="),
        ("codex/config.toml", "mcp_servers = 3"),
        ("codex/config.toml", "hooks.Stop = 3"),
        ("codex/hooks.json", "{ \"hooks\": "),
        ("codex/hooks.json", "{ \"hooks\": [] }"),
        ("codex/hooks.json", "{ \"hooks\": { \"Stop\": {} } }"),
        ("home/setup/codex.json", "{}"),
        ("home/setup/claude.json", "{}"),
    ] {
        let world = World::new();
        world.write(name, text);
        let before = world.tree();
        let error = world.plan_codex_with(|_, _| {}).unwrap_err().to_string();
        assert!(error.contains(&world.path(name).display().to_string()), "{name}: {error}");
        assert!(!error.contains('\n'), "{error}");
        assert_eq!(world.tree(), before);
    }
}

#[cfg(unix)]
#[test]
fn links_of_codex_are_written_through() {
    use std::os::unix::fs::symlink;
    let world = World::new();
    world.write("dotfiles/config.toml", CONFIG);
    world.write("dotfiles/hooks.json", "{}");
    fs::create_dir_all(world.path("codex")).unwrap();
    symlink("../dotfiles/config.toml", world.path("codex/config.toml")).unwrap();
    symlink("../dotfiles/hooks.json", world.path("codex/hooks.json")).unwrap();
    let before = world.tree();
    world.install_codex();
    assert!(world.path("codex/config.toml").is_symlink() && world.path("codex/hooks.json").is_symlink());
    assert!(world.read("dotfiles/hooks.json").contains(&json!(COMMAND).to_string()));
    world.uninstall_codex();
    assert_eq!(world.tree(), before);
}

#[test]
fn the_store_is_shared_until_the_last_host_leaves() {
    for codex_first in [true, false] {
        for codex_leaves_first in [true, false] {
            let world = World::new();
            if codex_first {
                world.install_codex();
                world.install();
            } else {
                world.install();
                world.install_codex();
            }
            assert!(world.plan(|_| {}).unwrap().is_empty() && world.plan_codex_with(|_, _| {}).unwrap().is_empty());
            if codex_leaves_first {
                world.uninstall_codex();
                assert!(!world.path("codex").exists());
            } else {
                world.uninstall();
                assert!(!world.path("claude").exists());
            }
            assert!(world.read("home/config.toml").starts_with("db = "));
            if codex_leaves_first {
                world.uninstall();
            } else {
                world.uninstall_codex();
            }
            assert_eq!(world.tree(), BTreeMap::new(), "{codex_first} {codex_leaves_first}");
        }
    }
}

#[test]
fn a_dry_run_for_all_hosts_shows_the_store_going_once() {
    let world = World::new();
    world.install();
    world.install_codex();
    let home = world.path("home");
    let claude = plan_uninstall(&home, Host::Claude, &world.path("claude"), &[]).unwrap().describe();
    let codex = plan_uninstall(&home, Host::Codex, &world.path("codex"), &[Host::Claude]).unwrap().describe();
    assert!(!claude.contains("- db = ") && codex.contains("- db = "), "{claude}\n{codex}");
}
