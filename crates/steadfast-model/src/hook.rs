//! A hook call and its reply, the same for every host. Each adapter converts its host's JSON to these types and back.

use std::path::PathBuf;

use crate::clock::Millis;
use crate::host::Host;
use crate::memory::observation::Observation;
use crate::reading::NativeGoal;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookInput {
    pub host: Host,
    pub event_name: String,
    pub session_id: String,
    /// The session's own file, never a subagent's.
    pub transcript: Option<PathBuf>,
    pub cwd: String,
    /// The directory the client was started in; `cwd` may follow the agent's `cd`.
    pub project_dir: String,
    /// The turn it happened in, where the host names it.
    pub turn_id: Option<String>,
    pub event: HookEvent,
    /// What the call shows of the work, to be remembered whatever the event does.
    pub observations: Vec<Observation>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookEvent {
    /// A session began.
    SessionStart(StartSource),
    /// The client is leaving the session.
    SessionEnd { reason: String },
    /// A prompt; `typed` is false for prompts the client makes itself.
    Prompt { typed: bool },
    /// The prompt of one of our commands, which a hook before it has carried out and let through.
    CommandPassed,
    /// One of our commands: `status` for `/goal-status` or `$goal-status`.
    Command { verb: String, arguments: String },
    /// A prompt with several of our commands, each on a line of its own, or with other text around them.
    Commands { commands: Vec<TypedCommand>, other_text: bool },
    /// A command of the repository that one of ours with the same name hides from the client.
    HiddenCommand { name: String, text: String },
    /// Our own message, which a process outside of the client sent to wake the goal.
    Woken,
    /// A prompt that states a goal: `goal: …`.
    Directive { objective: String },
    /// A tool is about to run; `agent_type` is set in a subagent.
    ToolAsked { agent_type: Option<String> },
    /// A call of one of our own MCP tools.
    OwnTool { tool_use_id: String, tool_name: String, agent_id: String, agent_type: String },
    /// One of our own MCP tools that changes the goal has answered.
    OwnToolDone(OwnToolDone),
    /// The client asks whether one of our own MCP tools may run.
    OwnToolAsked,
    /// The client asks the user whether a tool may run.
    PermissionAsked,
    /// The client opens its dialog about a used-up plan, and the user wants to skip it.
    LimitDialog,
    /// Nothing has happened for a while.
    Idle,
    /// Tools ran: one call or several, as the host reports them.
    ToolBatch { agent: Option<Agent> },
    /// A tool of the client's own goal feature ran.
    NativeGoal(NativeGoal),
    /// The turn is about to end.
    Stop { after_continuation: bool, last_message: Option<String>, background_work: bool },
    /// The turn failed.
    StopFailure { error: String, message: String },
    /// A request to the model succeeded after all.
    ModelAnswered,
    /// The user stopped the turn.
    Interrupt,
    /// A subagent began.
    SubagentStart { agent: Agent },
    /// A subagent ended.
    SubagentStop { agent: Agent },
    /// The context is about to be compacted.
    PreCompact,
    /// Only its observations matter.
    Seen,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnToolDone {
    pub tool_name: String,
    /// The agent called the goal complete.
    pub claims_complete: bool,
    /// What the tool said, if it refused.
    pub refusal: Option<String>,
    /// The host reports the call only here, and not as a batch of tools as well.
    pub is_batch: bool,
}

/// One of our commands in a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedCommand {
    pub verb: String,
    pub arguments: String,
}

/// A subagent and the file it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    pub id: String,
    /// Its kind, by the name that the host's configuration or a plugin gives it.
    pub agent_type: String,
    pub transcript: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartSource {
    Startup,
    Resume,
    Clear,
    Compact,
    Fork,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookReply {
    /// Stop: keep the turn going with this text. Prompts and commands: answer with it, no model call.
    pub block: Option<String>,
    /// Text for the model.
    pub context: Option<String>,
    /// Text for the user.
    pub message: Option<String>,
    /// Run the tool without asking.
    pub allow_tool: bool,
    /// Do not run the tool; the model gets this text.
    pub refuse_tool: Option<String>,
    /// End the running turn from outside, if the host can, and tell the user which of these came of it; not part of what
    /// is written to the client.
    pub end_turn: Option<TurnEnding>,
    /// Messages wait to be delivered to the user outside of the client; not part of what is written to it.
    pub has_news: bool,
    /// When the goal is to be woken; not part of what is written either.
    pub wake_at_ms: Option<Millis>,
}

impl HookReply {
    /// The same with one more line for the user, before the others.
    #[must_use]
    pub fn with_line_before(self, line: String) -> Self {
        let message = match &self.message {
            Some(message) => format!("{line}\n{message}"),
            None => line,
        };
        Self { message: Some(message), ..self }
    }
}

/// What to tell the user about a turn that has to be ended from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnEnding {
    pub ended: String,
    pub runs_on: String,
}

/// An id as hosts make them: not empty, short, without control characters.
pub fn acceptable_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= 200 && !id.chars().any(char::is_control)
}
