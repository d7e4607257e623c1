//! What an engine that was killed left of its tests: the user's commands, which carry a mark in their environment, and
//! judges, which are attempts beside the one they judge. Whoever ends the run ends them; whoever goes on ends commands,
//! since nobody hears what they find, and waits for judges.

use std::time::Duration;

use steadfast_system::env_vars;

use super::judge;
use crate::attempt::{Attempt, Sighting};
use crate::processes;

/// The entry in the environment of the commands that test an attempt.
pub(crate) fn mark_of(attempt: &Attempt) -> (&'static str, String) {
    (env_vars::CHECK, attempt.directory().display().to_string())
}

fn entry(attempt: &Attempt) -> String {
    let (name, value) = mark_of(attempt);
    format!("{name}={value}")
}

/// Whether a test of this attempt is under way. Only for runs that no engine drives.
pub fn are_under_way(attempt: &Attempt) -> std::io::Result<bool> {
    Ok(!processes::carrying(&entry(attempt)).is_empty() || !living_judges(attempt)?.is_empty())
}

/// Ends all tests of this attempt. Only for runs that no engine drives.
pub fn stop(attempt: &Attempt, grace: Duration) -> std::io::Result<()> {
    end_commands(attempt, grace);
    for judge in living_judges(attempt)? {
        judge.stop(grace)?;
    }
    Ok(())
}

/// Ends the commands of a test that somebody else began.
pub(crate) fn end_commands(attempt: &Attempt, grace: Duration) {
    processes::end_carrying(&entry(attempt), grace);
}

fn living_judges(attempt: &Attempt) -> std::io::Result<Vec<Attempt>> {
    let judges = (1..).map(|number| judge::beside(attempt.directory(), number));
    let mut living = Vec::new();
    for judge in judges.take_while(|judge| judge.directory().is_dir()) {
        if matches!(judge.look()?, Sighting::Kept | Sighting::Orphaned { .. }) {
            living.push(judge);
        }
    }
    Ok(living)
}
