//! Codex's hooks: what they send, reduced to our own events, and what they accept in return. Every object Codex
//! reads is closed: one field it does not know for an event makes it drop the whole reply, so the least is said.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::observe::observe;
use super::{skill, wake};
use crate::hook::{self, Accepted, read_fields, start_source};
use crate::observe::{answer_text, value};
use crate::trouble::{self, Trouble};
use steadfast_model::directive;
use steadfast_model::hook::{Agent, HookEvent, HookInput, HookReply, OwnToolDone, TypedCommand, acceptable_id};
use steadfast_model::host::Host;
use steadfast_model::reading::NativeGoal;

/// How the client names the tools of our MCP server.
pub(crate) const OWN_TOOLS: &str = "mcp__steadfast__";
/// How a prompt calls our skills: those that `setup` installed, and those of the plugin.
const SKILL: &str = "$goal-";
const PLUGIN_SKILL: &str = "$steadfast:goal-";

/// The fields of all events together, exactly as sent.
#[derive(Deserialize)]
pub(super) struct CodexHookWire<'a> {
    pub(super) hook_event_name: String,
    pub(super) session_id: String,
    pub(super) turn_id: Option<String>,
    pub(super) transcript_path: Option<PathBuf>,
    pub(super) cwd: Option<String>,
    pub(super) source: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) prompt: Option<String>,
    pub(super) tool_name: Option<String>,
    pub(super) tool_use_id: Option<String>,
    pub(super) agent_id: Option<String>,
    pub(super) agent_type: Option<String>,
    pub(super) agent_transcript_path: Option<PathBuf>,
    pub(super) stop_hook_active: Option<bool>,
    pub(super) last_assistant_message: Option<String>,
    pub(super) status: Option<String>,
    pub(super) error: Option<Value>,
    // These can be long and are parsed only when needed.
    #[serde(borrow)]
    pub(super) tool_input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_response: Option<&'a RawValue>,
}

pub(crate) fn read_hook(stdin: &[u8]) -> Result<Option<HookInput>, serde_json::Error> {
    let stdin = crate::repair::well_formed(stdin);
    let Some(wire) = read_fields::<CodexHookWire<'_>>(&stdin)?.filter(|wire| acceptable_id(&wire.session_id)) else {
        return Ok(None);
    };
    let known = |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
    // Inside a subagent the session is the root's, while the file is the subagent's own; only the event of its end
    // names both.
    let named = known(&wire.transcript_path);
    let (transcript, agent) = match wire.agent_id.clone().filter(|id| acceptable_id(id)) {
        Some(id) => {
            let (session_file, own) = match known(&wire.agent_transcript_path) {
                Some(own) => (named, Some(own)),
                None => (None, named),
            };
            let agent_type = wire.agent_type.clone().unwrap_or_default();
            (session_file, Some(Agent { id, agent_type, transcript: own }))
        }
        None => (named, None),
    };
    let Some(event) = event(&wire, agent) else {
        return Ok(None);
    };
    let observations = observe(&wire);
    let cwd = wire.cwd.unwrap_or_default();
    Ok(Some(HookInput {
        host: Host::Codex,
        event_name: wire.hook_event_name,
        session_id: wire.session_id,
        transcript,
        project_dir: cwd.clone(),
        cwd,
        turn_id: wire.turn_id,
        event,
        observations,
    }))
}

fn event(wire: &CodexHookWire<'_>, agent: Option<Agent>) -> Option<HookEvent> {
    match (wire.hook_event_name.as_str(), agent) {
        ("PreToolUse", Some(agent)) if is_own_tool(wire)? => own_tool(wire, agent),
        ("PostToolUse", Some(agent)) => Some(HookEvent::ToolBatch { agent: Some(agent) }),
        ("SubagentStart", Some(agent)) => Some(HookEvent::SubagentStart { agent }),
        ("SubagentStop", Some(agent)) => Some(HookEvent::SubagentStop { agent }),
        ("PermissionRequest", _) => is_own_tool(wire)?.then_some(HookEvent::OwnToolAsked),
        ("PreToolUse", agent) if !is_own_tool(wire)? => {
            let agent_type = agent.map(|_| wire.agent_type.clone().unwrap_or_default());
            Some(HookEvent::ToolAsked { agent_type })
        }
        // What else a subagent does is its own: it neither prompts nor stops for the session.
        (_, Some(_)) => None,
        (name, None) => root_event(name, wire),
    }
}

