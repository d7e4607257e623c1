//! Running one command to its end: in its own process group, with a time limit, output to a file, and nothing left
//! running in its group afterwards.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use sha2::{Digest as _, Sha256};
use steadfast_model::text;
use steadfast_system::env_vars;

use crate::excerpt;

/// How much of the output is kept as text.
const TAIL_BYTES: u64 = 4_096;
/// Between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// How often the time limit and cancellation are checked.
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutcome {
    /// `None` when a signal ended it.
    pub exit_code: Option<i32>,
    pub timed_out: bool,
    pub duration: Duration,
    pub output_sha256: String,
    /// Printable and without secrets.
    pub output_tail: String,
}

/// What a command printed and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// `None` when a signal ended it.
    pub exit_code: Option<i32>,
    pub timed_out: bool,
    /// The first bytes, up to the maximum that the caller gave.
    pub stdout: Vec<u8>,
    /// The last bytes, for messages of programs that are read again.
    pub stderr_tail: String,
}

/// A flag that ends work on another thread.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A command with a time limit. It runs in a group of its own, with an empty stdin, and without variables that would
/// point git at another repository than that of its directory.
#[derive(Debug)]
pub struct LimitedCommand {
    command: Command,
    limit: Duration,
    cancel: Cancel,
    leaves_children: bool,
}

impl LimitedCommand {
    pub fn new(program: impl AsRef<OsStr>, directory: &Path, limit: Duration) -> Self {
        let mut command = Command::new(program);
        for name in env_vars::OF_ONE_REPOSITORY {
            command.env_remove(name);
        }
        command.current_dir(directory).process_group(0).stdin(Stdio::null());
        Self { command, limit, cancel: Cancel::default(), leaves_children: false }
    }

    /// A text for `sh -c`.
    pub fn shell(text: &str, directory: &Path, limit: Duration) -> Self {
        Self::new("sh", directory, limit).args(["-c", text])
    }

    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(arguments);
        self
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Replaces the whole environment, except for what would point git at another repository.
    #[must_use]
    pub(crate) fn only_env(mut self, variables: &BTreeMap<String, String>) -> Self {
        let of_repository = |name: &String| env_vars::OF_ONE_REPOSITORY.contains(&name.as_str());
        self.command.env_clear().envs(variables.iter().filter(|(name, _)| !of_repository(name)));
        self
    }

    #[must_use]
    pub fn stdin(mut self, stdin: Stdio) -> Self {
        self.command.stdin(stdin);
        self
    }

    /// Lets what the command started in the background run on, unless the limit is reached.
    #[must_use]
    pub fn leaving_children(self) -> Self {
        Self { leaves_children: true, ..self }
    }

    /// Ends the command as if its limit was reached once the flag is set.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// Runs the command and drops its output: the exit code, if there is one, and whether the limit was reached.
    pub(crate) fn status(mut self) -> std::io::Result<(Option<i32>, bool)> {
        self.command.stdout(Stdio::null()).stderr(Stdio::null());
        self.wait()
    }

    /// How long after the start of a command with this limit nothing of it runs any more.
    pub(crate) fn over_after(limit: Duration) -> Duration {
        limit.saturating_add(GRACE)
    }

    /// Runs the command; stdout and stderr go to one file.
    pub fn run(mut self) -> std::io::Result<CommandOutcome> {
        let mut output = tempfile::tempfile()?;
        let started = Instant::now();
        self.command.stdout(output.try_clone()?).stderr(output.try_clone()?);
        let (exit_code, timed_out) = self.wait()?;
        let duration = started.elapsed();
        let output_sha256 = digest(&mut output)?;
        let output_tail = excerpt::tail(&mut output, TAIL_BYTES)?;
        Ok(CommandOutcome { exit_code, timed_out, duration, output_sha256, output_tail })
    }

