//! Any program as an agent: the prompt on stdin, the answer on stdout, success by exit code.

use std::path::{Path, PathBuf};

use steadfast_hosts::trouble::Trouble;
use steadfast_model::clock::Millis;
use steadfast_model::text;

use super::answer::{ANSWER_BYTES, AgentAnswer, program_error};
use super::result;
use crate::attempt::{Attempt, AttemptExit};

/// The exit codes of a shell whose command cannot be run or found.
const SHELL_CANNOT_RUN: [i32; 2] = [126, 127];

/// The words unchanged, except that a relative path of a program is resolved in the directory of the agent.
pub(super) fn argv(words: &[String], directory: &Path) -> Vec<String> {
    let mut argv = words.to_vec();
    if let Some(program) = argv.first_mut()
        && let Some(path) = beside(program, directory)
    {
        *program = path.display().to_string();
    }
    argv
}

/// Resolves the relative path of a program; `None` for an absolute path and for a name to be found on PATH.
pub fn beside(program: &str, directory: &Path) -> Option<PathBuf> {
    let is_relative_path = program.contains('/') && Path::new(program).is_relative();
    is_relative_path.then(|| directory.join(program))
}

pub(super) fn answer(attempt: &Attempt, exit: Option<&AttemptExit>, at: Millis) -> AgentAnswer {
    let most = ANSWER_BYTES as u64;
    let text = result::tail_of(&attempt.output(), most).map(|text| text::printable(&text));
    let left_out = fs_err::metadata(attempt.output()).map_or(0, |metadata| metadata.len().saturating_sub(most));
    let failed = exit.is_some_and(|exit| exit.exit_code != Some(0));
    let mut error = if failed { program_error(attempt, exit, at) } else { None };
    if let (Some((trouble, _)), Some(code)) = (&mut error, exit.and_then(|exit| exit.exit_code))
        && *trouble == Trouble::Other
        && SHELL_CANNOT_RUN.contains(&code)
    {
        *trouble = Trouble::Hopeless;
    }
    AgentAnswer { text, left_out, error, is_complete: true, ..AgentAnswer::default() }
}
