//! How a goal or run ended, and how that is known, in words.

use serde::Serialize;
use steadfast_app::overview::GoalView;
use steadfast_app::overview::runs::RunDetail;
use steadfast_model::goal::GoalStatus;
use steadfast_model::goal::proof::CompletedBy;
use steadfast_model::run::{RunReason, RunStatus};
use steadfast_model::text;

/// The head of a report. `mark` and `word` say the same as the colour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ReportOutcome {
    pub(super) class: &'static str,
    pub(super) mark: &'static str,
    pub(super) word: String,
    /// Who or what says so, or why not.
    pub(super) known: String,
}

impl ReportOutcome {
    fn new(class: &'static str, mark: &'static str, word: &str, known: impl Into<String>) -> Self {
        Self { class, mark, word: word.to_owned(), known: known.into() }
    }

    pub(super) fn of_goal(goal: &GoalView) -> Self {
        let reason = goal.paused_reason.map(|reason| reason.to_string().replace('_', " "));
        match goal.status {
            GoalStatus::Complete => Self::of_complete(goal.done.completed_by),
            GoalStatus::Abandoned => Self::new("off", "–", "Abandoned", "The user gave the goal up."),
            GoalStatus::BudgetLimited => {
                Self::new("bad", "■", "Stopped by its budget", "The budget was spent before the objective was met.")
            }
            GoalStatus::Blocked => {
                let why = goal.blocked_reason.clone().unwrap_or_else(|| "The agent waits for a person.".to_owned());
                Self::new("bad", "!", "Blocked", why)
            }
            GoalStatus::Paused => {
                let why =
                    reason.map_or_else(|| "No reason is recorded.".to_owned(), |reason| format!("Why: {reason}."));
                Self::new("warn", "‖", "Paused", why)
            }
            GoalStatus::Active => Self::new("live", "▶", "In progress", "The objective is not met yet."),
        }
    }

    fn of_complete(by: Option<CompletedBy>) -> Self {
        let verified = |known: &str| Self::new("good", "✓", "Complete, verified", known);
        match by {
            Some(CompletedBy::Verification) => verified("Every check passed; the results are below."),
            Some(CompletedBy::Evaluator) => verified("The evaluator, a second agent, agreed; its verdict is below."),
            Some(CompletedBy::User) => Self::new("good", "✓", "Complete", "A person said so."),
            Some(CompletedBy::SelfUpdate) => {
                let known = "By the agent's own word. No check, evaluator or person confirmed it.";
                Self::new("warn", "○", "Complete, unverified", known)
            }
            None => Self::new("warn", "○", "Complete, unverified", "Who said so is not recorded."),
        }
    }

    pub(super) fn of_run(detail: &RunDetail) -> Self {
        let run = &detail.run;
        let reason = run.reason.as_deref().and_then(RunReason::parse);
        let why = run.reason.as_deref().map_or_else(|| "No reason is recorded.".to_owned(), sentence);
        let why = detail.ended_by.as_ref().map_or(why, |ended| sentence(&ended.why));
        match run.status {
            _ if run.is_orphaned => Self::new("bad", "!", "Engine gone", "The engine died before the run ended."),
            RunStatus::Running if run.is_asking => {
                Self::new("warn", "?", "Waits for a yes", "A stage waits for a person.")
            }
            RunStatus::Running => Self::new("live", "▶", "Running", "The run is not over yet."),
            RunStatus::Completed if reason.is_some_and(RunReason::is_limit) => {
                Self::new("bad", "■", "Stopped at a limit", why)
            }
            RunStatus::Completed if reason == Some(RunReason::MaxIterations) => {
                Self::new("bad", "■", "Stopped after its last iteration", why)
            }
            RunStatus::Completed => match detail.goal.as_ref() {
                Some(goal) if goal.status == GoalStatus::Complete => Self::of_complete(goal.completed_by),
                Some(goal) => Self::new("warn", "○", "Ended, goal open", format!("The goal is {}.", goal.state)),
                None => Self::new("good", "✓", "Completed", why),
            },
            RunStatus::Failed => Self::new("bad", "✗", "Failed", why),
            RunStatus::Killed => Self::new("off", "–", "Killed", why),
            RunStatus::UnknownTermination => Self::new("bad", "!", "Ended without a record", why),
        }
    }
}

/// `max_iterations` as `Max iterations.`
fn sentence(reason: &str) -> String {
    let words = text::headline(&reason.replace('_', " "), 300);
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}
