//! Caps of the configuration: what everything on the machine, one session, or one model may spend.

use strum::{Display, EnumIter, IntoStaticStr};

use super::{Axis, Standing};
use crate::clock::{self, DAY, HOUR, Millis};

/// Tokens that count, and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spend {
    pub tokens: i64,
    pub cost_micros: i64,
}

/// How near the fullest cap is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SharedSpend {
    #[default]
    Free,
    Near,
    Reached,
}

impl SharedSpend {
    pub fn of(caps: &[CapStanding]) -> Self {
        let level = |cap: &CapStanding| match (cap.standing.is_reached(), cap.standing.is_near()) {
            (true, _) => Self::Reached,
            (false, true) => Self::Near,
            (false, false) => Self::Free,
        };
        caps.iter().map(level).max().unwrap_or_default()
    }

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

    /// The shortest that one can be: a clock that is set or a journey may shorten a day a little, and no more.
    pub fn shortest(self) -> Millis {
        let lost = 2 * HOUR;
        match self {
            Self::Daily => DAY - lost,
            Self::Weekly => 7 * DAY - lost,
        }
    }
}

/// What a cap counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CapScope {
    /// Everything on the machine: goals, runs, and sessions without a goal.
    Machine(Period),
    /// The models whose name begins with this.
    Model(String, Period),
    /// One session over its whole life, or one run.
    Session,
}

/// One cap of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cap {
    pub scope: CapScope,
    /// Tokens or money.
    pub axis: Axis,
    pub most: i64,
}

impl Cap {
    /// The key in the configuration: `daily_tokens`, `session_usd`, `models."claude-opus".weekly_usd`.
    pub fn name(&self) -> String {
        let axis = self.axis;
        match &self.scope {
            CapScope::Machine(period) => format!("{period}_{axis}"),
            CapScope::Model(model, period) => format!("models.\"{model}\".{period}_{axis}"),
            CapScope::Session => format!("session_{axis}"),
        }
    }

    /// The time over which it counts; `None` for the life of a session.
    pub fn period(&self) -> Option<Period> {
        match &self.scope {
            CapScope::Machine(period) | CapScope::Model(_, period) => Some(*period),
            CapScope::Session => None,
        }
    }

    /// How it stands after `spent` since `from_ms`.
    pub fn standing(&self, spent: Spend, from_ms: Millis) -> CapStanding {
        let used = if self.axis == Axis::Usd { spent.cost_micros } else { spent.tokens };
        let standing = Standing { axis: self.axis, used, most: self.most };
        CapStanding { cap: self.clone(), from_ms, standing }
    }
}

/// How a cap stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapStanding {
    pub cap: Cap,
    pub from_ms: Millis,
    pub standing: Standing,
}

impl CapStanding {
    /// `daily_tokens: 50,001 of 50,000 tokens`
    pub fn describe(&self) -> String {
        format!("{}: {}", self.cap.name(), self.standing.describe_reached())
    }

    /// What makes room under a cap that is reached.
    pub fn way_on(&self) -> &'static str {
        match self.cap.scope {
            CapScope::Machine(Period::Daily) | CapScope::Model(_, Period::Daily) => "it is free again tomorrow",
            CapScope::Machine(Period::Weekly) | CapScope::Model(_, Period::Weekly) => "it is free again on Monday",
            CapScope::Session => "a new session begins at zero",
        }
    }
}

/// The fullest of several caps, which is the one to name.
pub fn fullest(caps: &[CapStanding]) -> Option<&CapStanding> {
    caps.iter().max_by_key(|cap| i128::from(cap.standing.used) * 100 / i128::from(cap.standing.most.max(1)))
}
