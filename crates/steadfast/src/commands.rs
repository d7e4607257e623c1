//! The commands, one file each, and what they share.

pub(crate) mod db;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod goal;
pub(crate) mod hook;
pub(crate) mod loops;
pub(crate) mod pipelines;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod session;
pub(crate) mod setup;
pub(crate) mod slash;
pub(crate) mod statusline;
pub(crate) mod usage;

use std::path::Path;

use steadfast_core::goal::Actor;
use steadfast_core::host::process;
use steadfast_core::paths::Paths;
use steadfast_core::{log, paths};

use crate::failure::Failure;
use crate::output::Done;

/// Who typed this command: a person, or an agent in its shell.
fn caller() -> Actor {
    if process::is_inside_agent() { Actor::Worker } else { Actor::User }
}

/// Serves the tools until the agent closes its end.
pub(crate) fn mcp(db: Option<&Path>) -> Result<Done, Failure> {
    let paths = Paths::find(db)?;
    crate::mcp::serve(&paths).map_err(|error| {
        log::line(&paths.log_file(), &format!("mcp: {error:#}"));
        Failure::new(crate::failure::code::ENVIRONMENT, format!("{error:#}"), "run `steadfast doctor`")
    })?;
    Ok(Done::default())
}

/// Runs one attempt to its end; what goes wrong is read by the engine from the attempt's directory.
pub(crate) fn keep_attempt(directory: &Path) -> Result<Done, Failure> {
    steadfast_engine::supervisor::exec(directory).map_err(|error| {
        Failure::new(crate::failure::code::USAGE, error.to_string(), "the engine calls this itself")
    })?;
    Ok(Done::default())
}

/// Writes to the log when nothing else is known, not even the store.
pub(crate) fn log_failure(message: &str) {
    if let Ok(home) = paths::home() {
        log::line(&home.join("log").join("hooks.log"), message);
    }
}
