//! `steadfast __exec DIR`: the supervisor of one attempt. It runs the agent that `spec.json` describes and records how
//! it ended, even if every other process dies: it has a session of its own, holds the attempt's lock while it lives,
//! writes its record before the agent starts, enforces the time limit, ends everything that the agent started, and
//! writes `exit.json` whole or not at all.

mod output_cap;
mod reaper;
mod watching;

use std::io::{BufRead as _, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use steadfast_model::clock;
use steadfast_system::process::ProcessIdentity;
use steadfast_system::{bounded, clock as system_clock};

use self::output_cap::CappedOutput;
use self::watching::{Supervision, SupervisorMessage};
use crate::attempt::{
    ABANDONED, Attempt, AttemptExit, AttemptSpec, AttemptToken, ERRORS, EXIT, OUTPUT, PROMPT, RESULT, SPEC, SUPERVISOR,
    SUPERVISOR_LOG, SupervisorRecord, TOKEN_BYTES,
};
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
    #[error("the engine of {0} ended before it had started it")]
    NoToken(PathBuf),
}

/// Runs the attempt of a directory to its end. A second call for the same directory starts nothing.
pub fn exec(directory: &Path) -> Result<(), SupervisorError> {
    process::begin_session();
    let attempt = Attempt::in_directory(directory.to_owned());
    let path = directory.join(SPEC);
    let spec: AttemptSpec =
        serde_json::from_slice(&fs_err::read(&path)?).map_err(|source| SupervisorError::Spec { path, source })?;
    if spec.clock.is_some() {
        system_clock::look_after(spec.clock.as_ref());
    }
    let here = |point: crash::CrashPoint| crash::point_of(point, spec.ordinal);
    here(crash::CrashPoint::SupervisorStarted);
    let Some(lock) = lock::try_take(&attempt.lock_file())? else {
        return Err(SupervisorError::Supervised(directory.to_owned()));
    };
    here(crash::CrashPoint::SupervisorLocked);
    let token = spec.has_token.then(read_token).transpose()?.flatten();
    if spec.has_token && token.is_none() {
        return Err(SupervisorError::NoToken(directory.to_owned()));
    }
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
    if spec.bound_to_parent {
        let parent_ended = sender.clone();
        std::thread::spawn(move || {
            wait_for_parent();
            // The receiver is gone once the attempt has ended.
            let _ = parent_ended.send(SupervisorMessage::StopRequested);
        });
    }
    let record = SupervisorRecord { identity: ProcessIdentity::own(), started_at_ms: clock::now() };
    write(&directory.join(SUPERVISOR), &durable::json(&record))?;
    here(crash::CrashPoint::RecordWritten);
    // Whatever the agent starts stays below this process, also when its parents have ended.
    reaper::adopt_orphans();
    let exit = match start(&spec, directory) {
        Ok((child, outputs)) => {
            here(crash::CrashPoint::Spawned);
            let mark = attempt.mark();
            Supervision { spec: &spec, mark: &mark, record: &record, directory, token: token.as_ref() }
                .watch(&child, outputs, sender, &messages)?
        }
        Err(error) => AttemptExit { cannot_start: Some(error.to_string()), ..AttemptExit::default() },
    };
    let exit = AttemptExit {
        started_at_ms: record.started_at_ms,
        ended_at_ms: clock::now().max(record.started_at_ms),
        supervisor: Some(record.identity),
        ..exit
    };
    let exit = exit.sealed(token.as_ref());
    here(crash::CrashPoint::AgentEnded);
    // If `exit.json` survives a power cut, the output must too.
    for name in [OUTPUT, ERRORS, RESULT] {
        // The agent may have replaced them by anything, so only plain files are opened.
        if let Ok(file) = bounded::open(&directory.join(name)) {
            file.sync_all()?;
        }
    }
    // So must the work in a worktree: the engine commits it only after it has read `exit.json`.
    if is_in_worktree(directory, &spec.directory) {
        durable::sync_file_system(&spec.directory)?;
    }
    write(&directory.join(EXIT), &durable::json(&exit))?;
    here(crash::CrashPoint::ExitWritten);
    drop(lock);
    Ok(())
}

/// Whether an attempt, whose records are in `HOME/runs/ID/ATTEMPT`, works below `HOME/worktrees`.
fn is_in_worktree(records: &Path, workplace: &Path) -> bool {
    records.ancestors().nth(3).is_some_and(|home| workplace.starts_with(home.join("worktrees")))
}

/// The token that the engine hands over.
fn read_token() -> std::io::Result<Option<AttemptToken>> {
    let mut text = String::new();
    // Only the line: an engine to which the agent is bound keeps the rest open.
    std::io::stdin().lock().take(TOKEN_BYTES).read_line(&mut text)?;
    // A whole line: the engine may have died while it wrote.
    Ok(text.strip_suffix('\n').filter(|text| !text.is_empty()).map(AttemptToken::new))
}

/// Waits until the process that started this one closes our stdin, or is gone.
fn wait_for_parent() {
    let mut stdin = std::io::stdin().lock();
    let mut ignored = [0; 64];
    while stdin.read(&mut ignored).is_ok_and(|length| length > 0) {}
}

/// Writes a record. On a full disk it waits for room: without its exit, a finished attempt would be repeated. An engine
/// that wants the attempt to end kills this process.
fn write(path: &Path, json: &str) -> std::io::Result<()> {
    outage::wait_for_room(|| false, |_| {}, || durable::replace(path, json.as_bytes()))
}

/// Starts the agent; returns its outputs too, as far as they are capped.
fn start(spec: &AttemptSpec, directory: &Path) -> std::io::Result<(Child, Vec<CappedOutput>)> {
    let Some((program, arguments)) = spec.argv.split_first() else {
        return Err(std::io::Error::other("no program is named"));
    };
    // Checked first: otherwise the error would name the program.
    if !spec.directory.is_dir() {
        return Err(std::io::Error::other(format!("the directory {} does not exist", spec.directory.display())));
    }
    let [output, errors] = [OUTPUT, ERRORS].map(|name| durable::open_to_append(&directory.join(name)));
    let (output, errors) = (output?.into_parts().0, errors?.into_parts().0);
    let log = directory.join(SUPERVISOR_LOG);
    let capped = |file: std::fs::File| CappedOutput::new(file, spec.output_bytes, log.clone());
    let outputs = [output.try_clone()?, errors.try_clone()?].into_iter().filter_map(capped).collect();
    let mut command = Command::new(program);
    for name in &spec.env_remove {
        command.env_remove(name);
    }
    command
        .args(arguments)
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&spec.directory)
        .stdin(fs_err::File::open(directory.join(PROMPT))?.into_parts().0)
        .stdout(output)
        .stderr(errors)
        .process_group(0);
    let named = |error: std::io::Error| std::io::Error::new(error.kind(), format!("cannot run `{program}`: {error}"));
    Ok((command.spawn().map_err(named)?, outputs))
}
