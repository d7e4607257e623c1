//! `goal start` and `goal adopt --native`, which create goals, and `goal resume --continue`, which continues the goal of a
//! closed session from a terminal, for hosts that no hook can wake.

use std::path::PathBuf;

use steadfast_app::action::{self, ActionError};
use steadfast_app::native;
use steadfast_app::overview::GoalView;
use steadfast_app::session::{self, Named};
use steadfast_engine::foreground;
use steadfast_hosts::adapter;
use steadfast_hosts::headless::ResumeRequest;
use steadfast_model::goal::environment::StartEnvironment;
use steadfast_model::goal::{self, Actor, Goal, GoalStatus, NewGoal};
use steadfast_model::{clock, prompt, text};
use steadfast_store::Store;
use steadfast_system::config::Completion;
use steadfast_system::env_vars;

use super::{
    BUDGET_SPENT, CommandContext, GoalOutput, GoalResult, SessionGoal, find_place, queue, refuse_above_shared_cap,
};
use crate::cli::{DoneArgs, StartArgs};
use crate::commands::person;
use crate::commands::runs::check_commands;
use crate::error::{CliError, code};
use crate::programs;

pub(super) fn start(context: &CommandContext<'_>, flag: Option<&str>, arguments: StartArgs) -> GoalResult {
    let typed = text_of(&arguments.objective);
    let objective = goal::objective(&typed)?;
    let note = secret_note(&typed, &objective);
    let budget = arguments.limits.budget(&objective, context.now)?;
    check_commands(&arguments.verify)?;
    let hint = "ask the user to type /goal-start \"OBJECTIVE\" --verify CMD";
    refuse_agents_checks(context.origin.actor, &arguments.verify, hint)?;
    refuse_agents_items(context.origin.actor, &arguments.done)?;
    let DoneArgs { judge, sign_off, .. } = arguments.done;
    let items = arguments.done.items(&context.directory)?;
    // Find the session first: an unknown session must not leave an empty store behind.
    let known = Store::open_if_there(&context.paths.store)?;
    if known.is_none() && context.place.is_none() {
        session::resolve(None, flag, Named::New, &context.directory)?;
    }
    let mut store = match known {
        Some(store) => store,
        None => Store::open(&context.paths.store)?,
    };
    let place = find_place(context, &store, flag, Named::New)?;
    person::refuse_foreign_session(context.origin.actor, store.read(), &place.session_id)?;
    let judge = judge || context.paths.config.goal.completion == Completion::Evaluator;
    let new = NewGoal { objective, budget, verify: arguments.verify, items, judge, sign_off };
    if arguments.queue {
        let mut queued = queue::enqueue(context, &mut store, &place, new)?;
        queued.output.text.push_str(note);
        return Ok(queued);
    }
    let environment = StartEnvironment::of(env_vars::all());
    let goal = action::start_in(&mut store, &place, new, Some(&environment), context.origin, context.now)
        .map_err(|error| refused(error, context.origin.actor))?;
    let mut started = started(context, &store, goal);
    started.output.text.push_str(note);
    Ok(started)
}

/// A person can queue the goal; an agent asks the user to.
fn refused(error: ActionError, actor: Actor) -> CliError {
    let is_live = matches!(error, ActionError::GoalExists { .. });
    let error = CliError::from(error);
    if !is_live || actor.is_agent() {
        return error;
    }
    let hint = "complete or abandon it first (`/goal-status` shows it), or queue this one: add `--queue`";
    CliError { hint: hint.to_owned(), ..error }
}

/// The answer about a goal that has started.
fn started(context: &CommandContext<'_>, store: &Store, goal: Goal) -> GoalOutput {
    match context.view(store.read(), &goal, context.now) {
        Ok(view) => {
            let text = started_text(&goal, &view);
            GoalOutput::new(&view, goal, text)
        }
        Err(error) => {
            let message = format!("◎ Goal started: {}", text::headline(&goal.objective, 80));
            GoalOutput::unseen(goal, &message, &error)
        }
    }
}

/// Said once, where the user can still choose another way to hand it over.
pub(super) fn secret_note(typed: &str, kept: &str) -> &'static str {
    if typed.trim() == kept {
        return "";
    }
    "\nnote: a secret was removed from the objective; put it into an environment variable and name that"
}

pub(super) fn started_text(goal: &Goal, view: &GoalView) -> String {
    let done_when = view.done.when.as_ref().map(|parts| format!("done when: {parts}\n")).unwrap_or_default();
    let (objective, limits) = (text::headline(&goal.objective, 80), goal.limits.describe());
    format!("◎ Goal started: {objective}\nlimits: {limits}\n{done_when}next: {}", view.next)
}

