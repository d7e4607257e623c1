//! Claude Code: what its hooks send, reduced to our own events, and what they accept in return. Unknown events
//! and fields are ignored, since the client adds some every few weeks; nothing is printed that the client does
//! not know for that event.

mod observe;
pub(super) mod stream;
pub mod transcript;

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::Host;
use super::hook::{Agent, HookEvent, HookInput, HookReply, StartSource, acceptable_id};
use steadfast_system::env_vars;

/// Consecutive blocks without a tool call that the client accepts by default.
const DEFAULT_BLOCK_CAP: i64 = 8;
/// The plugin's evaluator. The bare name is not enough: a worker can write an agent file of that name.
const EVALUATOR_AGENT: &str = "steadfast:goal-evaluator";
/// How the client names the tools of our MCP server, from the plugin or added by hand.
const OWN_TOOLS: [&str; 2] = ["mcp__plugin_steadfast_steadfast__", "mcp__steadfast__"];

/// The fields of all events together, exactly as sent.
#[derive(Deserialize)]
struct HookWire<'a> {
    hook_event_name: String,
    session_id: String,
    transcript_path: Option<PathBuf>,
    cwd: Option<String>,
    source: Option<String>,
    reason: Option<String>,
    prompt: Option<String>,
    command_name: Option<String>,
    command_args: Option<String>,
    tool_name: Option<String>,
    tool_use_id: Option<String>,
    agent_id: Option<String>,
    agent_type: Option<String>,
    agent_transcript_path: Option<PathBuf>,
    stop_hook_active: Option<bool>,
    last_assistant_message: Option<String>,
    background_tasks: Option<Vec<BackgroundTaskWire>>,
    error: Option<String>,
    is_interrupt: Option<bool>,
    task_id: Option<String>,
    task_subject: Option<String>,
    file_path: Option<String>,
    // These can be long; they are stepped over until somebody asks.
    #[serde(borrow)]
    tool_input: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_response: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct BackgroundTaskWire {
    status: Option<String>,
}

/// Reads a hook's stdin. `None` is a well-formed event that is not for us.
pub fn read_hook(stdin: &[u8]) -> Result<Option<HookInput>, serde_json::Error> {
    let stdin = super::repair::well_formed(stdin);
    let wire: HookWire<'_> = match serde_json::from_slice(&stdin) {
        Ok(wire) => wire,
        Err(error) if error.is_data() && super::is_json_object(&stdin) => return Ok(None),
        Err(error) => return Err(error),
    };
    if !acceptable_id(&wire.session_id) {
        return Ok(None);
    }
    let agent = wire
        .agent_id
        .clone()
        .filter(|id| !id.is_empty())
        .map(|id| Agent { id, transcript: wire.agent_transcript_path.clone() });
    let observations = observe::observe(&wire);
    let event = match wire.hook_event_name.as_str() {
        "SessionStart" => HookEvent::SessionStart(match wire.source.as_deref() {
            Some("resume") => StartSource::Resume,
            Some("clear") => StartSource::Clear,
            Some("compact") => StartSource::Compact,
            Some("fork") => StartSource::Fork,
            _ => StartSource::Startup,
        }),
        "SessionEnd" => HookEvent::SessionEnd { reason: wire.reason.unwrap_or_default() },
        "UserPromptSubmit" => {
            let prompt = wire.prompt.unwrap_or_default();
            HookEvent::Prompt { typed: !prompt.trim_start().starts_with("<task-notification>") }
        }
        "UserPromptExpansion" => {
            let name = wire.command_name.unwrap_or_default();
            let Some(verb) = own_command(&name) else {
                return Ok(None);
            };
            HookEvent::Command { verb: verb.to_owned(), arguments: wire.command_args.unwrap_or_default() }
        }
        "PreToolUse" => {
            let tool_name = wire.tool_name.unwrap_or_default();
            let Some(tool_use_id) = wire.tool_use_id.filter(|_| own_tool(&tool_name).is_some()) else {
                return Ok(None);
            };
            HookEvent::OwnTool {
                tool_use_id,
                tool_name: own_tool(&tool_name).unwrap_or_default().to_owned(),
                agent_id: wire.agent_id.unwrap_or_default(),
                agent_type: wire.agent_type.unwrap_or_default(),
            }
        }
        "PostToolBatch" => HookEvent::ToolBatch { agent },
        "Stop" => HookEvent::Stop {
            after_continuation: wire.stop_hook_active.unwrap_or(false),
            last_message: wire.last_assistant_message,
            background_work: wire
                .background_tasks
                .is_some_and(|tasks| tasks.iter().any(|task| task.status.as_deref() == Some("running"))),
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
        project_dir: env_vars::text(env_vars::CLAUDE_PROJECT_DIR).unwrap_or_else(|| cwd.clone()),
        cwd,
        event,
        observations,
    }))
}

