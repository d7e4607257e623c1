//! One request of Codex as a script sees it.

use super::model::Responses;
use super::reply::{Reply, Tool};
use crate::scripted;
pub(crate) use crate::scripted::Kind;
use serde_json::{Value, json};

pub(crate) type Request = scripted::Request<Responses>;

impl Request {
    /// What the client says about the turn: `thread_id`, `session_id`, `turn_id`, `turn_trigger`...
    pub(crate) fn turn_metadata(&self) -> Value {
        self.header("x-codex-turn-metadata").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    pub(crate) fn thread_id(&self) -> Option<String> {
        self.turn_metadata()["thread_id"].as_str().map(str::to_owned)
    }

    /// The text of the last message a user or a hook wrote (the latter in a `<hook_prompt>` element). What the
    /// client adds in the user's name and tool results are left out.
    pub(crate) fn last_user_text(&self) -> String {
        let added = ["<environment_context>", "<skill>", "<subagent_notification>", "# AGENTS.md"];
        let own = |m: &&Value| m["role"] == "user";
        let texts = self.input().iter().rev().filter(own).map(|message| {
            let texts = texts_of(&message["content"]);
            let own = texts.into_iter().filter(|text| !added.iter().any(|a| text.starts_with(a)));
            own.collect::<Vec<String>>().join("\n")
        });
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }

    /// Everything the model can read: instructions and all input items, with tool results and tool inputs.
    pub(crate) fn all_text(&self) -> String {
        let mut all = texts_of(&self.json["instructions"]);
        for item in self.input() {
            for part in ["content", "output", "arguments", "input"] {
                all.extend(texts_of(&item[part]));
            }
        }
        all.join("\n")
    }

    pub(crate) fn has_tool_result(&self, call_id: &str) -> bool {
        self.tool_result(call_id).is_some()
    }

    /// The text a tool call came back with.
    pub(crate) fn tool_result(&self, call_id: &str) -> Option<String> {
        let is_result = |item: &&Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("call_output"));
        let result = self.input().iter().filter(is_result).find(|item| item["call_id"] == call_id)?;
        Some(texts_of(&result["output"]).join("\n"))
    }

    /// The request for the summary when the conversation is compacted.
    pub(crate) fn is_compaction(&self) -> bool {
        self.kind == Kind::Compaction
    }

    /// An answer the client accepts, if this is no turn of the conversation or a subagent.
    pub(crate) fn side_reply(&self) -> Option<Reply> {
        match self.kind {
            Kind::Main | Kind::Subagent => None,
            Kind::Compaction => Some(Reply::text("SCRIPTED SUMMARY")),
            Kind::Side => Some(Reply::text(json!({"title": "Scripted title"}).to_string())),
        }
    }

    /// A turn of a subagent that has the marker in what it can read.
    pub(crate) fn is_subagent(&self, marker: &str) -> bool {
        self.kind == Kind::Subagent && self.all_text().contains(marker)
    }

    /// The offered tool whose name ends with the suffix, with its namespace if it has one.
    pub(crate) fn tool_named(&self, suffix: &str) -> Option<Tool> {
        self.tools().into_iter().find(|tool| tool.name.ends_with(suffix))
    }

    /// All offered tools. In code mode they are an input item.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        let mut found = vec![];
        let more = self.input().iter().filter(|item| item["type"] == "additional_tools").map(|item| &item["tools"]);
        for tool in std::iter::once(&self.json["tools"]).chain(more).filter_map(Value::as_array).flatten() {
            let name = tool["name"].as_str().or(tool["type"].as_str()).unwrap_or_default();
            if tool["type"] != "namespace" {
                found.push(Tool::from(name));
            }
            let inside = tool["tools"].as_array().into_iter().flatten();
            found.extend(inside.filter_map(|t| t["name"].as_str()).map(|inner| Tool::in_namespace(name, inner)));
        }
        found
    }

    /// One line for failure messages.
    pub(crate) fn summary(&self) -> String {
        let text: String = self.last_user_text().chars().take(100).collect();
        format!("{} {:?} tools={} last={text:?}", self.seq, self.kind, self.tools().len())
    }

    pub(crate) fn input(&self) -> &[Value] {
        self.json["input"].as_array().map_or(&[], Vec::as_slice)
    }
}

/// Texts of a content value: a string, or a list of parts.
fn texts_of(content: &Value) -> Vec<String> {
    if let Some(text) = content.as_str() {
        return vec![text.to_owned()];
    }
    let parts = content.as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).map(str::to_owned).collect()
}
