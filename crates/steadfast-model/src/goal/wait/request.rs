//! What a person or an agent asks a goal to wait for, as text, and what is wrong with it.

use crate::clock::{self, Millis};
use crate::text;

/// The longest wait that a person may ask for.
const LONGEST: Millis = 366 * clock::DAY;
/// The longest wait that an agent may ask for.
const LONGEST_OF_AGENT: Millis = 7 * clock::DAY;
const COMMAND_MAX: usize = 4_000;
const PATH_MAX: usize = 4_096;

/// A wait as asked for: a moment, a condition, or a condition with its latest moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitRequest {
    pub until: Option<Millis>,
    pub condition: Option<WaitCondition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitCondition {
    /// This command exits with 0.
    Command(String),
    /// This file exists; the path may be relative to the goal's directory.
    File(String),
    /// The process with this number ends.
    Process(i64),
}

#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum WaitError {
    #[error("nothing to wait for")]
    Nothing,
    #[error("the goal of a run cannot wait")]
    GoalOfRun,
    #[error("`{0}` is not a time: expected 17:30, 2026-11-15T17:30, an RFC 3339 timestamp, or a span such as `in 3h`")]
    NotATime(String),
    #[error("`{0}` is not a duration above 0: expected 90s, 15m, 2h or 1d")]
    NotADuration(String),
    #[error("`{0}` has passed")]
    Passed(String),
    #[error("a wait may take {0} days at most")]
    TooLong(i64),
    #[error("an agent's wait may take {0} days at most")]
    TooLongForAgent(i64),
    #[error("the {0} is empty")]
    Empty(&'static str),
    #[error("the {0} contains a NUL character")]
    Nul(&'static str),
    #[error("the {what} has more than {most} characters")]
    TooManyCharacters { what: &'static str, most: usize },
    #[error("the goal has no directory, so the path must be absolute")]
    NoDirectory,
    #[error("an agent may wait only for a file inside the project: {0}")]
    OutsideProject(String),
    #[error("an agent may wait only for a command that the user approved")]
    UnapprovedCommand,
    #[error("no process has the number {0}")]
    NoProcess(i64),
    #[error("process {0} belongs to another user")]
    ForeignProcess(i64),
}

impl WaitError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Nothing => "use --until TIME, --for DURATION, --command CMD, --file PATH or --pid N",
            Self::GoalOfRun => {
                "stop its run with `steadfast loop kill`, and resume it later with `steadfast loop resume`"
            }
            Self::NotATime(_) | Self::Passed(_) => "use for example --until 17:30 or --until \"in 3h\"",
            Self::NotADuration(_) => "use for example --for 15m",
            Self::TooLong(_) | Self::TooLongForAgent(_) => "wait for a shorter time; the goal can wait again",
            Self::Empty(_) | Self::Nul(_) | Self::TooManyCharacters { .. } => "correct the text",
            Self::NoDirectory => "use an absolute path",
            Self::OutsideProject(_) => "use a path below the project, without `..`, or ask the user to set the wait",
            Self::UnapprovedCommand => {
                "start the command in the background and wait for its pid; the user can list commands in \
                 `[goal] wait_commands` of config.toml"
            }
            Self::NoProcess(_) => "it may have ended already; `ps` lists processes",
            Self::ForeignProcess(_) => "ask the user to set the wait",
        }
    }
}

impl WaitRequest {
    /// Reads `17:30`, `2026-11-15T17:30`, a timestamp, or `in 3h`.
    pub fn parse_until(moment: &str, now: Millis) -> Result<Millis, WaitError> {
        let shown = || text::headline(moment, 60);
        let at = clock::parse_moment(moment, now).ok_or_else(|| WaitError::NotATime(shown()))?;
        if at > now { Ok(at) } else { Err(WaitError::Passed(shown())) }
    }

    /// Reads `90s`, `15m`, `2h` or `1d` from now.
    pub fn parse_for(duration: &str, now: Millis) -> Result<Millis, WaitError> {
        let end = clock::parse_duration(duration).and_then(|length| now.checked_add(length));
        end.ok_or_else(|| WaitError::NotADuration(text::headline(duration, 60)))
    }

    /// Checks all that needs no file and no process table.
    pub fn check(&self, by_agent: bool, now: Millis) -> Result<(), WaitError> {
        if self.until.is_none() && self.condition.is_none() {
            return Err(WaitError::Nothing);
        }
        let length = self.until.map_or(0, |until| until.saturating_sub(now));
        if by_agent && length > LONGEST_OF_AGENT {
            return Err(WaitError::TooLongForAgent(LONGEST_OF_AGENT / clock::DAY));
        }
        if length > LONGEST {
            return Err(WaitError::TooLong(LONGEST / clock::DAY));
        }
        match &self.condition {
            Some(WaitCondition::Command(command)) => check_text("command", command, COMMAND_MAX),
            Some(WaitCondition::File(path)) => check_text("path", path, PATH_MAX),
            Some(WaitCondition::Process(_)) | None => Ok(()),
        }
    }
}

fn check_text(what: &'static str, text: &str, most: usize) -> Result<(), WaitError> {
    if text.trim().is_empty() {
        return Err(WaitError::Empty(what));
    }
    if text.contains('\0') {
        return Err(WaitError::Nul(what));
    }
    if text.chars().count() > most {
        return Err(WaitError::TooManyCharacters { what, most });
    }
    Ok(())
}
