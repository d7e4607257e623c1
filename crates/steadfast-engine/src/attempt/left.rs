//! What an attempt left whose engine is gone, as a view shows it. Looking changes nothing: another engine may just be
//! taking over the run.

use super::{ABANDONED, Attempt, EXIT};

/// What is left of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftAttempt {
    NotStarted,
    /// Its processes, without the supervisor.
    Running(Vec<i32>),
    /// Its supervisor recorded the end, which no engine has collected.
    Finished,
    /// It ended without a record.
    Lost,
}

impl Attempt {
    /// What is left of the attempt. Records that cannot be read count as missing.
    pub fn left(&self) -> LeftAttempt {
        let Some(supervisor) = self.supervisor().ok().flatten() else { return LeftAttempt::NotStarted };
        if self.directory.join(EXIT).exists() {
            return LeftAttempt::Finished;
        }
        let is_abandoned = self.directory.join(ABANDONED).exists();
        let live = self.descendants(&supervisor).all();
        if live.is_empty() {
            return if is_abandoned { LeftAttempt::NotStarted } else { LeftAttempt::Lost };
        }
        let agents = live.iter().map(|found| found.pid).filter(|pid| *pid != supervisor.identity.pid);
        LeftAttempt::Running(agents.collect())
    }
}
