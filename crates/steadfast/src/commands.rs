//! The commands, one file each, and what they share.

pub(crate) mod completions;
pub(crate) mod db;
mod definitions;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod fleet;
pub(crate) mod goal;
pub(crate) mod hook;
mod html;
pub(crate) mod loops;
pub(crate) mod metrics;
mod other_stores;
mod own_paths;
pub(crate) mod person;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod session;
mod settings;
pub(crate) mod setup;
pub(crate) mod slash;
pub(crate) mod statusline;
mod stdin;
pub(crate) mod top;
pub(crate) mod trust;
pub(crate) mod ui;
pub(crate) mod usage;
pub(crate) mod watch;
pub(crate) mod welcome;

use std::path::{Path, PathBuf};

use serde_json::json;
use steadfast_app::action::{self, ActionError};
use steadfast_app::caller;
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::Actor;
use steadfast_store::{Origin, Store};
use steadfast_system::log;
use steadfast_system::paths::{self, Paths};

use crate::backups;
use crate::error::{CliError, code};
use crate::outbox;
use crate::output::{CommandOutput, CommandResult};
use crate::waiting;

/// The time of a command. The store is opened for that: it keeps the steady time.
fn now(paths: &Paths) -> Millis {
    // The command itself reports what is wrong with the store.
    drop(Store::open_if_there(&paths.store));
    clock::now()
}

/// Refuses a command by which an agent could free itself or hide what it did. The attempt is logged.
fn refuse_agents(paths: &Paths, verb: &'static str) -> Result<(), CliError> {
    let actor = person::caller(paths);
    if actor == Actor::User {
        return Ok(());
    }
    log::line(&paths.log_file(), &format!("refused `{verb}` in an agent's shell"));
    if let Some(mut store) = Store::open_if_there(&paths.store)?
        && let Some(own) = caller::own_sessions(store.read())?.first()
        && let Err(ActionError::Store(error)) =
            action::refuse_agent(&mut store, own, verb, Origin { actor, place: "cli" }, clock::now())
    {
        return Err(error.into());
    }
    let message = ActionError::NotForAgents(verb).to_string();
    Err(CliError::new(code::WRONG_STATE, message, "type it in a terminal of your own"))
}

/// Serves the tools until the agent closes stdin.
pub(crate) fn mcp(db: Option<&Path>, restarts: u32, unanswered: &str) -> CommandResult {
    settings::ignore_foreign_variables(true);
    let paths = Paths::find(db)?;
    crate::mcp::serve(&paths, db, restarts, unanswered).map_err(|error| {
        log::line(&paths.log_file(), &format!("mcp: {error:#}"));
        CliError::new(code::ENVIRONMENT, format!("{error:#}"), "run `steadfast doctor`")
    })?;
    Ok(CommandOutput::default())
}

/// Supervises one attempt until it ends. The engine reads errors from the attempt's directory.
pub(crate) fn supervise_attempt(directory: &Path) -> CommandResult {
    steadfast_engine::supervisor::exec(directory).map_err(|error| {
        let hint = "this command is for the engine; use `steadfast loop` or `steadfast run`";
        CliError::new(code::USAGE, error.to_string(), hint)
    })?;
    Ok(CommandOutput::default())
}

/// Looks once at what the goal of a session waits for.
pub(crate) fn look(db: Option<&Path>, session_id: &str, is_claimed: bool) -> CommandResult {
    let paths = Paths::find(db)?;
    let mut store = Store::open_existing(&paths.store)?;
    let goal = store.read().goal(session_id)?.ok_or_else(|| ActionError::NoGoal(session_id.to_owned()))?;
    let looked: &str = waiting::look_and_wait(&paths, &mut store, &goal, is_claimed)?.into();
    Ok(CommandOutput { text: looked.to_owned(), json: json!({"looked": looked}), code: 0 })
}

/// `__deliver`: delivers messages in the background.
pub(crate) fn deliver(home: PathBuf, store: PathBuf) -> CommandResult {
    steadfast_engine::process::begin_session();
    outbox::deliver_and_linger(&Paths::at(home, store, "deliverer")?);
    Ok(CommandOutput::default())
}

/// `__backup`: backs up the store in the background.
pub(crate) fn make_backup(home: PathBuf, store: PathBuf) -> CommandResult {
    steadfast_engine::process::begin_session();
    backups::make(&Paths::at(home, store, "backup")?);
    Ok(CommandOutput::default())
}

/// Writes to the log when the store is unknown.
pub(crate) fn log_failure(message: &str) {
    if let Ok(home) = paths::home() {
        log::line(&home.join("log").join("hooks.log"), message);
    }
}
