//! Caps over all goals and runs of a day or a week.

use strum::{Display, EnumIter, IntoStaticStr};

use super::{Limits, Used};
use crate::clock::{self, Millis};

/// Tokens and money that goals and runs were charged with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spend {
    pub tokens: i64,
    pub cost_micros: i64,
}

/// How near all goals and runs together are to the caps of the day and the week.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SharedSpend {
    #[default]
    Free,
    Near,
    Reached,
}

impl SharedSpend {
    pub(super) fn percent(self) -> i64 {
        match self {
            Self::Free => 0,
            Self::Near => 80,
            Self::Reached => 100,
        }
    }
}

/// The time over which a cap counts, in the machine's own time zone; a week begins on Monday.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Period {
    Daily,
    Weekly,
}

impl Period {
    pub fn start(self, now: Millis) -> Millis {
        match self {
            Self::Daily => clock::day_start(now),
            Self::Weekly => clock::week_start(now),
        }
    }
}

/// The caps of one period over all goals and runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cap {
    pub period: Period,
    pub limits: Limits,
}

impl Cap {
    /// How near what was spent in the period is to the cap.
    pub fn nearness(&self, spent: Spend) -> SharedSpend {
        let used = Used { tokens: spent.tokens, cost_micros: spent.cost_micros, ..Used::default() };
        let standings = || self.limits.iter().filter_map(|(axis, _)| self.limits.standing(axis, &used));
        if standings().any(|standing| standing.is_reached()) {
            SharedSpend::Reached
        } else if standings().any(|standing| standing.is_near()) {
            SharedSpend::Near
        } else {
            SharedSpend::Free
        }
    }
}
