//! Prints a report as HTML, or writes it to a file.

use std::path::Path;

use serde_json::Value;
use steadfast_views::report::{self, FileError, ReportError};

use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};

/// Hands out a report: to stdout for `-`, else to a file, whose path goes to stderr. With `--json` the file is written
/// and the JSON is printed.
pub(super) fn hand_out(target: &Path, html: String, json: Value, is_json: bool) -> CommandResult {
    if target == Path::new("-") {
        if is_json {
            let hint = "add a file (--html report.html), or leave one of them out";
            return Err(CliError::new(code::USAGE, "--html and --json both print to stdout", hint));
        }
        return Ok(CommandOutput { text: html, json, code: 0 });
    }
    let path = report::write(target, &html)?;
    output::note(&format!("wrote {}", path.display()));
    Ok(CommandOutput { text: String::new(), json, code: 0 })
}

impl From<ReportError> for CliError {
    fn from(error: ReportError) -> Self {
        Self::new(code::ENVIRONMENT, error.to_string(), error.hint())
    }
}

impl From<FileError> for CliError {
    fn from(error: FileError) -> Self {
        let code = if matches!(error, FileError::Io(_)) { code::ENVIRONMENT } else { code::USAGE };
        Self::new(code, error.to_string(), error.hint())
    }
}
