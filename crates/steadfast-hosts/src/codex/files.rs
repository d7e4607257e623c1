//! Where Codex keeps its files.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::rollout;
use crate::adapter::{AgentCall, ToolCallOrigin};
use crate::stream::SessionSpan;
use crate::tree::{self, Owner};
use steadfast_model::clock::{self, DAY, Millis};
use steadfast_system::env_vars;

/// `$CODEX_HOME`, else `~/.codex`.
pub(crate) fn home() -> Option<PathBuf> {
    env_vars::path(env_vars::CODEX_HOME).or_else(|| Some(etcetera::home_dir().ok()?.join(".codex")))
}

/// The directories that hold rollouts, current and archived.
pub(crate) fn session_dirs() -> Vec<PathBuf> {
    home().map(|home| vec![home.join("sessions"), home.join("archived_sessions")]).unwrap_or_default()
}

/// The Codex home that a rollout belongs to, whatever this process's environment says.
pub(crate) fn home_of(rollout: &Path) -> Option<PathBuf> {
    let sessions = |dir: &&Path| dir.ends_with("sessions") || dir.ends_with("archived_sessions");
    rollout.ancestors().find(sessions)?.parent().map(Path::to_owned)
}

/// Codex's database of its own goals: `goals_N.sqlite`, where N is the number of its schema and the newest counts.
pub(crate) fn goal_database(codex_home: &Path) -> Option<PathBuf> {
    let number = |path: &Path| -> Option<u32> {
        path.file_name()?.to_str()?.strip_prefix("goals_")?.strip_suffix(".sqlite")?.parse().ok()
    };
    // Where it is depends on the version of the client.
    let entries =
        [codex_home.to_owned(), codex_home.join("sqlite")].into_iter().filter_map(|dir| fs_err::read_dir(dir).ok());
    let paths = entries.flatten().filter_map(Result::ok).map(|entry| entry.path());
    paths.filter_map(|path| Some((number(&path)?, path))).max().map(|(_, path)| path)
}

/// The session of a tool call, from the metadata of the call: the root thread, also when a subagent calls. The id of a
/// subagent is that of its own thread.
pub(crate) fn tool_call_origin(meta: &Map<String, Value>) -> Option<ToolCallOrigin> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).filter(|id| !id.is_empty()).map(str::to_owned);
    let thread = text(meta.get("threadId"));
    let session_id = text(meta.get("sessionId"))
        .or_else(|| text(meta.get("x-codex-turn-metadata")?.get("session_id")))
        .or_else(|| thread.clone())?;
    let agent = match (thread, text(meta.get("callId"))) {
        (Some(agent_id), Some(tool_use_id)) if agent_id != session_id => Some(AgentCall { agent_id, tool_use_id }),
        _ => None,
    };
    Some(ToolCallOrigin::Session { session_id, agent })
}

/// `rollout-<time>-<thread>.jsonl`, where the thread is a UUID; after a revert `…-<thread>_<rollout>.jsonl`.
pub(crate) fn owner(path: &Path) -> Option<Owner> {
    const UUID: usize = 36;
    let name = path.file_stem()?.to_str()?.strip_prefix("rollout-")?;
    let name = name.split_once('_').map_or(name, |(thread, _)| thread);
    let thread = name.len().checked_sub(UUID).and_then(|from| name.get(from..)).unwrap_or(name);
    Some(Owner { session_id: thread.to_owned(), is_subagent: false, folder: String::new() })
}

/// The rollouts of a thread and its subagents: those that are named, and those whose first line names the thread. Only
/// the folders of the days around the session are read.
pub(crate) fn session_files(roots: &[PathBuf], session: &SessionSpan<'_>) -> Vec<PathBuf> {
    let thread = session.session_id;
    let mut found = Vec::new();
    for folder in day_folders(roots, session.started_at_ms, session.ended_at_ms) {
        let mut files = Vec::new();
        // Days without sessions have no folder.
        let _ = tree::walk(&folder, tree::DEEPEST, &mut owner, &mut files);
        for file in files {
            let named = file.session_id == thread || session.subagents.contains(&file.session_id);
            let is_recent = clock::from_wall(file.modified / 1_000_000) >= session.started_at_ms;
            if named || (is_recent && rollout::root_session(&file.path).as_deref() == Some(thread)) {
                found.push(file.path);
            }
        }
    }
    found
}

/// `<root>/2026/11/15`; the names are in local time, so one more day on both sides is included.
fn day_folders(roots: &[PathBuf], started_at_ms: Millis, ended_at_ms: Millis) -> Vec<PathBuf> {
    const MOST_DAYS: usize = 40;
    let mut days = Vec::new();
    let mut at = started_at_ms - DAY;
    while at <= ended_at_ms + DAY && days.len() < MOST_DAYS {
        let day = clock::to_rfc3339(at);
        if let Some((date, _)) = day.split_once('T') {
            days.push(date.replace('-', "/"));
        }
        at += DAY;
    }
    roots.iter().flat_map(|root| days.iter().map(move |day| root.join(day))).collect()
}
