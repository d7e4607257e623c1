//! Why a run or a stage ended, as one list of words. Stored runs and public files hold the words as text, because a
//! stage can also end under the names of its rules, and imported runs keep the text of the tool that wrote them.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumMessage, EnumString, IntoEnumIterator as _, IntoStaticStr};

use super::{Run, RunStatus};
use crate::limit::Axis;
use crate::text;

const LONGEST_DETAIL: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumIter, EnumMessage, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RunReason {
    /// All stages of a pipeline are done.
    Completed,
    /// The maximum was reached before the completion rule held.
    MaxIterations,
    /// The token budget is used up.
    BudgetTokens,
    /// The money is used up.
    BudgetUsd,
    /// The hours are used up.
    MaxHours,
    /// A cap over all goals and runs was reached.
    CostCap,
    /// Too many iterations in a row changed nothing.
    NoProgress,
    /// An agent's result said `stop` before the completion rule held.
    Stopped,
    /// A person rejected a stage.
    Rejected,
    /// The condition of a stage could not be tested.
    Condition,
    /// Too many attempts in a row failed.
    Errors,
    /// The agent program cannot be started.
    CannotStart,
    /// A person or `kill` ended the run.
    Killed,
    /// A person marked the run as killed in the registry file.
    KilledInRegistry,
    /// The engine got a signal.
    Interrupted,
    /// The engine ended without recording an end.
    EngineGone,
    /// The goal of the run was completed from outside.
    GoalCompleted,
    /// The goal of the run was given up.
    GoalAbandoned,
    /// The goal of the run was paused.
    GoalPaused,
}

impl RunReason {
    /// The reason that a stored text begins with; `None` for rule names and for text from other tools.
    pub fn parse(text: &str) -> Option<Self> {
        text.split_once(": ").map_or(text, |(word, _)| word).parse().ok()
    }

    /// The text to store, with a detail for people after the word.
    pub fn with_detail(self, detail: &str) -> String {
        let detail = text::headline(detail.trim(), LONGEST_DETAIL);
        if detail.is_empty() { self.to_string() } else { format!("{self}: {detail}") }
    }

    /// Whether a run that ended for this reason needs a larger limit to continue.
    pub fn is_limit(self) -> bool {
        self.axis().is_some_and(|axis| axis != Axis::Turns)
    }

    /// The axis whose limit ended the run.
    pub fn axis(self) -> Option<Axis> {
        Axis::iter().find(|axis| Self::from(*axis) == self)
    }
}

impl From<Axis> for RunReason {
    fn from(axis: Axis) -> Self {
        match axis {
            Axis::Tokens => Self::BudgetTokens,
            Axis::Usd => Self::BudgetUsd,
            Axis::Turns => Self::MaxIterations,
            Axis::Hours | Axis::Deadline => Self::MaxHours,
            Axis::Shared | Axis::Plan => Self::CostCap,
        }
    }
}

impl From<RunReason> for String {
    fn from(reason: RunReason) -> Self {
        reason.to_string()
    }
}

impl Run {
    /// The reason of the end, if it is one of [`RunReason`].
    pub fn end_reason(&self) -> Option<RunReason> {
        RunReason::parse(self.reason.as_deref()?)
    }

    /// Whether a limit, the maximum or a gate that did not hold ended the run before its completion rule held.
    pub fn is_limited(&self) -> bool {
        let is_limit = || self.end_reason().and_then(RunReason::axis).is_some();
        self.status == RunStatus::Completed && (self.ended_by.is_some() || is_limit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_stored_runs_and_public_files() {
        let words = [
            "completed",
            "max_iterations",
            "budget_tokens",
            "budget_usd",
            "max_hours",
            "cost_cap",
            "no_progress",
            "stopped",
            "rejected",
            "condition",
            "errors",
            "cannot_start",
            "killed",
            "killed_in_registry",
            "interrupted",
            "engine_gone",
            "goal_completed",
            "goal_abandoned",
            "goal_paused",
        ];
        assert_eq!(RunReason::iter().map(String::from).collect::<Vec<_>>(), words);
        for reason in RunReason::iter() {
            assert_eq!(RunReason::parse(&reason.to_string()), Some(reason));
            assert_eq!(RunReason::parse(&reason.with_detail(" two: parts\nmore ")), Some(reason));
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.to_string());
        }
        for other in ["plateau", "verify+promise", "killed by user", ""] {
            assert_eq!(RunReason::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_detail_follows_its_word_and_an_empty_one_leaves_nothing() {
        assert_eq!(RunReason::Errors.with_detail(" no network \n"), "errors: no network");
        assert_eq!(RunReason::CannotStart.with_detail(" "), "cannot_start");
    }
}
