//! `goal resume --continue`: takes a goal up again from outside its session. Codex cannot be woken from inside after
//! an error, an interrupt or its end, but `codex exec resume` goes on with a closed session.

use std::path::PathBuf;

use serde_json::json;
use steadfast_core::action::{self, ActionError, Place};
use steadfast_core::clock;
use steadfast_core::goal::{Actor, Goal, GoalStatus};
use steadfast_core::host::Host;
use steadfast_core::host::install::{self, HookTrust};
use steadfast_core::overview;
use steadfast_core::prompt;
use steadfast_core::store::Store;
use steadfast_engine::codex;

use super::{CommandContext, GoalOutput, refuse_above_shared_cap};
use crate::error::{CliError, code};
use crate::output::CommandOutput;
use crate::plugin;
use crate::programs;

pub(super) fn resume_and_continue(
    context: &CommandContext<'_>,
    store: &mut Store,
    place: &Place,
) -> Result<GoalOutput, CliError> {
    let (id, now) = (place.session_id.as_str(), context.now);
    if context.origin.actor != Actor::User {
        action::refuse_agent(store, id, "resume", context.origin, now)?;
    }
    if place.host == Host::Claude {
        let hint = format!("`claude --resume {id}` opens it; the goal goes on there");
        return Err(CliError::new(code::WRONG_STATE, "only Codex sessions can be continued from outside", hint));
    }
    let goal = store.read().goal(id)?.ok_or_else(|| ActionError::NoGoal(id.to_owned()))?;
    if store.read().session(id)?.is_some_and(|session| session.is_alive()) {
        let hint = "type a prompt there ($goal-resume first, if the goal is paused), or close it";
        return Err(CliError::new(code::WRONG_STATE, "the session is open in Codex", hint));
    }
    let program = find_codex()?;
    refuse_above_shared_cap(context, store, id)?;
    let goal = match goal.status {
        GoalStatus::Active => goal,
        _ => action::resume(store, id, context.origin, now)?,
    };
    if goal.status != GoalStatus::Active {
        return outcome(store, goal, "the goal's budget is spent");
    }
    let directory = place.project_dir.clone().map_or_else(|| context.directory.clone(), PathBuf::from);
    let text = prompt::continuation(&goal, prompt::Wording::Quoted, &[], now)?;
    let ended = codex::resume(&program, &hook_flags()?, id, &text, &directory).map_err(|error| {
        let hint = "`codex --version` shows whether it runs; the goal is active and waits";
        CliError::new(code::ENVIRONMENT, format!("cannot run {}: {error}", program.display()), hint)
    })?;
    let goal = store.read().goal(id)?.unwrap_or(goal);
    let said = if ended.success() { "Codex went on with the goal" } else { "Codex ended with an error" };
    let mut outcome = outcome(store, goal, said)?;
    if !ended.success() {
        outcome.output.code = code::USAGE;
    }
    Ok(outcome)
}

fn outcome(store: &Store, goal: Goal, said: &str) -> Result<GoalOutput, CliError> {
    let view = overview::goal_view(store.read(), &goal, clock::now())?;
    let text = format!("{said}\nstatus: {}\nnext: {}", goal.state(), view.next);
    Ok(GoalOutput { output: CommandOutput { text, json: json!({"goal": view}), code: 0 }, goal: Some(goal) })
}

/// Hooks for this one run where the user's own configuration has none that Codex trusts: without any, the turn would
/// end like every other and nothing would be counted.
fn hook_flags() -> Result<Vec<String>, CliError> {
    let trusted = match steadfast_core::host::codex::home() {
        Some(home) => install::codex_hooks(&home)?.count(HookTrust::Trusted),
        None => 0,
    };
    if trusted > 0 {
        return Ok(Vec::new());
    }
    let program = std::env::current_exe()?;
    Ok(install::per_run_flags(&format!("{} hook codex", plugin::shell_word(&program.to_string_lossy()))))
}

/// The user's own codex, found before anything is changed.
fn find_codex() -> Result<PathBuf, CliError> {
    programs::on_path("codex").ok_or_else(|| {
        CliError::new(code::ENVIRONMENT, "there is no `codex` on PATH", "install Codex, or add its directory to PATH")
    })
}
