//! Turns flags of the command line into overrides of a plan.

use steadfast_core::clock;
use steadfast_core::goal::budget::{self, Budget};
use steadfast_core::run::RunLimits;
use steadfast_engine::plan::{Overrides, agent_kind};

use crate::cli::{AgentArgs, LimitArgs, RunHow};
use crate::failure::{Failure, code};

/// The flags that loops and pipelines share. The turns of a budget profile are a limit unless `--max` is given.
pub(in crate::commands) fn run_overrides(max: Option<u32>, how: &RunHow) -> Result<Overrides, Failure> {
    check_commands(&how.verify)?;
    let overrides = Overrides { max, verify: how.verify.clone(), ..agent_overrides(&how.agent)? };
    Ok(within(overrides, &budget_of(&how.limits, "")?))
}

/// The agent, its model and its time limit.
pub(in crate::commands) fn agent_overrides(arguments: &AgentArgs) -> Result<Overrides, Failure> {
    let usage = |message: String, hint: &str| Failure::new(code::USAGE, message, hint);
    let agent = arguments.agent.as_deref().map(agent_kind).transpose();
    let parse_timeout = |text: &String| {
        let timeout = clock::parse_duration(text).filter(|timeout| *timeout > 0);
        timeout.ok_or_else(|| usage(format!("invalid duration `{text}`"), "for example: --timeout 90s, --timeout 2h"))
    };
    Ok(Overrides {
        agent: agent.map_err(|(what, fix)| usage(what, &fix))?,
        model: arguments.model.clone(),
        user_hooks: arguments.user_hooks.then_some(true),
        timeout_ms: arguments.timeout.as_ref().map(parse_timeout).transpose()?,
        ..Overrides::default()
    })
}

/// The budget of the flags; `--budget auto` chooses a profile by `objective`.
pub(in crate::commands) fn budget_of(arguments: &LimitArgs, objective: &str) -> Result<Budget, Failure> {
    let budget = arguments.budget.as_ref().map(|text| Budget::parse(text, objective)).transpose()?;
    let mut budget = budget.unwrap_or_default();
    if let Some(text) = &arguments.usd {
        budget.usd_micros = Some(budget::parse_usd(text)?);
    }
    if let Some(text) = &arguments.max_hours {
        budget.seconds = Some(budget::parse_hours(text)?);
    }
    Ok(budget)
}

/// Adds a budget to the overrides.
pub(in crate::commands) fn within(overrides: Overrides, budget: &Budget) -> Overrides {
    Overrides {
        tokens: budget.tokens,
        cost_micros: budget.usd_micros,
        wall_ms: budget.seconds.map(|seconds| seconds.saturating_mul(1_000)),
        turns: budget.turns.and_then(|turns| u32::try_from(turns).ok()),
        ..overrides
    }
}

/// Replaces the limits of a run that is resumed, and returns whether any of them changed.
pub(super) fn change(limits: &mut RunLimits, arguments: &LimitArgs) -> Result<bool, Failure> {
    let wanted = within(Overrides::default(), &budget_of(arguments, "")?);
    let before = limits.clone();
    limits.tokens = wanted.tokens.or(limits.tokens);
    limits.cost_micros = wanted.cost_micros.or(limits.cost_micros);
    limits.wall_ms = wanted.wall_ms.or(limits.wall_ms);
    Ok(*limits != before)
}

pub(in crate::commands) fn check_commands(commands: &[String]) -> Result<(), Failure> {
    match commands.iter().find(|command| command.trim().is_empty() || command.contains('\0')) {
        Some(command) => Err(Failure::new(
            code::USAGE,
            format!("invalid command `{command}`"),
            "for example: --verify \"cargo test\"",
        )),
        None => Ok(()),
    }
}