fn is_own_tool(wire: &CodexHookWire<'_>) -> Option<bool> {
    Some(wire.tool_name.as_deref()?.starts_with(OWN_TOOLS))
}

/// A subagent calls one of our tools. What the session itself calls needs no note: the call names its session.
fn own_tool(wire: &CodexHookWire<'_>, agent: Agent) -> Option<HookEvent> {
    Some(HookEvent::OwnTool {
        tool_use_id: wire.tool_use_id.clone()?,
        tool_name: wire.tool_name.as_deref()?.strip_prefix(OWN_TOOLS)?.to_owned(),
        agent_id: agent.id,
        agent_type: agent.agent_type,
    })
}

fn root_event(name: &str, wire: &CodexHookWire<'_>) -> Option<HookEvent> {
    Some(match name {
        "SessionStart" => HookEvent::SessionStart(start_source(wire.source.as_deref())),
        "SessionEnd" => HookEvent::SessionEnd { reason: wire.reason.clone().unwrap_or_default() },
        "UserPromptSubmit" => {
            let cwd = Path::new(wire.cwd.as_deref().unwrap_or_default());
            prompt(wire.prompt.as_deref().unwrap_or_default(), cwd)
        }
        "PostToolUse" => match (native_goal(wire), own_tool_done(wire)) {
            (Some(goal), _) => HookEvent::NativeGoal(goal),
            (None, Some(done)) => HookEvent::OwnToolDone(done),
            (None, None) => HookEvent::ToolBatch { agent: None },
        },
        "Stop" => HookEvent::Stop {
            after_continuation: wire.stop_hook_active.unwrap_or(false),
            last_message: wire.last_assistant_message.clone(),
            background_work: false,
        },
        "PostModelRequest" => match wire.status.as_deref() {
            Some("failed") => failure(wire.error.as_ref()),
            Some("completed") => HookEvent::ModelAnswered,
            _ => return None,
        },
        "Interrupt" => HookEvent::Interrupt,
        "PreCompact" => HookEvent::PreCompact,
        _ => return None,
    })
}

/// A prompt may call our skills, or state a goal. The command parser knows which verbs exist; a skill of another program
/// may have the same prefix.
fn prompt(text: &str, cwd: &Path) -> HookEvent {
    let trimmed = text.trim();
    if trimmed == wake::MESSAGE {
        return HookEvent::Woken;
    }
    if let Some(objective) = directive::marked_goal(trimmed) {
        return HookEvent::Directive { objective: objective.to_owned() };
    }
    let (commands, other_text) = commands(trimmed, cwd);
    match commands.as_slice() {
        [] => HookEvent::Prompt { typed: true },
        [TypedCommand { verb, arguments }] if !other_text => {
            HookEvent::Command { verb: verb.clone(), arguments: arguments.clone() }
        }
        _ => HookEvent::Commands { commands, other_text },
    }
}

/// Each line that begins with one of our skills is a command, since Esc sends all pending prompts again as one. The
/// lines after it go with it. Also returns whether there is text before the first command.
fn commands(text: &str, cwd: &Path) -> (Vec<TypedCommand>, bool) {
    let mut commands: Vec<TypedCommand> = Vec::new();
    let mut other_text = false;
    for line in text.lines() {
        match (called(line, cwd), commands.last_mut()) {
            (Some((verb, arguments)), _) => {
                commands.push(TypedCommand { verb: verb.to_owned(), arguments: arguments.to_owned() });
            }
            (None, Some(command)) => command.arguments.extend(["\n", line]),
            (None, None) => other_text |= !line.trim().is_empty(),
        }
    }
    for command in &mut commands {
        command.arguments = command.arguments.trim_end().to_owned();
    }
    (commands, other_text)
}

