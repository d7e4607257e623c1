//! Runs in the background. `--detach` and `--tmux` start engines that outlive the terminal: `steadfast __engine` reads its
//! work from the store and does not depend on the environment. `attach` prints what the agents of a run do.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use steadfast_engine::interrupt;
use steadfast_engine::process::{Captured, LimitedCommand};
use steadfast_engine::run_folder::RunFolder;
use steadfast_model::run::{RunKind, RunStatus};
use steadfast_model::{clock, text};
use steadfast_store::{RunRow, Store};
use steadfast_system::paths::{Paths, create_private_dir};

use super::logs::{Follower, LOOK_EVERY};
use super::progress::Progress;
use super::{RunContext, driving, preflight, stored, view};
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};
use crate::watch;

const ENGINE_LOOK_EVERY: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(20);
const TMUX_LIMIT: Duration = Duration::from_secs(10);
/// Lines of the current iteration that `attach` prints first.
const LINES_BEFORE: usize = 20;

/// Starts the engine in the background and returns once it has locked the run.
pub(super) fn detach(context: &RunContext, row: &RunRow) -> CommandResult {
    start_engine(context, row)?;
    watch::ensure(&context.paths);
    started(context, row, "in the background")
}

/// Starts the engine of a detached run again, as `resume --detach` does. It honours requests to stop that were made while
/// no engine was running.
pub(in crate::commands) fn restart(paths: &Paths, row: &RunRow) -> Result<Child, CliError> {
    let project = PathBuf::from(&row.project_dir);
    let context = RunContext { paths: paths.clone(), kind: row.plan.kind, project, now: clock::now(), json: false };
    drop(driving::hold_name(row)?);
    preflight::check_rest(&context, row)?;
    start_engine(&context, row)
}

fn start_engine(context: &RunContext, row: &RunRow) -> Result<Child, CliError> {
    let folder = RunFolder::at(&context.paths.home, &row.run_id);
    create_private_dir(folder.path())?;
    let log_path = folder.engine_log();
    let log = fs_err::OpenOptions::new().create(true).append(true).mode(0o600).open(&log_path)?.into_parts().0;
    let mut child = Command::new(std::env::current_exe()?)
        .args(engine_arguments(context, row)?)
        .current_dir(&context.project)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    wait_for_engine(context, row, Some(&mut child), &log_path)?;
    Ok(child)
}

fn engine_arguments(context: &RunContext, row: &RunRow) -> Result<Vec<std::ffi::OsString>, CliError> {
    let home = std::path::absolute(&context.paths.home)?;
    let store = std::path::absolute(&context.paths.store)?;
    Ok(vec!["__engine".into(), home.into(), store.into(), row.run_id.clone().into()])
}

fn wait_for_engine(
    context: &RunContext,
    row: &RunRow,
    mut child: Option<&mut Child>,
    log: &Path,
) -> Result<(), CliError> {
    let deadline = Instant::now() + PATIENCE;
    let store = Store::open_existing(&context.paths.store)?;
    loop {
        let now = store.read().run(&row.run_id)?;
        // A short run may already be over.
        if now.as_ref().is_none_or(|now| now.run.status != RunStatus::Running) {
            return Ok(());
        }
        // The row may still have the process id of an engine that died.
        let pid = now.and_then(|now| now.engine).map(|engine| engine.pid);
        let is_new = match &child {
            Some(child) => pid == Some(i64::from(child.id())),
            None => pid.is_some(),
        };
        if is_new && context.is_driven(&row.run_id)? {
            return Ok(());
        }
        let has_ended = match child.as_mut() {
            Some(child) => child.try_wait()?.is_some(),
            None => false,
        };
        if has_ended || Instant::now() > deadline {
            let said = fs_err::read_to_string(log).unwrap_or_default();
            let error = said.lines().rfind(|line| line.starts_with("error: "));
            let last = error.or_else(|| said.lines().last()).unwrap_or("no output");
            let state = if has_ended { "did not start" } else { "has not started yet" };
            let message = format!("the engine {state}: {}", text::headline(last, 200));
            let hint = format!("read {}, then `steadfast {} resume {}`", log.display(), row.plan.kind, row.plan.name);
            return Err(CliError::new(code::ENVIRONMENT, message, hint));
        }
        std::thread::sleep(ENGINE_LOOK_EVERY);
    }
}

