//! `goal start` and `goal adopt --native`, which create goals.

use steadfast_app::{action, native, overview, session};
use steadfast_model::goal::{self, Actor, NewGoal};
use steadfast_model::text;
use steadfast_store::Store;

use super::{CommandContext, GoalOutput, SessionGoal, find_place, refuse_foreign_session};
use crate::cli::StartArgs;
use crate::commands::runs::check_commands;
use crate::error::{CliError, code};

pub(super) fn start(
    context: &CommandContext<'_>,
    flag: Option<&str>,
    arguments: StartArgs,
) -> Result<GoalOutput, CliError> {
    let objective = goal::objective(&text_of(&arguments.objective))?;
    let budget = arguments.limits.budget(&objective, context.now)?;
    check_commands(&arguments.verify)?;
    let hint = "ask the user to type /goal-start \"OBJECTIVE\" --verify CMD";
    refuse_agents_checks(context.origin.actor, &arguments.verify, hint)?;
    // Find the session first: an unknown session must not leave an empty store behind.
    let known = Store::open_if_there(&context.paths.store)?;
    if known.is_none() && context.place.is_none() {
        session::resolve(None, flag, &context.directory)?;
    }
    let mut store = match known {
        Some(store) => store,
        None => Store::open(&context.paths.store)?,
    };
    let place = find_place(context, &store, flag)?;
    refuse_foreign_session(context, &place)?;
    let new = NewGoal { objective, budget, verify: arguments.verify };
    let goal = action::start(&mut store, &place, new, context.origin, context.now)?;
    let view = overview::goal_view(store.read(), &goal, context.now)?;
    let text = format!(
        "◎ Goal started: {}\nlimits: {}\nnext: {}",
        text::headline(&goal.objective, 80),
        goal.limits.describe(),
        view.next
    );
    Ok(GoalOutput::new(&view, goal, text))
}

/// An agent must not choose the checks of its own work.
pub(in crate::commands) fn refuse_agents_checks(actor: Actor, verify: &[String], hint: &str) -> Result<(), CliError> {
    if actor.is_agent() && !verify.is_empty() {
        return Err(CliError::new(code::WRONG_STATE, "an agent may not choose verification commands", hint));
    }
    Ok(())
}

/// Starts a goal with the objective of the agent's own goal feature.
pub(super) fn adopt_native(mut session: SessionGoal<'_>) -> Result<GoalOutput, CliError> {
    let SessionGoal { context, store, place } = &mut session;
    let Some(objective) = native::of_session(store.read(), &place.session_id)? else {
        let hint = "type `/goal OBJECTIVE` in the agent to set one, or run `steadfast goal start`";
        return Err(CliError::new(code::NOT_FOUND, "the agent's own goal feature has no active goal here", hint));
    };
    let new = NewGoal { objective: goal::objective(&objective)?, ..NewGoal::default() };
    let goal = action::start(store, place, new, context.origin, context.now)?;
    let view = overview::goal_view(store.read(), &goal, context.now)?;
    let text = format!(
        "◎ Goal started: {}\nlimits: none\n\
         next: type `/goal clear` in {}; while its own goal is active, it drives the work and Steadfast only counts",
        text::headline(&goal.objective, 80),
        place.host.capabilities().product,
    );
    Ok(GoalOutput::new(&view, goal, text))
}

/// Joins the words of an objective. The slash parser passes line breaks as separate words.
pub(super) fn text_of(words: &[String]) -> String {
    words.join(" ").replace(" \n ", "\n").replace("\n ", "\n")
}
