//! `steadfast ui`: serves the page until it is stopped. Actions of the page run commands of this program, so they come
//! from the terminal in which the person started it. It shows the memory of all sessions, so no agent may start it.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::os::fd::IntoRawFd as _;
use std::path::{Path, absolute};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use steadfast_engine::interrupt::{self, EndRequest};
use steadfast_system::paths::Paths;
use steadfast_views::web::{Links, Options, WebError, WebServer};

use super::{own_paths, refuse_agents};
use crate::cli::UiArgs;
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};
use crate::{programs, restart};

/// How often it looks whether the terminal is in front again.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(crate) fn run(db: Option<&Path>, arguments: &UiArgs, json: bool) -> CommandResult {
    let mut paths = own_paths::find_to_read(db)?;
    paths.home = absolute(&paths.home)?;
    paths.store = absolute(&paths.store)?;
    refuse_agents(&paths, "ui")?;
    let requests = interrupt::requests()?;
    let server = bind(paths, arguments)?;
    let (links, port) = (server.links(), server.port());
    let is_first = arguments.restarts == 0;
    if is_first {
        let link = links.link()?;
        print(&link, port, arguments.read_only, json)?;
        introduce(arguments);
        if arguments.opens_browser() {
            open(&link);
        }
    }
    let secrets_of = links.clone();
    restart::enable(arguments.restarts, move |command| hand_over(command, port, &secrets_of.secrets()));
    if std::io::stdin().is_terminal() {
        let read_only = arguments.read_only;
        std::thread::spawn(move || answer_enter(&links, port, read_only, json));
    }
    let code = match server.serve(requests)? {
        EndRequest::Interrupt => code::INTERRUPTED,
        EndRequest::Terminate => 0,
    };
    Ok(CommandOutput { code, ..CommandOutput::default() })
}

/// Lets a restarted server listen where this one did, and accept the same browsers. The secrets pass through a pipe:
/// other processes of the user can read arguments and environment.
fn hand_over(command: &mut Command, port: u16, secrets: &str) {
    command.args(["--port", &port.to_string()]);
    let Ok((reader, mut writer)) = std::io::pipe() else { return };
    let is_handed = rustix::io::fcntl_setfd(&reader, rustix::io::FdFlags::empty()).is_ok()
        && writer.write_all(secrets.as_bytes()).is_ok();
    if is_handed {
        command.arg("--secrets").arg(format!("/dev/fd/{}", reader.into_raw_fd()));
    }
}

fn bind(paths: Paths, arguments: &UiArgs) -> Result<WebServer, CliError> {
    let secrets = arguments.secrets.as_ref().map(fs_err::read_to_string).transpose()?;
    let options = Options {
        port: arguments.port,
        read_only: arguments.read_only,
        hosts: &arguments.allow_host,
        metrics_token: arguments.metrics_token.as_deref(),
        secrets: secrets.as_deref(),
    };
    WebServer::bind(paths, std::env::current_exe()?, &options).map_err(|error| {
        let code = match error {
            WebError::HostName(_) | WebError::Token(_) | WebError::OpenToken(_) | WebError::ShortToken => code::USAGE,
            WebError::PortTaken(_) | WebError::Listen(_) | WebError::Io(_) => code::ENVIRONMENT,
        };
        CliError::new(code, error.to_string(), error.hint())
    })
}

/// The link is data: a script reads it from stdout.
fn print(link: &str, port: u16, read_only: bool, json: bool) -> Result<(), CliError> {
    if json {
        let written = output::write_json(&json!({"url": link, "port": port, "read_only": read_only}));
        return written.map_err(|error| CliError::unwritten(&error));
    }
    output::line(link);
    Ok(())
}

fn introduce(arguments: &UiArgs) {
    let again = if std::io::stdin().is_terminal() { "; press Enter for another link" } else { "" };
    let mode = if arguments.read_only { " (read-only)" } else { "" };
    output::note(&format!("the link works once{again}; Ctrl-C stops{mode}"));
    for host in &arguments.allow_host {
        output::note(&format!("through your tunnel, put {host} in the place of the link's host and port"));
    }
}

/// Prints a new link for every line that the person enters, while this process is in front: one in the background
/// that read from the terminal would be stopped.
fn answer_enter(links: &Links, port: u16, read_only: bool, json: bool) {
    let stdin = std::io::stdin();
    let mut line = String::new();
    loop {
        let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
        let limit = Timespec { tv_sec: 1, tv_nsec: 0 };
        // Interrupted waits are repeated.
        let is_ready = poll(&mut polled, Some(&limit)).is_ok_and(|ready| ready > 0);
        if !is_ready {
            continue;
        }
        if rustix::termios::tcgetpgrp(&stdin).ok() != Some(rustix::process::getpgrp()) {
            std::thread::sleep(LOOK_EVERY);
            continue;
        }
        line.clear();
        // At the end of the input there is no one to ask.
        if !stdin.lock().read_line(&mut line).is_ok_and(|read| read > 0) {
            return;
        }
        let printed = links.link().map_err(CliError::from).and_then(|link| print(&link, port, read_only, json));
        if let Err(error) = printed {
            output::note(&format!("cannot make a link: {}", error.message));
        }
    }
}

/// Opens the link in the user's browser.
fn open(link: &str) {
    let name = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let Some(program) = programs::on_path(name) else {
        output::note(&format!("`{name}` is not installed; open the link yourself"));
        return;
    };
    let mut command = Command::new(program);
    command.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
        Err(error) => output::note(&format!("cannot start `{name}`: {error}; open the link yourself")),
    }
}
