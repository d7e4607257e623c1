//! Which hooks Codex will run. It silently skips every hook whose current text the user has not trusted. It notes trust in
//! `config.toml` as `[hooks.state."<file>:<event>:<group>:<handler>"] trusted_hash = "sha256:…"`; here that is only read.

use std::path::{Path, PathBuf, absolute};

use fs_err as fs;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::install::InstallError;
use crate::install::apply::read;
use crate::install::codex_config as config;
use crate::install::json::JsonDocument;
use steadfast_model::text;

/// How every command of ours ends.
pub(crate) const COMMAND_END: &str = " hook codex";
/// Seconds that Codex assumes where a hook names none.
const DEFAULT_TIMEOUT: u64 = 600;
/// For these it assumes one second and allows three.
const SHORT: [&str; 2] = ["Interrupt", "SessionEnd"];

/// Our hooks as Codex finds them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CodexHooks {
    /// Event, its command, and whether Codex will run it.
    pub(crate) hooks: Vec<(String, String, HookTrust)>,
    /// Events without a hook of ours.
    pub(crate) missing: Vec<&'static str>,
    /// Codex's hooks are switched off altogether.
    pub(crate) switched_off: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookTrust {
    Trusted,
    /// Never reviewed.
    Untrusted,
    /// Trusted once, in another form or another place.
    Changed,
    /// Switched off by the user.
    Disabled,
}

impl CodexHooks {
    pub(crate) fn count(&self, trust: HookTrust) -> usize {
        self.hooks.iter().filter(|(_, _, found)| *found == trust).count()
    }
}

pub(crate) fn codex_hooks(codex_home: &Path) -> Result<CodexHooks, InstallError> {
    let codex_home = absolute(codex_home)?;
    let config_file = codex_home.join("config.toml");
    let hooks_file = codex_home.join("hooks.json");
    let config = config::content(&config_file, read(&config_file)?.as_deref())?;
    let json = JsonDocument::parse(&hooks_file, read(&hooks_file)?.as_deref())?;
    let state = &config["hooks"]["state"];
    let mut hooks = ours(&hooks_file, json.get(&["hooks"]).unwrap_or(&Value::Null), state);
    hooks.extend(ours(&config_file, &config["hooks"], state));
    let missing = super::EVENTS
        .iter()
        .map(|event| event.name)
        .filter(|event| !hooks.iter().any(|(found, _, _)| found == event))
        .collect();
    Ok(CodexHooks { hooks, missing, switched_off: super::switched_off(&config) })
}

fn ours(file: &Path, events: &Value, state: &Value) -> Vec<(String, String, HookTrust)> {
    let mut found = Vec::new();
    for (event, groups) in events.as_object().into_iter().flatten() {
        for (group_index, group) in groups.as_array().into_iter().flatten().enumerate() {
            let handlers = group["hooks"].as_array().into_iter().flatten();
            for (handler_index, handler) in handlers.enumerate() {
                let Some(command) = handler["command"].as_str().filter(|command| command.ends_with(COMMAND_END)) else {
                    continue;
                };
                let place = format!("{}:{group_index}:{handler_index}", key_name(event));
                let spellings = [real_path(file), file.to_owned()];
                let note = spellings.iter().find_map(|file| state.get(format!("{}:{place}", file.display())));
                let trust = judge(note, &hash(event, group, handler));
                found.push((event.clone(), command.to_owned(), trust));
            }
        }
    }
    found
}

fn judge(note: Option<&Value>, hash: &str) -> HookTrust {
    let Some(note) = note else {
        return HookTrust::Untrusted;
    };
    match note["trusted_hash"].as_str() {
        _ if note["enabled"] == json!(false) => HookTrust::Disabled,
        Some(trusted) if trusted == hash => HookTrust::Trusted,
        Some(_) => HookTrust::Changed,
        None => HookTrust::Untrusted,
    }
}

/// Codex resolves links in `$CODEX_HOME`, but not in the file's own name.
pub(crate) fn real_path(file: &Path) -> PathBuf {
    let folder = file.parent().unwrap_or(Path::new(""));
    fs::canonicalize(folder).unwrap_or_else(|_| folder.into()).join(file.file_name().unwrap_or_default())
}

/// `post_tool_use` for `PostToolUse`.
pub(crate) fn key_name(event: &str) -> String {
    let mut name = String::new();
    for letter in event.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// The hash by which Codex knows a hook: of its event, matcher and handler, defaults filled in, keys in order.
pub(crate) fn hash(event: &str, group: &Value, handler: &Value) -> String {
    let timeout = handler["timeout"].as_u64();
    let timeout = if SHORT.contains(&event) { timeout.unwrap_or(1).min(3) } else { timeout.unwrap_or(DEFAULT_TIMEOUT) };
    let mut known = json!({
        "additionalContextLimit": handler["additionalContextLimit"],
        "async": handler["async"].as_bool().unwrap_or(false),
        "command": handler["command"],
        "commandWindows": handler["commandWindows"],
        "statusMessage": handler["statusMessage"],
        "timeout": timeout.max(1),
        "type": handler["type"],
    });
    let mut identity = json!({"event_name": key_name(event), "hooks": [], "matcher": group["matcher"]});
    for object in [&mut known, &mut identity].into_iter().filter_map(Value::as_object_mut) {
        object.retain(|_, value| !value.is_null());
    }
    identity["hooks"] = json!([known]);
    format!("sha256:{}", text::hex(&Sha256::digest(identity.to_string())))
}
