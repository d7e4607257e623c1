//! `[retention]`: how long details are kept. Sums and live goals stay for ever.

use serde::Deserialize;

/// Days; 0 keeps everything.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct RetentionConfig {
    /// Events of goals that are over.
    pub goal_events_days: u32,
    /// Responses in the ledger; their sums by day stay.
    pub ledger_days: u32,
    /// Goals that are over, with their evidence.
    pub goals_days: u32,
    /// Runs that are over, with their folders.
    pub runs_days: u32,
    /// What agents of runs printed, word for word.
    pub output_days: u32,
    /// How many backups are kept.
    pub backups: u32,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self { goal_events_days: 90, ledger_days: 90, goals_days: 365, runs_days: 90, output_days: 30, backups: 4 }
    }
}
