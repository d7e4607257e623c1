//! `goal resume --continue`: continues the goal of a closed session from a terminal, for hosts that no hook can wake.

use std::path::PathBuf;

use serde_json::json;
use steadfast_core::action::{self, ActionError, Place};
use steadfast_core::clock;
use steadfast_core::goal::{Actor, Goal, GoalStatus};
use steadfast_core::host::headless::ResumeRequest;
use steadfast_core::host::{Capabilities, adapter};
use steadfast_core::overview;
use steadfast_core::prompt;
use steadfast_core::store::Store;
use steadfast_engine::foreground;

use super::{Caller, Outcome, refuse_above_shared_cap};
use crate::failure::{Failure, code};
use crate::output::Done;
use crate::programs;

pub(super) fn resume_and_continue(caller: &Caller<'_>, store: &mut Store, place: &Place) -> Result<Outcome, Failure> {
    let (id, now) = (place.session_id.as_str(), caller.now);
    if caller.origin.actor != Actor::User {
        action::refuse_agent(store, id, "resume", caller.origin, now)?;
    }
    let facts = place.host.capabilities();
    if !facts.continues_closed_sessions {
        let hint = format!("`{} --resume {id}` opens it; the goal continues there", facts.program);
        let message = format!("a session of {} cannot be continued from a terminal", facts.product);
        return Err(Failure::new(code::WRONG_STATE, message, hint));
    }
    let goal = store.read().goal(id)?.ok_or_else(|| ActionError::NoGoal(id.to_owned()))?;
    if store.read().session(id)?.is_some_and(|session| session.is_alive()) {
        let hint = "type a prompt there (/goal-resume first, if the goal is paused), or close it";
        let message = format!("the session is open in {}", facts.product);
        return Err(Failure::new(code::WRONG_STATE, message, place.host.spell(hint)));
    }
    let program = find_program(facts)?;
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
    let steadfast = std::env::current_exe()?;
    let request = ResumeRequest { session_id: id, prompt: &text, directory: &directory, steadfast: &steadfast };
    let arguments = (adapter(place.host).resume_arguments)(&request)?.unwrap_or_default();
    let ended = foreground::run(&program, &arguments, &directory).map_err(|error| {
        let hint = format!("`{} --version` shows whether it runs; the goal is active and waits", facts.program);
        Failure::new(code::ENVIRONMENT, format!("cannot run {}: {error}", program.display()), hint)
    })?;
    let goal = store.read().goal(id)?.unwrap_or(goal);
    let said = if ended.success() { "continued the goal" } else { "ended with an error" };
    let mut outcome = outcome(store, goal, &format!("{} {said}", facts.product))?;
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

/// The user's own program, found before anything is changed.
fn find_program(facts: &Capabilities) -> Result<PathBuf, Failure> {
    programs::on_path(facts.program).ok_or_else(|| {
        let hint = format!("install {}, or add its directory to PATH", facts.product);
        Failure::new(code::ENVIRONMENT, format!("there is no `{}` on PATH", facts.program), hint)
    })
}
