//! Codex: where it keeps its session files, and below how they are read. One file a thread, called a rollout;
//! subagents and forks have files of their own beside it.

pub mod rollout;

use std::path::PathBuf;

use crate::env_vars;

/// Codex's own directory: `$CODEX_HOME`, else `~/.codex`.
pub fn home() -> Option<PathBuf> {
    env_vars::path(env_vars::CODEX_HOME).or_else(|| Some(etcetera::home_dir().ok()?.join(".codex")))
}

/// The directories that hold rollouts: those in use and those put away.
pub fn session_dirs() -> Vec<PathBuf> {
    let Some(home) = home() else { return Vec::new() };
    vec![home.join("sessions"), home.join("archived_sessions")]
}
