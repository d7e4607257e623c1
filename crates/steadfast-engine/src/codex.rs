//! Codex from outside: one more turn of a closed session.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// Goes on with a thread in the foreground and waits for the turn to end; the hooks of that run drive the goal. What
/// Codex prints goes to stderr. Ctrl-C reaches both.
pub fn resume(
    program: &Path,
    flags: &[String],
    thread_id: &str,
    prompt: &str,
    directory: &Path,
) -> std::io::Result<ExitStatus> {
    let mut command = Command::new(program);
    command.arg("exec");
    // The session was opened in this directory by the user, with a repository or without one.
    if !directory.ancestors().any(|ancestor| ancestor.join(".git").exists()) {
        command.arg("--skip-git-repo-check");
    }
    // A piped stdin would be read to its end and added to the prompt.
    command.args(flags).args(["resume", thread_id, prompt]).stdin(Stdio::null()).stdout(Stdio::from(std::io::stderr()));
    if directory.is_dir() {
        command.current_dir(directory);
    }
    command.status()
}
