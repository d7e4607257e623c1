//! Replies of the scripted model of Claude Code: their parts and their two wire forms (one JSON body, or the same
//! message as server-sent events).

use crate::model::Messages;
use crate::scripted;
use serde_json::{Value, json};
use std::ops::Add;

/// The four token counts a message is billed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cache_creation: u64,
    pub(crate) cache_read: u64,
}

impl Usage {
    pub(crate) const fn new(input: u64, output: u64, cache_creation: u64, cache_read: u64) -> Self {
        Self { input, output, cache_creation, cache_read }
    }

    /// All four counts added up.
    pub(crate) fn total(&self) -> u64 {
        self.input + self.output + self.cache_creation + self.cache_read
    }

    /// Reads the `usage` object of a message; counts that are missing are 0.
    pub(crate) fn from_json(usage: &Value) -> Self {
        let count = |key: &str| usage[key].as_u64().unwrap_or(0);
        Self {
            input: count("input_tokens"),
            output: count("output_tokens"),
            cache_creation: count("cache_creation_input_tokens"),
            cache_read: count("cache_read_input_tokens"),
        }
    }

    fn to_json(self, output: u64) -> Value {
        json!({
            "input_tokens": self.input,
            "output_tokens": output,
            "cache_creation_input_tokens": self.cache_creation,
            "cache_read_input_tokens": self.cache_read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.cache_creation,
                "ephemeral_1h_input_tokens": 0
            },
            "service_tier": "standard"
        })
    }
}

impl Add for Usage {
    type Output = Usage;

    fn add(self, other: Usage) -> Usage {
        Usage::new(
            self.input + other.input,
            self.output + other.output,
            self.cache_creation + other.cache_creation,
            self.cache_read + other.cache_read,
        )
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Usage>>(all: I) -> Usage {
        all.fold(Usage::default(), Add::add)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Block {
    Text(String),
    ToolUse { id: Option<String>, name: String, input: Value },
}

pub(crate) fn error_body(status: u16, message: &str) -> Value {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

pub(crate) type Reply = scripted::Reply<Messages>;

impl Reply {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::default().and_text(text)
    }

    pub(crate) fn tool(name: impl Into<String>, input: Value) -> Self {
        Self::default().and_tool(name, input)
    }

    /// The five hours of a plan are used up; they begin again at the time given (Unix seconds). Only a client that is
    /// logged in to a plan reads the headers.
    pub(crate) fn usage_limit(resets_at: u64) -> Self {
        let headers = [
            ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
            ("anthropic-ratelimit-unified-representative-claim", "five_hour".to_owned()),
            ("anthropic-ratelimit-unified-reset", resets_at.to_string()),
            ("anthropic-ratelimit-unified-fallback", "unavailable".to_owned()),
        ];
        let message = "This request would exceed your account's rate limit. Please try again later.";
        Self::failure(429, error_body(429, message), headers.into())
    }

    pub(crate) fn and_text(self, text: impl Into<String>) -> Self {
        self.and(Block::Text(text.into()))
    }

    pub(crate) fn and_tool(self, name: impl Into<String>, input: Value) -> Self {
        self.and(Block::ToolUse { id: None, name: name.into(), input })
    }

    /// Like `and_tool`, with an id the script can look for later with
    /// `has_tool_result`.
    pub(crate) fn and_tool_with_id(self, id: &str, name: impl Into<String>, input: Value) -> Self {
        self.and(Block::ToolUse { id: Some(id.into()), name: name.into(), input })
    }

    /// The whole message as one JSON value.
    pub(crate) fn message(&self, id: &str, model: &str, usage: Usage) -> Value {
        let content: Vec<Value> = self
            .parts
            .iter()
            .enumerate()
            .map(|(at, block)| match block {
                Block::Text(text) => json!({"type": "text", "text": text}),
                Block::ToolUse { id: tool_id, name, input } => {
                    let made = format!("toolu_{}_{at}", id.trim_start_matches("msg_"));
                    let tool_id = tool_id.clone().unwrap_or(made);
                    json!({"type": "tool_use", "id": tool_id, "name": name, "input": input})
                }
            })
            .collect();
        let calls_tool = self.parts.iter().any(|b| matches!(b, Block::ToolUse { .. }));
        json!({
            "id": id, "type": "message", "role": "assistant", "model": model,
            "content": content,
            "stop_reason": if calls_tool { "tool_use" } else { "end_turn" },
            "stop_sequence": null,
            "usage": usage.to_json(usage.output)
        })
    }

    /// The same message as the body of an event stream. As with the real API,
    /// only `message_delta` has the final output count.
    pub(crate) fn events(message: &Value) -> String {
        let mut body = String::new();
        let mut push = |event: Value| body.push_str(&scripted::event(&event));
        let usage = Usage::from_json(&message["usage"]);
        let mut start = message.clone();
        start["content"] = json!([]);
        start["stop_reason"] = Value::Null;
        start["usage"] = usage.to_json(1);
        push(json!({"type": "message_start", "message": start}));
        for (at, block) in message["content"].as_array().into_iter().flatten().enumerate() {
            let (opening, delta) = if block["type"] == "text" {
                (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": block["text"]}))
            } else {
                let mut opening = block.clone();
                opening["input"] = json!({});
                let input = block["input"].to_string();
                (opening, json!({"type": "input_json_delta", "partial_json": input}))
            };
            push(json!({"type": "content_block_start", "index": at, "content_block": opening}));
            push(json!({"type": "content_block_delta", "index": at, "delta": delta}));
            push(json!({"type": "content_block_stop", "index": at}));
        }
        push(json!({
            "type": "message_delta",
            "delta": {"stop_reason": message["stop_reason"], "stop_sequence": null},
            "usage": usage.to_json(usage.output)
        }));
        push(json!({"type": "message_stop"}));
        body
    }
}
