//! Claude Code: what its hooks send, reduced to our own events, and what they accept in return. Unknown events
//! and fields are ignored, since the client adds some every few weeks.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{command, observe};
use crate::hook::{self, Accepted, read_fields, start_source};
use crate::observe::value;
use crate::{ToolCallOrigin, repair};
use steadfast_model::hook::{Agent, HookEvent, HookInput, HookReply, acceptable_id};
use steadfast_model::host::Host;
use steadfast_system::env_vars;

/// How the client names the tools of our MCP server, from the plugin or added by hand.
const OWN_TOOLS: [&str; 2] = ["mcp__plugin_steadfast_steadfast__", "mcp__steadfast__"];

/// The fields of all events together, exactly as sent.
#[derive(Deserialize)]
pub(super) struct HookWire<'a> {
    pub(super) hook_event_name: String,
    pub(super) session_id: String,
    pub(super) transcript_path: Option<PathBuf>,
    pub(super) cwd: Option<String>,
    pub(super) source: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) prompt: Option<String>,
    pub(super) command_name: Option<String>,
    pub(super) command_args: Option<String>,
    pub(super) command_source: Option<String>,
    pub(super) tool_name: Option<String>,
    pub(super) tool_use_id: Option<String>,
    pub(super) agent_id: Option<String>,
    pub(super) agent_type: Option<String>,
    pub(super) agent_transcript_path: Option<PathBuf>,
    pub(super) stop_hook_active: Option<bool>,
    pub(super) last_assistant_message: Option<String>,
    pub(super) background_tasks: Option<Vec<Value>>,
    pub(super) error: Option<String>,
    pub(super) is_interrupt: Option<bool>,
    pub(super) task_id: Option<String>,
    pub(super) task_subject: Option<String>,
    pub(super) file_path: Option<String>,
    // These can be long and are parsed only when needed.
    #[serde(borrow)]
    pub(super) tool_input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<&'a RawValue>,
}

/// The summary that `hooks.json` gives a wake-up; the client makes it part of the prompt.
const WOKEN: &str = "<summary>◎ goal continues</summary>";

pub(crate) fn read_hook(stdin: &[u8]) -> Result<Option<HookInput>, serde_json::Error> {
    let stdin = repair::well_formed(stdin);
    let Some(wire) = read_fields::<HookWire<'_>>(&stdin)?.filter(|wire| acceptable_id(&wire.session_id)) else {
        return Ok(None);
    };
    let agent = wire.agent_id.clone().filter(|id| !id.is_empty()).map(|id| Agent {
        id,
        agent_type: wire.agent_type.clone().unwrap_or_default(),
        transcript: wire.agent_transcript_path.clone(),
    });
    let observations = observe::observe(&wire);
    let event = match wire.hook_event_name.as_str() {
        "SessionStart" => HookEvent::SessionStart(start_source(wire.source.as_deref())),
        "SessionEnd" => HookEvent::SessionEnd { reason: wire.reason.unwrap_or_default() },
        "UserPromptSubmit" => {
            let prompt = wire.prompt.unwrap_or_default();
            match prompt.trim_start().starts_with("<task-notification>") {
                true if prompt.contains(WOKEN) => HookEvent::Woken,
                // It was expanded before.
                false if command::is_named_like_ours(&prompt) => HookEvent::CommandPassed,
                by_client => HookEvent::Prompt { typed: !by_client },
            }
        }
        "UserPromptExpansion" => {
            let name = wire.command_name.unwrap_or_default();
            let arguments = wire.command_args.unwrap_or_default();
            match command::own_verb(&name, wire.command_source.as_deref()) {
                Some(verb) => match command::hidden(&project_dir(wire.cwd.as_deref()), &name, &arguments) {
                    Some(text) => HookEvent::HiddenCommand { name, text },
                    None => HookEvent::Command { verb: verb.to_owned(), arguments },
                },
                None if name == "rate-limit-options" => HookEvent::LimitDialog,
                None => return Ok(None),
            }
        }
        "PreToolUse" => {
            let tool_name = wire.tool_name.as_deref().and_then(own_tool);
            match (wire.tool_use_id, tool_name) {
                (Some(tool_use_id), Some(tool_name)) => HookEvent::OwnTool {
                    tool_use_id,
                    tool_name: tool_name.to_owned(),
                    agent_id: wire.agent_id.unwrap_or_default(),
                    agent_type: wire.agent_type.unwrap_or_default(),
                },
                (None, Some(_)) => return Ok(None),
                (_, None) => HookEvent::ToolAsked { agent_type: agent.map(|_| wire.agent_type.unwrap_or_default()) },
            }
        }
        "PostToolUse" | "PostToolUseFailure"
            if wire.tool_name.as_deref().is_some_and(|name| own_tool(name).is_some()) =>
        {
            let refusal = wire.error.filter(|_| wire.hook_event_name == "PostToolUseFailure");
            let name = wire.tool_name.as_deref().and_then(own_tool).unwrap_or_default();
            match hook::own_tool_done(name, &value(wire.tool_input), refusal) {
                Some(done) => HookEvent::OwnToolDone(done),
                None => return Ok(None),
            }
        }
        "PermissionRequest" if wire.tool_name.as_deref().and_then(own_tool).is_none() => HookEvent::PermissionAsked,
        "Notification" => HookEvent::Idle,
        "PostToolBatch" => HookEvent::ToolBatch { agent },
        "Stop" => HookEvent::Stop {
            after_continuation: wire.stop_hook_active.unwrap_or(false),
            last_message: wire.last_assistant_message,
            background_work: wire
                .background_tasks
                .is_some_and(|tasks| tasks.iter().any(|task| task["status"] == "running")),
        },
        "StopFailure" => HookEvent::StopFailure {
            error: wire.error.unwrap_or_default(),
            message: wire.last_assistant_message.unwrap_or_default(),
        },
        // Compaction announces itself as a subagent without a type, whose file does not exist.
        "SubagentStop" if wire.agent_type.as_deref() == Some("") => return Ok(None),
        "SubagentStop" => match agent {
            Some(agent) => HookEvent::SubagentStop { agent },
            None => return Ok(None),
        },
        "PreCompact" => HookEvent::PreCompact,
        "PostToolUse" | "PostToolUseFailure" | "TaskCreated" | "TaskCompleted" | "SubagentStart"
        | "InstructionsLoaded"
            if !observations.is_empty() =>
        {
            HookEvent::Seen
        }
        _ => return Ok(None),
    };
    let cwd = wire.cwd.unwrap_or_default();
    Ok(Some(HookInput {
        host: Host::Claude,
        turn_id: None,
        event_name: wire.hook_event_name,
        session_id: wire.session_id,
        transcript: wire.transcript_path.filter(|path| !path.as_os_str().is_empty()),
        project_dir: project_dir(Some(&cwd)),
        cwd,
        event,
        observations,
    }))
}

