//! The session file, in the form Claude Code 2.1 writes it: one JSON object a line, linked by `parentUuid`, and
//! every block of a message on a line of its own that repeats the message's id and usage.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use steadfast_model::clock;
use uuid::Uuid;

use super::stage::SESSION;

/// A model with a known price, so that the status can show what all this would have cost.
const MODEL: &str = "claude-opus-4-8";

/// Tokens of one answer of the model, as its vendor bills them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    pub(super) input: i64,
    pub(super) cache_creation: i64,
    pub(super) cache_read: i64,
    pub(super) output: i64,
}

impl Usage {
    /// What a token budget is held against: everything but cache reads.
    pub(super) fn counted(self) -> i64 {
        self.input + self.cache_creation + self.output
    }
}

pub(super) struct Transcript {
    path: PathBuf,
    directory: String,
    last_uuid: Option<String>,
}

impl Transcript {
    /// A new file, or one to append to when the session is resumed.
    pub(super) fn open(path: PathBuf, directory: &Path) -> std::io::Result<Self> {
        let written = if path.exists() { fs_err::read_to_string(&path)? } else { String::new() };
        let last_uuid = written
            .lines()
            .rev()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find_map(|line| line["uuid"].as_str().map(str::to_owned));
        if let Some(folder) = path.parent() {
            fs_err::create_dir_all(folder)?;
        }
        Ok(Self { path, directory: directory.to_string_lossy().into_owned(), last_uuid })
    }

    /// Whether a session was here before.
    pub(super) fn is_resumed(&self) -> bool {
        self.last_uuid.is_some()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what the user, a hook or a tool said to the model.
    pub(super) fn user(&mut self, prompt_id: &str, content: &Value, extra: Value) -> std::io::Result<()> {
        let line = json!({"promptId": prompt_id, "type": "user", "message": {"role": "user", "content": content}});
        self.write(line, extra)
    }

    /// Writes an answer of the model; returns how many lines repeat its usage.
    pub(super) fn answer(&mut self, blocks: Vec<Value>, ends_turn: bool, usage: Usage) -> std::io::Result<usize> {
        let id = Uuid::new_v4().simple().to_string();
        let usage = json!({
            "input_tokens": usage.input, "cache_creation_input_tokens": usage.cache_creation,
            "cache_read_input_tokens": usage.cache_read, "output_tokens": usage.output,
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0}, "service_tier": "standard",
            "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": usage.cache_creation},
            "inference_geo": "", "iterations": [], "speed": "standard",
        });
        let stop_reason = if ends_turn { "end_turn" } else { "tool_use" };
        let lines = blocks.len();
        for block in blocks {
            let message = json!({
                "id": format!("msg_demo{id}"), "type": "message", "role": "assistant", "model": MODEL,
                "content": [block], "stop_reason": stop_reason, "stop_sequence": null, "usage": usage,
                "stop_details": null,
            });
            let line = json!({"message": message, "requestId": format!("req_demo{id}"), "type": "assistant"});
            self.write(line, json!({}))?;
        }
        Ok(lines)
    }

    /// Writes what a compaction leaves behind: a boundary, and the summary the model goes on with.
    pub(super) fn compaction(
        &mut self,
        prompt_id: &str,
        summary: &str,
        before: i64,
        after: i64,
    ) -> std::io::Result<()> {
        let boundary = json!({
            "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "isMeta": false,
            "level": "info", "logicalParentUuid": self.last_uuid.take(),
            "compactMetadata": {"trigger": "auto", "preTokens": before, "postTokens": after, "durationMs": 377},
        });
        self.write(boundary, json!({}))?;
        let told = format!(
            "This session is being continued from a previous conversation that ran out of context. The summary \
             below covers the earlier portion of the conversation.\n\nSummary:\n{summary}"
        );
        let marks = json!({"isVisibleInTranscriptOnly": true, "isCompactSummary": true});
        self.user(prompt_id, &json!(told), marks)
    }

    fn write(&mut self, mut line: Value, extra: Value) -> std::io::Result<()> {
        let uuid = Uuid::new_v4().to_string();
        let common = json!({
            "parentUuid": self.last_uuid, "isSidechain": false, "uuid": uuid, "timestamp": timestamp(),
            "userType": "external", "entrypoint": "cli", "cwd": self.directory, "sessionId": SESSION,
            "version": "2.1.197", "gitBranch": "HEAD",
        });
        for more in [common, extra] {
            if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
                line.extend(more);
            }
        }
        let mut file = fs_err::OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        self.last_uuid = Some(uuid);
        Ok(())
    }
}

/// Now, to the millisecond: the goal may have started in this very second.
fn timestamp() -> String {
    jiff::Timestamp::from_millisecond(clock::now())
        .map(|now| now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
        .unwrap_or_default()
}
