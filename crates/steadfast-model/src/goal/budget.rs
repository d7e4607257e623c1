//! How much a goal may spend: the named profiles, the ways a person writes a budget, and the words from which
//! `auto` picks a profile.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};

use crate::clock::HOUR;
use crate::limit::{self, AmountError, Axis, Limits};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, IntoStaticStr, Serialize, Deserialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum BudgetProfile {
    Quick,
    Standard,
    Deep,
    Overnight,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Display, EnumString, IntoStaticStr, Serialize, Deserialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum BudgetSource {
    #[default]
    None,
    Tokens,
    Profile,
    Auto,
}

/// The limits of a goal, and where they came from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    #[serde(with = "limit::stored")]
    pub limits: Limits,
    pub profile: Option<BudgetProfile>,
    pub source: BudgetSource,
}

impl BudgetProfile {
    fn limits(self) -> Limits {
        let (tokens, turns, hours) = match self {
            Self::Quick => (2_000_000, 50, 2),
            Self::Standard => (10_000_000, 200, 8),
            Self::Deep => (100_000_000, 1_000, 24),
            Self::Overnight => (1_000_000_000, 5_000, 72),
        };
        Limits::default().with(Axis::Tokens, tokens).with(Axis::Turns, turns).with(Axis::Hours, hours * HOUR)
    }
}

impl Budget {
    /// Reads `--budget`: a profile, `auto`, or a number of tokens.
    pub fn parse(text: &str, objective: &str) -> Result<Self, AmountError> {
        if text == "auto" {
            return Ok(Self::of_profile(auto_profile(objective), BudgetSource::Auto));
        }
        if let Ok(profile) = text.parse::<BudgetProfile>() {
            return Ok(Self::of_profile(profile, BudgetSource::Profile));
        }
        // A number of tokens does not depend on the time.
        let limits = Limits::default().with(Axis::Tokens, Axis::Tokens.parse(text, 0)?);
        Ok(Self { limits, source: BudgetSource::Tokens, profile: None })
    }

    pub fn of_profile(profile: BudgetProfile, source: BudgetSource) -> Self {
        Self { limits: profile.limits(), profile: Some(profile), source }
    }
}

/// Picks a profile from the words of the objective; the first list with a hit wins.
pub fn auto_profile(objective: &str) -> BudgetProfile {
    const WORDS: [(BudgetProfile, &str); 3] = [
        (BudgetProfile::Overnight, "overnight, weekend, all night, tomorrow morning"),
        (
            BudgetProfile::Deep,
            "migration, migrations, migrate, repo-wide, repository-wide, redesign, redesigns, integration, integrations, \
             multi-module, multi-file, many files, many named files, broad, cross-cutting, large refactor, major refactor",
        ),
        (
            BudgetProfile::Standard,
            "feature, bug fix, bugfix, test, tests, bounded, medium refactor, refactor, implement, add",
        ),
    ];
    let text = objective.to_lowercase();
    let is_hit = |words: &str| words.split(", ").any(|word| contains_word(&text, word));
    WORDS.iter().find(|(_, words)| is_hit(words)).map_or(BudgetProfile::Quick, |(profile, _)| *profile)
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
    fn profiles_have_the_envelopes_of_the_contract() {
        let hours = |limits: Limits| limits.get(Axis::Hours).map(|ms| ms / 1_000);
        let of = |text| {
            Budget::parse(text, "").map(|b| (b.limits.get(Axis::Tokens), b.limits.get(Axis::Turns), hours(b.limits)))
        };
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
