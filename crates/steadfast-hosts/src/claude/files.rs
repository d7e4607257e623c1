//! Where Claude Code keeps its files.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::SubagentFiles;
use crate::tree::{self, Owner};
use steadfast_model::hook::acceptable_id;
use steadfast_system::{bounded, env_vars};

/// The longest note or settings file that is read.
pub(super) const SMALL: u64 = 16 * 1024 * 1024;

/// `$CLAUDE_CONFIG_DIR`, several separated by commas, else `~/.claude`.
pub(crate) fn config_dirs() -> Vec<PathBuf> {
    match env_vars::text(env_vars::CLAUDE_CONFIG_DIR) {
        Some(list) => list.split(',').map(str::trim).filter(|dir| !dir.is_empty()).map(PathBuf::from).collect(),
        None => etcetera::home_dir().map(|home| vec![home.join(".claude")]).unwrap_or_default(),
    }
}

pub(crate) fn below_config_dirs(name: &str) -> Vec<PathBuf> {
    config_dirs().iter().map(|dir| dir.join(name)).collect()
}

/// The session that a client process runs now. The client's own record follows `/clear` and `--continue`.
pub(crate) fn session_of_client(pid: i32) -> Option<String> {
    config_dirs().iter().find_map(|config_dir| {
        let note = bounded::whole(&config_dir.join("sessions").join(format!("{pid}.json")), SMALL).ok()?;
        let note: Value = serde_json::from_slice(&note).ok()?;
        note["sessionId"].as_str().map(str::to_owned)
    })
}

/// The part of the user's settings that a client needs to reach its model, without hooks and plugins.
pub(crate) fn login_settings() -> Map<String, Value> {
    const NEEDED: [&str; 7] = [
        "env",
        "apiKeyHelper",
        "awsAuthRefresh",
        "awsCredentialExport",
        "gcpAuthRefresh",
        "forceLoginMethod",
        "forceLoginOrgUUID",
    ];
    let file = config_dirs().first().map(|directory| directory.join("settings.json"));
    let bytes = file.and_then(|file| bounded::whole(&file, SMALL).ok()).unwrap_or_default();
    let settings: Map<String, Value> = serde_json::from_slice(&bytes).unwrap_or_default();
    settings.into_iter().filter(|(name, _)| NEEDED.contains(&name.as_str())).collect()
}

/// `<session>/subagents/agent-<id>.jsonl` beside the session's own file.
pub(crate) fn subagent_files(transcript: &Path) -> SubagentFiles {
    let directory = transcript.with_extension("").join("subagents");
    let Ok(entries) = fs_err::read_dir(&directory) else {
        return Vec::new();
    };
    let named = entries.flatten().filter_map(|entry| {
        let name = entry.file_name();
        let id = name.to_str()?.strip_prefix("agent-")?.strip_suffix(".jsonl")?;
        Some((id.to_owned(), entry.path()))
    });
    let mut files: SubagentFiles = named.collect();
    files.sort();
    files
}

/// The kind of a subagent, from the note that the client writes beside its file when it starts it.
pub(crate) fn agent_type(transcript: &Path) -> Option<String> {
    let note = bounded::whole(&transcript.with_extension("meta.json"), SMALL).ok()?;
    let note: Value = serde_json::from_slice(&note).ok()?;
    note["agentType"].as_str().filter(|kind| acceptable_id(kind)).map(str::to_owned)
}

/// `<project>/<session>.jsonl` or `<project>/<session>/subagents/…/agent-<id>.jsonl`.
pub(crate) fn owner(root: &Path, path: &Path) -> Option<Owner> {
    let parts: Vec<&str> = path.strip_prefix(root).ok()?.iter().filter_map(|part| part.to_str()).collect();
    let name = path.file_stem()?.to_str()?.to_owned();
    Some(match parts.as_slice() {
        [folder, session, "subagents", ..] => {
            Owner { session_id: (*session).to_owned(), is_subagent: true, folder: (*folder).to_owned() }
        }
        [folder, _, ..] => Owner { session_id: name, is_subagent: false, folder: (*folder).to_owned() },
        _ => Owner { session_id: name, is_subagent: false, folder: String::new() },
    })
}

pub(crate) fn session_files(roots: &[PathBuf], session_id: &str) -> Vec<PathBuf> {
    // The id comes from outside and becomes a file name.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if session_id.is_empty() || session_id.len() > 128 || !session_id.chars().all(is_plain) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for root in roots {
        let Ok(projects) = fs_err::read_dir(root) else { continue };
        for project in projects.flatten() {
            let file = project.path().join(format!("{session_id}.jsonl"));
            if !file.is_file() {
                continue;
            }
            found.push(file);
            let mut below = Vec::new();
            let subagents = project.path().join(session_id);
            // Count the session even if the files of its subagents cannot be listed.
            let _ = tree::walk(&subagents, 1, &mut |path| owner(root, path), &mut below);
            found.extend(below.into_iter().filter(|file| file.is_subagent).map(|file| file.path));
        }
    }
    found
}
