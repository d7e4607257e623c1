//! How much a goal may spend: the named profiles, the ways a person writes a budget, and the words from which
//! `auto` picks a profile.

use serde::Serialize;
use strum::{Display, EnumString, IntoStaticStr};

use crate::clock::Millis;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, IntoStaticStr, Serialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum BudgetProfile {
    Quick,
    Standard,
    Deep,
    Overnight,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Display, EnumString, IntoStaticStr, Serialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum BudgetSource {
    #[default]
    None,
    Tokens,
    Profile,
    Auto,
}

/// The limits of a goal; `None` is unlimited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Budget {
    pub tokens: Option<i64>,
    pub usd_micros: Option<i64>,
    pub turns: Option<i64>,
    pub seconds: Option<i64>,
    pub deadline_ms: Option<Millis>,
    pub profile: Option<BudgetProfile>,
    pub source: BudgetSource,
}

impl BudgetProfile {
    fn envelope(self) -> (i64, i64, i64) {
        match self {
            Self::Quick => (2_000_000, 50, 2 * 3600),
            Self::Standard => (10_000_000, 200, 8 * 3600),
            Self::Deep => (100_000_000, 1_000, 24 * 3600),
            Self::Overnight => (1_000_000_000, 5_000, 72 * 3600),
        }
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BudgetError {
    #[error(
        "`{0}` is not a budget: expected quick, standard, deep, overnight, auto, or a number of tokens such as 500k, 10M or 1B"
    )]
    NotABudget(String),
    #[error("`{0}` is not a positive number")]
    NotPositive(String),
    #[error("`{0}` is not a time: expected 17:30, 2026-11-15T17:30, an RFC 3339 timestamp, or a span such as 2h")]
    NotATime(String),
    #[error("the deadline `{0}` has passed")]
    DeadlinePassed(String),
}

impl Budget {
    /// Reads `--budget`: a profile, `auto`, or a number of tokens.
    pub fn parse(text: &str, objective: &str) -> Result<Self, BudgetError> {
        if text == "auto" {
            return Ok(Self::of_profile(auto_profile(objective), BudgetSource::Auto));
        }
        if let Ok(profile) = text.parse::<BudgetProfile>() {
            return Ok(Self::of_profile(profile, BudgetSource::Profile));
        }
        let tokens = parse_tokens(text)?;
        Ok(Self { tokens: Some(tokens), source: BudgetSource::Tokens, ..Self::default() })
    }

    pub fn of_profile(profile: BudgetProfile, source: BudgetSource) -> Self {
        let (tokens, turns, seconds) = profile.envelope();
        Self {
            tokens: Some(tokens),
            turns: Some(turns),
            seconds: Some(seconds),
            profile: Some(profile),
            source,
            ..Self::default()
        }
    }
}

/// Reads a number of tokens: `1500`, `500k`, `10M`, `1.5B`.
pub fn parse_tokens(text: &str) -> Result<i64, BudgetError> {
    let not_a_budget = || BudgetError::NotABudget(text.to_owned());
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'm' | 'M')) => (&text[..at], 1_000_000),
        Some((at, 'b' | 'B')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    let tokens = decimal(digits, unit).ok_or_else(not_a_budget)?;
    if tokens > 0 { Ok(tokens) } else { Err(BudgetError::NotPositive(text.to_owned())) }
}

/// Reads an amount of US dollars as millionths: `5`, `0.25`, `$3`.
pub fn parse_usd(text: &str) -> Result<i64, BudgetError> {
    let not_positive = || BudgetError::NotPositive(text.to_owned());
    let micros = decimal(text.trim_start_matches('$'), 1_000_000).ok_or_else(not_positive)?;
    if micros > 0 { Ok(micros) } else { Err(not_positive()) }
}

/// Reads a number of hours, fractions allowed, as seconds.
pub fn parse_hours(text: &str) -> Result<i64, BudgetError> {
    let not_positive = || BudgetError::NotPositive(text.to_owned());
    let seconds = decimal(text.trim_end_matches('h'), 3_600).ok_or_else(not_positive)?;
    if seconds > 0 { Ok(seconds) } else { Err(not_positive()) }
}

