//! `steadfast __exec DIR`: the supervisor of one attempt. It runs the agent that `spec.json` describes and records how
//! it ended, even if every other process dies: it has a session of its own, holds the attempt's lock while it lives,
//! writes its record before the agent starts, enforces the time limit, and writes `exit.json` whole or not at all.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use steadfast_model::clock;
use steadfast_system::bounded;
use steadfast_system::process::ProcessIdentity;

use crate::attempt::{
    ABANDONED, Attempt, AttemptExit, AttemptSpec, ERRORS, EXIT, OUTPUT, PROMPT, RESULT, SPEC, SUPERVISOR,
    SupervisorRecord,
};
use crate::descendants::{self, Descendants};
use crate::{crash, durable, interrupt, lock, outage, process};

#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("{path} does not describe an attempt: {source}")]
    Spec { path: PathBuf, source: serde_json::Error },
    #[error("{0} is already supervised")]
    Supervised(PathBuf),
    #[error("{0} was abandoned")]
    Abandoned(PathBuf),
}

enum SupervisorMessage {
    Ended(std::io::Result<std::process::ExitStatus>),
    StopRequested,
}

/// Runs the attempt of a directory to its end. A second call for the same directory starts nothing.
pub fn exec(directory: &Path) -> Result<(), SupervisorError> {
    process::begin_session();
    let attempt = Attempt::in_directory(directory.to_owned());
    let path = directory.join(SPEC);
    let spec: AttemptSpec =
        serde_json::from_slice(&fs_err::read(&path)?).map_err(|source| SupervisorError::Spec { path, source })?;
    let here = |point: crash::Point| crash::point_of(point, spec.ordinal);
    here(crash::Point::SupervisorStarted);
    let Some(lock) = lock::try_take(&attempt.lock_file())? else {
        return Err(SupervisorError::Supervised(directory.to_owned()));
    };
    here(crash::Point::SupervisorLocked);
    if directory.join(ABANDONED).exists() {
        return Err(SupervisorError::Abandoned(directory.to_owned()));
    }
    if directory.join(SUPERVISOR).exists() || directory.join(EXIT).exists() {
        return Err(SupervisorError::Supervised(directory.to_owned()));
    }
    // Before the record is written: from then on the engine may ask this process to stop.
    let (sender, messages) = mpsc::channel();
    let stop = sender.clone();
    // This process has no terminal, so a hang-up is no request to stop.
    interrupt::listen([SIGTERM, SIGINT, SIGHUP], move |signal| {
        signal == SIGHUP || stop.send(SupervisorMessage::StopRequested).is_ok()
    })?;
    let record = SupervisorRecord { identity: ProcessIdentity::own(), started_at_ms: clock::now() };
    write(&directory.join(SUPERVISOR), &durable::json(&record))?;
    here(crash::Point::RecordWritten);
    let exit = match start(&spec, directory) {
        Ok(child) => {
            here(crash::Point::Spawned);
            Supervision { spec: &spec, record: &record, mark: &attempt.mark() }.watch(child, sender, &messages)?
        }
        Err(error) => AttemptExit {
            cannot_start: Some(error.to_string()),
            started_at_ms: record.started_at_ms,
            ended_at_ms: clock::now(),
            ..AttemptExit::default()
        },
    };
    here(crash::Point::AgentEnded);
    // If `exit.json` survives a power cut, the output must too.
    for name in [OUTPUT, ERRORS, RESULT] {
        // The agent may have replaced them by anything, so only plain files are opened.
        if let Ok(file) = bounded::open(&directory.join(name)) {
            file.sync_all()?;
        }
    }
    write(&directory.join(EXIT), &durable::json(&exit))?;
    here(crash::Point::ExitWritten);
    drop(lock);
    Ok(())
}

/// Writes a record. On a full disk it waits for room: without its exit, a finished attempt would be repeated. An engine
/// that wants the attempt to end kills this process.
fn write(path: &Path, json: &str) -> std::io::Result<()> {
    outage::wait_for_room(|| false, |_| {}, || durable::replace(path, json.as_bytes()))
}

fn start(spec: &AttemptSpec, directory: &Path) -> std::io::Result<Child> {
    let Some((program, arguments)) = spec.argv.split_first() else {
        return Err(std::io::Error::other("no program is named"));
    };
    // Checked first: otherwise the error would name the program.
    if !spec.directory.is_dir() {
        return Err(std::io::Error::other(format!("the directory {} does not exist", spec.directory.display())));
    }
    let mut command = Command::new(program);
    for name in &spec.env_remove {
        command.env_remove(name);
    }
    command
        .args(arguments)
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&spec.directory)
        .stdin(fs_err::File::open(directory.join(PROMPT))?.into_parts().0)
        .stdout(durable::open_to_append(&directory.join(OUTPUT))?.into_parts().0)
        .stderr(durable::open_to_append(&directory.join(ERRORS))?.into_parts().0)
        .process_group(0);
    command.spawn().map_err(|error| std::io::Error::new(error.kind(), format!("cannot run `{program}`: {error}")))
}

struct Supervision<'a> {
    spec: &'a AttemptSpec,
    record: &'a SupervisorRecord,
    mark: &'a str,
}

impl Supervision<'_> {
    /// Waits for the agent, and ends it when its time is over or a signal asks for that.
    fn watch(
        &self,
        mut child: Child,
        sender: mpsc::Sender<SupervisorMessage>,
        messages: &mpsc::Receiver<SupervisorMessage>,
    ) -> Result<AttemptExit, SupervisorError> {
        let signal = process::signal_group_of(&child);
        std::thread::spawn(move || sender.send(SupervisorMessage::Ended(child.wait())));
        let grace = Duration::from_millis(self.spec.grace_ms);
        let (mut timed_out, mut stopped) = (false, false);
        let mut deadline = Instant::now().checked_add(Duration::from_millis(self.spec.limit_ms));
        let status = loop {
            let received = match deadline {
                Some(deadline) => messages.recv_timeout(deadline.saturating_duration_since(Instant::now())),
                None => messages.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
            };
            match received {
                Ok(SupervisorMessage::Ended(status)) => break status?,
                Ok(SupervisorMessage::StopRequested) if stopped || timed_out => {
                    signal(Signal::KILL);
                    continue;
                }
                Err(_) if stopped || timed_out => signal(Signal::KILL),
                request => {
                    (stopped, timed_out) = (request.is_ok(), request.is_err());
                    signal(Signal::TERM);
                    self.terminate_escaped();
                }
            }
            deadline = Instant::now().checked_add(grace);
        };
        // Kill what the agent left running in its group.
        signal(Signal::KILL);
        if timed_out || stopped {
            self.end_escaped(deadline);
        } else if status.code().is_none() {
            self.terminate_escaped();
            self.end_escaped(Instant::now().checked_add(grace));
        }
        Ok(AttemptExit {
            exit_code: status.code(),
            signal: status.signal(),
            timed_out,
            stopped,
            cannot_start: None,
            started_at_ms: self.record.started_at_ms,
            ended_at_ms: clock::now(),
        })
    }

    fn descendants(&self) -> Descendants {
        Descendants::of(&self.record.identity, self.mark)
    }

    /// The shells of some agents begin sessions of their own.
    fn terminate_escaped(&self) {
        descendants::signal_all(&self.descendants().escaped, Signal::TERM);
    }

    /// Ends what an agent started in other sessions, unless the agent ended by itself: the next agent must not work
    /// beside it. An agent that ended by itself may have left a server running on purpose.
    fn end_escaped(&self, deadline: Option<Instant>) {
        descendants::end_at(deadline, || self.descendants().all());
    }
}
