//! Checks that a killed engine left running: the user's commands, which have a mark in their environment, and judges,
//! which are attempts beside the one they judge. A process that ends the run ends both. An engine that resumes the run
//! ends the commands, because their results are lost, and waits for the judges.

use std::time::Duration;

use steadfast_system::env_vars;

use super::judge;
use crate::attempt::{Attempt, AttemptState};
use crate::descendants;

/// The entry in the environment of the commands that check an attempt.
pub(crate) fn mark_of(attempt: &Attempt) -> (&'static str, String) {
    (env_vars::CHECK, attempt.directory().display().to_string())
}

fn entry(attempt: &Attempt) -> String {
    let (name, value) = mark_of(attempt);
    format!("{name}={value}")
}

/// Whether a check of this attempt is running. Only for runs without an engine.
pub fn are_under_way(attempt: &Attempt) -> std::io::Result<bool> {
    Ok(!descendants::marked(&entry(attempt)).is_empty() || !live_judges(attempt)?.is_empty())
}

/// Ends all checks of this attempt. Only for runs without an engine.
pub fn stop(attempt: &Attempt, grace: Duration) -> std::io::Result<()> {
    end_commands(attempt, grace);
    for judge in live_judges(attempt)? {
        judge.stop(grace)?;
    }
    Ok(())
}

/// Ends the commands that an earlier engine started.
pub(crate) fn end_commands(attempt: &Attempt, grace: Duration) {
    descendants::end(grace, || descendants::marked(&entry(attempt)));
}

fn live_judges(attempt: &Attempt) -> std::io::Result<Vec<Attempt>> {
    let judges = (1..).map(|number| judge::beside(attempt, number));
    let mut live = Vec::new();
    for judge in judges.take_while(|judge| judge.directory().is_dir()) {
        if matches!(judge.inspect()?, AttemptState::Supervised | AttemptState::Orphaned { .. }) {
            live.push(judge);
        }
    }
    Ok(live)
}
