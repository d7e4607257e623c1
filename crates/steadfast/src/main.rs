//! The `steadfast` command: parses arguments, calls a command and turns errors into exit codes. A hook never exits with
//! 2 by accident, since that code means "block" to the hosts.

mod backups;
mod build_facts;
mod cli;
mod commands;
mod error;
mod http_client;
mod mcp;
mod outbox;
mod output;
mod plugin;
mod programs;
mod progress;
#[cfg(test)]
mod reference;
mod restart;
mod slash_commands;
mod upkeep;
mod verification;
mod waiting;
mod watch;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, CliCommand};
use crate::error::CliError;
use crate::output::{CommandOutput, CommandResult};

fn main() -> ExitCode {
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().collect();
    let json_flags = ["--json", "-j", "--format=json"];
    let is_json = arguments.iter().any(|argument| json_flags.iter().any(|flag| argument == flag));
    let cli = match Cli::of_frequent_call(&arguments).map_or_else(|| Cli::try_parse_from(&arguments), Ok) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, &arguments, is_json),
    };
    steadfast_engine::interrupt::survive_size_limit();
    steadfast_system::clock::begin();
    silence_panics(cli.command.as_ref().map_or(OnPanic::Exit, OnPanic::of));
    let (db, json) = (cli.db.as_deref(), cli.json);
    let is_json = is_json || json;
    let Some(command) = cli.command else {
        return finish(commands::welcome::from_terminal(db), is_json);
    };
    let output = match command {
        CliCommand::Goal(arguments) => commands::goal::from_terminal(db, arguments, is_json),
        CliCommand::Session(verb) => commands::session::run(db, &verb),
        CliCommand::Run(arguments) => commands::run::run(db, arguments, json),
        CliCommand::Loop(verb) => commands::loops::run(db, verb, json),
        CliCommand::Pipeline(verb) => commands::loops::run_pipelines(db, verb, json),
        CliCommand::Fleet { arguments } => commands::fleet::run(arguments, json),
        CliCommand::Top(arguments) => commands::top::run(db, &arguments, json),
        CliCommand::Trust(arguments) => commands::trust::run(db, &arguments, json),
        CliCommand::Ui(arguments) => commands::ui::run(db, &arguments, json),
        CliCommand::Usage(arguments) => commands::usage::run(db, &arguments, json),
        CliCommand::Hook { host, rewake, panicked } => return commands::hook::run(db, &host, rewake, &panicked),
        CliCommand::Statusline(arguments) => return commands::statusline::run(db, &arguments),
        CliCommand::Metrics(arguments) => commands::metrics::run(db, &arguments),
        CliCommand::Mcp { restarts, unanswered } => commands::mcp(db, restarts, &unanswered),
        CliCommand::Watch(arguments) => commands::watch::run(db, &arguments, json),
        CliCommand::Setup(arguments) => commands::setup::run(db, &arguments),
        CliCommand::Doctor { full, fix } => commands::doctor::run(db, full, fix),
        CliCommand::Db(verb) => commands::db::run(db, &verb),
        CliCommand::Demo { fast, agent } => commands::demo::run(fast, agent.as_deref(), json),
        CliCommand::Completions { shell } => Ok(commands::completions::run(&shell)),
        CliCommand::Exec { directory } => commands::supervise_attempt(&directory),
        CliCommand::Look { session, claimed } => commands::look(db, &session, claimed),
        CliCommand::Engine { home, store, run_id } => commands::runs::engine(home, store, &run_id),
        CliCommand::MakeBackup { home, store } => commands::make_backup(home, store),
        CliCommand::Deliver { home, store } => commands::deliver(home, store),
        CliCommand::Manual { directory } => commands::completions::write_manual(&directory),
    };
    finish(output, is_json)
}

fn finish(output: CommandResult, is_json: bool) -> ExitCode {
    match output {
        Ok(output) => match output::print(&output, is_json) {
            Ok(()) => ExitCode::from(output.code),
            // stdout failed, so report the error on stderr even with `--json`.
            Err(error) => failed(&CliError::unwritten(&error), false),
        },
        Err(error) => failed(&error, is_json),
    }
}

fn failed(error: &CliError, is_json: bool) -> ExitCode {
    output::print_error(error, is_json);
    ExitCode::from(error.code)
}

/// Prints help if the user asked for it; every other error of clap is a usage error.
fn usage(error: &clap::Error, arguments: &[std::ffi::OsString], is_json: bool) -> ExitCode {
    use clap::error::ErrorKind;
    match error.kind() {
        ErrorKind::DisplayHelp => {
            output::line(&error.render().ansi().to_string());
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayVersion => {
            let is_long = std::env::args_os().any(|argument| argument == "--version");
            let text = if is_long { build_facts::long() } else { build_facts::SHORT.to_owned() };
            finish(Ok(CommandOutput { text, json: build_facts::json(), code: 0 }), is_json)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            output::note(&error.render().ansi().to_string());
            ExitCode::from(1)
        }
        _ => failed(&CliError::usage(error, &Cli::command_of(arguments)), is_json),
    }
}

/// What a panic does to the process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnPanic {
    /// Ends it with 0: a hook must not stop its client. A live goal is paused.
    FailOpen,
    Exit,
    /// Restarts a server.
    Restart,
}

impl OnPanic {
    fn of(command: &CliCommand) -> Self {
        match command {
            CliCommand::Hook { .. } | CliCommand::Statusline(_) => Self::FailOpen,
            CliCommand::Ui(_) | CliCommand::Mcp { .. } => Self::Restart,
            _ => Self::Exit,
        }
    }
}

/// Replaces the backtrace of a panic by one line; a hook reports it in its reply and exits with 0.
fn silence_panics(on_panic: OnPanic) {
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        commands::log_failure(&format!("internal error at {place}: {}", info.payload_as_str().unwrap_or("unknown")));
        if on_panic == OnPanic::FailOpen {
            commands::hook::panicked::report(&place);
        }
        if on_panic != OnPanic::FailOpen {
            output::note(&format!(
                "error: internal error at {place}\nhint: report this as a bug, with the log that `steadfast doctor` names"
            ));
        }
        if on_panic == OnPanic::Restart {
            restart::restart();
        }
        #[expect(clippy::exit, reason = "the process ends here, with a code the host understands")]
        std::process::exit(i32::from(on_panic != OnPanic::FailOpen));
    }));
}
