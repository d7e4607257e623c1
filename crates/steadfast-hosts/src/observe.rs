//! What the hosts' tool calls have in common: prompts that the client wrote itself, the text in a tool's answer
//! whatever its shape, names of tools of other servers. Nothing in here fails: what is not understood gives nothing.

use serde_json::Value;
use serde_json::value::RawValue;

use steadfast_model::memory::TaskStatus;
use steadfast_model::memory::observation::{Observation, attempt};
use steadfast_model::text;

/// How much of an output is handed on, from its end.
const OUTPUT_KEPT: usize = 64 * 1024;

/// How prompts begin that no user typed.
const MACHINE: [&str; 17] = [
    "<task-notification>",
    "<system-reminder>",
    "<tool-result>",
    "<tool_result>",
    "<context_guidance>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<command-name>",
    "<command-message>",
    "<bash-input>",
    "<bash-stdout>",
    "<hook_prompt",
    "<teammate-message",
    "<environment_context>",
    "<turn_aborted>",
    "<subagent_notification>",
];

/// A prompt, unless it is empty or the client wrote it.
pub(super) fn prompt(prompt: Option<&str>) -> Option<Observation> {
    let words = prompt?.trim_start();
    let by_machine = MACHINE.iter().any(|start| words.starts_with(start));
    (!words.is_empty() && !by_machine).then(|| Observation::Prompt(prompt.unwrap_or_default().to_owned()))
}

/// A part of a call that was stepped over so far; `Null` when there is none.
pub(super) fn value(raw: Option<&RawValue>) -> Value {
    raw.and_then(|raw| serde_json::from_slice(raw.get().as_bytes()).ok()).unwrap_or_default()
}

pub(super) fn string(value: &Value, field: &str) -> String {
    value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

pub(super) fn some_string(value: &Value, field: &str) -> Option<String> {
    value.get(field).and_then(Value::as_str).filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// The text of an answer: a string, blocks of text, or an object that holds one of them.
pub(super) fn answer_text(answer: &Value) -> String {
    let said = match answer {
        Value::String(said) => said.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> =
                blocks.iter().filter_map(|block| block.as_str().or_else(|| block.get("text")?.as_str())).collect();
            texts.join("\n")
        }
        Value::Object(fields) => {
            let parts: Vec<String> = ["stdout", "stderr", "output", "content", "error", "message"]
                .iter()
                .filter_map(|field| fields.get(*field))
                .map(answer_text)
                .filter(|part| !part.trim().is_empty())
                .collect();
            parts.join("\n")
        }
        _ => String::new(),
    };
    text::tail(&said, OUTPUT_KEPT).to_owned()
}

/// `mcp__server__tool` as something that can fail and work.
pub(super) fn foreign_tool(name: &str) -> Option<String> {
    let (server, tool) = name.strip_prefix("mcp__")?.rsplit_once("__")?;
    Some(attempt("mcp", &format!("{server} {tool}")))
}

/// A list of tasks that replaces the one before: text in `field`, and a status.
pub(super) fn task_list(list: &Value, field: &str) -> Option<Vec<(String, TaskStatus)>> {
    let tasks = list.as_array()?.iter().filter_map(|task| {
        let status = task["status"].as_str().and_then(|status| status.parse().ok()).unwrap_or(TaskStatus::Pending);
        Some((some_string(task, field)?, status))
    });
    Some(tasks.collect())
}