fn own_command(name: &str) -> Option<&str> {
    name.strip_prefix("steadfast:").unwrap_or(name).strip_prefix("goal-")
}

fn own_tool(name: &str) -> Option<&str> {
    OWN_TOOLS.iter().find_map(|prefix| name.strip_prefix(prefix))
}

/// What the user typed, of a message that records a command of the client's own: `/goal TEXT`.
pub(super) fn typed_command(message: &str) -> Option<String> {
    let between = |from: &str, to: &str| message.split_once(from)?.1.rsplit_once(to).map(|(inside, _)| inside);
    let name = between("<command-name>", "</command-name>")?;
    let arguments = between("<command-args>", "</command-args>")?;
    message.trim_start().starts_with("<command-").then(|| format!("{name} {arguments}"))
}

/// Whether the hook input proves that the evaluator made a call.
pub fn is_evaluator(agent_type: &str) -> bool {
    agent_type == EVALUATOR_AGENT
}

/// The session that a client process runs now, as the client itself notes it; this follows `/clear` and
/// `--continue`.
pub fn session_of_client(pid: i32) -> Option<String> {
    config_dirs().iter().find_map(|config_dir| {
        let note = fs_err::read(config_dir.join("sessions").join(format!("{pid}.json"))).ok()?;
        let note: Value = serde_json::from_slice(&note).ok()?;
        note["sessionId"].as_str().map(str::to_owned)
    })
}

/// How many blocks in a row the client accepts here; `None` when the user lifted the cap.
pub fn block_cap() -> Option<i64> {
    match env_vars::text(env_vars::STOP_HOOK_BLOCK_CAP).and_then(|text| text.parse::<i64>().ok()) {
        Some(0) => None,
        Some(cap) if cap > 0 => Some(cap),
        _ => Some(DEFAULT_BLOCK_CAP),
    }
}

/// Whether a hook that runs in the background can wake this client: only the terminal client does that.
pub fn can_rewake() -> bool {
    env_vars::text(env_vars::CLAUDE_CODE_ENTRYPOINT).as_deref() == Some("cli")
}

/// The client's configuration directories: `$CLAUDE_CONFIG_DIR`, several separated by commas, else `~/.claude`.
pub fn config_dirs() -> Vec<PathBuf> {
    match env_vars::text(env_vars::CLAUDE_CONFIG_DIR) {
        Some(list) => list.split(',').map(str::trim).filter(|dir| !dir.is_empty()).map(PathBuf::from).collect(),
        None => etcetera::home_dir().map(|home| vec![home.join(".claude")]).unwrap_or_default(),
    }
}

/// The part of the user's settings that a client needs to reach its model, as JSON: for a client that is told to leave
/// the rest of them, with hooks and plugins, alone.
pub fn login_settings() -> Option<String> {
    const NEEDED: [&str; 7] = [
        "env",
        "apiKeyHelper",
        "awsAuthRefresh",
        "awsCredentialExport",
        "gcpAuthRefresh",
        "forceLoginMethod",
        "forceLoginOrgUUID",
    ];
    let file = config_dirs().first()?.join("settings.json");
    let settings: Map<String, Value> = serde_json::from_slice(&fs_err::read(file).ok()?).ok()?;
    let needed: Map<String, Value> = settings.into_iter().filter(|(name, _)| NEEDED.contains(&name.as_str())).collect();
    (!needed.is_empty()).then(|| Value::Object(needed).to_string())
}

/// Writes the reply as the client knows it for this event; `None` when there is nothing to say.
pub fn write_reply(event_name: &str, reply: &HookReply) -> Option<String> {
    let takes_block = matches!(event_name, "Stop" | "UserPromptSubmit" | "UserPromptExpansion" | "PostToolBatch");
    let takes_context =
        matches!(event_name, "SessionStart" | "UserPromptSubmit" | "UserPromptExpansion" | "PostToolBatch");
    let mut output = Map::new();
    if let Some(reason) = reply.block.as_ref().filter(|_| takes_block) {
        output.insert("decision".into(), json!("block"));
        output.insert("reason".into(), json!(reason));
    }
    if let Some(context) = reply.context.as_ref().filter(|_| takes_context) {
        output.insert("hookSpecificOutput".into(), json!({"hookEventName": event_name, "additionalContext": context}));
    }
    if reply.allow_tool && event_name == "PreToolUse" {
        let decision = json!({
            "hookEventName": event_name,
            "permissionDecision": "allow",
            "permissionDecisionReason": "steadfast's own tools only touch this session's goal",
        });
        output.insert("hookSpecificOutput".into(), decision);
    }
    if let Some(message) = &reply.message {
        output.insert("systemMessage".into(), json!(message));
    }
    (!output.is_empty()).then(|| Value::Object(output).to_string())
}

#[cfg(test)]
mod tests;
