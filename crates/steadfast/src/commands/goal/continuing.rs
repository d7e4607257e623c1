//! `goal resume --continue`: takes a goal up again from outside its session. Codex cannot be woken from inside after
//! an error, an interrupt or its end, but `codex exec resume` goes on with a closed session.

use std::path::PathBuf;

use serde_json::json;
use steadfast_app::action;
use steadfast_app::action::{ActionError, Place};
use steadfast_app::overview;
use steadfast_engine::codex;
use steadfast_hosts::install;
use steadfast_hosts::install::HookTrust;
use steadfast_model::clock;
use steadfast_model::goal::{Actor, Goal, GoalStatus};
use steadfast_model::host::Host;
use steadfast_model::prompt;
use steadfast_store::Store;

use super::{Caller, Outcome, refuse_above_shared_cap};
use crate::failure::{Failure, code};
use crate::output::Done;
use crate::plugin;
use crate::programs;

pub(super) fn resume_and_continue(caller: &Caller<'_>, store: &mut Store, place: &Place) -> Result<Outcome, Failure> {
    let (id, now) = (place.session_id.as_str(), caller.now);
    if caller.origin.actor != Actor::User {
        action::refuse_agent(store, id, "resume", caller.origin, now)?;
    }
    if place.host == Host::Claude {
        let hint = format!("`claude --resume {id}` opens it; the goal goes on there");
        return Err(Failure::new(code::WRONG_STATE, "only Codex sessions can be continued from outside", hint));
    }
    let goal = store.read().goal(id)?.ok_or_else(|| ActionError::NoGoal(id.to_owned()))?;
    if store.read().session(id)?.is_some_and(|session| session.is_alive()) {
        let hint = "type a prompt there ($goal-resume first, if the goal is paused), or close it";
        return Err(Failure::new(code::WRONG_STATE, "the session is open in Codex", hint));
    }
    let program = find_codex()?;
    refuse_above_shared_cap(caller, store, id)?;
    let goal = match goal.status {
        GoalStatus::Active => goal,
        _ => action::resume(store, id, caller.origin, now)?,
    };
    if goal.status != GoalStatus::Active {
        return outcome(store, goal, "the goal's budget is spent");
    }
    let directory = place.project_dir.clone().map_or_else(|| caller.directory.clone(), PathBuf::from);
    let text = prompt::continuation(&goal, prompt::Wording::Quoted, &[], now)?;
    let ended = codex::resume(&program, &hook_flags()?, id, &text, &directory).map_err(|error| {
        let hint = "`codex --version` shows whether it runs; the goal is active and waits";
        Failure::new(code::ENVIRONMENT, format!("cannot run {}: {error}", program.display()), hint)
    })?;
    let goal = store.read().goal(id)?.unwrap_or(goal);
    let said = if ended.success() { "Codex went on with the goal" } else { "Codex ended with an error" };
    let mut outcome = outcome(store, goal, said)?;
    if !ended.success() {
        outcome.done.code = code::USAGE;
    }
    Ok(outcome)
}

fn outcome(store: &Store, goal: Goal, said: &str) -> Result<Outcome, Failure> {
    let view = overview::goal_view(store.read(), &goal, clock::now())?;
    let text = format!("{said}\nstatus: {}\nnext: {}", goal.state(), view.next);
    Ok(Outcome { done: Done { text, json: json!({"goal": view}), code: 0 }, goal: Some(goal) })
}

/// Hooks for this one run where the user's own configuration has none that Codex trusts: without any, the turn would
/// end like every other and nothing would be counted.
fn hook_flags() -> Result<Vec<String>, Failure> {
    let trusted = match steadfast_hosts::codex::home() {
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
fn find_codex() -> Result<PathBuf, Failure> {
    programs::on_path("codex").ok_or_else(|| {
        Failure::new(code::ENVIRONMENT, "there is no `codex` on PATH", "install Codex, or add its directory to PATH")
    })
}
