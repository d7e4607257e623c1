//! One child process: its own group, output to a file, a time limit, and nothing left behind.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use sha2::{Digest as _, Sha256};
use steadfast_model::text;
use steadfast_system::env_vars;

/// How much of the output is kept as text.
const TAIL_BYTES: u64 = 4_096;
/// Between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// How often limits and cancellation are looked at.
const LOOK_AROUND: Duration = Duration::from_millis(20);

/// How a child ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// `None` when a signal ended it.
    pub exit_code: Option<i32>,
    pub timed_out: bool,
    pub duration: Duration,
    pub output_sha256: String,
    pub output_tail: String,
}

/// What a program printed and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// `None` when a signal ended it.
    pub exit_code: Option<i32>,
    pub timed_out: bool,
    /// The beginning, as much as was asked for.
    pub stdout: Vec<u8>,
    /// The end.
    pub stderr_tail: String,
}

/// Says to a program that runs on another thread that nobody waits for it any more.
#[derive(Debug, Clone, Default)]
pub struct Cancel(std::sync::Arc<AtomicBool>);

impl Cancel {
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How a program is watched over.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    pub cancel: Cancel,
    /// An entry for its environment, by which what is left of it is found once we are gone.
    pub mark: Option<(&'static str, String)>,
}

/// Runs a program with its arguments in a directory; stdout and stderr go to one file, stdin is empty.
pub fn run(argv: &[&str], directory: &Path, limit: Duration) -> std::io::Result<Outcome> {
    run_watched(&Watch::default(), argv, directory, limit)
}

/// Like [`run`], and ended as by its limit when it is cancelled.
pub fn run_watched(watch: &Watch, argv: &[&str], directory: &Path, limit: Duration) -> std::io::Result<Outcome> {
    let mut output = tempfile::tempfile()?;
    let started = Instant::now();
    let (stdout, stderr) = (output.try_clone()?, output.try_clone()?);
    let mut command = command(argv, directory)?;
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let (exit_code, timed_out) = wait(command, limit, watch)?;
    let duration = started.elapsed();
    let (output_sha256, output_tail) = digest(&mut output)?;
    Ok(Outcome { exit_code, timed_out, duration, output_sha256, output_tail })
}

/// Runs a program for what it prints: at most `most` bytes of stdout are kept.
pub fn capture(argv: &[&str], directory: &Path, limit: Duration, most: u64) -> std::io::Result<Captured> {
    capture_with(&Watch::default(), Stdio::null(), &[], argv, directory, limit, most)
}

/// Like [`capture`], with something for its stdin (a file whose lock it is to share, even if we are killed) and its
/// environment, and ended as by its limit when it is cancelled.
pub(crate) fn capture_with(
    watch: &Watch,
    stdin: Stdio,
    env: &[(&str, &str)],
    argv: &[&str],
    directory: &Path,
    limit: Duration,
    most: u64,
) -> std::io::Result<Captured> {
    let (mut output, mut errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut command = command(argv, directory)?;
    command.stdin(stdin).stdout(output.try_clone()?).stderr(errors.try_clone()?).envs(env.iter().copied());
    let (exit_code, timed_out) = wait(command, limit, watch)?;
    output.seek(SeekFrom::Start(0))?;
    let mut stdout = Vec::new();
    output.take(most).read_to_end(&mut stdout)?;
    let (_, stderr_tail) = digest(&mut errors)?;
    Ok(Captured { exit_code, timed_out, stdout, stderr_tail })
}

/// A program in a group and a directory of its own, which also says which repository it is in.
fn command(argv: &[&str], directory: &Path) -> std::io::Result<Command> {
    let Some((program, arguments)) = argv.split_first() else {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "no program to run"));
    };
    let mut command = Command::new(program);
    for name in env_vars::OF_ONE_REPOSITORY {
        command.env_remove(name);
    }
    command.args(arguments).current_dir(directory).process_group(0);
    Ok(command)
}

/// Runs a program to its end or its limit: its exit code, if it has one, and whether the limit was reached.
fn wait(mut command: Command, mut limit: Duration, watch: &Watch) -> std::io::Result<(Option<i32>, bool)> {
    let started = Instant::now();
    command.envs(watch.mark.iter().map(|(name, value)| (name, value)));
    let mut child = command.spawn()?;
    // It has what it needs, and our copies of its files would stay open.
    drop(command);
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let signal = |signal: Signal| {
        if let Some(group) = group {
            // The group may be gone already, which is what we want.
            let _ = kill_process_group(group, signal);
        }
    };
    let mut timed_out = false;
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait()));
    let status = loop {
        match ended.recv_timeout(LOOK_AROUND) {
            Ok(status) => break status?,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(error) => return Err(std::io::Error::other(error)),
        }
        let elapsed = started.elapsed();
        if watch.cancel.is_cancelled() {
            limit = limit.min(elapsed);
        }
        if elapsed >= limit + GRACE {
            signal(Signal::KILL);
        } else if elapsed >= limit && !timed_out {
            timed_out = true;
            signal(Signal::TERM);
        }
    };
    // Whatever the command left running in its group goes with it.
    signal(Signal::KILL);
    Ok((if timed_out { None } else { status.code() }, timed_out))
}

fn digest(file: &mut std::fs::File) -> std::io::Result<(String, String)> {
    let size = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(0))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
    }
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    Ok((text::hex(&hash.finalize()), String::from_utf8_lossy(&tail).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Outcome {
        run(&["sh", "-c", script], Path::new("/"), limit).unwrap()
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
    fn a_program_that_nobody_waits_for_is_ended() {
        let watch = Watch::default();
        watch.cancel.cancel();
        let outcome = run_watched(&watch, &["sleep", "60"], Path::new("/"), Duration::from_mins(1)).unwrap();
        assert_eq!((outcome.exit_code, outcome.timed_out), (None, true));
    }

    #[test]
    fn what_a_program_prints_is_kept_apart_from_its_complaints() {
        let script = "echo out; echo err >&2; exit 3";
        let captured = capture(&["sh", "-c", script], Path::new("/"), Duration::from_secs(20), 2).unwrap();
        let expected =
            Captured { exit_code: Some(3), timed_out: false, stdout: b"ou".to_vec(), stderr_tail: "err\n".into() };
        assert_eq!(captured, expected);
    }

    #[test]
    fn only_the_tail_of_a_flood_is_kept() {
        let outcome = shell("head -c 10000000 /dev/zero | tr '\\0' x; echo END", Duration::from_mins(1));
        assert_eq!(outcome.exit_code, Some(0));
        assert!(outcome.output_tail.len() <= 4_096 && outcome.output_tail.ends_with("END\n"));
    }
}
