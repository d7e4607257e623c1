//! Reads the files of Codex's threads.

use super::client::Codex;
use super::reply::Usage;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

impl Codex {
    /// All rollout files, oldest first by name.
    pub(crate) fn rollouts(&self) -> Vec<PathBuf> {
        let mut found = vec![];
        collect(&self.codex_home().join("sessions"), &mut found);
        found.sort();
        found
    }

    /// The rollout of one thread.
    pub(crate) fn rollout(&self, thread_id: &str) -> PathBuf {
        let is_its = |path: &PathBuf| path.to_string_lossy().contains(thread_id);
        self.rollouts().into_iter().find(is_its).unwrap_or_else(|| panic!("no rollout of {thread_id}"))
    }

    /// Usage by response id over all rollouts.
    pub(crate) fn usage(&self) -> BTreeMap<String, Usage> {
        self.rollouts().iter().flat_map(|path| usage_of(path)).collect()
    }
}

/// The records of a rollout. A line that is still being written is left out.
pub(crate) fn records(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("rollout");
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The payloads of one type, as `token_usage_record` or `compacted`.
pub(crate) fn payloads(path: &Path, kind: &str) -> Vec<Value> {
    records(path).into_iter().filter(|r| r["type"] == kind).map(|mut r| r["payload"].take()).collect()
}

/// The payloads of the events of one type, as `task_complete`.
pub(crate) fn events(path: &Path, kind: &str) -> Vec<Value> {
    payloads(path, "event_msg").into_iter().filter(|payload| payload["type"] == kind).collect()
}

/// Usage by response id in one rollout.
pub(crate) fn usage_of(path: &Path) -> BTreeMap<String, Usage> {
    let records = payloads(path, "token_usage_record").into_iter();
    records.filter_map(|r| Some((r["response_id"].as_str()?.to_owned(), Usage::from_client(&r["usage"])))).collect()
}

fn collect(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|end| end == "jsonl") {
            found.push(path);
        }
    }
}
