//! Why a goal is paused: one list, the same words in Rust, SQL and JSON.

use serde::Serialize;
use strum::{Display, EnumIter, EnumMessage, EnumString, IntoStaticStr};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumIter, EnumMessage, EnumString, IntoStaticStr, Serialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum PausedReason {
    /// You paused it.
    User,
    /// `--max-turns` is reached.
    ContinuationCap,
    /// `--max-hours` of active time is reached.
    WallClockCap,
    /// The session was cleared.
    Cleared,
    /// Steadfast failed, `[limits]` has a mistake, or eight turns in a row failed; `goal status` and the log say which.
    Degraded,
    /// A response had a malformed number of tokens.
    AccountingError,
    /// Tokens may be missing, and the goal has a budget.
    AccountingUncertain,
    /// It waits for a time or a condition, and wakes by itself.
    Waiting,
    /// The plan of the account is used up; it wakes at the reset.
    UsageLimit,
    /// Turns brought nothing new.
    NoProgress,
    /// A cap of `[limits]` is reached.
    CostCap,
    /// `--deadline` has come.
    Deadline,
    /// The user stopped a turn; the next prompt continues.
    Interrupted,
    /// The worker says that the objective is met, and a person must agree.
    SignOff,
    /// The worker paused it, because the user asked for it.
    Worker,
}

impl PausedReason {
    /// Whether such a pause ends by itself, at the goal's `wake_at_ms`.
    pub fn wakes_by_itself(self) -> bool {
        matches!(self, Self::UsageLimit | Self::Waiting)
    }

    /// Whether such a pause ends without `goal resume`: by itself, or with the user's next prompt.
    pub fn ends_without_resume(self) -> bool {
        self.wakes_by_itself() || self == Self::Interrupted
    }
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;

    /// The words that the table of goals accepts.
    const WORDS: [&str; 15] = [
        "user",
        "continuation_cap",
        "wall_clock_cap",
        "cleared",
        "degraded",
        "accounting_error",
        "accounting_uncertain",
        "waiting",
        "usage_limit",
        "no_progress",
        "cost_cap",
        "deadline",
        "interrupted",
        "sign_off",
        "worker",
    ];

    #[test]
    fn every_reason_is_read_back_from_its_word_and_is_the_same_in_json() {
        for reason in PausedReason::iter() {
            let word = reason.to_string();
            assert_eq!(word.parse(), Ok(reason), "{word}");
            assert_eq!(<&str>::from(reason), word);
            assert_eq!(serde_json::json!(reason), word);
        }
        assert!("User".parse::<PausedReason>().is_err());
        assert!("".parse::<PausedReason>().is_err());
    }

    #[test]
    fn the_words_are_those_of_the_table() {
        let words: Vec<&str> = PausedReason::iter().map(<&str>::from).collect();
        assert_eq!(words, WORDS);
    }

    #[test]
    fn a_wait_and_a_usage_limit_end_by_themselves() {
        let woken: Vec<PausedReason> = PausedReason::iter().filter(|reason| reason.wakes_by_itself()).collect();
        assert_eq!(woken, [PausedReason::Waiting, PausedReason::UsageLimit]);
    }
}
