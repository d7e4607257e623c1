//! `claude -p` with events on stdout. Unless the plan wants them, the user's own settings, hooks and plugins are left
//! out. The settings that reach the model are passed in a file that is removed after the attempt.

use serde_json::{Map, Value, json};

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
    }
    let mut settings = if request.user_hooks { Map::new() } else { files::login_settings() };
    if request.sandbox {
        settings.insert("sandbox".to_owned(), sandbox());
    }
    if !settings.is_empty() {
        command.add(&["--settings", &request.directory.join(settings_file).display().to_string()]);
        command.files.push((settings_file, Value::Object(settings).to_string()));
    }
    command.add_directory(request);
    command.add_permissions(request, Host::Claude);
    command.add(request.flags);
    command
}

/// Commands run without a question because they run in the sandbox, and none may leave it. Without a sandbox the client
/// does not start.
fn sandbox() -> Value {
    json!({"enabled": true, "autoAllowBashIfSandboxed": true, "allowUnsandboxedCommands": false, "failIfUnavailable": true})
}

/// `claude -p --resume`. The user's own hooks drive the goal, so their settings are not left out.
pub(super) fn resume_arguments(request: &ResumeRequest<'_>) -> Vec<String> {
    let mut arguments = ["-p", "--resume", request.session_id].map(str::to_owned).to_vec();
    arguments.extend_from_slice(request.flags);
    arguments.push(request.prompt.to_owned());
    arguments
}
