//! Any program as an agent: the prompt on stdin, what it prints is its answer, its exit code says how it went.

use std::path::{Path, PathBuf};

use steadfast_hosts::trouble::Trouble;
use steadfast_model::clock::Millis;
use steadfast_model::text;

use super::answer::{ANSWER_BYTES, Answer, last_words_of_program};
use super::result;
use crate::attempt::Attempt;
use crate::shim::Exit;

/// Shells say by these codes that what they were given cannot be run or found.
const SHELL_CANNOT_RUN: [i32; 2] = [126, 127];

/// The words as they are; a program given by a relative path is looked for where the agent works.
pub(super) fn argv(words: &[String], directory: &Path) -> Vec<String> {
    let mut argv = words.to_vec();
    if let Some(program) = argv.first_mut()
        && let Some(path) = beside(program, directory)
    {
        *program = path.display().to_string();
    }
    argv
}

/// Where a program given by a relative path is looked for; `None` for one on PATH and for one that needs no looking.
pub fn beside(program: &str, directory: &Path) -> Option<PathBuf> {
    let is_relative_path = program.contains('/') && Path::new(program).is_relative();
    is_relative_path.then(|| directory.join(program))
}

pub(super) fn answer(attempt: &Attempt, exit: Option<&Exit>, at: Millis) -> Answer {
    let most = ANSWER_BYTES as u64;
    let text = result::tail_of(&attempt.output(), most).map(|text| text::printable(&text));
    let left_out = fs_err::metadata(attempt.output()).map_or(0, |metadata| metadata.len().saturating_sub(most));
    let failed = exit.is_some_and(|exit| exit.exit_code != Some(0));
    let mut error = if failed { last_words_of_program(attempt, exit, at) } else { None };
    if let (Some((trouble, _)), Some(code)) = (&mut error, exit.and_then(|exit| exit.exit_code))
        && *trouble == Trouble::Other
        && SHELL_CANNOT_RUN.contains(&code)
    {
        *trouble = Trouble::Hopeless;
    }
    Answer { text, left_out, error, is_complete: true, ..Answer::default() }
}
