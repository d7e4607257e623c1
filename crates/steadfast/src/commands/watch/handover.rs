//! A goal whose plan is used up, given to the other agent until the reset, if the user wants that (`[goal]
//! on_usage_limit = "other"`). The other agent works in a run of its own, within what is left of the goal's limits.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use steadfast_app::wake;
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::change::{Change, Span};
use steadfast_model::goal::event::{Event, EventKind};
use steadfast_model::goal::{Goal, PausedReason};
use steadfast_model::host::Host;
use steadfast_model::limit::Axis;
use steadfast_model::price::dollars;
use steadfast_system::config::OnUsageLimit;
use steadfast_system::env_vars;

use super::goals::change_if_same;
use super::report::ReportSubject;
use super::watching::Round;
use crate::error::CliError;
use crate::programs;
use crate::watch as starting;

/// Below this, an agent would hardly begin.
const SHORTEST: Millis = 60_000;

/// Starts the other agent, once for each pause.
pub(super) fn look_at(round: &mut Round<'_>, goal: &Goal, now: Millis) -> Result<(), CliError> {
    let config = &round.paths.config;
    let is_wanted =
        config.goal.on_usage_limit == OnUsageLimit::Other && goal.paused_reason == Some(PausedReason::UsageLimit);
    let left = goal.wake_at_ms.map_or(0, |at| at - now);
    if !is_wanted || left < SHORTEST || wake::was_handed_over(round.store.read(), goal)? {
        return Ok(());
    }
    let is_there = |host: &&Host| **host != goal.host && programs::on_path(config.agents.program(**host)).is_some();
    let directory = goal.project_dir.as_deref().filter(|directory| Path::new(directory).is_dir());
    let (Some(other), Some(directory)) = (Host::ALL.iter().find(is_there), directory) else {
        return Ok(());
    };
    let Some(limits) = limits_left(goal, left) else { return Ok(()) };
    let handed_over = |goal: &Goal| {
        let event = Event::new(EventKind::GoalHandedOver, json!({"agent": other, "until_ms": goal.wake_at_ms}));
        let after = Goal { updated_at_ms: now, ..goal.clone() };
        Some(Change { goal: after, events: vec![event], span: Span::Keep })
    };
    if change_if_same(round.store, goal, handed_over)?.is_none() {
        return Ok(());
    }
    let mut command = Command::new(std::env::current_exe()?);
    starting::forget_agent(&mut command);
    command.args(["run", "--detach", "--agent", other.name()]).args(limits);
    command.args(goal.verify.iter().flat_map(|check| ["--verify", check])).args(["--", &goal.objective]);
    command.env(env_vars::HOME, &round.paths.home).env(env_vars::DB, &round.paths.store).current_dir(directory);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let product = other.capabilities().product;
    match command.status() {
        Ok(status) if status.success() => {
            let detail = format!("{product} works on it until {}", clock::to_local(now + left));
            round.report.line("handed_over", ReportSubject::Goal(&goal.goal_id), &detail);
        }
        _ => round.report.line("failed", ReportSubject::Goal(&goal.goal_id), &format!("{product} cannot take it over")),
    }
    Ok(())
}

/// The flags that hold the run to the rest of the goal's limits and to the reset; `None` if nothing is left.
fn limits_left(goal: &Goal, left: Millis) -> Option<Vec<String>> {
    #[expect(clippy::cast_precision_loss, reason = "hours until a reset are far below 2^52 milliseconds")]
    let hours = left as f64 / 3_600_000.0;
    let mut flags = vec!["--max-hours".to_owned(), format!("{hours:.4}")];
    if let Some(tokens) = goal.remaining_tokens() {
        flags.extend(["--budget".to_owned(), (tokens > 0).then_some(tokens)?.to_string()]);
    }
    if let Some(limit) = goal.limits.get(Axis::Usd) {
        let rest = limit - goal.cost_micros;
        flags.extend(["--usd".to_owned(), format!("{:.6}", dollars((rest > 0).then_some(rest)?))]);
    }
    Some(flags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_model::limit::Limits;

    #[test]
    fn the_run_gets_what_is_left_and_no_more() {
        let hour = 3_600_000;
        assert_eq!(limits_left(&Goal::default(), hour / 2).unwrap(), ["--max-hours", "0.5000"]);
        let limits = Limits::default().with(Axis::Tokens, 1_000).with(Axis::Usd, 2_000_000);
        let goal = Goal { limits, tokens_used: 400, cost_micros: 500_000, ..Goal::default() };
        let expected = ["--max-hours", "1.0000", "--budget", "600", "--usd", "1.500000"];
        assert_eq!(limits_left(&goal, hour).unwrap(), expected);
        assert_eq!(limits_left(&Goal { tokens_used: 1_000, ..goal }, hour), None);
    }
}
