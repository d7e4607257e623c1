//! The way back: after uninstall the user's files are what they were, whatever happened in between.

use super::*;

#[test]
fn a_fresh_machine_gets_everything_and_loses_everything() {
    let world = World::new();
    world.install();

    let market = world.path("home/claude").display().to_string();
    assert_eq!(
        world.json("claude/settings.json"),
        json!({
            "extraKnownMarketplaces": { "steadfast": { "source": { "source": "directory", "path": market } } },
            "enabledPlugins": { "steadfast@steadfast": true },
            "statusLine": { "type": "command", "command": "steadfast statusline", "refreshInterval": 5 },
            "env": { "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "100" },
        })
    );
    let known = world.json("claude/plugins/known_marketplaces.json");
    assert_eq!(known["steadfast"]["installLocation"], json!(market));
    assert_eq!(known["steadfast"]["lastUpdated"], json!("2026-11-15T13:42:47.393Z"));
    assert_eq!(world.read("home/claude/plugin/hooks/hooks.json"), "{}\n");
    assert_eq!(world.read("claude/commands/goal-start.md"), "start\n");
    let db = world.path("home/goals.db").display().to_string();
    assert_eq!(world.read("home/config.toml"), format!("db = \"{db}\"\n"));

    world.uninstall();
    assert_eq!(world.tree(), BTreeMap::new());
}

#[test]
fn the_way_back_is_exact_for_any_layout() {
    let layouts = [
        "",
        "{}",
        "{\n}\n",
        "\u{feff}{\"a\":1}",
        "{\"env\":{},\"enabledPlugins\":{\"other@x\":true}}",
        "{\r\n\t\"a\": [1,\r\n2],\r\n\t\"env\": {\r\n\t\t\"B\": \"}\\\"{\"\r\n\t}\r\n}\r\n",
        "{\"a\":1,\n\"a\":2}",
        ODD,
    ];
    for layout in layouts {
        let world = World::with_settings(layout);
        world.write("home/config.toml", "# mine\n[accounting]\non_compact = \"pause\" # really\n");
        world.write("claude/plugins/installed_plugins.json", "{ \"version\": 2, \"plugins\": {} }");
        let before = world.tree();
        world.install();
        assert_ne!(world.tree(), before, "{layout:?}");
        world.uninstall();
        assert_eq!(world.tree(), before, "{layout:?}");
    }
}

#[test]
fn changes_made_since_survive_the_way_back() {
    let world = World::with_settings("{\n  \"a\": 1\n}\n");
    world.install();
    let mut settings = world.json("claude/settings.json");
    settings["mine"] = json!([1, 2]);
    settings["enabledPlugins"]["other@x"] = json!(true);
    settings["env"]["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"] = json!("7");
    world.write("claude/settings.json", &serde_json::to_string_pretty(&settings).unwrap());
    world.write("home/config.toml", &format!("{}\n[ui]\nport = 1\n", world.read("home/config.toml")));
    world.write("claude/commands/goal-start.md", "start, my way\n");

    let report = world.uninstall();
    assert_eq!(
        world.json("claude/settings.json"),
        json!({
            "a": 1,
            "enabledPlugins": { "other@x": true },
            "env": { "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "7" },
            "mine": [1, 2],
        })
    );
    assert_eq!(world.read("home/config.toml").trim(), "[ui]\nport = 1");
    assert_eq!(world.read("claude/commands/goal-start.md"), "start, my way\n");
    assert!(!world.path("claude/commands/goal-status.md").exists());
    assert_eq!(report.notes.len(), 2, "{:?}", report.notes);
}

#[test]
fn what_the_client_writes_about_us_goes_too() {
    let world = World::with_settings(ODD);
    let before = world.tree();
    world.install();
    // The client lays settings out anew and in its own order, and keeps its own books.
    let mut settings = world.json("claude/settings.json");
    settings["enabledPlugins"]["steadfast@steadfast"] = json!(false);
    settings["x"] = json!(150);
    world.write("claude/settings.json", &serde_json::to_string(&settings).unwrap());
    let mut known = world.json("claude/plugins/known_marketplaces.json");
    known["steadfast"]["lastUpdated"] = json!("2031-01-01T00:00:00.000Z");
    world.write("claude/plugins/known_marketplaces.json", &known.to_string());
    let installed = json!({ "version": 2, "plugins": { "steadfast@steadfast": [{ "scope": "user" }] } });
    world.write("claude/plugins/installed_plugins.json", &installed.to_string());
    fs::create_dir_all(world.path("claude/plugins/data/steadfast-steadfast")).unwrap();

    world.uninstall();
    assert_eq!(world.tree(), before);
}

#[test]
fn a_setup_after_the_users_changes_still_finds_its_way_back() {
    let world = World::with_settings("{\n  \"a\": 1\n}\n");
    world.install();
    let changed = world.read("claude/settings.json").replace("\"a\": 1", "\"a\": 2");
    world.write("claude/settings.json", &changed);
    world.install();
    assert_eq!(world.read("claude/settings.json"), changed);
    world.uninstall();
    assert_eq!(world.read("claude/settings.json"), "{\n  \"a\": 2\n}\n");
}

#[test]
fn a_broken_file_stops_the_way_back_before_it_starts() {
    let world = World::with_settings("{}");
    world.install();
    world.write("claude/settings.json", "{ broken");
    let before = world.tree();
    assert!(plan_uninstall(&world.path("home"), Host::Claude, &world.path("claude"), &[]).is_err());
    assert_eq!(world.tree(), before);
}

#[test]
fn links_are_written_through_and_modes_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let world = World::new();
    world.write("dotfiles/settings.json", ODD);
    fs::set_permissions(world.path("dotfiles/settings.json"), PermissionsExt::from_mode(0o640)).unwrap();
    fs::create_dir_all(world.path("claude")).unwrap();
    symlink("../dotfiles/settings.json", world.path("claude/settings.json")).unwrap();
    let before = world.tree();

    world.install();
    assert!(world.path("claude/settings.json").is_symlink());
    assert!(world.read("dotfiles/settings.json").contains("steadfast@steadfast"));
    let mode = |name: &str| fs::metadata(world.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("dotfiles/settings.json"), 0o640);
    assert_eq!(mode("home"), 0o700);
    assert_eq!(mode("home/setup/claude.json"), 0o600);

    world.uninstall();
    assert_eq!(world.tree(), before);
    assert_eq!(mode("dotfiles/settings.json"), 0o640);
}

#[test]
fn an_upgrade_replaces_our_files_and_drops_the_ones_it_no_longer_has() {
    let world = World::with_settings(ODD);
    let before = world.tree();
    world.install();
    let newer = |wanted: &mut Wanted| {
        wanted.request.plugin = &[("hooks/hooks.json", "{\"new\":1}\n")];
        wanted.commands = &[("goal-status.md", "status 2\n")];
    };
    world.plan(newer).unwrap().apply().unwrap();
    assert_eq!(world.read("home/claude/plugin/hooks/hooks.json"), "{\"new\":1}\n");
    assert_eq!(world.read("claude/commands/goal-status.md"), "status 2\n");
    assert!(!world.path("claude/commands/goal-start.md").exists());
    assert!(!world.path("home/claude/plugin/.claude-plugin/plugin.json").exists());
    world.uninstall();
    assert_eq!(world.tree(), before);
}

#[test]
fn two_configurations_share_the_plugin_until_the_last_one_leaves() {
    let world = World::new();
    world.install();
    let work = world.path("work");
    world.plan(|wanted| wanted.request.config_dir = Box::leak(Box::new(work.clone()))).unwrap().apply().unwrap();
    world.uninstall();
    assert!(world.path("home/claude/plugin/hooks/hooks.json").exists());
    assert!(world.path("work/settings.json").exists());
    assert!(!world.path("claude").exists());
    uninstall(&world.path("home"), Host::Claude, &work).unwrap();
    assert_eq!(world.tree(), BTreeMap::new());
}

#[test]
fn uninstalling_nothing_is_no_error() {
    let world = World::with_settings(ODD);
    let before = world.tree();
    assert_eq!(world.uninstall().notes.len(), 1);
    assert_eq!(world.tree(), before);
}
