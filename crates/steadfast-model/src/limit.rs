//! Limits of goals, of runs, and of everything together. An [`Axis`] is what is limited; all that differs between
//! axes is in this file: how one is counted, written, parsed, warned about and extended, and which pause it causes.
//! Goals and runs hold [`Limits`]; `[limits]` in the configuration holds [`Cap`]s over everything, a model or a session.

mod amount;
mod cap;
mod left;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumCount, EnumIter, EnumString, IntoEnumIterator, IntoStaticStr};

use crate::clock::{self, Millis};
use crate::pause::PausedReason;
use crate::text;
use amount::{decimal, parse_deadline, parse_tokens};

pub use amount::AmountError;
pub use cap::{Cap, CapScope, CapStanding, Period, SharedSpend, Spend, fullest};

/// A documented column holds this many turns for a goal without a cap on them.
pub const UNLIMITED_TURNS: i64 = 1_000_000;
/// At this share of a limit the model and the user are warned, once.
const WARN_PERCENT: i128 = 80;

/// What is limited. The order is the order in which limits are checked: money and tokens before the caps.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Display, EnumCount, EnumIter, EnumString, IntoStaticStr, Serialize, Deserialize,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Tokens that count: input, cache creation and output.
    Tokens,
    /// Millionths of a US dollar.
    Usd,
    /// Continuations of a goal.
    Turns,
    /// Active time of a goal, open time of a run, in milliseconds.
    Hours,
    /// A moment, in milliseconds since the epoch.
    Deadline,
    /// The caps of the configuration, in percent of the fullest one.
    Shared,
    /// The quota of the user's plan, in percent of its fuller window. It is no part of [`Used`]: what a client last
    /// reported is held against it where a turn ends.
    Plan,
}

/// What was used, in the unit of each axis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    pub tokens: i64,
    pub cost_micros: i64,
    pub turns: i64,
    /// Axes without a field of their own.
    pub counted: Limits,
    pub time_ms: Millis,
    pub started_at_ms: Millis,
    pub now_ms: Millis,
    pub shared: SharedSpend,
}

/// How one limit stands: what was used of it and what there is, in one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub axis: Axis,
    pub used: i64,
    pub most: i64,
}

impl Axis {
    /// Tokens and money end in `budget_limited`; the other limits pause, under a name of their own.
    pub fn paused_reason(self) -> Option<PausedReason> {
        match self {
            Self::Tokens | Self::Usd => None,
            Self::Turns => Some(PausedReason::ContinuationCap),
            Self::Hours => Some(PausedReason::WallClockCap),
            Self::Deadline => Some(PausedReason::Deadline),
            Self::Shared => Some(PausedReason::CostCap),
            Self::Plan => Some(PausedReason::UsageLimit),
        }
    }

    /// The axis whose limit causes this pause.
    pub fn of_pause(reason: PausedReason) -> Option<Self> {
        Self::iter().find(|axis| axis.paused_reason() == Some(reason))
    }

    pub fn is_budget(self) -> bool {
        self.paused_reason().is_none()
    }

    /// Whether the axis can be reached in the middle of a turn.
    pub fn moves_within_turn(self) -> bool {
        self != Self::Turns
    }

    /// The flag of `goal extend` that raises this limit.
    pub fn extend_flag(self) -> Option<&'static str> {
        match self {
            Self::Tokens => Some("--add-tokens N"),
            Self::Usd => Some("--add-usd X"),
            Self::Turns => Some("--add-turns N"),
            Self::Hours | Self::Deadline => Some("--add-hours H"),
            Self::Shared | Self::Plan => None,
        }
    }

    /// The axis whose amount extends this one: hours move a deadline as well.
    #[must_use]
    pub fn extended_by(self) -> Self {
        if self == Self::Deadline { Self::Hours } else { self }
    }

    /// What the limit is called in a sentence about a goal.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Tokens => "token budget",
            Self::Usd => "money budget",
            Self::Turns => "turns",
            Self::Hours => "time",
            Self::Deadline => "time to its deadline",
            Self::Shared => "cap of [limits]",
            Self::Plan => "plan's quota",
        }
    }

    /// An amount of this axis for people.
    pub fn format(self, amount: i64) -> String {
        match self {
            Self::Tokens => format!("{} tokens", text::thousands(amount)),
            Self::Usd => text::usd(amount),
            Self::Turns => text::count(amount, "turn"),
            Self::Hours => text::duration(amount / 1_000),
            Self::Deadline => format!("until {}", clock::to_local(amount)),
            Self::Shared => format!("{amount} %"),
            Self::Plan => format!("{amount} % of the plan"),
        }
    }

    /// Reads an amount as people write it: `500k` tokens, `2.5` dollars, `8` hours.
    pub fn parse(self, text: &str, now: Millis) -> Result<i64, AmountError> {
        let not_positive = || AmountError::NotPositive(text.to_owned());
        let amount = match self {
            Self::Tokens => return parse_tokens(text),
            Self::Deadline => return parse_deadline(text, now),
            Self::Usd => decimal(text.trim_start_matches('$'), 1_000_000),
            Self::Hours => decimal(text.trim_end_matches('h'), 3_600).and_then(|seconds| seconds.checked_mul(1_000)),
            Self::Turns | Self::Shared => text.parse().ok(),
            Self::Plan => text.trim_end_matches('%').parse().ok(),
        };
        let amount = amount.filter(|amount| *amount > 0).ok_or_else(not_positive)?;
        let most = match self {
            Self::Turns => UNLIMITED_TURNS - 1,
            Self::Plan => 100,
            _ => i64::MAX,
        };
        if amount > most {
            return Err(AmountError::TooMuch { text: text.to_owned(), most: text::thousands(most) });
        }
        Ok(amount)
    }

    /// What was used of an amount, and the amount, in one unit.
    fn measure(self, amount: i64, used: &Used) -> (i64, i64) {
        match self {
            Self::Tokens => (used.tokens, amount),
            Self::Usd => (used.cost_micros, amount),
            Self::Turns => (used.turns, amount),
            Self::Hours => (used.time_ms, amount),
            Self::Deadline => (used.now_ms - used.started_at_ms, amount - used.started_at_ms),
            Self::Shared => (used.shared.percent(), amount),
            Self::Plan => (0, amount),
        }
    }
}

