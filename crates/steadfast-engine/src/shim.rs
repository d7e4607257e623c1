//! `steadfast __exec DIR`: the keeper of one attempt. It runs the agent that `spec.json` describes and writes down how
//! it ended, whoever else dies meanwhile: a session of its own, a lock for as long as it lives, its identity on disk
//! before the agent exists, the time limit in its own hands, and `exit.json` whole or not at all.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use steadfast_model::clock;
use steadfast_model::clock::Millis;
use steadfast_system::bounded;

use crate::agent::Invocation;
use crate::attempt::Attempt;
use crate::processes::Identity;
use crate::{crash, durable, processes};

pub(crate) const SPEC: &str = "spec.json";
pub(crate) const PROMPT: &str = "prompt.md";
pub(crate) const OUTPUT: &str = "out.log";
pub(crate) const ERRORS: &str = "err.log";
pub(crate) const RESULT: &str = "result.json";
pub(crate) const LOCK: &str = "lock";
pub(crate) const IDENTITY: &str = "pid";
pub(crate) const EXIT: &str = "exit.json";
/// Nothing may be started here any more.
pub(crate) const ABANDONED: &str = "abandoned";

/// What is to be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The program and its arguments; no shell sees them.
    pub argv: Vec<String>,
    pub directory: PathBuf,
    /// Added to the environment that the keeper has.
    pub env: Vec<(String, String)>,
    pub env_remove: Vec<String>,
    pub limit_ms: u64,
    /// Between TERM and KILL.
    pub grace_ms: u64,
    /// Which attempt of its run this is, for tests that crash a certain one.
    pub ordinal: u32,
}

impl Spec {
    pub(crate) fn of(invoked: &Invocation, directory: &Path, limit: Duration, grace: Duration, ordinal: u32) -> Self {
        let milliseconds = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self {
            argv: invoked.argv.clone(),
            directory: directory.to_owned(),
            env: invoked.env.clone(),
            env_remove: invoked.env_remove.clone(),
            limit_ms: milliseconds(limit),
            grace_ms: milliseconds(grace),
            ordinal,
        }
    }
}

/// How the agent ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub timed_out: bool,
    /// Somebody asked the keeper to end it.
    pub stopped: bool,
    /// It never began: why.
    pub cannot_start: Option<String>,
    pub started_at_ms: Millis,
    pub ended_at_ms: Millis,
}

/// What the keeper writes about itself before the agent exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeper {
    pub identity: Identity,
    pub started_at_ms: Millis,
}

#[derive(Debug, thiserror::Error)]
pub enum ShimError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("{path} does not describe an attempt: {source}")]
    Spec {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error("{0} has a keeper already")]
    Kept(PathBuf),
    #[error("{0} was given up")]
    Abandoned(PathBuf),
}

enum News {
    Ended(std::io::Result<std::process::ExitStatus>),
    AskedToStop,
}

/// Runs the attempt of a directory to its end. Called again, it starts nothing.
pub fn exec(directory: &Path) -> Result<(), ShimError> {
    processes::begin_session();
    let path = directory.join(SPEC);
    let spec: Spec =
        serde_json::from_slice(&fs_err::read(&path)?).map_err(|source| ShimError::Spec { path, source })?;
    let here = |point: crash::Point| crash::point_of(point, spec.ordinal);
    here(crash::Point::KeeperStarted);
    // Held until this process is gone, however it goes.
    let lock = durable::open_lock(&directory.join(LOCK))?;
    if !durable::try_lock(&lock)? {
        return Err(ShimError::Kept(directory.to_owned()));
    }
    here(crash::Point::KeeperLocked);
    if directory.join(ABANDONED).exists() {
        return Err(ShimError::Abandoned(directory.to_owned()));
    }
    if directory.join(IDENTITY).exists() || directory.join(EXIT).exists() {
        return Err(ShimError::Kept(directory.to_owned()));
    }
    // From here on a request to stop is obeyed in an orderly way.
    let (sender, news) = mpsc::channel();
    listen(sender.clone())?;
    let keeper = Keeper { identity: Identity::own(), started_at_ms: clock::now() };
    durable::replace(&directory.join(IDENTITY), json(&keeper).as_bytes())?;
    here(crash::Point::IdentityWritten);
    let exit = match start(&spec, directory) {
        Ok(child) => {
            here(crash::Point::Spawned);
            let mark = Attempt::in_directory(directory.to_owned()).mark();
            keep(child, &spec, &keeper, &mark, sender, &news)?
        }
        Err(error) => Exit {
            exit_code: None,
            signal: None,
            timed_out: false,
            stopped: false,
            cannot_start: Some(error.to_string()),
            started_at_ms: keeper.started_at_ms,
            ended_at_ms: clock::now(),
        },
    };
    here(crash::Point::AgentEnded);
    // Who sees `exit.json` after a power cut must see the output too.
    for name in [OUTPUT, ERRORS, RESULT] {
        let path = directory.join(name);
        // The agent may have left anything there.
        if let Ok(file) = bounded::open(&path) {
            file.sync_all()?;
        }
    }
    durable::replace(&directory.join(EXIT), json(&exit).as_bytes())?;
    here(crash::Point::ExitWritten);
    drop(lock);
    Ok(())
}

