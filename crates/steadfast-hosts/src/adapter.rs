//! What an adapter does for its host. A new host is a folder with a [`HostAdapter`], a line in [`adapter`], and its id
//! with its capabilities.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::command::SlashCommand;
use super::context::{Since, Statement};
use super::doctor::{DoctorCheck, HookState};
use super::headless::{HeadlessCommand, HeadlessRequest, ResumeRequest};
use super::install::{InstallError, InstallPlan, InstallRequest};
use super::project_files::ProjectFile;
use super::stream::{AgentStream, SessionSpan};
use super::tree::Owner;
use super::wake::{WakeCommand, WakeRequest};
use super::{claude, codex};
use steadfast_model::clock::Millis;
use steadfast_model::hook::{HookInput, HookReply};
use steadfast_model::host::Host;
use steadfast_model::quota::Quota;
use steadfast_model::reading::{NativeGoal, Position, Reading};

pub fn adapter(host: Host) -> &'static HostAdapter {
    match host {
        Host::Claude => &claude::ADAPTER,
        Host::Codex => &codex::ADAPTER,
    }
}

pub fn adapters() -> impl Iterator<Item = &'static HostAdapter> {
    Host::ALL.iter().map(|host| adapter(*host))
}

/// Everything about a host that needs code. Foreign JSON and file layouts do not leave these functions.
pub struct HostAdapter {
    pub host: Host,

