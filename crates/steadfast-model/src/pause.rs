//! Why a goal is paused: one list, the same words in Rust, SQL and JSON.

use serde::Serialize;
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumIter, EnumString, IntoStaticStr, Serialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum PausedReason {
    User,
    ContinuationCap,
    WallClockCap,
    Cleared,
    Degraded,
    AccountingError,
    AccountingUncertain,
    Waiting,
    UsageLimit,
    NoProgress,
    CostCap,
    Deadline,
}

impl PausedReason {
    /// Whether such a pause ends by itself, at the goal's `wake_at_ms`.
    pub fn wakes_by_itself(self) -> bool {
        matches!(self, Self::UsageLimit | Self::Waiting)
    }
}
