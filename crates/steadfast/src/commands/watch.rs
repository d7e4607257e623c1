//! `steadfast watch`: wakes due goals, tells the user about goals that nothing moves, starts the engines of detached runs
//! again, and delivers messages. One works for each home. It has no state of its own: everything is in the store and in
//! the folders of runs, so it can be killed at any time.

mod appointments;
mod children;
mod engines;
mod goals;
mod handover;
mod journal;
mod report;
mod watching;

use std::path::{Path, absolute};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use steadfast_engine::{interrupt, process};
use steadfast_system::paths::Paths;
use steadfast_system::process::ProcessId;
use steadfast_system::watch_lock::{self, WatchLock};

use super::own_paths;
use crate::cli::WatchArgs;
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};
use crate::watch;
use report::WatchReport;
use watching::Watch;

/// How long the one in the background may take to lock, and to end.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(10);

pub(crate) fn run(db: Option<&Path>, arguments: &WatchArgs, json: bool) -> CommandResult {
    let mut paths = own_paths::find(db)?;
    paths.home = absolute(&paths.home)?;
    paths.store = absolute(&paths.store)?;
    if arguments.stop {
        return stop(&paths);
    }
    if arguments.detach {
        return detach(&paths);
    }
    let report = match (arguments.background, json) {
        (true, _) => WatchReport::to_log(&paths),
        (false, true) => WatchReport::Json,
        (false, false) => WatchReport::Text,
    };
    if arguments.background {
        process::begin_session();
    }
    let requests = interrupt::requests()?;
    let Some(lock) = WatchLock::try_take(&paths.home)? else {
        let message = format!("already running{}", shown_pid(watch_lock::holder(&paths.home)));
        if arguments.background || arguments.once {
            output::note(&message);
            return Ok(CommandOutput::default());
        }
        return Err(CliError::new(code::WRONG_STATE, message, "`steadfast watch --stop` ends it"));
    };
    let mut watch = Watch::new(paths, report, requests);
    if arguments.once {
        watch.once()?;
        return Ok(CommandOutput::default());
    }
    if !arguments.background {
        watch.introduce();
    }
    let code = watch.work(lock, arguments.background)?;
    Ok(CommandOutput { code, ..CommandOutput::default() })
}

/// Starts one in the background and returns once it has the lock.
fn detach(paths: &Paths) -> CommandResult {
    let holder = || watch_lock::holder(&paths.home);
    if let Some(running) = holder() {
        return Ok(running_in_background(running, "already running"));
    }
    let mut child = watch::background(paths, "--background")?.spawn()?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(running) = holder() {
            return Ok(running_in_background(running, "watching in the background"));
        }
        let has_ended = child.try_wait()?.is_some();
        if has_ended || Instant::now() > deadline {
            let hint = format!("run `steadfast watch` to see why, or read {}", paths.watch_log().display());
            return Err(CliError::new(code::ENVIRONMENT, "cannot start in the background", hint));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn running_in_background(running: ProcessId, what: &str) -> CommandOutput {
    let text = format!("{what}{}", shown_pid(Some(running)));
    CommandOutput { text, json: json!({"pid": running.pid}), code: 0 }
}

fn shown_pid(process: Option<ProcessId>) -> String {
    process.map(|process| format!(" (pid {})", process.pid)).unwrap_or_default()
}

/// Ends the one that holds the lock.
fn stop(paths: &Paths) -> CommandResult {
    let Some(running) = watch_lock::holder(&paths.home) else {
        return Err(CliError::new(code::WRONG_STATE, "not running", "`steadfast watch` starts it"));
    };
    let pid = i32::try_from(running.pid).ok().and_then(Pid::from_raw);
    let is_it = running.is_alive().unwrap_or(true);
    if let Some(pid) = pid.filter(|_| is_it) {
        // It may have ended by itself.
        let _ = kill_process(pid, Signal::TERM);
    }
    let deadline = Instant::now() + PATIENCE;
    while watch_lock::holder(&paths.home) == Some(running) {
        if Instant::now() > deadline {
            let message = format!("it has not stopped yet{}", shown_pid(Some(running)));
            return Err(CliError::new(code::USAGE, message, format!("wait, or `kill -9 {}`", running.pid)));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(running_in_background(running, "stopped"))
}
