//! Is a host's program new enough?

use std::path::Path;
use std::time::Duration;

use steadfast_engine::process::LimitedCommand;
use steadfast_hosts::doctor::{DoctorCheck, ok, warn};
use steadfast_model::host::Capabilities;

/// A program that works prints its version at once.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// `None` where the program is missing or any version will do.
pub(super) fn check(facts: &Capabilities, program: Option<&Path>) -> Option<DoctorCheck> {
    let (wanted, program) = (facts.version_check.as_ref()?, program?);
    let shown = program.display();
    let directory = program.parent().unwrap_or(Path::new("/"));
    let reinstall = format!("install {} again", facts.product);
    let version = LimitedCommand::new(&program.to_string_lossy(), directory, TIME_LIMIT).args(["--version"]);
    let outcome = match version.run() {
        Ok(outcome) => outcome,
        Err(error) => return Some(warn(wanted.id, format!("{shown} does not start: {error}"), reinstall)),
    };
    let (major, minor) = wanted.oldest;
    Some(match outcome.output_tail.lines().find_map(|line| parse(wanted.prefix, line)) {
        Some((version, text)) if version < wanted.oldest => warn(
            wanted.id,
            format!("{text} is too old: its hooks do not run everywhere"),
            format!("update {} to {major}.{minor} or later", facts.product),
        ),
        Some((_, text)) => ok(wanted.id, text),
        None if outcome.timed_out => warn(wanted.id, format!("{shown} --version did not answer"), reinstall),
        None => warn(wanted.id, format!("{shown} names no version"), reinstall),
    })
}

/// `codex-cli 0.166.0`.
fn parse(prefix: &str, line: &str) -> Option<((u32, u32), String)> {
    let text = line.strip_prefix(prefix)?.trim();
    let mut numbers = text.split(['.', '-']).map(|part| part.parse().ok());
    Some(((numbers.next()??, numbers.next()??), text.to_owned()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_are_compared_as_numbers() {
        let parse = |line| super::parse("codex-cli ", line);
        assert_eq!(parse("codex-cli 0.166.0"), Some(((0, 166), "0.166.0".to_owned())));
        assert_eq!(parse("codex-cli 1.2-alpha.3").map(|(version, _)| version > (0, 141)), Some(true));
        assert_eq!(parse("codex-cli 0.99.9").map(|(version, _)| version < (0, 141)), Some(true));
        assert_eq!(parse("WARNING: proceeding"), None);
    }
}
