//! The error type of the command line: an exit code, a kind for scripts, a message and a hint for people.

use serde_json::Value;
use steadfast_app::action::ActionError;
pub(crate) use steadfast_app::exit_codes as code;
use steadfast_app::session::SessionError;
use steadfast_app::usage::collect::UsageError;
use steadfast_engine::files::FilesError;
use steadfast_engine::lock::LOCK_HINT;
use steadfast_engine::plan::PlanError;
use steadfast_engine::publish::PublishError;
use steadfast_hosts::install::InstallError;
use steadfast_model::goal::ObjectiveError;
use steadfast_model::goal::change::Refusal;
use steadfast_model::goal::wait::WaitError;
use steadfast_model::limit::AmountError;
use steadfast_model::price::PriceError;
use steadfast_model::prompt::PromptError;
use steadfast_model::run::name::NameError;
use steadfast_store::StoreError;
use steadfast_system::disk::DiskFault;
use steadfast_system::paths::PathError;

#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) code: u8,
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) hint: String,
    /// The message is a list with a line for each entry; otherwise it is printed as one line.
    pub(crate) is_list: bool,
    /// Problems of a definition, for `--json`; in text mode the caller has already printed them.
    pub(crate) faults: Option<Box<Value>>,
    /// How each verification command went, for `--json`.
    pub(crate) evidence: Option<Box<Value>>,
}

impl CliError {
    pub(crate) fn new(code: u8, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code,
            kind: code::kind_of(code),
            message: message.into(),
            hint: hint.into(),
            is_list: false,
            faults: None,
            evidence: None,
        }
    }

    /// The output of a command could not be written.
    pub(crate) fn unwritten(error: &std::io::Error) -> Self {
        let hint = "check where stdout goes; changes that the command made are kept";
        Self::new(code::ENVIRONMENT, format!("cannot write output: {error}"), hint)
    }

    /// Reduces clap's error to one message and one hint. `command` is what was called, such as `steadfast loop run`.
    pub(crate) fn usage(error: &clap::Error, command: &str) -> Self {
        let text = error.render().to_string();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        // A list of missing arguments follows its heading.
        let end = lines.iter().position(|line| line.is_empty()).unwrap_or(lines.len());
        let message = lines.get(..end).unwrap_or_default().join(" ");
        let message = plain_number(message.strip_prefix("error: ").unwrap_or(&message));
        let tip = lines.iter().find_map(|line| line.strip_prefix("tip: "));
        let usage = lines.iter().find_map(|line| line.strip_prefix("Usage: "));
        let hint = match (tip, usage) {
            (Some(tip), _) => tip.to_owned(),
            (None, Some(usage)) => format!("usage: {usage}"),
            (None, None) => format!("run `{command} --help`"),
        };
        Self::new(code::USAGE, message, hint)
    }
}

/// Says in words which number clap expects.
fn plain_number(message: &str) -> String {
    let Some((start, cause)) = message.rsplit_once(": ") else { return message.to_owned() };
    let range = cause.split_once(" is not in ").and_then(|(_, range)| range.split_once("..="));
    match range {
        Some((least, most)) if most.len() >= 10 => format!("{start}: expected a whole number of {least} or more"),
        Some((least, most)) => format!("{start}: expected a whole number from {least} to {most}"),
        None if cause == "invalid digit found in string" => format!("{start}: expected a whole number"),
        None => message.to_owned(),
    }
}

/// Errors that always have the same exit code: `Type => code, hint`.
macro_rules! from_errors {
    ($error:ident: $($type:ty => $code:ident, $hint:expr;)*) => {$(
        impl From<$type> for CliError {
            fn from($error: $type) -> Self {
                Self::new(code::$code, $error.to_string(), $hint)
            }
        }
    )*};
}

from_errors! { error:
    AmountError => USAGE, error.hint();
    InstallError => ENVIRONMENT, error.hint();
    NameError => USAGE, error.hint();
    ObjectiveError => USAGE, "describe the end state in 1 to 4000 characters";
    PathError => ENVIRONMENT, error.hint();
    PriceError => USAGE, error.hint();
    PromptError => ENVIRONMENT, "report this as a bug";
    UsageError => ENVIRONMENT, error.hint();
}

impl From<ActionError> for CliError {
    fn from(error: ActionError) -> Self {
        let code = match &error {
            ActionError::NoGoal(_)
            | ActionError::UnknownGoal(_)
            | ActionError::NotQueued { .. }
            | ActionError::Wait(WaitError::NoProcess(_)) => code::NOT_FOUND,
            ActionError::Refused(Refusal::NotProven { .. }) | ActionError::VerificationFailed(_) => code::VERIFICATION,
            ActionError::Refused(Refusal::WrongState { .. })
            | ActionError::Wait(
                WaitError::GoalOfRun
                | WaitError::UnapprovedCommand
                | WaitError::OutsideProject(_)
                | WaitError::ForeignProcess(_),
            )
            | ActionError::GoalExists { .. }
            | ActionError::NotForAgents(_)
            | ActionError::NotOrphaned(_)
            | ActionError::QueueWaits
            | ActionError::NoQueueOfRun
            | ActionError::Denied(_) => code::WRONG_STATE,
            ActionError::NothingLeft(_) => code::LIMIT,
            ActionError::AmbiguousGoal(_)
            | ActionError::Refused(Refusal::NotEnough(_))
            | ActionError::Wait(_)
            | ActionError::UnknownPrice(_) => code::USAGE,
            ActionError::Store(_) => code::ENVIRONMENT,
        };
        let is_list = matches!(error, ActionError::VerificationFailed(_));
        Self { is_list, ..Self::new(code, error.to_string(), error.hint()) }
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        let code = if matches!(error, StoreError::RunIsLive { .. }) { code::WRONG_STATE } else { code::ENVIRONMENT };
        Self::new(code, error.to_string(), error.hint())
    }
}

impl From<SessionError> for CliError {
    fn from(error: SessionError) -> Self {
        let code = match &error {
            SessionError::Unknown(_)
            | SessionError::None(_)
            | SessionError::Closed(_)
            | SessionError::Several(_)
            | SessionError::Ambiguous(..) => code::NOT_FOUND,
            SessionError::Malformed(_) => code::USAGE,
            SessionError::Store(_) => code::ENVIRONMENT,
        };
        let is_list = matches!(error, SessionError::Several(_) | SessionError::Closed(_) | SessionError::Ambiguous(..));
        Self { is_list, ..Self::new(code, error.to_string(), error.hint()) }
    }
}

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        let has_no_locks = error.kind() == std::io::ErrorKind::Unsupported;
        let of_disk = DiskFault::of(&error).map_or("run `steadfast doctor`", DiskFault::hint);
        let hint = if has_no_locks { LOCK_HINT } else { of_disk };
        Self::new(code::ENVIRONMENT, error.to_string(), hint)
    }
}

impl From<PlanError> for CliError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Io(error) => error.into(),
            error => Self::new(code::USAGE, error.to_string(), error.hint()),
        }
    }
}

impl From<FilesError> for CliError {
    fn from(error: FilesError) -> Self {
        let is_usage = matches!(error, FilesError::Name(_) | FilesError::Part { .. });
        let code = if is_usage { code::USAGE } else { code::ENVIRONMENT };
        Self::new(code, error.to_string(), error.hint())
    }
}

impl From<PublishError> for CliError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Files(error) => error.into(),
            PublishError::Output { stage, error } => {
                let hint = error.hint();
                Self::new(code::ENVIRONMENT, format!("cannot keep the output of stage {stage}: {error}"), hint)
            }
            PublishError::Store(error) => error.into(),
        }
    }
}
