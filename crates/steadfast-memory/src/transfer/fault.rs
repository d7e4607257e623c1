//! What can be wrong with a file of session memory, with the number of the line and what to do.

use super::{FORMAT, LONGEST_LINE, VERSION};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct ExportError {
    /// From 1.
    pub line: u64,
    pub fault: LineFault,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    #[error("there is nothing to import")]
    Empty,
    #[error("not an export of session memory")]
    Foreign,
    #[error("format version {0}; this steadfast reads version {VERSION}")]
    OtherVersion(u64),
    #[error("longer than {LONGEST_LINE} bytes")]
    TooLong,
    #[error("not valid JSON: {0}")]
    NotJson(String),
    #[error("not a line of the format: {0}")]
    NotOfFormat(String),
    #[error("a line of a session before the first session")]
    NoSession,
    #[error("`{0}` is not a session id")]
    SessionId(String),
    #[error("the time {0} is not a moment between 1970 and tomorrow")]
    Time(i64),
    #[error("more than {most} {what} in one session")]
    TooMany { what: &'static str, most: usize },
    #[error("the last line counts other lines than there are")]
    Miscounted,
    #[error("text after the last line of the export")]
    AfterEnd,
    #[error("the export has no last line")]
    CutOff,
}

impl ExportError {
    pub fn hint(&self) -> String {
        const AGAIN: &str = "the file was cut off or changed; run `steadfast session export` again";
        match &self.fault {
            LineFault::Empty | LineFault::Foreign | LineFault::TooLong => {
                format!("give a file that `steadfast session export` wrote; its first line names {FORMAT}")
            }
            LineFault::OtherVersion(version) if *version > VERSION => {
                "install the newer steadfast that wrote it".to_owned()
            }
            LineFault::Time(_) => "check the clocks of both machines, then export again".to_owned(),
            LineFault::NotOfFormat(_) => "fix the line, or install the newer steadfast that wrote it".to_owned(),
            LineFault::SessionId(_) => "ids are 1 to 200 characters without control characters or slashes".to_owned(),
            LineFault::OtherVersion(_)
            | LineFault::NotJson(_)
            | LineFault::NoSession
            | LineFault::TooMany { .. }
            | LineFault::Miscounted
            | LineFault::AfterEnd
            | LineFault::CutOff => AGAIN.to_owned(),
        }
    }
}
