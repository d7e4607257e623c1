//! What the output of a command proves, and the part of it that is worth keeping. Words alone prove nothing: "0
//! failed" and "error: 0" stand in green runs. Only lines that nothing but a failure prints are believed.

use crate::memory::redact;
use crate::text;

/// How much of an output is looked at, from its end.
const LOOKED_AT: usize = 16 * 1024;
/// The most characters of the line that says what went wrong first.
const LEAD_MAX: usize = 200;

/// Whether the end of an output shows that the command failed.
pub(super) fn shows_failure(output: &str) -> bool {
    let seen = text::printable(text::tail(output, LOOKED_AT));
    seen.lines().any(is_failure)
}

fn is_failure(line: &str) -> bool {
    const STARTS: [&str; 22] = [
        "error[E",
        "error: could not compile",
        "error: test failed",
        "error: aborting due to",
        "error: process didn't exit successfully",
        "fatal: ",
        "Traceback (most recent call last):",
        "npm ERR! code",
        "npm error code",
        "test result: FAILED",
        "FAILED (failures=",
        "FAILED (errors=",
        "--- FAIL: ",
        "FAIL\t",
        "BUILD FAILED",
        "BUILD FAILURE",
        "[ERROR] BUILD FAILURE",
        "Segmentation fault",
        "panic: ",
        "Uncaught ",
        "collect2: error: ld returned",
        "apply_patch verification failed",
    ];
    const ENDS: [&str; 5] =
        [": command not found", ": No such file or directory", ": Permission denied", ": not found", "(core dumped)"];
    let line = line.trim();
    STARTS.iter().any(|start| line.starts_with(start))
        || (ENDS.iter().any(|end| line.ends_with(end)) && is_of_shell(line))
        || (line.starts_with("make") && line.contains(": *** ") && line.contains("Error "))
        || (line.starts_with("thread '") && line.contains("' panicked at "))
        || line.contains(": error TS")
        || is_compiler_error(line)
        || is_failing_summary(line)
}

/// `bash: line 1: foo: command not found`, `/bin/sh: 1: foo: not found`, `ls: cannot access 'x': No such file …`.
fn is_of_shell(line: &str) -> bool {
    let program = line.split(':').next().unwrap_or_default();
    !program.is_empty() && program.len() <= 40 && !program.contains(char::is_whitespace)
}

/// `src/a.c:3:5: error: …`.
fn is_compiler_error(line: &str) -> bool {
    let place = line.find(": error: ").or_else(|| line.find(": fatal error: "));
    place
        .and_then(|at| line.get(..at))
        .is_some_and(|place| place.ends_with(|c: char| c.is_ascii_digit()) && place.contains(':'))
}

/// `=== 2 failed, 3 passed in 1s ===`, `Tests:  1 failed, 2 passed`: a count that is not zero.
fn is_failing_summary(line: &str) -> bool {
    let summary = line.starts_with("==") || line.starts_with("Tests:") || line.starts_with("Test Suites:");
    summary
        && line.find(" failed").and_then(|at| line.get(..at)).is_some_and(|before| {
            let count = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            count.parse::<u64>().is_ok_and(|count| count > 0)
        })
}

/// The end of an output, and the line that first shows the failure if that stands before it.
pub(super) fn what_matters(output: &str, most: usize) -> String {
    let window = text::tail(output, LOOKED_AT);
    // The first line may be half of one, and half a secret.
    let whole =
        if window.len() < output.len() { window.split_once('\n').map_or(window, |(_, rest)| rest) } else { window };
    let printable = text::printable(whole);
    let safe = redact::redact(printable.trim());
    let length = safe.chars().count();
    if length <= most {
        return safe.into_owned();
    }
    let lead = safe.lines().find(|line| is_failure(line)).map(|line| text::cut(line.trim(), LEAD_MAX));
    let room = most.saturating_sub(lead.as_ref().map_or(0, |lead| lead.chars().count() + 1) + 2);
    let end: String = safe.chars().skip(length - room.min(length)).collect();
    // Better a whole line less than half a line more.
    let end = end.split_once('\n').filter(|(cut, _)| cut.len() < end.len() / 2).map_or(end.as_str(), |(_, rest)| rest);
    match lead.filter(|lead| !end.contains(lead.as_str())) {
        Some(lead) => format!("{lead}\n…\n{end}"),
        None => format!("…\n{end}"),
    }
}
