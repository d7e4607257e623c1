//! The stdout of a finished Codex run.

use super::reply::Usage;
use crate::process::Output;
use serde_json::Value;

impl Output {
    /// The events of a run with `--json`.
    pub(crate) fn events(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("no JSON ({e}): {line}\n{self:?}"));
        self.stdout.lines().filter(|line| !line.is_empty()).map(parse).collect()
    }

    pub(crate) fn event(&self, kind: &str) -> Option<Value> {
        self.events().into_iter().find(|event| event["type"] == kind)
    }

    pub(crate) fn thread_id(&self) -> String {
        let started = self.event("thread.started").unwrap_or_else(|| panic!("no thread was started: {self:?}"));
        started["thread_id"].as_str().expect("thread_id").to_owned()
    }

    /// The finished items of one type, as `agent_message` or `command_execution`.
    pub(crate) fn items(&self, kind: &str) -> Vec<Value> {
        let finished = self.events().into_iter().filter(|event| event["type"] == "item.completed");
        finished.map(|event| event["item"].clone()).filter(|item| item["type"] == kind).collect()
    }

    /// The last message of the model.
    pub(crate) fn last_message(&self) -> Option<String> {
        self.items("agent_message").last().and_then(|item| item["text"].as_str()).map(str::to_owned)
    }

    /// Usage of the whole THREAD so far, over resumes, and over the parent of a fork.
    pub(crate) fn thread_usage(&self) -> Option<Usage> {
        self.event("turn.completed").map(|event| Usage::from_client(&event["usage"]))
    }

    /// Why the turn failed.
    pub(crate) fn failure(&self) -> Option<String> {
        self.event("turn.failed").and_then(|event| event["error"]["message"].as_str().map(str::to_owned))
    }
}
