//! Variables that a repository's settings set for hooks and tool servers. They must not move the store or switch anything
//! off: what the user set is in the environment that the client itself was started with.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use steadfast_model::hook::{HookEvent, HookInput, HookReply};
use steadfast_system::process::{self, Caller};
use steadfast_system::{env_vars, log, paths};

/// Starts this program anew, with the client's own values, if settings changed them. It stays the same process, with the
/// same input. Returns where nothing was changed or the system hides the client's environment.
pub(super) fn ignore_foreign_variables(is_server: bool) {
    let set = env_vars::OF_USER.iter().filter(|name| env_vars::path(name).is_some());
    let set: Vec<&str> = set.copied().collect();
    if set.is_empty() {
        return;
    }
    let Some(client) = Caller::look().and_then(|caller| caller.foreign_client()) else { return };
    if is_server && client.host().is_some_and(|host| host.capabilities().sets_server_variables) {
        return;
    }
    let Ok(program) = std::env::current_exe() else { return };
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1));
    let mut ignored = Vec::new();
    for name in set {
        match process::variable_of(client.id, name) {
            Some(Some(value)) if env_vars::path(name).is_some_and(|own| own.as_os_str() != value) => {
                command.env(name, value);
                ignored.push(name);
            }
            // Every shell sets HOME, also for a client that was started without it.
            Some(None) if name != env_vars::USER_HOME => {
                command.env_remove(name);
                ignored.push(name);
            }
            _ => {}
        }
    }
    if ignored.is_empty() {
        return;
    }
    let error = command.env(env_vars::IGNORED, ignored.join(", ")).exec();
    if let Ok(home) = paths::home() {
        log::line(&home.join("log").join("hooks.log"), &format!("cannot ignore the settings' variables: {error}"));
    }
}

/// Adds at the start of a session which variables were ignored.
pub(super) fn with_note(input: &HookInput, reply: HookReply) -> HookReply {
    let ignored = env_vars::text(env_vars::IGNORED).filter(|_| matches!(input.event, HookEvent::SessionStart(_)));
    let Some(ignored) = ignored else { return reply };
    let product = input.host.capabilities().product;
    let note = format!("steadfast: settings set {ignored}, which is ignored; set it where you start {product}");
    reply.with_line_before(note)
}
