//! Codex. Measured with 0.166.0. One session file a thread, called a rollout; subagents and forks have files of their
//! own beside it.

mod doctor;
pub(crate) mod files;
mod headless;
pub(crate) mod hook;
pub(crate) mod install;
mod observe;
mod reset;
pub mod rollout;
mod skills;
mod stream;

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
use super::{Host, HostAdapter, ToolCallOrigin};
use crate::clock::Millis;
use crate::usage::{Position, Reading};

#[derive(Debug)]
pub struct Codex;

impl HostAdapter for Codex {
    fn host(&self) -> Host {
        Host::Codex
    }

    fn read_hook(&self, stdin: &[u8]) -> Result<Option<HookInput>, serde_json::Error> {
        hook::read_hook(stdin)
    }

    fn write_reply(&self, event_name: &str, reply: &HookReply) -> Option<String> {
        hook::write_reply(event_name, reply)
    }

    fn config_dirs(&self) -> Vec<PathBuf> {
        files::home().into_iter().collect()
    }

    fn transcript_roots(&self) -> Vec<PathBuf> {
        files::session_dirs()
    }

    fn transcript_owner(&self, _root: &Path, path: &Path) -> Option<Owner> {
        files::owner(path)
    }

    fn session_files(&self, roots: &[PathBuf], session: &SessionSpan<'_>) -> Vec<PathBuf> {
        files::session_files(roots, session)
    }

    fn read_transcript(&self, path: &Path, from: &Position) -> std::io::Result<Reading> {
        rollout::read(path, from)
    }

    fn fork_parent(&self, transcript: &Path) -> Option<String> {
        rollout::forked_from(transcript)
    }

    fn holds(&self, transcript: &Path, statement: &Statement, since: Since) -> std::io::Result<bool> {
        rollout::holds(transcript, statement, since)
    }

    fn is_model_output(&self, line: &[u8]) -> bool {
        rollout::is_model_output(line)
    }

    fn native_goal_database(&self, transcript: &Path) -> Option<PathBuf> {
        files::goal_database(&files::home_of(transcript)?)
    }

    fn tool_call_origin(&self, meta: &Map<String, Value>) -> Option<ToolCallOrigin> {
        files::session_of_call(meta).map(ToolCallOrigin::Session)
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

    fn plan_reset(&self, transcript: &Path) -> Option<Millis> {
        reset::reset_of(transcript)
    }

    fn resume_arguments(&self, request: &ResumeRequest<'_>) -> Result<Option<Vec<String>>, InstallError> {
        headless::resume_arguments(request).map(Some)
    }

    fn command_files(&self, command: &SlashCommand) -> Vec<(String, String)> {
        skills::files(command)
    }

    fn plan_install(&self, request: &InstallRequest<'_>) -> Result<Plan, InstallError> {
        install::plan_request(request)
    }

    fn install_note(&self, config_dir: &Path, dry_run: bool) -> Option<String> {
        install::trust_note(config_dir, dry_run)
    }

    fn checks(&self, program: Option<&Path>) -> Vec<DoctorCheck> {
        doctor::checks(program)
    }
}