pub(crate) fn json(value: &impl Serialize) -> String {
    // Plain structs with string keys always have a JSON form.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

fn listen(sender: mpsc::Sender<News>) -> std::io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            // No terminal is ours; a stray hang-up is no wish of anybody's.
            if signal != SIGHUP && sender.send(News::AskedToStop).is_err() {
                break;
            }
        }
    });
    Ok(())
}

fn start(spec: &Spec, directory: &Path) -> std::io::Result<Child> {
    let other = |message: String| std::io::Error::other(message);
    let Some((program, arguments)) = spec.argv.split_first() else { return Err(other("no program is named".into())) };
    // Otherwise the error would be that the program was not found.
    if !spec.directory.is_dir() {
        return Err(other(format!("the directory {} is not there", spec.directory.display())));
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

/// Waits for the agent, and ends it when its time is over or somebody asks for that.
fn keep(
    mut child: Child,
    spec: &Spec,
    keeper: &Keeper,
    mark: &str,
    sender: mpsc::Sender<News>,
    news: &mpsc::Receiver<News>,
) -> Result<Exit, ShimError> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let signal = |signal: Signal| {
        if let Some(group) = group {
            // The group may be gone already, which is what we want.
            let _ = kill_process_group(group, signal);
        }
    };
    // Its shells may have left for sessions of their own.
    let ask_to_end = || {
        signal(Signal::TERM);
        processes::signal_all(&keeper.identity.family(mark).strays, Signal::TERM);
    };
    std::thread::spawn(move || sender.send(News::Ended(child.wait())));
    let grace = Duration::from_millis(spec.grace_ms);
    let (mut timed_out, mut stopped) = (false, false);
    let mut deadline = Instant::now().checked_add(Duration::from_millis(spec.limit_ms));
    let status = loop {
        let received = match deadline {
            Some(deadline) => news.recv_timeout(deadline.saturating_duration_since(Instant::now())),
            None => news.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(News::Ended(status)) => break status?,
            Ok(News::AskedToStop) if !stopped && !timed_out => {
                stopped = true;
                ask_to_end();
                deadline = Instant::now().checked_add(grace);
            }
            Ok(News::AskedToStop) => signal(Signal::KILL),
            Err(_) if stopped || timed_out => {
                signal(Signal::KILL);
                deadline = Instant::now().checked_add(grace);
            }
            Err(_) => {
                timed_out = true;
                ask_to_end();
                deadline = Instant::now().checked_add(grace);
            }
        }
    };
    // Whatever it left running in its group goes with it.
    signal(Signal::KILL);
    if timed_out || stopped {
        end_the_rest(keeper, mark, deadline);
    } else if status.code().is_none() {
        processes::signal_all(&keeper.identity.family(mark).strays, Signal::TERM);
        end_the_rest(keeper, mark, Instant::now().checked_add(grace));
    }
    Ok(Exit {
        exit_code: status.code(),
        signal: status.signal(),
        timed_out,
        stopped,
        cannot_start: None,
        started_at_ms: keeper.started_at_ms,
        ended_at_ms: clock::now(),
    })
}

/// Ends what an agent started in sessions of its own, where the agent did not end by itself: another one may follow, and
/// must not work beside it. One that ended by itself may have left a server running on purpose.
fn end_the_rest(keeper: &Keeper, mark: &str, patience: Option<Instant>) {
    while patience.is_some_and(|until| Instant::now() < until) && !keeper.identity.family(mark).is_empty() {
        std::thread::sleep(Duration::from_millis(50));
    }
    keeper.identity.kill_family(mark);
}
