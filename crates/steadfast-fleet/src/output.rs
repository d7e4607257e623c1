//! What a command prints, and how it ends: data on stdout, everything else on stderr, errors as one line and a hint.

use std::io::Write as _;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use serde_json::{Value, json};
pub(crate) use steadfast_app::exit_codes as code;
use steadfast_model::redact::redact;
use steadfast_model::text;
use steadfast_store::StoreError;
use steadfast_system::paths::PathError;

use crate::connect::FleetError;
use crate::work::WorkError;

/// The result of a command: text for people, JSON for scripts, and the exit code.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) text: String,
    pub(crate) json: Value,
    pub(crate) code: u8,
}

impl Output {
    pub(crate) fn new(text: impl Into<String>, json: impl Serialize) -> Result<Self, CommandError> {
        Ok(Self { text: text.into(), json: serde_json::to_value(json).map_err(std::io::Error::from)?, code: 0 })
    }
}

#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) code: u8,
    pub(crate) message: String,
    pub(crate) hint: String,
}

pub(crate) type CommandResult = Result<Output, CommandError>;

impl CommandError {
    pub(crate) fn new(code: u8, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: hint.into() }
    }
}

impl From<FleetError> for CommandError {
    fn from(error: FleetError) -> Self {
        Self::new(error.code(), error.to_string(), error.hint())
    }
}

impl From<WorkError> for CommandError {
    fn from(error: WorkError) -> Self {
        let code = match &error {
            WorkError::NoRun(_) => code::NOT_FOUND,
            WorkError::Exists(_) | WorkError::Dirty(_) => code::WRONG_STATE,
            WorkError::Secrets(_) | WorkError::Address(_) => code::USAGE,
            _ => code::ENVIRONMENT,
        };
        Self::new(code, error.to_string(), error.hint())
    }
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        Self::new(code::ENVIRONMENT, error.to_string(), "run `steadfast fleet doctor`")
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        Self::new(code::ENVIRONMENT, error.to_string(), error.hint())
    }
}

impl From<PathError> for CommandError {
    fn from(error: PathError) -> Self {
        Self::new(code::ENVIRONMENT, error.to_string(), error.hint())
    }
}

/// Prints the result of a command and returns its exit code.
pub(crate) fn finish(result: CommandResult, is_json: bool) -> ExitCode {
    match result {
        Ok(output) => {
            let written = match is_json {
                true if !output.json.is_null() => write_json(&output.json),
                false if !output.text.is_empty() => write_line(&output.text),
                _ => Ok(()),
            };
            match written {
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                    let hint = "check where stdout goes; changes that the command made are kept";
                    fail(&CommandError::new(code::ENVIRONMENT, format!("cannot write output: {error}"), hint), false)
                }
                _ => ExitCode::from(output.code),
            }
        }
        Err(error) => fail(&error, is_json),
    }
}

/// Prints help if the user asked for it; every other error of clap is a usage error.
pub(crate) fn usage(error: &clap::Error, is_json: bool) -> ExitCode {
    use clap::error::ErrorKind;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A reader that has seen enough is no error.
            let _ = write_line(&error.render().ansi().to_string());
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            note(&error.render().ansi().to_string());
            ExitCode::from(code::USAGE)
        }
        _ => {
            let rendered = error.render().to_string();
            let message = rendered.lines().next().unwrap_or_default();
            let message = message.strip_prefix("error: ").unwrap_or(message);
            fail(&CommandError::new(code::USAGE, message, "run `steadfast fleet --help`"), is_json)
        }
    }
}

/// An error for scripts.
pub(crate) fn error_json(error: &CommandError) -> Value {
    let (message, hint) = (text::one_line(&error.message), text::one_line(&error.hint));
    json!({"error": {"kind": code::kind_of(error.code), "message": redact(&message), "hint": hint}})
}

fn fail(error: &CommandError, is_json: bool) -> ExitCode {
    if !is_json || write_json(&error_json(error)).is_err() {
        let message = text::one_line(&error.message);
        let (message, hint) = (redact(&message), text::one_line(&error.hint));
        let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
        let cyan = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
        note(&format!("{red}error:{red:#} {message}\n{cyan}hint:{cyan:#} {hint}"));
    }
    ExitCode::from(error.code)
}

pub(crate) fn write_line(text: &str) -> std::io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    writeln!(stdout, "{}", text.trim_end_matches('\n')).and_then(|()| stdout.flush())
}

fn write_json(json: &Value) -> std::io::Result<()> {
    let mut stdout = std::io::BufWriter::new(std::io::stdout().lock());
    serde_json::to_writer_pretty(&mut stdout, json).map_err(std::io::Error::from)?;
    stdout.write_all(b"\n").and_then(|()| stdout.flush())
}

pub(crate) fn note(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = writeln!(stderr, "{}", text.trim_end_matches('\n'));
}