/// Nor the list that its work is held against.
fn refuse_agents_items(actor: Actor, done: &DoneArgs) -> Result<(), CliError> {
    if actor.is_agent() && done.has_items() {
        let hint = "ask the user to type /goal-start \"OBJECTIVE\" --item TEXT";
        return Err(CliError::new(code::WRONG_STATE, "an agent may not choose the items of its goal", hint));
    }
    Ok(())
}

/// An agent must not choose the checks of its own work.
pub(in crate::commands) fn refuse_agents_checks(actor: Actor, verify: &[String], hint: &str) -> Result<(), CliError> {
    if actor.is_agent() && !verify.is_empty() {
        return Err(CliError::new(code::WRONG_STATE, "an agent may not choose verification commands", hint));
    }
    Ok(())
}

/// Starts a goal with the objective of the agent's own goal feature.
pub(super) fn adopt_native(mut session: SessionGoal<'_>) -> GoalResult {
    let SessionGoal { context, store, place } = &mut session;
    let Some(objective) = native::of_session(store.read(), &place.session_id)? else {
        let hint = "type `/goal OBJECTIVE` in the agent to set one, or start a durable one with `/goal-start`";
        return Err(CliError::new(code::NOT_FOUND, "the agent's own goal feature has no active goal here", hint));
    };
    let judge = context.paths.config.goal.completion == Completion::Evaluator;
    let new = NewGoal { objective: goal::objective(&objective)?, judge, ..NewGoal::default() };
    let goal = action::start(store, place, new, context.origin, context.now)?;
    let view = match context.view(store.read(), &goal, context.now) {
        Ok(view) => view,
        Err(error) => return Ok(GoalOutput::unseen(goal, "◎ Goal started", &error)),
    };
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

pub(super) fn resume_and_continue(mut session: SessionGoal<'_>) -> GoalResult {
    let context = session.context;
    let (id, now) = (session.place.session_id.clone(), context.now);
    if context.origin.actor != Actor::User {
        action::refuse_agent(&mut session.store, &id, "resume", context.origin, now)?;
    }
    let host = session.place.host;
    let facts = host.capabilities();
    if !facts.continues_closed_sessions {
        let hint = format!("run `{} --resume {id}`; the goal continues there", facts.program);
        let message = format!("a session of {} cannot be continued from a terminal", facts.product);
        return Err(CliError::new(code::WRONG_STATE, message, hint));
    }
    let goal = session.goal()?;
    if session.store.read().session(&id)?.is_some_and(|session| session.is_alive()) {
        let hint = "type a prompt there (/goal-resume first, if the goal is paused), or close it";
        let message = format!("the session is open in {}", facts.product);
        return Err(CliError::new(code::WRONG_STATE, message, host.spell(hint)));
    }
    // Find the user's own program before anything is changed.
    let program = programs::on_path(facts.program).ok_or_else(|| {
        let hint = format!("install {}, or add its directory to PATH", facts.product);
        CliError::new(code::ENVIRONMENT, format!("`{}` is not on PATH", facts.program), hint)
    })?;
    refuse_above_shared_cap(context, &session.store, &id)?;
    let goal = match goal.status {
        GoalStatus::Active => goal,
        _ => action::resume(&mut session.store, &id, context.origin, now)?,
    };
    if goal.status != GoalStatus::Active {
        return output(&session, goal, BUDGET_SPENT);
    }
    let directory = session.place.project_dir.clone().map_or_else(|| context.directory.clone(), PathBuf::from);
    let text = prompt::continuation(&goal, prompt::Wording::Quoted, &[], now)?;
    let steadfast = std::env::current_exe()?;
    let request =
        ResumeRequest { session_id: &id, prompt: &text, directory: &directory, steadfast: &steadfast, flags: &[] };
    let arguments = (adapter(host).resume_arguments)(&request)?.unwrap_or_default();
    let ended = foreground::run(&program, &arguments, &directory).map_err(|error| {
        let hint = format!("check that `{} --version` runs; the goal stays active", facts.program);
        CliError::new(code::ENVIRONMENT, format!("cannot run {}: {error}", program.display()), hint)
    })?;
    let goal = session.store.read().goal(&id)?.unwrap_or(goal);
    if ended.success() {
        return output(&session, goal, &format!("{} continued the goal", facts.product));
    }
    let mut failed = output(&session, goal, &format!("{} ended with an error", facts.product))?;
    failed.output.code = code::USAGE;
    Ok(failed)
}

fn output(session: &SessionGoal<'_>, goal: Goal, message: &str) -> GoalResult {
    let view = session.context.view(session.store.read(), &goal, clock::now())?;
    let text = format!("{message}\nstatus: {}\nnext: {}", goal.state(), view.next);
    Ok(GoalOutput::new(&view, goal, text))
}
