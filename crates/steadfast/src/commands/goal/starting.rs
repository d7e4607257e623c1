//! `goal start` and `goal adopt --native`: how a goal comes into being.

use serde_json::json;
use steadfast_core::action::{self, Place};
use steadfast_core::clock::Millis;
use steadfast_core::goal::budget::{self, Budget, BudgetError};
use steadfast_core::goal::{self, Actor, NewGoal};
use steadfast_core::native;
use steadfast_core::overview;
use steadfast_core::prompt;
use steadfast_core::session;
use steadfast_core::store::Store;
use steadfast_core::text;

use super::{Caller, Outcome, count, find_place, refuse_foreign_session};
use crate::cli::StartArgs;
use crate::commands::runs::check_commands;
use crate::failure::{Failure, code};
use crate::output::Done;

pub(super) fn start(caller: &Caller<'_>, flag: Option<&str>, arguments: StartArgs) -> Result<Outcome, Failure> {
    let objective = goal::objective(&text_of(&arguments.objective))?;
    let budget = start_budget(&arguments, &objective, caller.now)?;
    check_commands(&arguments.verify)?;
    let hint = "the user can give it: /goal-start \"OBJECTIVE\" --verify CMD";
    refuse_agents_checks(caller.origin.actor, &arguments.verify, hint)?;
    // Nothing is created for a session that cannot be named.
    let known = Store::open_if_there(&caller.paths.store)?;
    if known.is_none() && caller.place.is_none() {
        session::resolve(None, flag, &caller.directory)?;
    }
    let mut store = match known {
        Some(store) => store,
        None => Store::open(&caller.paths.store)?,
    };
    let place = find_place(caller, &store, flag)?;
    refuse_foreign_session(caller, &place)?;
    let new = NewGoal { objective, budget, verify: arguments.verify };
    let goal = action::start(&mut store, &place, new, caller.origin, caller.now)?;
    let view = overview::goal_view(store.read(), &goal, caller.now)?;
    let text = format!(
        "◎ Goal started: {}\nlimits: {}\nnext: {}",
        text::headline(&goal.objective, 80),
        prompt::limits(&goal),
        view.next
    );
    Ok(Outcome { done: Done { text, json: json!({"goal": view}), code: 0 }, goal: Some(goal) })
}

/// An agent that chose how its work is checked would check nothing.
pub(in crate::commands) fn refuse_agents_checks(actor: Actor, verify: &[String], hint: &str) -> Result<(), Failure> {
    if actor.is_agent() && !verify.is_empty() {
        return Err(Failure::new(code::WRONG_STATE, "an agent may not choose verification commands", hint));
    }
    Ok(())
}

fn start_budget(arguments: &StartArgs, objective: &str, now: Millis) -> Result<Budget, BudgetError> {
    let mut budget = match &arguments.budget {
        Some(text) => Budget::parse(text, objective)?,
        None => Budget::default(),
    };
    if let Some(text) = &arguments.usd {
        budget.usd_micros = Some(budget::parse_usd(text)?);
    }
    if let Some(text) = &arguments.max_turns {
        budget.turns = Some(count(text)?);
    }
    if let Some(text) = &arguments.max_hours {
        budget.seconds = Some(budget::parse_hours(text)?);
    }
    if let Some(text) = &arguments.deadline {
        budget.deadline_ms = Some(budget::parse_deadline(text, now)?);
    }
    Ok(budget)
}

/// Starts a goal with the objective of the agent's own goal feature.
pub(super) fn adopt_native(caller: &Caller<'_>, store: &mut Store, place: &Place) -> Result<Outcome, Failure> {
    let Some(objective) = native::of_session(store.read(), &place.session_id)? else {
        let hint = "`/goal OBJECTIVE` in the agent sets one; `steadfast goal start` needs none";
        return Err(Failure::new(code::NOT_FOUND, "the agent's own goal feature pursues nothing here", hint));
    };
    let new = NewGoal { objective: goal::objective(&objective)?, ..NewGoal::default() };
    let goal = action::start(store, place, new, caller.origin, caller.now)?;
    let view = overview::goal_view(store.read(), &goal, caller.now)?;
    let text = format!(
        "◎ Goal started: {}\nlimits: none\n\
         next: type `/goal clear` in {}: while its own goal is active, that one drives and Steadfast only counts",
        text::headline(&goal.objective, 80),
        place.host.capabilities().product,
    );
    Ok(Outcome { done: Done { text, json: json!({"goal": view}), code: 0 }, goal: Some(goal) })
}

/// Joins the words of an objective; a slash command keeps its line breaks as words of their own.
pub(super) fn text_of(words: &[String]) -> String {
    words.join(" ").replace(" \n ", "\n").replace("\n ", "\n")
}
