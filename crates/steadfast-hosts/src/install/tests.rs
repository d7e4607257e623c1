//! Setup and its way back on real directories; what the user would see, not how it is done.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::setup::Setup;
use super::{Choice, Consent, InstallError, InstallPlan, InstallRequest, Report, decide, plan_uninstall, splice};
use crate::claude::install::{plan, user_settings};
use steadfast_model::host::Host;

mod codex;
mod way_back;
mod way_in;

const PLUGIN: &[(&str, &str)] =
    &[(".claude-plugin/plugin.json", "{\"name\":\"steadfast\"}\n"), ("hooks/hooks.json", "{}\n")];
const COMMANDS: &[(&str, &str)] = &[("goal-start.md", "start\n"), ("goal-status.md", "status\n")];
/// Four spaces, an array on one line, a number that would not survive a float, no newline at the end.
const ODD: &str = "{\n    \"model\": \"opus\",\n    \"permissions\": {\"allow\": [\"Bash(ls:*)\",   \"Read\"]},\n    \"x\": 1.50e2,\n    \"env\": { \"A\": \"1\" }\n}";

/// What the tests change about a setup of Claude Code.
struct Wanted<'a> {
    request: InstallRequest<'a>,
    commands: &'a [(&'a str, &'a str)],
    statusline: Choice<&'a str>,
    block_cap: Choice<u32>,
}

struct World {
    root: TempDir,
}

impl World {
    fn new() -> Self {
        Self { root: TempDir::new().unwrap() }
    }

    fn with_settings(text: &str) -> Self {
        let world = Self::new();
        world.write("claude/settings.json", text);
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    fn plan(&self, change: impl FnOnce(&mut Wanted)) -> Result<InstallPlan, InstallError> {
        let (home, config_dir) = (self.path("home"), self.path("claude"));
        let mut wanted = Wanted {
            request: request(&home, &config_dir),
            commands: COMMANDS,
            statusline: Choice::Set("steadfast statusline"),
            block_cap: Choice::Set(100),
        };
        change(&mut wanted);
        let commands: Vec<_> =
            wanted.commands.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        let setup = Setup::load(&home, Host::Claude, wanted.request.config_dir)?;
        plan(setup, &wanted.request, &commands, wanted.statusline, wanted.block_cap)
    }

    fn install(&self) -> Report {
        self.plan(|_| {}).unwrap().apply().unwrap()
    }

    fn uninstall(&self) -> Report {
        uninstall(&self.path("home"), Host::Claude, &self.path("claude")).unwrap()
    }

    /// Every path below the root, with the text of files and the target of links.
    fn tree(&self) -> BTreeMap<PathBuf, String> {
        let mut tree = BTreeMap::new();
        walk(self.root.path(), &mut tree);
        tree
    }
}

fn request<'a>(home: &'a Path, config_dir: &'a Path) -> InstallRequest<'a> {
    InstallRequest {
        home,
        config_dir,
        lasting_program: Path::new("/opt/steadfast"),
        marketplace: "{\"name\":\"steadfast\"}\n",
        plugin: PLUGIN,
        commands: &[],
        statusline: Consent::Open,
        block_cap: Consent::Open,
        block_cap_value: None,
        limit_dialog: Consent::Open,
        ask: None,
        now: "2026-11-15T13:42:47.393Z",
    }
}

fn uninstall(home: &Path, host: Host, config_dir: &Path) -> Result<Report, InstallError> {
    plan_uninstall(home, host, config_dir, &[])?.apply()
}

fn walk(dir: &Path, tree: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let text = if path.is_symlink() {
            fs::read_link(&path).unwrap().display().to_string()
        } else if path.is_dir() {
            walk(&path, tree);
            String::new()
        } else {
            fs::read_to_string(&path).unwrap()
        };
        tree.insert(path, text);
    }
}
