//! `claude -p` with events on stdout. Unless the plan wants them, the user's own settings, hooks and plugins are left
//! out. The settings that reach the model are passed in a file that is removed after the attempt.

use super::files;
use crate::headless::{HeadlessCommand, HeadlessRequest, PRIVATE_FILES, ResumeRequest};
use steadfast_model::host::Host;

pub(super) fn command(request: &HeadlessRequest<'_>) -> HeadlessCommand {
    let [settings_file] = PRIVATE_FILES;
    let mut command = HeadlessCommand::new(request.program);
    command.add(&["-p", "--output-format", "stream-json", "--verbose"]);
    if let Some(model) = request.model {
        command.add(&["--model", model]);
    }
    if let Some(effort) = request.effort {
        command.add(&["--effort", effort]);
    }
    if !request.user_hooks {
        command.add(&["--setting-sources", "project,local"]);
        if let Some(settings) = files::login_settings() {
            command.add(&["--settings", &request.directory.join(settings_file).display().to_string()]);
            command.files.push((settings_file, settings));
        }
    }
    command.add_directory(request);
    command.add_permissions(request, Host::Claude.capabilities().all_permissions_flag);
    command.add(request.flags);
    command
}

/// `claude -p --resume`. The user's own hooks drive the goal, so their settings are not left out.
pub(super) fn resume_arguments(request: &ResumeRequest<'_>) -> Vec<String> {
    let mut arguments = ["-p", "--resume", request.session_id].map(str::to_owned).to_vec();
    arguments.extend_from_slice(request.flags);
    arguments.push(request.prompt.to_owned());
    arguments
}