fn project_dir(cwd: Option<&str>) -> String {
    env_vars::text(env_vars::CLAUDE_PROJECT_DIR).unwrap_or_else(|| cwd.unwrap_or_default().to_owned())
}

pub(super) fn own_tool(name: &str) -> Option<&str> {
    OWN_TOOLS.iter().find_map(|prefix| name.strip_prefix(prefix))
}

/// What the user typed, of a message that records a command of the client's own: `/goal TEXT`.
pub(crate) fn typed_command(message: &str) -> Option<String> {
    let between = |from: &str, to: &str| message.split_once(from)?.1.rsplit_once(to).map(|(inside, _)| inside);
    let name = between("<command-name>", "</command-name>")?;
    let arguments = between("<command-args>", "</command-args>")?;
    message.trim_start().starts_with("<command-").then(|| format!("{name} {arguments}"))
}

/// Names the call by the id under which its `PreToolUse` hook saw it.
pub(crate) fn tool_call_origin(meta: &Map<String, Value>) -> Option<ToolCallOrigin> {
    let id = meta.get("claudecode/toolUseId")?.as_str().filter(|id| !id.is_empty())?;
    Some(ToolCallOrigin::ToolUse(id.to_owned()))
}

pub(crate) fn is_evaluator(agent_type: &str) -> bool {
    Host::Claude.is_evaluator(agent_type)
}

pub(crate) fn write_reply(event_name: &str, reply: &HookReply) -> Option<String> {
    let reads_context = matches!(event_name, "UserPromptSubmit" | "UserPromptExpansion" | "PostToolBatch");
    let allow = json!({
        "hookEventName": event_name,
        "permissionDecision": "allow",
        "permissionDecisionReason": "steadfast's own tools only touch this session's goal",
    });
    let accepted = Accepted {
        block: reads_context || event_name == "Stop",
        context: reads_context || event_name == "SessionStart",
        message: true,
        allow: (event_name == "PreToolUse").then_some(allow),
        refuse: event_name == "PreToolUse",
    };
    hook::write_reply(event_name, reply, accepted)
}

#[cfg(test)]
mod tests;
