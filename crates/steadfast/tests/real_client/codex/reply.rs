//! Replies of the scripted model of Codex: their parts and their wire form (server-sent events of the Responses API).

use super::model::Responses;
use crate::scripted;
use serde_json::{Value, json};
use std::ops::Add;

/// The token counts of one response. As on the wire, `input` includes `cached` and `output` includes `reasoning`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) output: u64,
    pub(crate) reasoning: u64,
}

impl Usage {
    pub(crate) const fn new(input: u64, cached: u64, output: u64, reasoning: u64) -> Self {
        Self { input, cached, output, reasoning }
    }

    pub(crate) fn total(&self) -> u64 {
        self.input + self.output
    }

    /// Reads a usage object of the client: of a rollout, of `turn.completed`, of a hook. Missing counts are 0.
    pub(crate) fn from_client(usage: &Value) -> Self {
        let count = |key: &str| usage[key].as_u64().unwrap_or(0);
        Self {
            input: count("input_tokens"),
            cached: count("cached_input_tokens"),
            output: count("output_tokens"),
            reasoning: count("reasoning_output_tokens"),
        }
    }

    fn to_json(self) -> Value {
        json!({
            "input_tokens": self.input,
            "input_tokens_details": {"cached_tokens": self.cached},
            "output_tokens": self.output,
            "output_tokens_details": {"reasoning_tokens": self.reasoning},
            "total_tokens": self.total()
        })
    }
}

impl Add for Usage {
    type Output = Usage;

    fn add(self, other: Usage) -> Usage {
        Usage::new(
            self.input + other.input,
            self.cached + other.cached,
            self.output + other.output,
            self.reasoning + other.reasoning,
        )
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Usage>>(all: I) -> Usage {
        all.fold(Usage::default(), Add::add)
    }
}

/// A tool as the model has to name it. Tools of MCP servers live in a namespace (`mcp__server`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tool {
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl Tool {
    pub(crate) fn in_namespace(namespace: &str, name: &str) -> Self {
        Self { namespace: Some(namespace.into()), name: name.into() }
    }
}

impl From<&str> for Tool {
    fn from(name: &str) -> Self {
        Self { namespace: None, name: name.into() }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Item {
    Text(String),
    Call { id: String, tool: Tool, input: Value },
    Code { id: String, name: String, input: String },
}

pub(crate) fn error_body(status: u16, message: &str) -> Value {
    let kind = if status < 500 { "invalid_request_error" } else { "server_error" };
    json!({"error": {"type": kind, "message": message}})
}

pub(crate) type Reply = scripted::Reply<Responses>;

impl Reply {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::default().and_text(text)
    }

    pub(crate) fn tool(id: &str, tool: impl Into<Tool>, input: Value) -> Self {
        Self::default().and_tool(id, tool, input)
    }

    /// A command for the client's shell tool.
    pub(crate) fn shell(id: &str, command: &str) -> Self {
        Self::tool(id, "exec_command", json!({"cmd": command}))
    }

    /// The plan's limit is reached; it ends at the time given (Unix seconds).
    pub(crate) fn usage_limit(resets_at: u64) -> Self {
        let error = json!({"type": "usage_limit_reached", "plan_type": "plus", "resets_at": resets_at});
        let headers = [
            ("x-codex-primary-used-percent", "100".to_owned()),
            ("x-codex-primary-window-minutes", "300".to_owned()),
            ("x-codex-primary-reset-at", resets_at.to_string()),
            ("x-codex-secondary-used-percent", "40".to_owned()),
            ("x-codex-secondary-window-minutes", "10080".to_owned()),
            ("x-codex-secondary-reset-at", (resets_at + 500_000).to_string()),
        ];
        Self::failure(429, json!({"error": error}), headers.into())
    }

    pub(crate) fn and_text(self, text: impl Into<String>) -> Self {
        self.and(Item::Text(text.into()))
    }

    /// The script can look for the id later with `Request::tool_result`.
    pub(crate) fn and_tool(self, id: &str, tool: impl Into<Tool>, input: Value) -> Self {
        self.and(Item::Call { id: id.into(), tool: tool.into(), input })
    }

    /// A call of a free-text tool: `exec` of code mode, `apply_patch`.
    pub(crate) fn and_code(self, id: &str, name: &str, input: impl Into<String>) -> Self {
        self.and(Item::Code { id: id.into(), name: name.into(), input: input.into() })
    }

    /// The output items, as they stand in the finished response.
    fn output(&self, response_id: &str) -> Vec<Value> {
        let number = response_id.trim_start_matches("resp_");
        let one = |(at, item): (usize, &Item)| match item {
            Item::Text(text) => json!({
                "type": "message", "id": format!("msg_{number}_{at}"), "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}]
            }),
            Item::Call { id, tool, input } => {
                let mut call = json!({
                    "type": "function_call", "id": format!("fc_{number}_{at}"), "status": "completed",
                    "call_id": id, "name": tool.name, "arguments": input.to_string()
                });
                if let Some(namespace) = &tool.namespace {
                    call["namespace"] = json!(namespace);
                }
                call
            }
            Item::Code { id, name, input } => json!({
                "type": "custom_tool_call", "id": format!("ctc_{number}_{at}"), "status": "completed",
                "call_id": id, "name": name, "input": input
            }),
        };
        self.parts.iter().enumerate().map(one).collect()
    }

    /// The whole response as the body of an event stream.
    pub(crate) fn events(&self, id: &str, model: &str, usage: Usage) -> String {
        let output = self.output(id);
        let mut response = json!({"id": id, "object": "response", "model": model, "status": "in_progress"});
        let mut body = String::new();
        let mut push = |event: Value| body.push_str(&scripted::event(&event));
        push(json!({"type": "response.created", "response": response}));
        for (at, item) in output.iter().enumerate() {
            let mut opening = item.clone();
            opening["status"] = json!("in_progress");
            if item["type"] == "message" {
                opening["content"] = json!([]);
            }
            push(json!({"type": "response.output_item.added", "output_index": at, "item": opening}));
            if let Some(text) = item["content"][0]["text"].as_str() {
                let place =
                    |kind: &str| json!({"type": kind, "item_id": item["id"], "output_index": at, "content_index": 0});
                for word in text.split_inclusive(' ') {
                    let mut delta = place("response.output_text.delta");
                    delta["delta"] = json!(word);
                    push(delta);
                }
                let mut done = place("response.output_text.done");
                done["text"] = json!(text);
                push(done);
            }
            push(json!({"type": "response.output_item.done", "output_index": at, "item": item}));
        }
        response["status"] = json!("completed");
        response["output"] = json!(output);
        response["usage"] = usage.to_json();
        push(json!({"type": "response.completed", "response": response}));
        body
    }
}
