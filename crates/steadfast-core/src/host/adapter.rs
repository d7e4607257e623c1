//! What an adapter does for its host. A new host is a folder with an implementation of [`HostAdapter`], a line in
//! [`adapter`], and its id with its capabilities.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::command::SlashCommand;
use super::context::{Since, Statement};
use super::doctor::DoctorCheck;
use super::headless::{HeadlessCommand, HeadlessRequest, ResumeRequest};
use super::hook::{HookInput, HookReply};
use super::install::{InstallError, InstallRequest, Plan};
use super::stream::{AgentStream, SessionSpan};
use super::tree::Owner;
use super::{Host, claude, codex};
use crate::clock::Millis;
use crate::usage::{NativeGoal, Position, Reading};

/// The adapter of a host.
pub fn adapter(host: Host) -> &'static dyn HostAdapter {
    match host {
        Host::Claude => &claude::ClaudeCode,
        Host::Codex => &codex::Codex,
    }
}

pub fn adapters() -> impl Iterator<Item = &'static dyn HostAdapter> {
    Host::ALL.iter().map(|host| adapter(*host))
}

/// Everything about a host that needs code. Foreign JSON and file layouts do not leave the implementations.
pub trait HostAdapter: Sync {
    fn host(&self) -> Host;

    /// Reads a hook's stdin. `None` is a well-formed event that is not for us.
    fn read_hook(&self, stdin: &[u8]) -> Result<Option<HookInput>, serde_json::Error>;

    /// Writes the reply in the form that the host accepts for this event; `None` if there is nothing to say.
    fn write_reply(&self, event_name: &str, reply: &HookReply) -> Option<String>;

    /// How many Stop blocks in a row without a tool call the host accepts here; `None` for no cap.
    fn block_cap(&self) -> Option<i64> {
        None
    }

    /// Whether a background hook can wake the client that runs this process.
    fn can_rewake(&self) -> bool {
        false
    }

    /// The directories of the host's configuration.
    fn config_dirs(&self) -> Vec<PathBuf>;

    /// The directories below which the host keeps its session files.
    fn transcript_roots(&self) -> Vec<PathBuf>;

    /// Whose session file this is, by its path below `root`; `None` for other files.
    fn transcript_owner(&self, root: &Path, path: &Path) -> Option<Owner>;

    /// The files of a session and its subagents below `roots`.
    fn session_files(&self, roots: &[PathBuf], session: &SessionSpan<'_>) -> Vec<PathBuf>;

    /// Reads what is new in a session file.
    fn read_transcript(&self, path: &Path, from: &Position) -> std::io::Result<Reading>;

    /// Reads the responses that are new in a session file; everything else may be left out.
    fn read_counts(&self, path: &Path, from: &Position) -> std::io::Result<Reading> {
        self.read_transcript(path, from)
    }

    /// Id and file of each subagent of a session; `None` if only hooks name them.
    fn subagent_files(&self, _transcript: &Path) -> Option<Vec<(String, PathBuf)>> {
        None
    }

    /// The session that a fork was made from, if its own file names it.
    fn fork_parent(&self, transcript: &Path) -> Option<String>;

    /// Whether the host will send the model a message that states the goal.
    fn holds(&self, transcript: &Path, statement: &Statement, since: Since) -> std::io::Result<bool>;

    /// Whether a line of a session file is an answer of the model or a tool call.
    fn is_model_output(&self, line: &[u8]) -> bool;

    /// The database in which the host keeps its own goals.
    fn native_goal_database(&self, _transcript: &Path) -> Option<PathBuf> {
        None
    }

    /// The last state of the host's own goal in a session file.
    fn native_goal_in_transcript(&self, _transcript: &Path) -> Option<NativeGoal> {
        None
    }

    /// What the metadata of an MCP tool call identifies.
    fn tool_call_origin(&self, meta: &Map<String, Value>) -> Option<ToolCallOrigin>;

    /// The session that a client process runs now, as the client records it.
    fn session_of_client(&self, _pid: i32) -> Option<String> {
        None
    }

    /// Whether a hook input with this agent type proves that the evaluator made the call.
    fn is_evaluator(&self, _agent_type: &str) -> bool {
        false
    }

    /// How the agent is started without a terminal.
    fn headless_command(&self, request: &HeadlessRequest<'_>) -> HeadlessCommand;

    /// Adds an event of the headless agent's output to what is known of it.
    fn read_event(&self, event: &Value, stream: &mut AgentStream);

    /// An event of the headless agent's output as lines for people.
    fn readable_event(&self, event: &Value) -> Vec<String>;

    /// When the used-up plan of a session comes back, if its file says so more exactly than the output.
    fn plan_reset(&self, _transcript: &Path) -> Option<Millis> {
        None
    }

    /// The arguments that continue a closed session in the foreground; `None` if the host cannot do that.
    fn resume_arguments(&self, _request: &ResumeRequest<'_>) -> Result<Option<Vec<String>>, InstallError> {
        Ok(None)
    }

    /// The files of one of our commands: path below the directory that the host keeps commands in, text.
    fn command_files(&self, command: &SlashCommand) -> Vec<(String, String)>;

    /// Plans everything that `setup` does; a second run changes nothing.
    fn plan_install(&self, request: &InstallRequest<'_>) -> Result<Plan, InstallError>;

    /// The directories in which plugins of the host keep their data.
    fn plugin_data_dirs(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Directories that the client makes for our plugin; uninstall removes them if they are empty.
    fn directories_made_for_us(&self, _config_dir: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// What the user still has to do after `setup`.
    fn install_note(&self, _config_dir: &Path, _dry_run: bool) -> Option<String> {
        None
    }

    /// Checks for `steadfast doctor`, apart from the program's version.
    fn checks(&self, program: Option<&Path>) -> Vec<DoctorCheck>;
}

/// What identifies the session of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolCallOrigin {
    /// The session itself.
    Session(String),
    /// The id under which a hook saw the same call.
    ToolUse(String),
}
