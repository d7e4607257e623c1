//! Reads the transcripts a client left in its private home.

use crate::client::Client;
use crate::reply::Usage;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

impl Client {
    /// Transcripts of the main conversations, oldest first.
    pub(crate) fn transcripts(&self) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = children(&self.config_dir().join("projects"))
            .iter()
            .flat_map(|folder| children(folder))
            .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
            .collect();
        found.sort_by_key(|path| {
            let data = fs::metadata(path).ok()?;
            data.created().or(data.modified()).ok()
        });
        found
    }

    pub(crate) fn transcript(&self, session_id: &str) -> PathBuf {
        let mut all = self.transcripts();
        all.retain(|path| path.file_stem().is_some_and(|stem| stem == session_id));
        all.pop().unwrap_or_else(|| panic!("no transcript of session {session_id}"))
    }

    /// Transcripts of the subagents of a session.
    pub(crate) fn subagent_transcripts(&self, session_id: &str) -> Vec<PathBuf> {
        let folder = self.transcript(session_id).with_extension("").join("subagents");
        let mut found = children(&folder);
        found.retain(|path| path.extension().is_some_and(|e| e == "jsonl"));
        found
    }

    /// Usage by message id over all sessions and their subagents.
    pub(crate) fn usage(&self) -> BTreeMap<String, Usage> {
        let mut files = self.transcripts();
        files.extend(self.session_ids().iter().flat_map(|id| self.subagent_transcripts(id)));
        usage_by_message(&files)
    }

    /// Session ids, oldest first. After `/clear` there is one more.
    pub(crate) fn session_ids(&self) -> Vec<String> {
        let stem = |path: &PathBuf| Some(path.file_stem()?.to_string_lossy().into_owned());
        self.transcripts().iter().filter_map(stem).collect()
    }
}

fn children(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The records of a transcript; a line still being written is left out.
pub(crate) fn records(transcript: &Path) -> Vec<Value> {
    let text = fs::read_to_string(transcript).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Usage per message id. A message has one line per content block, each with
/// the same usage, so it must be counted once.
pub(crate) fn usage_by_message(transcripts: &[PathBuf]) -> BTreeMap<String, Usage> {
    let lines = transcripts.iter().flat_map(|path| records(path));
    let assistant = lines.filter(|r| r["type"] == "assistant" && r["message"]["model"] != "<synthetic>");
    let entry = |r: Value| {
        let id = r["message"]["id"].as_str()?.to_owned();
        Some((id, Usage::from_json(&r["message"]["usage"])))
    };
    assistant.filter_map(entry).collect()
}
