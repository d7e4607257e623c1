//! How fast the running block is used, and where it ends at that rate.

use serde_json::{Value, json};

use super::Amounts;
use steadfast_model::clock::{MINUTE, Millis};
use steadfast_model::price::dollars;

/// The rate of a running block, since the quarter of an hour of its first response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burn {
    pub minutes: i64,
    pub minutes_left: i64,
    pub tokens_per_minute: i64,
    /// Millionths of a dollar; `None` when a part of the cost is unknown.
    pub micros_per_minute: Option<i64>,
    /// All tokens and the cost at the end of the block, if it continues at this rate.
    pub projected_tokens: i64,
    pub projected_micros: Option<i64>,
}

impl Burn {
    pub(super) fn new(amounts: &Amounts, first: Millis, end: Millis, now: Millis) -> Self {
        let minutes = ((now - first) / MINUTE).max(1);
        let minutes_left = ((end - now) / MINUTE).max(0);
        let projected = |amount: i64| amount.saturating_add(scaled(amount, minutes_left, minutes));
        let (tokens, cost) = (amounts.tokens.total(), amounts.cost_micros());
        Self {
            minutes,
            minutes_left,
            tokens_per_minute: tokens / minutes,
            micros_per_minute: cost.map(|cost| cost / minutes),
            projected_tokens: projected(tokens),
            projected_micros: cost.map(projected),
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "minutes_left": self.minutes_left,
            "burn_rate": {
                "tokens_per_minute": self.tokens_per_minute,
                "cost_usd_per_minute": self.micros_per_minute.map(dollars),
            },
            "projection": {
                "total_tokens": self.projected_tokens,
                "cost_usd": self.projected_micros.map(dollars),
            },
        })
    }
}

/// `amount * part / whole`, in 128 bits on the way.
fn scaled(amount: i64, part: i64, whole: i64) -> i64 {
    let scaled = i128::from(amount) * i128::from(part) / i128::from(whole.max(1));
    i64::try_from(scaled).unwrap_or(i64::MAX)
}