    /// Reads a hook's stdin. `None` is a well-formed event that is not for us.
    pub read_hook: fn(stdin: &[u8]) -> Result<Option<HookInput>, serde_json::Error>,
    /// Writes the reply in the form that the host accepts for this event; `None` if there is nothing to say.
    pub write_reply: fn(event_name: &str, reply: &HookReply) -> Option<String>,
    /// How many Stop blocks in a row without a tool call the host accepts here; `None` for no cap.
    pub block_cap: fn() -> Option<i64>,
    /// Whether a background hook can wake the client that runs this process.
    pub can_rewake: fn() -> bool,
    /// The command that wakes an idle session of a running client from outside; `None` if nothing can.
    pub wake_command: fn(request: &WakeRequest<'_>) -> Option<WakeCommand>,

    /// Ends the turn in which this hook was called; `false` if the client offers no way to do that.
    pub end_turn: fn(input: &HookInput) -> io::Result<bool>,

    /// The directories of the host's configuration.
    pub config_dirs: fn() -> Vec<PathBuf>,
    /// The directories below which the host keeps its session files.
    pub transcript_roots: fn() -> Vec<PathBuf>,
    /// Whose session file this is, by its path below `root`; `None` for other files.
    pub transcript_owner: fn(root: &Path, path: &Path) -> Option<Owner>,
    /// The files of a session and its subagents below `roots`.
    pub session_files: fn(roots: &[PathBuf], session: &SessionSpan<'_>) -> Vec<PathBuf>,
    /// Reads what is new in a session file.
    pub read_transcript: fn(path: &Path, from: &Position) -> io::Result<Reading>,
    /// Reads the responses that are new in a session file; everything else may be left out.
    pub read_counts: fn(path: &Path, from: &Position) -> io::Result<Reading>,
    /// The model that answers in a session now, as its file says.
    pub last_model: fn(transcript: &Path) -> Option<String>,
    /// Id and file of each subagent of a session; `None` if only hooks name them.
    pub subagent_files: fn(transcript: &Path) -> Option<SubagentFiles>,
    /// The kind of the subagent that writes this file, if a file says so.
    pub agent_type: fn(transcript: &Path) -> Option<String>,
    /// The session that a fork was made from, if its own file names it.
    pub fork_parent: fn(transcript: &Path) -> Option<String>,
    /// Whether the host will send the model a message that states the goal.
    pub holds: fn(transcript: &Path, statement: &Statement, since: Since) -> io::Result<bool>,
    /// Whether a turn runs, as the session's file says; `None` if it does not say so.
    pub turn_runs: fn(transcript: &Path) -> Option<bool>,
    /// The windows of the user's plan in the input of a status line; empty if the host does not report them there.
    pub statusline_quotas: fn(input: &Value, now: Millis) -> Vec<Quota>,
    /// How much of the model's context is used, in percent, in the input of a status line.
    pub statusline_context: fn(input: &Value) -> Option<i64>,
    /// Whether a line of a session file is an answer of the model or a tool call.
    pub is_model_output: fn(line: &Value) -> bool,

    /// The database in which the host keeps its own goals.
    pub native_goal_database: fn(transcript: &Path) -> Option<PathBuf>,
    /// The last state of the host's own goal in a session file.
    pub native_goal_in_transcript: fn(transcript: &Path) -> Option<NativeGoal>,

    /// What the metadata of an MCP tool call identifies.
    pub tool_call_origin: fn(meta: &Map<String, Value>) -> Option<ToolCallOrigin>,
    /// The session that a client process runs now, as the client records it.
    pub session_of_client: fn(pid: i32) -> Option<String>,
    /// Whether a hook input with this agent type proves that the evaluator made the call.
    pub is_evaluator: fn(agent_type: &str) -> bool,
    /// Whether the file of a subagent shows that it works by the evaluator's instructions.
    pub has_evaluator_rules: fn(transcript: &Path) -> bool,
    /// A file that the client, in this directory, reads an agent of the evaluator's name from instead of ours.
    pub evaluator_hidden_by: fn(directory: &Path) -> Option<PathBuf>,

    /// How the agent is started without a terminal.
    pub headless_command: fn(request: &HeadlessRequest<'_>) -> HeadlessCommand,
    /// What the agent loads from a project when it starts without a terminal in the first of these directories; the
    /// others are above it.
    pub project_files: fn(directories: &[PathBuf]) -> io::Result<Vec<ProjectFile>>,
    /// Whether the user has trusted the project in the client itself.
    pub trusts_project: fn(directory: &Path) -> bool,
    /// The arguments that continue a closed session in the foreground; `None` if the host cannot do that.
    pub resume_arguments: fn(request: &ResumeRequest<'_>) -> Result<Option<Vec<String>>, InstallError>,
    /// Adds an event of the headless agent's output to what is known of it.
    pub read_event: fn(event: &Value, stream: &mut AgentStream),
    /// An event of the headless agent's output as lines for people.
    pub readable_event: fn(event: &Value) -> Vec<String>,
    /// When the used-up plan of a session comes back, if its file says so more exactly than the output.
    pub plan_reset: fn(transcript: &Path) -> Option<Millis>,

    /// The files of one of our commands: path below the directory that the host keeps commands in, text.
    pub command_files: fn(command: &SlashCommand) -> Vec<(String, String)>,
    /// How our commands begin for a user of this machine.
    pub typed_prefix: fn() -> &'static str,
    /// Plans everything that `setup` does; a second run changes nothing.
    pub plan_install: fn(request: &InstallRequest<'_>) -> Result<InstallPlan, InstallError>,
    /// What the user still has to do after `setup`.
    pub install_note: fn(config_dir: &Path, dry_run: bool) -> Option<String>,
    /// The directories in which plugins of the host keep their data.
    pub plugin_data_dirs: fn() -> Vec<PathBuf>,
    /// Directories that the client makes for our plugin; uninstall removes them if they are empty.
    pub directories_made_for_us: fn(config_dir: &Path) -> Vec<PathBuf>,
    /// Whether the client runs our hooks, as its files say.
    pub hook_state: fn() -> HookState,
    /// Checks for `steadfast doctor`, apart from the program's version.
    pub checks: fn(program: Option<&Path>) -> Vec<DoctorCheck>,
}

/// Id and file of each subagent.
pub type SubagentFiles = Vec<(String, PathBuf)>;

/// What identifies the session of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolCallOrigin {
    /// The session itself, and the subagent in it that made the call.
    Session { session_id: String, agent: Option<AgentCall> },
    /// The id under which a hook saw the same call.
    ToolUse(String),
}

/// A tool call of a subagent, as the metadata of the call names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCall {
    pub agent_id: String,
    /// The id under which a hook saw the same call.
    pub tool_use_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_an_adapter_and_names_of_its_own() {
        assert!(Host::ALL.iter().all(|host| adapter(*host).host == *host));
        let mut names: Vec<&str> = Host::ALL
            .iter()
            .flat_map(|host| [host.name()].into_iter().chain(host.capabilities().aliases.iter().copied()))
            .collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        for host in Host::ALL {
            assert_eq!(host.name().parse(), Ok(*host));
            assert_eq!(serde_json::to_value(host).unwrap(), host.name());
        }
    }
}