impl Standing {
    pub fn is_reached(&self) -> bool {
        self.used >= self.most
    }

    pub fn is_near(&self) -> bool {
        i128::from(self.used) * 100 >= i128::from(self.most) * WARN_PERCENT
    }

    /// Whether to warn. Reached caps over all goals stop the goal now but are free again the next day or week: the
    /// one warning is kept for then.
    pub fn needs_warning(&self) -> bool {
        self.is_near() && !(self.axis == Axis::Shared && self.is_reached())
    }

    /// A limit that is nearly used up, for the model and the user.
    pub fn describe_near(&self) -> String {
        if self.axis == Axis::Shared {
            return "over 80 % of a cap of [limits] used".to_owned();
        }
        let percent = if self.most > 0 { self.used.saturating_mul(100) / self.most } else { 100 };
        format!("{percent} % of the goal's {} used", self.axis.noun())
    }

    /// A limit that is used up.
    pub fn describe_reached(&self) -> String {
        match self.axis {
            Axis::Tokens => format!("{} of {} tokens", text::thousands(self.used), text::thousands(self.most)),
            Axis::Turns => format!("{} of {} turns", self.used, self.most),
            Axis::Deadline => "the deadline has passed".to_owned(),
            Axis::Shared => "a cap of [limits]".to_owned(),
            Axis::Usd | Axis::Hours | Axis::Plan => {
                format!("{} of {}", self.axis.format(self.used), self.axis.format(self.most))
            }
        }
    }
}

/// An amount for each axis that is limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits([Option<i64>; Axis::COUNT]);

impl Limits {
    pub fn get(&self, axis: Axis) -> Option<i64> {
        self.0.get(axis as usize).copied().flatten()
    }

    pub fn set(&mut self, axis: Axis, amount: Option<i64>) {
        if let Some(place) = self.0.get_mut(axis as usize) {
            *place = amount;
        }
    }

    /// These limits, with one more.
    #[must_use]
    pub fn with(mut self, axis: Axis, amount: i64) -> Self {
        self.set(axis, Some(amount));
        self
    }

    pub fn iter(&self) -> impl Iterator<Item = (Axis, i64)> + use<> {
        let limits = *self;
        Axis::iter().filter_map(move |axis| Some((axis, limits.get(axis)?)))
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// These limits; where there is none, the other's.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let mut limits = self;
        for (axis, amount) in other.iter().filter(|(axis, _)| self.get(*axis).is_none()) {
            limits.set(axis, Some(amount));
        }
        limits
    }

    /// How the limit of an axis stands; `None` where there is none.
    pub fn standing(&self, axis: Axis, used: &Used) -> Option<Standing> {
        let amount = match axis {
            // The caps of the configuration; far from them there is nothing to show.
            Axis::Shared => (used.shared != SharedSpend::Free).then_some(100),
            Axis::Plan => None,
            _ => self.get(axis),
        };
        let (used, most) = axis.measure(amount?, used);
        Some(Standing { axis, used, most })
    }

    pub fn standings(&self, used: &Used) -> impl Iterator<Item = Standing> {
        Axis::iter().filter_map(|axis| self.standing(axis, used))
    }

    /// The first limit that is reached.
    pub fn reached(&self, used: &Used) -> Option<Axis> {
        self.standings(used).find(Standing::is_reached).map(|standing| standing.axis)
    }

    /// The first limit that is reached in the middle of a turn.
    pub fn reached_within_turn(&self, used: &Used) -> Option<Axis> {
        self.standings(used).filter(|s| s.axis.moves_within_turn()).find(Standing::is_reached).map(|s| s.axis)
    }

    /// Whether money or tokens are limited.
    pub fn has_budget(&self) -> bool {
        self.iter().any(|(axis, _)| axis.is_budget())
    }

    /// All limits in one phrase.
    pub fn describe(&self) -> String {
        let parts: Vec<String> = self.iter().map(|(axis, amount)| axis.format(amount)).collect();
        if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
    }
}

/// Limits as the plans of runs store them: a map whose keys are older than [`Axis`].
pub mod stored {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use strum::IntoEnumIterator as _;

    use super::{Axis, Limits};

    fn key(axis: Axis) -> &'static str {
        match axis {
            Axis::Usd => "cost_micros",
            Axis::Hours => "wall_ms",
            other => other.into(),
        }
    }

    pub fn serialize<S: Serializer>(limits: &Limits, serializer: S) -> Result<S::Ok, S::Error> {
        limits.iter().map(|(axis, amount)| (key(axis), amount)).collect::<BTreeMap<_, _>>().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Limits, D::Error> {
        let amounts = BTreeMap::<String, serde_json::Value>::deserialize(deserializer)?;
        let mut limits = Limits::default();
        for axis in Axis::iter() {
            limits.set(axis, amounts.get(key(axis)).and_then(serde_json::Value::as_i64));
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests;