    /// Runs the command for what it prints: at most `most` bytes of stdout are returned.
    pub fn capture(mut self, most: u64) -> std::io::Result<Captured> {
        let (mut output, mut errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
        self.command.stdout(output.try_clone()?).stderr(errors.try_clone()?);
        let (exit_code, timed_out) = self.wait()?;
        output.seek(SeekFrom::Start(0))?;
        let mut stdout = Vec::new();
        output.take(most).read_to_end(&mut stdout)?;
        let stderr_tail = tail_as_printed(&mut errors)?;
        Ok(Captured { exit_code, timed_out, stdout, stderr_tail })
    }

    /// What a git command that only reads prints, if it succeeds.
    pub(crate) fn ask_git(arguments: &[&str], directory: &Path, limit: Duration, most: u64) -> Option<Vec<u8>> {
        let captured = Self::new("git", directory, limit).args(arguments.iter().copied()).capture(most).ok()?;
        (captured.exit_code == Some(0)).then_some(captured.stdout)
    }

    /// Waits for the end or the limit: the exit code, if there is one, and whether the limit was reached.
    fn wait(self) -> std::io::Result<(Option<i32>, bool)> {
        let Self { mut command, mut limit, cancel, leaves_children } = self;
        let started = Instant::now();
        let mut child = command.spawn()?;
        // Close our copies of its files: one of them may be a lock.
        drop(command);
        let signal = signal_group_of(&child);
        let mut timed_out = false;
        let (sender, ended) = mpsc::channel();
        std::thread::spawn(move || sender.send(child.wait()));
        let status = loop {
            match ended.recv_timeout(CHECK_EVERY) {
                Ok(status) => break status?,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(error) => return Err(std::io::Error::other(error)),
            }
            let elapsed = started.elapsed();
            if cancel.is_cancelled() {
                limit = limit.min(elapsed);
            }
            if elapsed >= limit.saturating_add(GRACE) {
                signal(Signal::KILL);
            } else if elapsed >= limit && !timed_out {
                timed_out = true;
                signal(Signal::TERM);
            }
        };
        // Kill what the command left running in its group.
        if timed_out || !leaves_children {
            signal(Signal::KILL);
        }
        Ok((if timed_out { None } else { status.code() }, timed_out))
    }
}

/// Sends signals to the group of a child that leads one.
pub(crate) fn signal_group_of(child: &Child) -> impl Fn(Signal) + use<> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    move |signal| {
        // The group may be gone already.
        let _ = group.map(|group| kill_process_group(group, signal));
    }
}

/// Begins a new session, so that no terminal can hang up on this process. The leader of a process group keeps its
/// session: the kernel refuses it another. The current session is not checked: in a container it may have no number.
pub fn begin_session() {
    let _ = rustix::process::setsid();
}

/// The SHA-256 of a file.
fn digest(file: &mut std::fs::File) -> std::io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    while let read @ 1.. = file.read(&mut buffer)? {
        hash.update(buffer.get(..read).unwrap_or_default());
    }
    Ok(text::hex(&hash.finalize()))
}

/// The last bytes of a file as text.
fn tail_as_printed(file: &mut std::fs::File) -> std::io::Result<String> {
    let from = file.seek(SeekFrom::End(0))?.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let tail = String::from_utf8_lossy(&tail);
    Ok(if from > 0 { excerpt::after_part_of_word(&tail).to_owned() } else { tail.into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> CommandOutcome {
        LimitedCommand::shell(script, Path::new("/"), limit).run().unwrap()
    }

    #[test]
    fn exit_code_output_and_hash_are_kept() {
        let outcome = shell("echo out; echo err >&2; exit 3", Duration::from_secs(20));
        assert_eq!((outcome.exit_code, outcome.timed_out), (Some(3), false));
        assert_eq!(outcome.output_tail, "out\nerr\n");
        // printf 'out\nerr\n' | sha256sum
        assert_eq!(outcome.output_sha256, "9f345aa1474b011fb7f938c3c12eb48e8b583d94bdbe1235d9e972cfe5b1b4ef");
    }

    #[test]
    fn a_time_limit_ends_the_whole_group_even_if_it_ignores_term() {
        let mark = tempfile::tempdir().unwrap();
        let script = format!("trap '' TERM; (trap '' TERM; sleep 30; touch {}/late) & sleep 30", mark.path().display());
        let outcome = shell(&script, Duration::from_millis(200));
        assert_eq!((outcome.exit_code, outcome.timed_out), (None, true));
        assert!(outcome.duration < Duration::from_secs(20));
    }

    #[test]
    fn a_cancelled_command_is_ended() {
        let cancel = Cancel::default();
        cancel.cancel();
        let sleep = LimitedCommand::new("sleep", Path::new("/"), Duration::from_mins(1)).args(["60"]);
        let outcome = sleep.cancelled_by(&cancel).run().unwrap();
        assert_eq!((outcome.exit_code, outcome.timed_out), (None, true));
    }

    #[test]
    fn stdout_and_stderr_are_captured_separately() {
        let script = "echo out; echo err >&2; exit 3";
        let captured = LimitedCommand::shell(script, Path::new("/"), Duration::from_secs(20)).capture(2).unwrap();
        let expected =
            Captured { exit_code: Some(3), timed_out: false, stdout: b"ou".to_vec(), stderr_tail: "err\n".into() };
        assert_eq!(captured, expected);
    }

    #[test]
    fn only_the_tail_of_a_long_output_is_kept() {
        let outcome = shell("head -c 10000000 /dev/zero | tr '\\0' x; echo END", Duration::from_mins(1));
        assert_eq!(outcome.exit_code, Some(0));
        assert!(outcome.output_tail.len() <= 4_096 && outcome.output_tail.ends_with("END\n"));
    }
}
