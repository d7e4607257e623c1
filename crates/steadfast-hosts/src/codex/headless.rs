//! `codex exec --json` with the prompt on stdin. Unless the plan wants them, hooks and plugins are switched off. Codex's
//! own goals always are, because the run drives the agent.

use super::install::trust::{HookTrust, codex_hooks};
use super::{files, install};
use crate::headless::{HeadlessCommand, HeadlessRequest, ResumeRequest};
use crate::install::InstallError;
use steadfast_model::host::Host;

pub(super) fn command(request: &HeadlessRequest<'_>) -> HeadlessCommand {
    let mut command = HeadlessCommand::new(request.program);
    // The user started the run in this directory, with a repository or without one.
    command.add(&["exec", "--json", "--skip-git-repo-check"]);
    if let Some(model) = request.model {
        command.add(&["-m", model]);
    }
    if let Some(effort) = request.effort {
        // A JSON string is a TOML string.
        command.add(&["-c", &format!("model_reasoning_effort={}", serde_json::json!(effort))]);
    }
    command.add(&["-c", "features.goals=false", "-c", "check_for_update_on_startup=false"]);
    if !request.user_hooks {
        command.add(&["-c", "features.hooks=false", "-c", "features.plugins=false"]);
    }
    command.add_permissions(request, Host::Codex);
    command.add_directory(request);
    command.add(request.flags);
    command.add(&["-"]);
    command
}

/// `codex exec resume`. Brings hooks along for this one run unless the user's configuration has hooks that Codex trusts:
/// without hooks the turn would not continue the goal, and nothing would be counted.
pub(super) fn resume_arguments(request: &ResumeRequest<'_>) -> Result<Vec<String>, InstallError> {
    let mut arguments = vec!["exec".to_owned()];
    // The user opened the session in this directory, with a repository or without one.
    if !request.directory.ancestors().any(|ancestor| ancestor.join(".git").exists()) {
        arguments.push("--skip-git-repo-check".to_owned());
    }
    let found = files::home().map(|home| codex_hooks(&home)).transpose()?;
    if found.is_none_or(|found| found.count(HookTrust::Trusted) == 0) {
        arguments.extend(install::per_run_flags(&install::hook_command(request.steadfast)));
    }
    arguments.extend_from_slice(request.flags);
    arguments.extend(["resume", request.session_id, request.prompt].map(str::to_owned));
    Ok(arguments)
}
