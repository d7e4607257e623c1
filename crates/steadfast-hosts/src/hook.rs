//! What the hooks of all hosts have in common.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use steadfast_model::hook::{HookReply, OwnToolDone, StartSource};

/// The fields of a hook's stdin; `None` for an object of another shape.
pub(crate) fn read_fields<'a, W: Deserialize<'a>>(stdin: &'a [u8]) -> Result<Option<W>, serde_json::Error> {
    match serde_json::from_slice(stdin) {
        Ok(wire) => Ok(Some(wire)),
        Err(error) if error.is_data() && serde_json::from_slice::<Map<String, Value>>(stdin).is_ok() => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn start_source(source: Option<&str>) -> StartSource {
    match source {
        Some("resume") => StartSource::Resume,
        Some("clear") => StartSource::Clear,
        Some("compact") => StartSource::Compact,
        Some("fork") => StartSource::Fork,
        _ => StartSource::Startup,
    }
}

/// The end of a call of one of our own tools, if the tool changes the goal.
pub(crate) fn own_tool_done(tool_name: &str, input: &Value, refusal: Option<String>) -> Option<OwnToolDone> {
    const CHANGES: [&str; 6] =
        ["create_goal", "update_goal", "update_objective", "resume_goal", "abandon_goal", "wait_goal"];
    CHANGES.contains(&tool_name).then(|| OwnToolDone {
        tool_name: tool_name.to_owned(),
        claims_complete: input["status"] == "complete",
        refusal,
        is_batch: false,
    })
}

/// What a host accepts in reply to an event.
pub(crate) struct Accepted {
    pub(crate) block: bool,
    pub(crate) context: bool,
    pub(crate) message: bool,
    /// How it is allowed to run one of our tools.
    pub(crate) allow: Option<Value>,
    /// A tool can be refused.
    pub(crate) refuse: bool,
}

/// Writes what is accepted of the reply; `None` when there is nothing to say.
pub(crate) fn write_reply(event_name: &str, reply: &HookReply, accepted: Accepted) -> Option<String> {
    let mut output = Map::new();
    // Codex refuses an empty reason.
    if let Some(reason) = reply.block.as_ref().filter(|reason| accepted.block && !reason.trim().is_empty()) {
        output.insert("decision".into(), json!("block"));
        output.insert("reason".into(), json!(reason));
    }
    if let Some(context) = reply.context.as_ref().filter(|_| accepted.context) {
        output.insert("hookSpecificOutput".into(), json!({"hookEventName": event_name, "additionalContext": context}));
    }
    if let Some(decision) = accepted.allow.filter(|_| reply.allow_tool) {
        output.insert("hookSpecificOutput".into(), decision);
    }
    if let Some(reason) = reply.refuse_tool.as_ref().filter(|_| accepted.refuse) {
        let decision =
            json!({"hookEventName": event_name, "permissionDecision": "deny", "permissionDecisionReason": reason});
        output.insert("hookSpecificOutput".into(), decision);
    }
    if let Some(message) = reply.message.as_ref().filter(|_| accepted.message) {
        output.insert("systemMessage".into(), json!(message));
    }
    (!output.is_empty()).then(|| Value::Object(output).to_string())
}
