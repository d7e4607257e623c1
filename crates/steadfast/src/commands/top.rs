//! `steadfast top`: what needs the user, what works, what waits and what ended, in the terminal, on paper (`--once`) or as
//! JSON. It shows all sessions, so no agent may start it.

use std::io::IsTerminal as _;
use std::path::Path;

use serde_json::json;
use steadfast_engine::interrupt::EndRequest;
use steadfast_system::env_vars;
use steadfast_views::top;

use super::{own_paths, refuse_agents};
use crate::cli::TopArgs;
use crate::error::{CliError, code};
use crate::output::{CommandOutput, CommandResult};

/// The width of a page that goes to a file or a pipe.
const COLUMNS: usize = 100;

pub(crate) fn run(db: Option<&Path>, arguments: &TopArgs, is_json: bool) -> CommandResult {
    let mut paths = own_paths::find_to_read(db)?;
    refuse_agents(&paths, "top")?;
    if is_json {
        return Ok(CommandOutput { json: json!(top::data(&paths)?), ..CommandOutput::default() });
    }
    if arguments.once {
        return Ok(CommandOutput { text: top::once(&paths, columns())?, ..CommandOutput::default() });
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(CliError::new(code::USAGE, "not a terminal", "use --once"));
    }
    // Actions are commands in other directories.
    paths.store = std::path::absolute(&paths.store)?;
    paths.home = std::path::absolute(&paths.home)?;
    let has_colour = env_vars::text(env_vars::NO_COLOR).is_none();
    let ended = top::run(&paths, std::env::current_exe()?, has_colour)?;
    let code = if ended == Some(EndRequest::Interrupt) { code::INTERRUPTED } else { 0 };
    Ok(CommandOutput { code, ..CommandOutput::default() })
}

fn columns() -> usize {
    let terminal = std::io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
    let given = || env_vars::text(env_vars::COLUMNS).and_then(|columns| columns.parse().ok());
    let columns = terminal.map(|(width, _)| usize::from(width.0)).or_else(given);
    columns.filter(|columns| (20..=1_000).contains(columns)).unwrap_or(COLUMNS)
}
