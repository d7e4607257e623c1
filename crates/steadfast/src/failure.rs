//! What went wrong, for people, scripts and exit codes alike.

use serde_json::Value;
use steadfast_core::action::ActionError;
use steadfast_core::goal::ObjectiveError;
use steadfast_core::goal::budget::BudgetError;
use steadfast_core::goal::change::Refusal;
use steadfast_core::host::install::InstallError;
use steadfast_core::paths::PathError;
use steadfast_core::prompt::PromptError;
use steadfast_core::run::name::NameError;
use steadfast_core::session::SessionError;
use steadfast_core::store::StoreError;
use steadfast_engine::files::FilesError;
use steadfast_engine::lock::LOCK_HINT;
use steadfast_engine::plan::PlanError;
use steadfast_engine::publish::PublishError;

/// Exit codes of the whole program.
pub(crate) mod code {
    pub(crate) const USAGE: u8 = 1;
    pub(crate) const NOT_FOUND: u8 = 2;
    pub(crate) const WRONG_STATE: u8 = 3;
    pub(crate) const ENVIRONMENT: u8 = 4;
    pub(crate) const LIMIT: u8 = 5;
    pub(crate) const VERIFICATION: u8 = 6;
    pub(crate) const INTERRUPTED: u8 = 130;
}

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) hint: String,
    /// The message is a list of our own making, with a line for each entry; otherwise it is one line.
    pub(crate) is_list: bool,
    /// What is wrong with a definition, for scripts; people have been told.
    pub(crate) faults: Option<Box<Value>>,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let kind = match code {
            code::USAGE => "usage",
            code::NOT_FOUND => "not_found",
            code::WRONG_STATE => "wrong_state",
            code::ENVIRONMENT => "environment",
            code::LIMIT => "limit_reached",
            code::VERIFICATION => "verification_failed",
            code::INTERRUPTED => "interrupted",
            _ => "failed",
        };
        Self { code, kind, message: message.into(), hint: hint.into(), is_list: false, faults: None }
    }

    /// What was asked for could not be printed.
    pub(crate) fn unwritten(error: &std::io::Error) -> Self {
        let hint = "check where the output goes; what the command did stays done";
        Self::new(code::ENVIRONMENT, format!("the output cannot be written: {error}"), hint)
    }

    /// Clap's own words in our two lines.
    pub(crate) fn usage(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        // A list of missing arguments follows its heading.
        let end = lines.iter().position(|line| line.is_empty()).unwrap_or(lines.len());
        let message = lines[..end].join(" ");
        let message = message.strip_prefix("error: ").unwrap_or(&message).to_owned();
        let tip = lines.iter().find_map(|line| line.strip_prefix("tip: "));
        let usage = lines.iter().find_map(|line| line.strip_prefix("Usage: "));
        let hint = match (tip, usage) {
            (Some(tip), _) => tip.to_owned(),
            (None, Some(usage)) => format!("usage: {usage}"),
            (None, None) => "`steadfast --help` shows what there is".to_owned(),
        };
        Self::new(code::USAGE, message, hint)
    }
}

impl From<ActionError> for Failure {
    fn from(error: ActionError) -> Self {
        let code = match &error {
            ActionError::NoGoal(_) | ActionError::UnknownGoal(_) => code::NOT_FOUND,
            ActionError::AmbiguousGoal(_) | ActionError::Refused(Refusal::NotEnough(_)) => code::USAGE,
            ActionError::Refused(Refusal::NotProven { .. }) | ActionError::VerificationFailed(_) => code::VERIFICATION,
            ActionError::Refused(Refusal::WrongState { .. })
            | ActionError::GoalExists { .. }
            | ActionError::NotForAgents(_)
            | ActionError::NotOrphaned(_)
            | ActionError::NeedsUser => code::WRONG_STATE,
            ActionError::Store(_) => code::ENVIRONMENT,
        };
        let is_list = matches!(error, ActionError::VerificationFailed(_));
        Self { is_list, ..Self::new(code, error.to_string(), error.hint()) }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let code = if matches!(error, StoreError::RunIsLive { .. }) { code::WRONG_STATE } else { code::ENVIRONMENT };
        Self::new(code, error.to_string(), error.hint())
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        let code = match &error {
            SessionError::None(_) | SessionError::Several(_) => code::NOT_FOUND,
            SessionError::Malformed(_) => code::USAGE,
            SessionError::Store(_) => code::ENVIRONMENT,
        };
        let is_list = matches!(error, SessionError::Several(_));
        Self { is_list, ..Self::new(code, error.to_string(), error.hint()) }
    }
}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Self {
        Self::new(code::ENVIRONMENT, error.to_string(), "set STEADFAST_HOME, or mend config.toml there")
    }
}

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        Self::new(code::ENVIRONMENT, error.to_string(), error.hint())
    }
}

impl From<PromptError> for Failure {
    fn from(error: PromptError) -> Self {
        Self::new(code::ENVIRONMENT, error.to_string(), "please report this")
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let has_no_locks = error.kind() == std::io::ErrorKind::Unsupported;
        let hint = if has_no_locks { LOCK_HINT } else { "run `steadfast doctor`" };
        Self::new(code::ENVIRONMENT, error.to_string(), hint)
    }
}

impl From<ObjectiveError> for Failure {
    fn from(error: ObjectiveError) -> Self {
        Self::new(code::USAGE, error.to_string(), "say in 1 to 4000 characters what must be true at the end")
    }
}

impl From<BudgetError> for Failure {
    fn from(error: BudgetError) -> Self {
        Self::new(
            code::USAGE,
            error.to_string(),
            "for example: --budget standard, --budget 10M, --usd 5, --max-hours 2",
        )
    }
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Self {
        Self::new(code::USAGE, error.to_string(), error.hint())
    }
}

impl From<FilesError> for Failure {
    fn from(error: FilesError) -> Self {
        let code = if matches!(error, FilesError::Name(_) | FilesError::Part { .. }) {
            code::USAGE
        } else {
            code::ENVIRONMENT
        };
        Self::new(code, error.to_string(), error.hint())
    }
}

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Files(error) => error.into(),
            PublishError::Store(error) => error.into(),
            PublishError::Io(error) => error.into(),
        }
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::new(code::USAGE, error.to_string(), error.hint())
    }
}
