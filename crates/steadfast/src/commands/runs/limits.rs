//! What the command line says about a run, in the words of plans.

use steadfast_core::clock;
use steadfast_core::goal::budget::{self, Budget};
use steadfast_core::run::RunLimits;
use steadfast_engine::plan::{Overrides, agent_kind};

use crate::cli::{AgentArgs, LimitArgs, RunHow};
use crate::failure::{Failure, code};

/// Everything that loops and pipelines have in common. A profile's turns cap the iterations unless `--max` is given.
pub(in crate::commands) fn run_overrides(max: Option<u32>, how: &RunHow) -> Result<Overrides, Failure> {
    check_commands(&how.verify)?;
    let overrides = Overrides { max, verify: how.verify.clone(), ..agent_overrides(&how.agent)? };
    apply_limits(overrides, &how.limits, "")
}

/// Who works, and for how long at a time.
pub(in crate::commands) fn agent_overrides(arguments: &AgentArgs) -> Result<Overrides, Failure> {
    let usage = |message: String, hint: &str| Failure::new(code::USAGE, message, hint);
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

/// Adds the limits; `objective` is what `auto` reads.
pub(in crate::commands) fn apply_limits(
    mut overrides: Overrides,
    arguments: &LimitArgs,
    objective: &str,
) -> Result<Overrides, Failure> {
    if let Some(text) = &arguments.budget {
        let budget = Budget::parse(text, objective)?;
        overrides.tokens = budget.tokens;
        overrides.wall_ms = budget.seconds.map(|seconds| seconds.saturating_mul(1_000));
        overrides.max = overrides.max.or(budget.turns.and_then(|turns| u32::try_from(turns).ok()));
    }
    if let Some(text) = &arguments.usd {
        overrides.cost_micros = Some(budget::parse_usd(text)?);
    }
    if let Some(text) = &arguments.max_hours {
        overrides.wall_ms = Some(budget::parse_hours(text)?.saturating_mul(1_000));
    }
    Ok(overrides)
}

/// Gives a run that goes on the limits that were asked for, higher or lower; tells whether that changed any.
pub(super) fn change(limits: &mut RunLimits, arguments: &LimitArgs) -> Result<bool, Failure> {
    let wanted = apply_limits(Overrides::default(), arguments, "")?;
    let before = limits.clone();
    limits.tokens = wanted.tokens.or(limits.tokens);
    limits.cost_micros = wanted.cost_micros.or(limits.cost_micros);
    limits.wall_ms = wanted.wall_ms.or(limits.wall_ms);
    Ok(*limits != before)
}

pub(in crate::commands) fn check_commands(commands: &[String]) -> Result<(), Failure> {
    match commands.iter().find(|command| command.trim().is_empty() || command.contains('\0')) {
        Some(command) => {
            Err(Failure::new(code::USAGE, format!("`{command}` is no command"), "--verify \"cargo test\""))
        }
        None => Ok(()),
    }
}
