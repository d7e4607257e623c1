//! Whether an output proves a failure, and the part of it that is worth keeping. Single words prove nothing: "0 failed" is
//! printed by successful runs. Only lines that nothing but a failure prints count.

use steadfast_model::{redact, text};

/// How many bytes of an output are read, from its end.
const LOOKED_AT: usize = 16 * 1024;
const LEAD_MAX: usize = 200;

pub(super) fn shows_failure(output: &str) -> bool {
    let seen = text::printable(text::tail(output, LOOKED_AT));
    seen.lines().any(is_failure)
}

/// Only failures print lines that start with these.
const STARTS: &str = "error[E|error: could not compile|error: test failed|error: aborting due to|\
    error: process didn't exit successfully|fatal: |Traceback (most recent call last):|npm ERR! code|npm error code|\
    test result: FAILED|FAILED (failures=|FAILED (errors=|--- FAIL: |FAIL\t|BUILD FAILED|BUILD FAILURE|\
    [ERROR] BUILD FAILURE|Segmentation fault|panic: |Uncaught |collect2: error: ld returned|\
    apply_patch verification failed";
/// A shell or a program ends its complaint with these.
const ENDS: &str = ": command not found|: No such file or directory|: Permission denied|: not found|(core dumped)";

fn is_failure(line: &str) -> bool {
    let line = line.trim();
    STARTS.split('|').any(|start| line.starts_with(start))
        || (ENDS.split('|').any(|end| line.ends_with(end)) && is_of_shell(line))
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
    let place = line.split_once(": error: ").or_else(|| line.split_once(": fatal error: "));
    place.is_some_and(|(place, _)| place.ends_with(|c: char| c.is_ascii_digit()) && place.contains(':'))
}

/// `=== 2 failed, 3 passed in 1s ===`, `Tests:  1 failed, 2 passed`: a count that is not zero.
fn is_failing_summary(line: &str) -> bool {
    let summary = line.starts_with("==") || line.starts_with("Tests:") || line.starts_with("Test Suites:");
    let count = line.split_once(" failed").and_then(|(before, _)| before.rsplit(|c: char| !c.is_ascii_digit()).next());
    summary && count.is_some_and(|count| count.parse::<u64>().is_ok_and(|count| count > 0))
}

/// The output, preceded by the line that names the error, since views show the beginning; of a long one, the end.
/// Claude Code puts the exit code before the output; it is dropped if there is any output.
pub(super) fn what_matters(output: &str, most: usize) -> String {
    let window = text::tail(output, LOOKED_AT);
    // The first line may be partial and contain a part of a secret.
    let whole =
        if window.len() < output.len() { window.split_once('\n').map_or(window, |(_, rest)| rest) } else { window };
    let printable = text::printable(whole);
    let safe = redact::redact(printable.trim());
    let said = behind_exit_code(&safe);
    let lead = said.lines().find(|line| is_failure(line)).or_else(|| said.lines().find(|line| is_loud(line)));
    let lead = lead.map(|line| text::cut(line.trim(), LEAD_MAX)).unwrap_or_default();
    let length = said.chars().count();
    let room = most.saturating_sub(lead.chars().count() + 3);
    if length <= most && (length > room || said.starts_with(&lead)) {
        return said.to_owned();
    }
    let mut end: String = said.chars().skip(length.saturating_sub(room)).collect();
    // Drop a partial first line.
    if length > room
        && let Some((cut, rest)) = end.split_once('\n')
        && cut.len() < end.len() / 2
    {
        end = rest.to_owned();
    }
    if lead.is_empty() || end.starts_with(&lead) { format!("…\n{end}") } else { format!("{lead}\n…\n{end}") }
}

fn behind_exit_code(text: &str) -> &str {
    let Some((first, output)) = text.split_once('\n') else { return text };
    let code = first.strip_prefix("Exit code ").and_then(|code| code.trim_end().parse::<u8>().ok());
    if code.is_some() && !output.trim().is_empty() { output.trim() } else { text }
}

/// A line that looks like an error; only used once the command is known to have failed.
fn is_loud(line: &str) -> bool {
    const LOUD: &str =
        "error|failed|failure|panicked|exception|cannot |can't |not found|no such |denied|unable to |invalid";
    const QUIET: &str = "0 failed|0 error|no errors|errors: 0";
    let line = text::cut(line, LEAD_MAX).to_lowercase();
    LOUD.split('|').any(|word| line.contains(word)) && !QUIET.split('|').any(|words| line.contains(words))
}
