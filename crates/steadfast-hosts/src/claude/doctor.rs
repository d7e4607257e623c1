//! Claude Code's settings: does it load the plugin and run its hooks?

use std::path::Path;

use serde_json::{Value, json};

use super::files;
use super::files::SMALL;
use crate::doctor::{CheckStatus, DoctorCheck, HookState, fail, ok, warn};
use steadfast_model::text;
use steadfast_system::{bounded, env_vars};

/// The check of the plugin.
const PLUGIN: &str = "claude_plugin";

pub(super) fn checks(block_cap: Option<i64>) -> Vec<DoctorCheck> {
    let config_dirs = files::config_dirs();
    let mut checks: Vec<DoctorCheck> = config_dirs.iter().flat_map(|config_dir| settings(config_dir)).collect();
    // The client gives its hooks the variables of its settings; a terminal does not have them.
    let in_settings = config_dirs.iter().find_map(|config_dir| cap_in_settings(config_dir));
    let block_cap = in_settings.map_or(block_cap, |cap| (cap > 0).then_some(cap));
    let cap = block_cap.map_or_else(
        || "lifted".to_owned(),
        |cap| format!("{cap} Stop blocks in a row without a tool call; goals stay under it"),
    );
    checks.push(ok("stop_hook_block_cap", cap));
    checks.extend(project_settings());
    checks
}

/// Ready where one configuration directory enables the plugin and switches no hook off.
pub(super) fn hook_state() -> HookState {
    let checks: Vec<Vec<DoctorCheck>> = files::config_dirs().iter().map(|config_dir| settings(config_dir)).collect();
    let is_enabled =
        |checks: &&Vec<DoctorCheck>| checks.iter().any(|check| check.id == PLUGIN && check.status == CheckStatus::Ok);
    let Some(of_plugin) = checks.iter().find(is_enabled) else { return HookState::Absent };
    let trouble = of_plugin.iter().find(|check| check.status != CheckStatus::Ok);
    trouble.map_or(HookState::Ready, |check| HookState::Silent(check.clone()))
}

/// Names settings of this project that try to move the store or to switch hooks off.
fn project_settings() -> Option<DoctorCheck> {
    let found = ["settings.json", "settings.local.json"].iter().find_map(|name| {
        let file = Path::new(".claude").join(name);
        let settings: Value = serde_json::from_slice(bounded::text(&file, SMALL).ok()?.as_bytes()).ok()?;
        let name = settings["env"].as_object()?.keys().find(|name| name.starts_with("STEADFAST_"))?.clone();
        Some(format!("{} sets {}, which is ignored", file.display(), text::headline(&name, 60)))
    })?;
    Some(warn("project_settings", found, "remove it; set such variables where you start Claude Code"))
}

/// The cap in the user's settings; 0 lifts it.
fn cap_in_settings(config_dir: &Path) -> Option<i64> {
    let text = bounded::text(&config_dir.join("settings.json"), SMALL).ok()?;
    let settings: Value = serde_json::from_slice(text.as_bytes()).ok()?;
    settings["env"][env_vars::STOP_HOOK_BLOCK_CAP].as_str()?.parse().ok()
}

fn settings(config_dir: &Path) -> Vec<DoctorCheck> {
    let read = |name: &str| -> Result<Option<Value>, String> {
        let path = config_dir.join(name);
        match bounded::text_if_exists(&path, SMALL).map_err(|error| error.to_string())? {
            Some(text) => serde_json::from_slice(text.as_bytes())
                .map(Some)
                .map_err(|error| format!("{}: {error}", path.display())),
            None => Ok(None),
        }
    };
    let mut checks = Vec::new();
    let user = match read("settings.json") {
        Ok(user) => user.unwrap_or(Value::Null),
        Err(problem) => {
            checks.push(fail("claude_settings", problem, "repair the file; Claude Code ignores it as it is"));
            Value::Null
        }
    };
    let enabled = user["enabledPlugins"]["steadfast@steadfast"] == json!(true);
    checks.push(if enabled {
        ok(PLUGIN, format!("enabled in {}", config_dir.join("settings.json").display()))
    } else {
        warn(PLUGIN, format!("not set up in {}", config_dir.display()), "`steadfast setup claude`")
    });
    let local = read("settings.local.json").ok().flatten().unwrap_or(Value::Null);
    let disabled = [&user, &local].iter().any(|settings| settings["disableAllHooks"] == json!(true));
    checks.push(if disabled {
        fail(
            "hooks_enabled",
            "disableAllHooks is set: no goal can be driven",
            "remove it from the Claude Code settings",
        )
    } else {
        ok("hooks_enabled", "hooks are not disabled")
    });
    checks
}
