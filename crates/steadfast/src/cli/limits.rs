//! The flags that set and raise limits. A flag belongs to an axis; the axis reads its amount.

use clap::Args;
use steadfast_model::clock::Millis;
use steadfast_model::goal::budget::Budget;
use steadfast_model::limit::{AmountError, Axis, Limits};

use crate::error::CliError;

/// A flag, and the amount of its axis as text if it is given.
type Flag<'a> = (Axis, &'static str, &'a Option<String>);

/// Limits of a goal.
#[derive(Debug, Default, Args)]
pub(crate) struct GoalLimitArgs {
    /// Budget profile (quick, standard, deep, overnight, auto) or tokens (500k, 10M, 1B)
    #[arg(long, value_name = "BUDGET", allow_hyphen_values = true)]
    budget: Option<String>,
    /// Maximum spend in US dollars
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    usd: Option<String>,
    /// Maximum number of turns
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    max_turns: Option<String>,
    /// Maximum hours of active time
    #[arg(long, value_name = "H", allow_hyphen_values = true)]
    max_hours: Option<String>,
    /// Time at which to stop: 17:30, 2026-11-15T17:30, or "in 3h"
    #[arg(long, value_name = "TIME")]
    deadline: Option<String>,
    /// Maximum percentage of the plan's 5-hour or weekly quota; waits for the reset
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    plan_percent: Option<String>,
}

impl GoalLimitArgs {
    /// The budget that the flags ask for; `auto` reads the objective.
    pub(crate) fn budget(&self, objective: &str, now: Millis) -> Result<Budget, CliError> {
        let flags = [
            (Axis::Usd, "--usd", &self.usd),
            (Axis::Turns, "--max-turns", &self.max_turns),
            (Axis::Hours, "--max-hours", &self.max_hours),
            (Axis::Deadline, "--deadline", &self.deadline),
            (Axis::Plan, "--plan-percent", &self.plan_percent),
        ];
        budget(self.budget.as_deref(), &flags, objective, now)
    }
}

/// Limits of a run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunLimitArgs {
    /// Budget profile (quick, standard, deep, overnight, auto) or tokens (500k, 10M, 1B)
    #[arg(long, value_name = "BUDGET", allow_hyphen_values = true)]
    budget: Option<String>,
    /// Maximum spend in US dollars
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    usd: Option<String>,
    /// Maximum hours, including waiting time
    #[arg(long, value_name = "H", allow_hyphen_values = true)]
    max_hours: Option<String>,
    /// Maximum percentage of the plan's 5-hour or weekly quota; waits for the reset
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    plan_percent: Option<String>,
}

impl RunLimitArgs {
    pub(crate) fn budget(&self, objective: &str, now: Millis) -> Result<Budget, CliError> {
        budget(self.budget.as_deref(), &self.flags(), objective, now)
    }

    /// Whether any limit is set.
    pub(crate) fn is_given(&self) -> bool {
        self.budget.is_some() || self.flags().iter().any(|(_, _, text)| text.is_some())
    }

    fn flags(&self) -> [Flag<'_>; 3] {
        [
            (Axis::Usd, "--usd", &self.usd),
            (Axis::Hours, "--max-hours", &self.max_hours),
            (Axis::Plan, "--plan-percent", &self.plan_percent),
        ]
    }
}

/// Amounts to add to limits.
#[derive(Debug, Args)]
#[expect(clippy::struct_field_names, reason = "the fields are the flags")]
pub(crate) struct ExtendArgs {
    /// Turns to add
    #[arg(long, visible_alias = "add-continuations", value_name = "N", allow_hyphen_values = true)]
    add_turns: Option<String>,
    /// Hours to add; also moves a deadline
    #[arg(long, value_name = "H", allow_hyphen_values = true)]
    add_hours: Option<String>,
    /// Tokens to add, such as 500k or 2M
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    add_tokens: Option<String>,
    /// US dollars to add
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    add_usd: Option<String>,
}

impl ExtendArgs {
    /// The amounts to add; empty if no flag is given.
    pub(crate) fn amounts(&self, now: Millis) -> Result<Limits, CliError> {
        let flags = [
            (Axis::Turns, "--add-turns", &self.add_turns),
            (Axis::Hours, "--add-hours", &self.add_hours),
            (Axis::Tokens, "--add-tokens", &self.add_tokens),
            (Axis::Usd, "--add-usd", &self.add_usd),
        ];
        read(Limits::default(), &flags, now)
    }
}

fn budget(profile: Option<&str>, flags: &[Flag<'_>], objective: &str, now: Millis) -> Result<Budget, CliError> {
    let mut budget = profile
        .map_or_else(|| Ok(Budget::default()), |text| Budget::parse(text, objective))
        .map_err(|error| named("--budget", error))?;
    budget.limits = read(budget.limits, flags, now)?;
    Ok(budget)
}

fn named(flag: &str, error: AmountError) -> CliError {
    let message = format!("{flag}: {error}");
    CliError { message, ..error.into() }
}

fn read(mut limits: Limits, flags: &[Flag<'_>], now: Millis) -> Result<Limits, CliError> {
    for (axis, flag, text) in flags {
        if let Some(text) = text {
            limits.set(*axis, Some(axis.parse(text, now).map_err(|error| named(flag, error))?));
        }
    }
    Ok(limits)
}
