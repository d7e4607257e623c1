//! Resumes a closed Codex session for one more turn.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// Resumes a thread in the foreground and waits for the turn to end; its hooks drive the goal. The output of Codex goes
/// to stderr. Ctrl-C reaches both processes.
pub fn resume(
    program: &Path,
    flags: &[String],
    thread_id: &str,
    prompt: &str,
    directory: &Path,
) -> std::io::Result<ExitStatus> {
    let mut command = Command::new(program);
    command.arg("exec");
    // The user chose this directory for the session, with or without a repository.
    if !directory.ancestors().any(|ancestor| ancestor.join(".git").exists()) {
        command.arg("--skip-git-repo-check");
    }
    // Codex would read a piped stdin to its end and add it to the prompt.
    command.args(flags).args(["resume", thread_id, prompt]).stdin(Stdio::null()).stdout(Stdio::from(std::io::stderr()));
    if directory.is_dir() {
        command.current_dir(directory);
    }
    command.status()
}