fn started(context: &RunContext, row: &RunRow, how: &str) -> CommandResult {
    let store = Store::open_existing(&context.paths.store)?;
    let row = stored(&store, &row.run_id)?;
    let (kind, name) = (row.plan.kind, &row.plan.name);
    if row.run.status != RunStatus::Running {
        // Exit 0: it was started, which is what --detach asks for.
        return Ok(CommandOutput { code: 0, ..driving::ended(context, &row.run_id)? });
    }
    let pid = row.engine.map(|engine| format!(" (pid {})", engine.pid)).unwrap_or_default();
    let text = format!(
        "{kind} {name} runs {how}{pid}\n  watch:  steadfast {kind} attach {name}\n  look:   steadfast {kind} status {name}\n  \
         stop:   steadfast {kind} kill {name}"
    );
    let is_live = context.is_driven(&row.run_id)?;
    Ok(CommandOutput { text, ..view::show_status(context, store.read(), &row, is_live, 0)? })
}

/// Dots and colons separate windows and panes in tmux targets.
fn tmux_session(kind: RunKind, name: &str) -> String {
    format!("{kind}-{}", name.replace('.', "_"))
}

fn tmux(arguments: &[&str], directory: &Path) -> Result<Captured, CliError> {
    let tmux = LimitedCommand::new("tmux", directory, TMUX_LIMIT).args(arguments.iter().copied());
    tmux.capture(64 * 1024).map_err(|_| {
        let hint = "install tmux, or use --detach, which does not need it";
        CliError::new(code::ENVIRONMENT, "cannot run tmux", hint)
    })
}

/// Fails if a tmux session has the run's name: it is not ours.
pub(super) fn refuse_taken_tmux(kind: RunKind, name: &str) -> Result<(), CliError> {
    let session = tmux_session(kind, name);
    let found = tmux(&["has-session", "-t", &format!("={session}")], Path::new("/"))?;
    if found.exit_code == Some(0) {
        let hint = format!("`tmux attach -t {session}` shows it, `tmux kill-session -t {session}` ends it");
        return Err(CliError::new(code::WRONG_STATE, format!("tmux session {session} already exists"), hint));
    }
    Ok(())
}

pub(super) fn in_tmux(context: &RunContext, row: &RunRow) -> CommandResult {
    let session = tmux_session(row.plan.kind, &row.plan.name);
    let program = std::env::current_exe()?.display().to_string();
    let project = context.project_dir();
    let engine = engine_arguments(context, row)?;
    let engine: Vec<String> = engine.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut arguments = vec!["new-session", "-d", "-s", &session, "-c", &project, "--", &program];
    arguments.extend(engine.iter().map(String::as_str));
    let made = tmux(&arguments, &context.project)?;
    if made.exit_code != Some(0) {
        let said = text::headline(made.stderr_tail.trim(), 200);
        let hint = format!("`steadfast {} resume {} --detach` starts it without tmux", row.plan.kind, row.plan.name);
        return Err(CliError::new(code::ENVIRONMENT, format!("tmux did not start the engine: {said}"), hint));
    }
    wait_for_engine(context, row, None, &RunFolder::at(&context.paths.home, &row.run_id).engine_log())?;
    started(context, row, &format!("in the tmux session {session}"))
}

pub(super) fn attach(context: &RunContext, name: &str) -> CommandResult {
    let (store, row) = context.find(name)?;
    let (kind, name) = (row.plan.kind, row.plan.name.clone());
    if row.run.status != RunStatus::Running {
        let hint = format!("`steadfast {kind} status {name}` or `logs {name}` shows what it did");
        return Err(CliError::new(code::WRONG_STATE, format!("{kind} {name} is over ({})", row.run.status), hint));
    }
    let interrupted = interrupt::flag()?;
    let mut follower = Follower::new(context, &row, false, false);
    follower.begin_at_last(LINES_BEFORE);
    let mut progress = Progress::new();
    loop {
        let now = stored(&store, &row.run_id)?;
        let is_live = now.run.status == RunStatus::Running;
        let is_driven = context.is_live(&now)? || context.is_driven(&row.run_id)?;
        let mut lines = Vec::new();
        while follower.step(|_, line| lines.push(line.to_owned())) {}
        // With --json, stdout has only the status at the end.
        if context.json {
            lines.clear();
        }
        if !lines.is_empty() {
            progress.clear();
        }
        if !output::write_lines(&lines)? {
            return Ok(CommandOutput::default());
        }
        progress.show(&now.plan, &now.run);
        if !is_live && !is_driven {
            drop(progress);
            return driving::ended(context, &row.run_id);
        }
        if is_live && !is_driven {
            drop(progress);
            let hint = format!("`steadfast {kind} resume {name}` resumes it, `kill {name}` ends it");
            return Err(CliError::new(code::WRONG_STATE, format!("the engine of {kind} {name} is gone"), hint));
        }
        if interrupted.is_set() {
            drop(progress);
            output::note(&format!("detached; {kind} {name} is still running (`steadfast {kind} kill {name}` ends it)"));
            let done = view::show_status(context, store.read(), &now, is_live, 0)?;
            return Ok(CommandOutput { text: String::new(), ..done });
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
