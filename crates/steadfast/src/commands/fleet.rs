//! `steadfast fleet` and `--fleet`: the program `steadfast-fleet` does the work, so that nothing of Temporal is in this
//! binary. It is looked for beside this one, then on PATH.

use std::ffi::OsString;
use std::io::{Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use steadfast_engine::submission::Submission;

use crate::error::{CliError, code};
use crate::output::CommandResult;
use crate::programs;

const PROGRAM: &str = "steadfast-fleet";

/// Becomes `steadfast-fleet` with the same arguments.
pub(crate) fn run(arguments: Vec<OsString>, json: bool) -> CommandResult {
    let mut command = Command::new(program()?);
    let is_given = arguments.iter().any(|argument| argument == "--json" || argument == "-j");
    command.args(arguments);
    if json && !is_given {
        command.arg("--json");
    }
    Err(cannot_start(&command.exec()))
}

/// Becomes `steadfast-fleet submit`, which reads the run from stdin.
pub(super) fn submit(submission: &Submission) -> CommandResult {
    let program = program()?;
    // A file and not a pipe: this process becomes the other one, and then no writer is left.
    let mut file = tempfile::tempfile()?;
    serde_json::to_writer(&mut file, submission).map_err(std::io::Error::from)?;
    file.flush()?;
    file.rewind()?;
    Err(cannot_start(&Command::new(program).arg("submit").stdin(Stdio::from(file)).exec()))
}

/// Where `steadfast-fleet` is.
pub(crate) fn found() -> Option<PathBuf> {
    let own = std::env::current_exe().ok().and_then(|path| fs_err::canonicalize(path).ok());
    let beside = own.and_then(|path| Some(path.parent()?.join(PROGRAM)));
    beside.filter(|path| programs::is_executable(path)).or_else(|| programs::on_path(PROGRAM))
}

fn program() -> Result<PathBuf, CliError> {
    found().ok_or_else(|| {
        let hint = "run `cargo install --locked steadfast-fleet`; in a clone, `cargo install --locked --path crates/steadfast-fleet`";
        CliError::new(code::ENVIRONMENT, format!("`{PROGRAM}` is not installed"), hint)
    })
}

fn cannot_start(error: &std::io::Error) -> CliError {
    let hint = "install it again with `cargo install --locked --force steadfast-fleet`";
    CliError::new(code::ENVIRONMENT, format!("cannot start {PROGRAM}: {error}"), hint)
}
