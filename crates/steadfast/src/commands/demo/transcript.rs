//! The session file as Claude Code 2.1 writes it: one JSON object per line, linked by `parentUuid`. Every block of a
//! message has its own line, which repeats the message's id and usage.

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use steadfast_model::clock;
use uuid::Uuid;

use super::folder::SESSION;
use super::steps::Usage;

/// A model with a known price, so that the status shows a cost.
const MODEL: &str = "claude-opus-4-8";

pub(super) struct Transcript {
    pub(super) path: PathBuf,
    /// The prompt that started the current turn.
    pub(super) prompt_id: String,
    directory: PathBuf,
    /// None in a new session.
    pub(super) last_uuid: Option<String>,
}

impl Transcript {
    /// Opens a new file, or the file of a session that is resumed.
    pub(super) fn open(path: PathBuf, directory: PathBuf) -> std::io::Result<Self> {
        let written = if path.exists() { fs_err::read_to_string(&path)? } else { String::new() };
        let last_line = written.lines().next_back().and_then(|line| serde_json::from_str::<Value>(line).ok());
        if let Some(folder) = path.parent() {
            fs_err::create_dir_all(folder)?;
        }
        let last_uuid = last_line.and_then(|line| line["uuid"].as_str().map(str::to_owned));
        Ok(Self { path, prompt_id: String::new(), directory, last_uuid })
    }

    /// Writes a message from the user, a hook or a tool.
    pub(super) fn user(&mut self, content: &Value, extra: Value) -> std::io::Result<()> {
        let line = json!({"promptId": self.prompt_id, "type": "user", "message": {"role": "user", "content": content}});
        self.write(merged(line, extra))
    }

    /// Writes an answer of the model, one line per block.
    pub(super) fn answer(&mut self, blocks: &[Value], ends_turn: bool, usage: Usage) -> std::io::Result<()> {
        let id = Uuid::new_v4().simple().to_string();
        let [input, cache_creation, cache_read, output] = usage;
        let usage = json!({
            "input_tokens": input, "cache_creation_input_tokens": cache_creation,
            "cache_read_input_tokens": cache_read, "output_tokens": output,
            "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": cache_creation},
            "service_tier": "standard", "speed": "standard",
        });
        for block in blocks {
            let message = json!({
                "id": format!("msg_demo{id}"), "type": "message", "role": "assistant", "model": MODEL,
                "content": [block], "stop_reason": if ends_turn { "end_turn" } else { "tool_use" }, "usage": usage,
            });
            self.write(json!({"message": message, "requestId": format!("req_demo{id}"), "type": "assistant"}))?;
        }
        Ok(())
    }

    /// Writes a compaction: the boundary, and the summary with which the model continues.
    pub(super) fn compaction(&mut self, summary: &str) -> std::io::Result<()> {
        let parent = self.last_uuid.take();
        self.write(json!({
            "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "isMeta": false,
            "level": "info", "logicalParentUuid": parent,
            "compactMetadata": {"trigger": "auto", "preTokens": 29_400, "postTokens": 900, "durationMs": 377},
        }))?;
        self.user(&json!(summary), json!({"isVisibleInTranscriptOnly": true, "isCompactSummary": true}))
    }

    fn write(&mut self, line: Value) -> std::io::Result<()> {
        let uuid = Uuid::new_v4().to_string();
        // With milliseconds: the goal may have started in the same second.
        let now = jiff::Timestamp::from_millisecond(clock::now()).map_err(std::io::Error::other)?;
        let common = json!({
            "parentUuid": self.last_uuid, "isSidechain": false, "uuid": uuid,
            "timestamp": now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(), "userType": "external",
            "entrypoint": "cli", "cwd": self.directory, "sessionId": SESSION, "version": "2.1.197", "gitBranch": "HEAD",
        });
        let mut file = fs_err::OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(format!("{}\n", merged(line, common)).as_bytes())?;
        self.last_uuid = Some(uuid);
        Ok(())
    }
}

/// Adds the fields of one object to another.
pub(super) fn merged(mut object: Value, extra: Value) -> Value {
    if let (Value::Object(object), Value::Object(extra)) = (&mut object, extra) {
        object.extend(extra);
    }
    object
}
