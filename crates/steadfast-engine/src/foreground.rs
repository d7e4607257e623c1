//! A host's agent in the foreground, for one more turn of a closed session.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// Runs the agent and waits for it; its output goes to stderr, and Ctrl-C reaches both processes.
pub fn run(program: &Path, arguments: &[String], directory: &Path) -> std::io::Result<ExitStatus> {
    let mut command = Command::new(program);
    // The agent would read a piped stdin to its end and add it to the prompt.
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::from(std::io::stderr()));
    if directory.is_dir() {
        command.current_dir(directory);
    }
    command.status()
}
