//! One request of Claude Code as a script sees it.

use crate::model::Messages;
use crate::reply::Reply;
use crate::scripted;
pub(crate) use crate::scripted::Kind;
use serde_json::{Value, json};

pub(crate) type Request = scripted::Request<Messages>;

impl Request {
    pub(crate) fn session_id(&self) -> Option<String> {
        self.header("x-claude-code-session-id").map(str::to_owned)
    }

    /// Only requests of subagents have one.
    pub(crate) fn agent_id(&self) -> Option<&str> {
        self.header("x-claude-code-agent-id")
    }

    /// The text of the last message a user or a hook wrote. Reminders that the
    /// client adds and tool results are left out.
    pub(crate) fn last_user_text(&self) -> String {
        let own = |m: &&Value| m["role"] == "user";
        let texts = self.messages().iter().rev().filter(own).map(|message| {
            let blocks = texts_of(&message["content"], false);
            let own: Vec<String> = blocks.into_iter().filter(|t| !t.starts_with("<system-reminder>")).collect();
            own.join("\n")
        });
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }

    /// Everything the model can read: system text and all messages, with tool
    /// results and tool inputs.
    pub(crate) fn all_text(&self) -> String {
        let mut all = texts_of(&self.json["system"], true);
        all.extend(self.messages().iter().flat_map(|m| texts_of(&m["content"], true)));
        all.join("\n")
    }

    pub(crate) fn has_tool_result(&self, tool_use_id: &str) -> bool {
        self.tool_result(tool_use_id).is_some()
    }

    /// The text a tool call came back with.
    pub(crate) fn tool_result(&self, tool_use_id: &str) -> Option<String> {
        let blocks = self.messages().iter().filter_map(|m| m["content"].as_array()).flatten();
        let mut results = blocks.filter(|b| b["type"] == "tool_result");
        let result = results.find(|b| b["tool_use_id"] == tool_use_id)?;
        Some(texts_of(&result["content"], true).join("\n"))
    }

    /// A request whose usage no transcript shows and whose answer is no turn.
    pub(crate) fn is_side_call(&self) -> bool {
        // Turns always offer tools. Titles, the native goal evaluator and the
        // like do not, and ask for an answer by a schema.
        self.tools().is_empty() || !self.json["output_config"]["format"].is_null() || self.is_compaction()
    }

    /// The request for the summary when the conversation is compacted. It has
    /// the tools and the system text of a turn, so only its text identifies it.
    pub(crate) fn is_compaction(&self) -> bool {
        let text = self.last_user_text();
        text.contains("Your task is to create a detailed summary of") && text.contains("<summary>")
    }

    /// The request for a short title of the conversation (TUI only). It is made
    /// again with every prompt until the answer is usable.
    pub(crate) fn is_title(&self) -> bool {
        !self.json["output_config"]["format"]["schema"]["properties"]["title"].is_null()
    }

    /// An answer the client accepts, if this is a side call.
    pub(crate) fn side_reply(&self) -> Option<Reply> {
        if self.is_compaction() {
            Some(Reply::text("<analysis>All read.</analysis>\n<summary>SCRIPTED SUMMARY</summary>"))
        } else if self.is_title() {
            Some(Reply::text(json!({"title": "Scripted title"}).to_string()))
        } else {
            self.is_side_call().then(|| Reply::text("{}"))
        }
    }

    /// A turn of a subagent whose first message contains the marker.
    pub(crate) fn is_subagent(&self, marker: &str) -> bool {
        let first = self.messages().first().map(|m| texts_of(&m["content"], false).join("\n"));
        self.agent_id().is_some() && first.unwrap_or_default().contains(marker)
    }

    /// Full name of the offered tool that ends with the suffix, for instance
    /// `mcp__plugin_steadfast_steadfast__update_goal` for `update_goal`.
    pub(crate) fn tool_named(&self, suffix: &str) -> Option<String> {
        let names = self.tools().iter().filter_map(|tool| tool["name"].as_str());
        names.into_iter().find(|name| name.ends_with(suffix)).map(str::to_owned)
    }

    /// One line for failure messages.
    pub(crate) fn summary(&self) -> String {
        let text: String = self.last_user_text().chars().take(100).collect();
        format!("{} {:?} tools={} last={text:?}", self.seq, self.kind, self.tools().len())
    }

    fn messages(&self) -> &[Value] {
        self.json["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    fn tools(&self) -> &[Value] {
        self.json["tools"].as_array().map_or(&[], Vec::as_slice)
    }
}

/// Texts of a content value: a string, or a list of blocks.
fn texts_of(content: &Value, with_tools: bool) -> Vec<String> {
    if let Some(text) = content.as_str() {
        return vec![text.to_owned()];
    }
    let mut texts = vec![];
    for block in content.as_array().into_iter().flatten() {
        match block["type"].as_str() {
            Some("text") => texts.extend(block["text"].as_str().map(str::to_owned)),
            Some("tool_result") if with_tools => texts.extend(texts_of(&block["content"], true)),
            Some("tool_use") if with_tools => texts.push(block["input"].to_string()),
            _ => {}
        }
    }
    texts
}
