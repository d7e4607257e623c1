//! Claude Code. Measured with 2.1.197.

mod doctor;
pub(crate) mod files;
mod headless;
pub(crate) mod hook;
pub(crate) mod install;
mod observe;
mod stream;
pub mod transcript;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::command::SlashCommand;
use super::context::{Since, Statement};
use super::doctor::DoctorCheck;
use super::headless::{HeadlessCommand, HeadlessRequest};
use super::hook::{HookInput, HookReply};
use super::install::{InstallError, InstallRequest, Plan};
use super::stream::{AgentStream, SessionSpan};
use super::tree::Owner;
use super::{Host, HostAdapter, ToolCallOrigin};
use crate::env_vars;
use crate::usage::{NativeGoal, Position, Reading};

/// Consecutive blocks without a tool call that the client accepts by default.
const DEFAULT_BLOCK_CAP: i64 = 8;
/// Where the metadata of a tool call has the id under which its `PreToolUse` hook saw it.
const TOOL_USE_ID: &str = "claudecode/toolUseId";

#[derive(Debug)]
pub struct ClaudeCode;

impl HostAdapter for ClaudeCode {
    fn host(&self) -> Host {
        Host::Claude
    }

    fn read_hook(&self, stdin: &[u8]) -> Result<Option<HookInput>, serde_json::Error> {
        hook::read_hook(stdin)
    }

    fn write_reply(&self, event_name: &str, reply: &HookReply) -> Option<String> {
        hook::write_reply(event_name, reply)
    }

    /// The user can change the default or lift the cap.
    fn block_cap(&self) -> Option<i64> {
        match env_vars::text(env_vars::STOP_HOOK_BLOCK_CAP).and_then(|text| text.parse::<i64>().ok()) {
            Some(0) => None,
            Some(cap) if cap > 0 => Some(cap),
            _ => Some(DEFAULT_BLOCK_CAP),
        }
    }

    /// Only the terminal client can be woken.
    fn can_rewake(&self) -> bool {
        env_vars::text(env_vars::CLAUDE_CODE_ENTRYPOINT).as_deref() == Some("cli")
    }

    fn config_dirs(&self) -> Vec<PathBuf> {
        files::config_dirs()
    }

    fn transcript_roots(&self) -> Vec<PathBuf> {
        files::config_dirs().iter().map(|dir| dir.join("projects")).collect()
    }

    fn transcript_owner(&self, root: &Path, path: &Path) -> Option<Owner> {
        files::owner(root, path)
    }

    fn session_files(&self, roots: &[PathBuf], session: &SessionSpan<'_>) -> Vec<PathBuf> {
        files::session_files(roots, session.session_id)
    }

    fn read_transcript(&self, path: &Path, from: &Position) -> std::io::Result<Reading> {
        transcript::read(path, from)
    }

    fn read_counts(&self, path: &Path, from: &Position) -> std::io::Result<Reading> {
        transcript::read_counts(path, from)
    }

    fn subagent_files(&self, transcript: &Path) -> Option<Vec<(String, PathBuf)>> {
        Some(files::subagent_files(transcript))
    }

    fn fork_parent(&self, transcript: &Path) -> Option<String> {
        transcript::forked_from(transcript)
    }

    fn holds(&self, transcript: &Path, statement: &Statement, since: Since) -> std::io::Result<bool> {
        match since {
            Since::Resume => transcript::holds(transcript, statement),
            // The client writes its file after this hook.
            Since::Compaction { .. } => Ok(false),
        }
    }

    fn is_model_output(&self, line: &[u8]) -> bool {
        transcript::is_model_output(line)
    }

    fn native_goal_in_transcript(&self, transcript: &Path) -> Option<NativeGoal> {
        transcript::last_goal(transcript)
    }

    fn tool_call_origin(&self, meta: &Map<String, Value>) -> Option<ToolCallOrigin> {
        Some(ToolCallOrigin::ToolUse(meta.get(TOOL_USE_ID)?.as_str()?.to_owned()))
    }

    fn session_of_client(&self, pid: i32) -> Option<String> {
        files::session_of_client(pid)
    }

    fn is_evaluator(&self, agent_type: &str) -> bool {
        hook::is_evaluator(agent_type)
    }

    fn headless_command(&self, request: &HeadlessRequest<'_>) -> HeadlessCommand {
        headless::command(request)
    }

    fn read_event(&self, event: &Value, stream: &mut AgentStream) {
        stream::read_event(event, stream);
    }

    fn readable_event(&self, event: &Value) -> Vec<String> {
        stream::readable(event)
    }

    fn command_files(&self, command: &SlashCommand) -> Vec<(String, String)> {
        install::command_files(command)
    }

    fn plan_install(&self, request: &InstallRequest<'_>) -> Result<Plan, InstallError> {
        install::plan_request(request)
    }

    fn plugin_data_dirs(&self) -> Vec<PathBuf> {
        files::config_dirs().iter().map(|dir| dir.join("plugins").join("data")).collect()
    }

    fn directories_made_for_us(&self, config_dir: &Path) -> Vec<PathBuf> {
        install::plugin_data_dir(config_dir).ancestors().take(2).map(Path::to_path_buf).collect()
    }

    fn checks(&self, _program: Option<&Path>) -> Vec<DoctorCheck> {
        doctor::checks(self.block_cap())
    }
}
