//! What the command line says about a run, in the words of plans.

use steadfast_engine::plan::{Overrides, agent_kind};
use steadfast_model::clock;
use steadfast_model::goal::budget;
use steadfast_model::goal::budget::Budget;
use steadfast_model::run::RunLimits;

use crate::cli::{AgentArgs, LimitArgs, RunHow};
use crate::error::{CliError, code};

/// Everything that loops and pipelines have in common. A profile's turns are a limit unless `--max` is given.
pub(in crate::commands) fn run_overrides(max: Option<u32>, how: &RunHow) -> Result<Overrides, CliError> {
    check_commands(&how.verify)?;
    let overrides = Overrides { max, verify: how.verify.clone(), ..agent_overrides(&how.agent)? };
    Ok(within(overrides, &budget_of(&how.limits, "")?))
}

/// Who works, and for how long at a time.
pub(in crate::commands) fn agent_overrides(arguments: &AgentArgs) -> Result<Overrides, CliError> {
    let usage = |message: String, hint: &str| CliError::new(code::USAGE, message, hint);
    let agent = match arguments.agent.as_deref() {
        Some(text) => Some(agent_kind(text).map_err(|(what, fix)| usage(what, &fix))?),
        None => None,
    };
    let timeout_ms = match arguments.timeout.as_deref() {
        Some(text) => Some(
            clock::parse_duration(text)
                .filter(|timeout| *timeout > 0)
                .ok_or_else(|| usage(format!("`{text}` is no duration"), "--timeout 90s, 20m or 2h"))?,
        ),
        None => None,
    };
    Ok(Overrides {
        agent,
        model: arguments.model.clone(),
        user_hooks: arguments.user_hooks.then_some(true),
        timeout_ms,
        ..Overrides::default()
    })
}

/// What the flags allow; `objective` is what `auto` reads.
pub(in crate::commands) fn budget_of(arguments: &LimitArgs, objective: &str) -> Result<Budget, CliError> {
    let mut budget = match &arguments.budget {
        Some(text) => Budget::parse(text, objective)?,
        None => Budget::default(),
    };
    if let Some(text) = &arguments.usd {
        budget.usd_micros = Some(budget::parse_usd(text)?);
    }
    if let Some(text) = &arguments.max_hours {
        budget.seconds = Some(budget::parse_hours(text)?);
    }
    Ok(budget)
}

/// Adds what may be spent.
pub(in crate::commands) fn within(overrides: Overrides, budget: &Budget) -> Overrides {
    Overrides {
        tokens: budget.tokens,
        cost_micros: budget.usd_micros,
        wall_ms: budget.seconds.map(|seconds| seconds.saturating_mul(1_000)),
        turns: budget.turns.and_then(|turns| u32::try_from(turns).ok()),
        ..overrides
    }
}

/// Gives a run that goes on the limits that were asked for, higher or lower; tells whether that changed any.
pub(super) fn change(limits: &mut RunLimits, arguments: &LimitArgs) -> Result<bool, CliError> {
    let wanted = within(Overrides::default(), &budget_of(arguments, "")?);
    let before = limits.clone();
    limits.tokens = wanted.tokens.or(limits.tokens);
    limits.cost_micros = wanted.cost_micros.or(limits.cost_micros);
    limits.wall_ms = wanted.wall_ms.or(limits.wall_ms);
    Ok(*limits != before)
}

pub(in crate::commands) fn check_commands(commands: &[String]) -> Result<(), CliError> {
    match commands.iter().find(|command| command.trim().is_empty() || command.contains('\0')) {
        Some(command) => {
            Err(CliError::new(code::USAGE, format!("`{command}` is no command"), "--verify \"cargo test\""))
        }
        None => Ok(()),
    }
}
