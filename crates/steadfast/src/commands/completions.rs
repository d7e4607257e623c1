//! `steadfast completions`: what a shell needs to complete the command line, and the manual pages, both made from the
//! clap types, so that they cannot differ from the program.

use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_complete::{Shell, generate};
use serde_json::json;

use crate::cli::Cli;
use crate::error::{CliError, code};
use crate::output::{CommandOutput, CommandResult};

pub(crate) fn run(name: &str) -> CommandOutput {
    let shell = match name {
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        _ => Shell::Bash,
    };
    let mut script = Vec::new();
    generate(shell, &mut visible_commands(), "steadfast", &mut script);
    let script = String::from_utf8_lossy(&script).trim_end().to_owned();
    CommandOutput { json: json!({"shell": name, "script": script}), text: script, code: 0 }
}

/// The command line without the commands that only programs call: `clap_complete` would offer them.
fn visible_commands() -> Command {
    let all = Cli::command();
    let visible = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new("steadfast").version(env!("CARGO_PKG_VERSION")).args(all.get_arguments().cloned()).subcommands(visible)
}

/// `__man`: writes a manual page for each command into `directory` (packages call this).
pub(crate) fn write_manual(directory: &Path) -> CommandResult {
    fs_err::create_dir_all(directory)?;
    clap_mangen::generate_to(Cli::command(), directory).map_err(|error| {
        let message = format!("cannot write manual pages to {}: {error}", directory.display());
        CliError::new(code::ENVIRONMENT, message, "name a directory that you may write to")
    })?;
    Ok(CommandOutput::default())
}
