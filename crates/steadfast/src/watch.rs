//! Starts `steadfast watch` in the background when something must be waited for. Hooks call this, so it costs a few
//! system calls when one is at work already, and never waits.

use std::os::unix::process::CommandExt as _;
use std::path::absolute;
use std::process::{Command, Stdio};

use steadfast_model::host::Host;
use steadfast_system::paths::Paths;
use steadfast_system::{env_vars, log, watch_lock};

/// Starts `steadfast watch` unless it is at work or the user switched that off. A failure only reaches the log.
pub(crate) fn ensure(paths: &Paths) {
    let may_start = paths.config.watch.start && env_vars::text(env_vars::NO_WATCH).is_none();
    if !may_start || watch_lock::is_held(&paths.home) {
        return;
    }
    if let Err(error) = start(paths) {
        log::line(&paths.log_file(), &format!("cannot start `steadfast watch`: {error}"));
    }
}

fn start(paths: &Paths) -> std::io::Result<()> {
    let mut command = background(paths, "--detach")?;
    // The client may end the group of a hook together with the hook.
    command.process_group(0).spawn().map(drop)
}

/// `steadfast watch FLAG` for the same home and store, without terminal and without what an agent put into the
/// environment.
pub(crate) fn background(paths: &Paths, flag: &str) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["watch", flag, "--db"]).arg(absolute(&paths.store)?);
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    forget_agent(&mut command);
    command.env(env_vars::HOME, absolute(&paths.home)?);
    Ok(command)
}

/// Removes what shows a process that an agent started it.
pub(crate) fn forget_agent(command: &mut Command) {
    let of_hosts = Host::ALL.iter().map(|host| host.capabilities());
    let of_hosts = of_hosts.flat_map(|facts| facts.shell_markers.iter().chain(facts.session_variables));
    for name in env_vars::OF_OUTER_AGENT.iter().chain(&env_vars::OF_RUN).chain(of_hosts) {
        command.env_remove(name);
    }
}
