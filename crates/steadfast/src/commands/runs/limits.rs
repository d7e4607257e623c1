//! Turns flags of the command line into overrides of a plan.

use steadfast_engine::plan::{Overrides, agent_kind};
use steadfast_model::clock;
use steadfast_model::limit::Axis;
use steadfast_model::run::RunLimits;

use crate::cli::{AgentArgs, RunHow, RunLimitArgs};
use crate::error::{CliError, code};

/// The flags that loops and pipelines share. The turns of a budget profile are a limit unless `--max` is given.
pub(in crate::commands) fn run_overrides(max: Option<u32>, how: &RunHow) -> Result<Overrides, CliError> {
    check_commands(&how.verify)?;
    let limits = how.limits.budget("", clock::now())?.limits;
    Ok(Overrides { max, limits, verify: how.verify.clone(), ..agent_overrides(&how.agent)? })
}

/// The agent, its model and its time limit.
pub(in crate::commands) fn agent_overrides(arguments: &AgentArgs) -> Result<Overrides, CliError> {
    let usage = |message: String, hint: &str| CliError::new(code::USAGE, message, hint);
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

/// Replaces the limits of a run that is resumed, and returns whether any of them changed.
pub(super) fn change(run_limits: &mut RunLimits, arguments: &RunLimitArgs) -> Result<bool, CliError> {
    let mut wanted = arguments.budget("", clock::now())?.limits;
    // The turns of a profile limit the iterations of each stage, not the run.
    wanted.set(Axis::Turns, None);
    let before = run_limits.limits;
    run_limits.limits = wanted.or(before);
    Ok(run_limits.limits != before)
}

pub(in crate::commands) fn check_commands(commands: &[String]) -> Result<(), CliError> {
    match commands.iter().find(|command| command.trim().is_empty() || command.contains('\0')) {
        Some(command) => Err(CliError::new(
            code::USAGE,
            format!("invalid command `{command}`"),
            "for example: --verify \"cargo test\"",
        )),
        None => Ok(()),
    }
}
