//! Amounts as people write them.

use crate::clock::{self, Millis};

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AmountError {
    #[error(
        "`{0}` is not a budget: expected quick, standard, deep, overnight, auto, or a number of tokens such as 500k, 10M or 1B"
    )]
    NotABudget(String),
    #[error("`{0}` is not a positive number")]
    NotPositive(String),
    #[error("`{text}` is too much; the maximum is {most}")]
    TooMuch { text: String, most: String },
    #[error("`{0}` is not a time: expected 17:30, 2026-11-15T17:30, an RFC 3339 timestamp, or a span such as `in 3h`")]
    NotATime(String),
    #[error("the deadline `{0}` has passed")]
    DeadlinePassed(String),
}

impl AmountError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotABudget(_) | Self::NotPositive(_) => {
                "use for example --budget standard, --budget 10M, --usd 5 or --max-hours 2"
            }
            Self::TooMuch { .. } => "give a smaller number, or leave the limit out for none",
            Self::NotATime(_) | Self::DeadlinePassed(_) => "use for example --deadline 17:30 or --deadline \"in 3h\"",
        }
    }
}

/// Reads a number of tokens: `1500`, `500k`, `10M`, `1.5B`.
pub(super) fn parse_tokens(text: &str) -> Result<i64, AmountError> {
    let unit = match text.chars().last() {
        Some('k' | 'K') => 1_000,
        Some('m' | 'M') => 1_000_000,
        Some('b' | 'B') => 1_000_000_000,
        _ => 1,
    };
    let digits = if unit == 1 { text } else { text.get(..text.len() - 1).unwrap_or_default() };
    let tokens = decimal(digits, unit).ok_or_else(|| AmountError::NotABudget(text.to_owned()))?;
    if tokens > 0 { Ok(tokens) } else { Err(AmountError::NotPositive(text.to_owned())) }
}

pub(super) fn parse_deadline(text: &str, now: Millis) -> Result<Millis, AmountError> {
    let at = clock::parse_moment(text, now).ok_or_else(|| AmountError::NotATime(text.to_owned()))?;
    if at > now { Ok(at) } else { Err(AmountError::DeadlinePassed(text.to_owned())) }
}

/// Multiplies a plain decimal number by `unit` without floating point; at most nine fraction digits.
pub(super) fn decimal(text: &str, unit: i64) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 9 || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let whole = whole.parse::<i64>().ok()?.checked_mul(unit)?;
    let scale = 10_i64.pow(u32::try_from(fraction.len()).ok()?);
    let part = if fraction.is_empty() { 0 } else { fraction.parse::<i64>().ok()?.checked_mul(unit)? / scale };
    whole.checked_add(part)
}
