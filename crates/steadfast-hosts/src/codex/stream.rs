//! What `codex exec --json` prints: the thread first, then items, and `turn.completed` or `turn.failed` at the end.
//! Warnings are items of the type `error` and mean nothing.

use serde_json::Value;

use super::rollout::wire::WireTokens;
use crate::stream::{AgentStream, LONGEST_DETAIL, StreamError, field, text};
use steadfast_model::hook::acceptable_id;
use steadfast_model::run::AttemptUsage;
use steadfast_model::text::headline;

pub(super) fn read_event(event: &Value, stream: &mut AgentStream) {
    match text(event, "type") {
        Some("thread.started") => {
            stream.session_id = text(event, "thread_id").filter(|id| acceptable_id(id)).map(str::to_owned);
        }
        Some("item.completed") => item(event, stream),
        // Printed for every failed request; the client may retry by itself.
        Some("error") => failed(text(event, "message"), stream),
        Some("turn.failed") => {
            stream.is_complete = true;
            failed(event.pointer("/error/message").and_then(Value::as_str), stream);
        }
        Some("turn.completed") => {
            stream.is_complete = true;
            stream.error = None;
            let tokens = event.get("usage").map(|usage| WireTokens::read(usage).unwrap_or_default().split());
            stream.usage = tokens.map(|tokens| AttemptUsage { tokens, cost_unknown: true, ..AttemptUsage::default() });
        }
        _ => {}
    }
}

fn item(event: &Value, stream: &mut AgentStream) {
    let Some(item) = event.get("item") else { return };
    match text(item, "type") {
        Some("agent_message") => {
            if let Some(said) = text(item, "text").filter(|said| !said.trim().is_empty()) {
                stream.final_text = Some(said.to_owned());
            }
        }
        Some("collab_tool_call") => {
            let threads = item.get("receiver_thread_ids").and_then(Value::as_array).into_iter().flatten();
            for thread in threads.filter_map(Value::as_str).filter(|id| acceptable_id(id)) {
                if stream.subagents.len() < 1_000 && !stream.subagents.iter().any(|known| known == thread) {
                    stream.subagents.push(thread.to_owned());
                }
            }
        }
        _ => {}
    }
}

fn failed(message: Option<&str>, stream: &mut AgentStream) {
    let message = message.unwrap_or("the turn failed").to_owned();
    stream.error = Some(StreamError { message, ..StreamError::default() });
}

pub(super) fn readable(event: &Value) -> Vec<String> {
    let item = event.get("item").unwrap_or(&Value::Null);
    let said = match (field(event, "type"), field(item, "type")) {
        ("item.completed", "agent_message") => field(item, "text").trim().to_owned(),
        ("item.completed", "command_execution") => {
            format!("· {}", headline(field(item, "command"), LONGEST_DETAIL))
        }
        ("item.completed", "mcp_tool_call") => format!("· {} {}", field(item, "server"), field(item, "tool")),
        ("item.completed", "web_search") => {
            format!("· search {}", headline(field(item, "query"), LONGEST_DETAIL))
        }
        ("item.completed", "file_change") => {
            let changes = item.get("changes").and_then(Value::as_array).into_iter().flatten();
            let paths: Vec<&str> = changes.map(|change| field(change, "path")).collect();
            format!("· changed {}", headline(&paths.join(", "), LONGEST_DETAIL))
        }
        ("turn.failed", _) => {
            let message = event.pointer("/error/message").and_then(Value::as_str).unwrap_or("the turn failed");
            format!("! {}", headline(message, LONGEST_DETAIL))
        }
        _ => String::new(),
    };
    if said.is_empty() { Vec::new() } else { vec![said] }
}
