//! Codex: where it keeps its session files, and below how they are read. One file a thread, called a rollout;
//! subagents and forks have files of their own beside it. Its hooks are in `hook`.

pub(super) mod exec;
pub mod hook;
mod observe;
pub(super) mod reset;
pub mod rollout;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use steadfast_system::env_vars;

/// Codex's own directory: `$CODEX_HOME`, else `~/.codex`.
pub fn home() -> Option<PathBuf> {
    env_vars::path(env_vars::CODEX_HOME).or_else(|| Some(etcetera::home_dir().ok()?.join(".codex")))
}

/// The directories that hold rollouts: those in use and those put away.
pub fn session_dirs() -> Vec<PathBuf> {
    let Some(home) = home() else { return Vec::new() };
    vec![home.join("sessions"), home.join("archived_sessions")]
}

/// The directory that a rollout belongs to, whatever this process's environment says.
pub fn home_of(rollout: &Path) -> Option<PathBuf> {
    let sessions = |dir: &&Path| dir.ends_with("sessions") || dir.ends_with("archived_sessions");
    rollout.ancestors().find(sessions)?.parent().map(Path::to_owned)
}

/// The session a tool call belongs to, from what Codex tells the MCP server with every call: its root thread,
/// also when a subagent calls.
pub fn session_of_call(meta: &Map<String, Value>) -> Option<String> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).filter(|id| !id.is_empty()).map(str::to_owned);
    text(meta.get("sessionId"))
        .or_else(|| text(meta.get("x-codex-turn-metadata")?.get("session_id")))
        .or_else(|| text(meta.get("threadId")))
}