/// The verb and the arguments of a line that calls one of our skills.
fn called<'a>(line: &'a str, cwd: &Path) -> Option<(&'a str, &'a str)> {
    let of_plugin = line.strip_prefix(PLUGIN_SKILL);
    let rest = of_plugin.or_else(|| line.strip_prefix(SKILL))?;
    let (verb, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let is_ours = of_plugin.is_some() || !skill::is_foreign(verb, cwd);
    is_ours.then_some((verb, arguments))
}

/// What the client's own goal tools answered.
fn native_goal(wire: &CodexHookWire<'_>) -> Option<NativeGoal> {
    let name = wire.tool_name.as_deref()?;
    if !matches!(name, "create_goal" | "update_goal" | "get_goal") {
        return None;
    }
    let answer = match value(wire.tool_response) {
        Value::String(text) => serde_json::from_slice(text.as_bytes()).ok()?,
        answer => answer,
    };
    Some(goal_of(answer.get("goal")?))
}

/// Codex reports each call of a tool, and no batches.
fn own_tool_done(wire: &CodexHookWire<'_>) -> Option<OwnToolDone> {
    let name = wire.tool_name.as_deref()?.strip_prefix(OWN_TOOLS)?;
    let answer = value(wire.tool_response);
    let refusal = (answer["isError"] == true).then(|| answer_text(&answer));
    let done = hook::own_tool_done(name, &value(wire.tool_input), refusal)?;
    Some(OwnToolDone { is_batch: true, ..done })
}

/// A goal as Codex writes it, in tool answers and in rollouts.
pub(super) fn goal_of(goal: &Value) -> NativeGoal {
    match (goal["status"].as_str(), goal["objective"].as_str()) {
        (Some("active"), Some(objective)) => NativeGoal::Active(objective.to_owned()),
        _ => NativeGoal::Over,
    }
}

/// Classifies an error by its message, which is all that Codex sends. The handler of the hook finds the reset time.
fn failure(error: Option<&Value>) -> HookEvent {
    let message = error.and_then(|error| error.as_str().or_else(|| error["message"].as_str()));
    let message = message.unwrap_or_default().to_owned();
    let lower = message.to_lowercase();
    let refused = || lower.contains("400 bad request") || lower.contains("invalid_request");
    let kind = match trouble::judge(&message, status(&lower), 0) {
        Trouble::UsageLimit { .. } => "rate_limit",
        Trouble::Hopeless => "authentication_failed",
        Trouble::Other if refused() => "invalid_request",
        Trouble::Transient | Trouble::Other => "server_error",
    };
    HookEvent::StopFailure { error: kind.to_owned(), message }
}

/// `unexpected status 401 Unauthorized: …`, `exceeded retry limit, last status: 429 Too Many Requests`
fn status(message: &str) -> Option<u16> {
    let (_, rest) = message.split_once("status")?;
    let number = rest.trim_start_matches([':', ' ']);
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    number.get(..digits).filter(|_| digits == 3)?.parse().ok()
}

pub(crate) fn write_reply(event_name: &str, reply: &HookReply) -> Option<String> {
    let block = matches!(event_name, "Stop" | "UserPromptSubmit" | "PostToolUse");
    let context = matches!(event_name, "SessionStart" | "UserPromptSubmit" | "PostToolUse");
    let tool = matches!(event_name, "PreToolUse" | "PermissionRequest");
    let other = matches!(event_name, "PreCompact" | "PostCompact" | "SubagentStart" | "SubagentStop" | "Interrupt");
    // Before a tool runs, a bare `allow` is an error to Codex; it is only accepted where Codex asks.
    let allow = json!({"hookEventName": event_name, "decision": {"behavior": "allow"}});
    let allow = (event_name == "PermissionRequest").then_some(allow);
    let message = block || context || tool || other;
    hook::write_reply(
        event_name,
        reply,
        Accepted { block, context, message, allow, refuse: event_name == "PreToolUse" },
    )
}

#[cfg(test)]
mod tests;
