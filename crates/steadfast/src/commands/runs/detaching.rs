//! Engines that outlive the terminal: this program once more, in a session of its own, or in a tmux session. What it
//! is to do is in the store; nothing depends on an environment that another terminal may not have.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use steadfast_core::paths::create_private_dir;
use steadfast_core::run::{RunKind, RunStatus};
use steadfast_core::store::{RunRow, Store};
use steadfast_core::text;
use steadfast_engine::process::{Captured, LimitedCommand};
use steadfast_engine::run_folder::RunFolder;

use super::finding::{called, stored};
use super::{Here, driving, view};
use crate::failure::{Failure, code};
use crate::output::Done;

const LOOK_EVERY: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(20);
const TMUX_LIMIT: Duration = Duration::from_secs(10);

/// Starts the engine in the background and returns once it has the run in hand.
pub(super) fn detach(here: &Here, row: &RunRow) -> Result<Done, Failure> {
    let folder = RunFolder::at(&here.paths.home, &row.run_id);
    create_private_dir(folder.path())?;
    let log_path = folder.engine_log();
    let log = fs_err::OpenOptions::new().create(true).append(true).mode(0o600).open(&log_path)?.into_parts().0;
    let child = Command::new(std::env::current_exe()?)
        .args(engine_arguments(here, row)?)
        .current_dir(&here.project)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    wait_for_engine(here, row, Some(child), &log_path)?;
    started(here, row, "in the background")
}

fn engine_arguments(here: &Here, row: &RunRow) -> Result<Vec<std::ffi::OsString>, Failure> {
    let home = std::path::absolute(&here.paths.home)?;
    let store = std::path::absolute(&here.paths.store)?;
    Ok(vec!["__engine".into(), home.into(), store.into(), row.run_id.clone().into()])
}

fn wait_for_engine(here: &Here, row: &RunRow, mut child: Option<Child>, log: &Path) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    let store = Store::open_existing(&here.paths.store)?;
    loop {
        let now = store.read().run(&row.run_id)?;
        // Short runs may be over before anybody looks.
        if now.as_ref().is_none_or(|now| now.run.status != RunStatus::Running) {
            return Ok(());
        }
        // The number of an engine that died may still be there.
        let pid = now.and_then(|now| now.engine).map(|engine| engine.pid);
        let is_new = match &child {
            Some(child) => pid == Some(i64::from(child.id())),
            None => pid.is_some(),
        };
        if is_new && here.is_driven(&row.run_id)? {
            return Ok(());
        }
        let has_ended = match child.as_mut() {
            Some(child) => child.try_wait()?.is_some(),
            None => false,
        };
        if has_ended || Instant::now() > deadline {
            let said = fs_err::read_to_string(log).unwrap_or_default();
            let last = said.lines().rfind(|line| line.starts_with("error: ")).unwrap_or("it said nothing");
            return Err(Failure::new(
                code::ENVIRONMENT,
                format!("the engine did not start: {}", text::headline(last, 200)),
                format!("look at {}, then `steadfast {} resume {}`", log.display(), row.plan.kind, row.plan.name),
            ));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn started(here: &Here, row: &RunRow, how: &str) -> Result<Done, Failure> {
    let store = Store::open_existing(&here.paths.store)?;
    let row = stored(&store, &row.run_id)?;
    let (kind, name) = (row.plan.kind, &row.plan.name);
    if row.run.status != RunStatus::Running {
        // It was started, which is all that was asked for; how it ended is told.
        return Ok(Done { code: 0, ..driving::ended(here, &row.run_id)? });
    }
    let is_live = here.is_driven(&row.run_id)?;
    let pid = row.engine.map(|engine| format!(" (pid {})", engine.pid)).unwrap_or_default();
    let text = format!(
        "{} runs {how}{pid}\n  watch:  steadfast {kind} attach {name}\n  look:   steadfast {kind} status {name}\n  \
         stop:   steadfast {kind} kill {name}",
        called(kind, name)
    );
    Ok(Done { text, json: view::status_json(here, store.read(), &row, is_live)?, code: 0 })
}

/// tmux has its own meaning for dots and colons.
fn tmux_session(kind: RunKind, name: &str) -> String {
    format!("{kind}-{}", name.replace('.', "_"))
}

fn tmux(arguments: &[&str], directory: &Path) -> Result<Captured, Failure> {
    let tmux = LimitedCommand::new("tmux", directory, TMUX_LIMIT).args(arguments.iter().copied());
    tmux.capture(64 * 1024).map_err(|_| {
        let hint = "install tmux, or use --detach, which needs none";
        Failure::new(code::ENVIRONMENT, "tmux cannot be run", hint)
    })
}

/// A session of that name would be somebody else's.
pub(super) fn refuse_taken_tmux(kind: RunKind, name: &str) -> Result<(), Failure> {
    let session = tmux_session(kind, name);
    let found = tmux(&["has-session", "-t", &format!("={session}")], Path::new("/"))?;
    if found.exit_code == Some(0) {
        let hint = format!("`tmux attach -t {session}` shows it, `tmux kill-session -t {session}` ends it");
        return Err(Failure::new(code::WRONG_STATE, format!("there is a tmux session {session} already"), hint));
    }
    Ok(())
}

/// Starts the engine in a tmux session of the run's name.
pub(super) fn in_tmux(here: &Here, row: &RunRow) -> Result<Done, Failure> {
    let session = tmux_session(row.plan.kind, &row.plan.name);
    let program = std::env::current_exe()?.display().to_string();
    let project = here.project_dir();
    let engine = engine_arguments(here, row)?;
    let engine: Vec<String> = engine.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut arguments = vec!["new-session", "-d", "-s", &session, "-c", &project, "--", &program];
    arguments.extend(engine.iter().map(String::as_str));
    let made = tmux(&arguments, &here.project)?;
    if made.exit_code != Some(0) {
        let said = text::headline(made.stderr_tail.trim(), 200);
        let hint = format!("`steadfast {} resume {} --detach` starts it without tmux", row.plan.kind, row.plan.name);
        return Err(Failure::new(code::ENVIRONMENT, format!("tmux did not start it: {said}"), hint));
    }
    wait_for_engine(here, row, None, &RunFolder::at(&here.paths.home, &row.run_id).engine_log())?;
    started(here, row, &format!("in the tmux session {session}"))
}