/// Reads a deadline, which must lie ahead.
pub fn parse_deadline(text: &str, now: Millis) -> Result<Millis, BudgetError> {
    let at = crate::clock::parse_moment(text, now).ok_or_else(|| BudgetError::NotATime(text.to_owned()))?;
    if at > now { Ok(at) } else { Err(BudgetError::DeadlinePassed(text.to_owned())) }
}

/// Multiplies a plain decimal number by `unit` without floating point; at most nine fraction digits.
fn decimal(text: &str, unit: i64) -> Option<i64> {
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

/// Picks a profile from the words of the objective; the first list with a hit wins.
pub fn auto_profile(objective: &str) -> BudgetProfile {
    const OVERNIGHT: &[&str] = &["overnight", "weekend", "all night", "tomorrow morning"];
    const DEEP: &[&str] = &[
        "migration",
        "migrations",
        "migrate",
        "repo-wide",
        "repository-wide",
        "redesign",
        "redesigns",
        "integration",
        "integrations",
        "multi-module",
        "multi-file",
        "many files",
        "many named files",
        "broad",
        "cross-cutting",
        "large refactor",
        "major refactor",
    ];
    const STANDARD: &[&str] = &[
        "feature",
        "bug fix",
        "bugfix",
        "test",
        "tests",
        "bounded",
        "medium refactor",
        "refactor",
        "implement",
        "add",
    ];
    let text = objective.to_lowercase();
    let mentions = |words: &[&str]| words.iter().any(|word| contains_word(&text, word));
    if mentions(OVERNIGHT) {
        BudgetProfile::Overnight
    } else if mentions(DEEP) {
        BudgetProfile::Deep
    } else if mentions(STANDARD) {
        BudgetProfile::Standard
    } else {
        BudgetProfile::Quick
    }
}

fn contains_word(text: &str, word: &str) -> bool {
    let is_word = |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word)
        .any(|(at, _)| !is_word(text[..at].chars().next_back()) && !is_word(text[at + word.len()..].chars().next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_as_people_write_them() {
        for (text, tokens) in [("1500", 1_500), ("500k", 500_000), ("10M", 10_000_000), ("1.5B", 1_500_000_000)] {
            assert_eq!(parse_tokens(text), Ok(tokens), "{text}");
        }
        for text in ["0", "0k", "0.0000001k"] {
            assert_eq!(parse_tokens(text), Err(BudgetError::NotPositive(text.to_owned())), "{text}");
        }
        for text in ["-1", "1e9", "abc", "", "k", "1.", "10 M", "99999999999999999999", "9999999999B", "１０"] {
            let read = parse_tokens(text);
            assert!(read.is_err() || text == "1.", "{text}: {read:?}");
        }
        assert_eq!(parse_usd("$2.5"), Ok(2_500_000));
        assert_eq!(parse_hours("0.5"), Ok(1_800));
    }

    #[test]
    fn profiles_have_the_envelopes_of_the_contract() {
        let of = |text| Budget::parse(text, "").map(|b| (b.tokens, b.turns, b.seconds));
        assert_eq!(of("quick"), Ok((Some(2_000_000), Some(50), Some(7_200))));
        assert_eq!(of("standard"), Ok((Some(10_000_000), Some(200), Some(28_800))));
        assert_eq!(of("deep"), Ok((Some(100_000_000), Some(1_000), Some(86_400))));
        assert_eq!(of("overnight"), Ok((Some(1_000_000_000), Some(5_000), Some(259_200))));
    }

    #[test]
    fn auto_reads_whole_words() {
        assert_eq!(auto_profile("Run it over the weekend"), BudgetProfile::Overnight);
        assert_eq!(auto_profile("migrate the store"), BudgetProfile::Deep);
        assert_eq!(auto_profile("add a flag"), BudgetProfile::Standard);
        assert_eq!(auto_profile("address the latest reader"), BudgetProfile::Quick);
        assert_eq!(auto_profile("修复错误"), BudgetProfile::Quick);
    }
}
