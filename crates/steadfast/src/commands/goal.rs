//! `steadfast goal VERB`, and the slash commands `/goal-VERB`, which run the same code with a person's authority.

mod continuing;
mod history;
mod starting;

pub(super) use starting::refuse_agents_checks;

use std::path::{Path, PathBuf};

use serde_json::json;
use steadfast_core::action::{self, Place};
use steadfast_core::clock::{self, Millis};
use steadfast_core::goal::budget::{self, BudgetError};
use steadfast_core::goal::change::{self, CompletedBy, Extension};
use steadfast_core::goal::limit::SharedSpend;
use steadfast_core::goal::{self, Actor, Goal};
use steadfast_core::host::process;
use steadfast_core::native;
use steadfast_core::overview;
use steadfast_core::paths::Paths;
use steadfast_core::prompt;
use steadfast_core::session;
use steadfast_core::spend;
use steadfast_core::store::{Origin, Store, StoreError};
use steadfast_core::text;
use steadfast_engine::verify;

use crate::cli::{ExtendArgs, GoalArgs, GoalVerb, OnGoalVerb};
use crate::failure::{Failure, code};
use crate::output::Done;

/// Who runs a verb, and what is known about their session.
pub(crate) struct Caller<'a> {
    pub(crate) paths: &'a Paths,
    pub(crate) origin: Origin,
    /// Known from the hook; a terminal has to find it.
    pub(crate) place: Option<Place>,
    pub(crate) directory: PathBuf,
    pub(crate) now: Millis,
}

/// What a verb did.
pub(crate) struct Outcome {
    pub(crate) done: Done,
    pub(crate) goal: Option<Goal>,
}

pub(crate) fn from_terminal(db: Option<&Path>, arguments: GoalArgs) -> Result<Done, Failure> {
    let paths = Paths::find(db)?;
    let directory = std::env::current_dir()?;
    let origin = Origin { actor: super::caller(), place: "cli" };
    let caller = Caller { paths: &paths, origin, place: None, directory, now: clock::now() };
    run(&caller, arguments).map(|outcome| outcome.done)
}

pub(crate) fn run(caller: &Caller<'_>, arguments: GoalArgs) -> Result<Outcome, Failure> {
    let flag = arguments.session.as_deref();
    match arguments.verb {
        GoalVerb::Start(start) => starting::start(caller, flag, start),
        GoalVerb::OnGoal(verb) => on_goal(caller, flag, verb),
        GoalVerb::History(history) => history::history(caller, flag, &history),
        GoalVerb::Cleanup(cleanup) => history::cleanup(caller, &cleanup),
    }
}

fn on_goal(caller: &Caller<'_>, flag: Option<&str>, verb: OnGoalVerb) -> Result<Outcome, Failure> {
    if let OnGoalVerb::Reconcile { accept_reset: false } = verb {
        let hint = "`--accept-reset` says that tokens between the last reading and now may stay uncounted";
        return Err(Failure::new(code::USAGE, "reconcile needs your word", hint));
    }
    let mut store = open_existing(caller)?;
    let place = find_place(caller, &store, flag)?;
    refuse_foreign_session(caller, &place)?;
    let (id, origin, now) = (place.session_id.as_str(), caller.origin, caller.now);
    let changed = |store: &Store, goal: Goal, said: &str| {
        let view = overview::goal_view(store.read(), &goal, now)?;
        let text = format!("{said}\nnext: {}", view.next);
        Ok(Outcome { done: Done { text, json: json!({"goal": view}), code: 0 }, goal: Some(goal) })
    };
    match verb {
        OnGoalVerb::Status { .. } => status(caller, &store, id),
        OnGoalVerb::Pause => {
            let goal = action::apply(&mut store, id, origin, now, |goal| change::pause(goal, now))?;
            changed(&store, goal, "goal paused")
        }
        OnGoalVerb::Resume { go_on } => {
            if go_on {
                return continuing::resume_and_continue(caller, &mut store, &place);
            }
            refuse_above_shared_cap(caller, &store, id)?;
            let goal = action::resume(&mut store, id, origin, now)?;
            let said =
                if goal.status == goal::GoalStatus::Active { "goal resumed" } else { "the goal's budget is spent" };
            changed(&store, goal, said)
        }
        OnGoalVerb::Abandon => {
            let goal = action::apply(&mut store, id, origin, now, |goal| change::abandon(goal, now))?;
            changed(&store, goal, "goal abandoned")
        }
        OnGoalVerb::Edit { objective } => {
            let objective = goal::objective(&starting::text_of(&objective))?;
            let goal = action::apply(&mut store, id, origin, now, |goal| change::edit(goal, objective, now))?;
            let said = format!("objective changed: {}", text::headline(&goal.objective, 80));
            changed(&store, goal, &said)
        }
        OnGoalVerb::Block { reason } => {
            let reason = text::cut(reason.trim(), 1_000);
            let goal = action::apply(&mut store, id, origin, now, |goal| change::block(goal, &reason, now))?;
            changed(&store, goal, "goal blocked")
        }
        OnGoalVerb::Complete => {
            if origin.actor != Actor::User {
                action::refuse_agent(&mut store, id, "complete", origin, now)?;
            }
            let goal = action::complete(&mut store, id, CompletedBy::User, origin, now)?;
            changed(&store, goal, "goal completed by you")
        }
        OnGoalVerb::Extend(extend) => {
            let goal = action::extend(&mut store, id, extension(&extend)?, origin, now)?;
            let said = format!("goal extended: {} (limits: {})", goal.state(), prompt::limits(&goal));
            changed(&store, goal, &said)
        }
        OnGoalVerb::Reconcile { .. } => {
            let goal = action::reconcile(&mut store, id, origin, now)?;
            let said =
                format!("accounting reset at byte {}; the goal is {}", goal.last_accounted_byte_offset, goal.state());
            changed(&store, goal, &said)
        }
        OnGoalVerb::Adopt { native: true, .. } => starting::adopt_native(caller, &mut store, &place),
        OnGoalVerb::Adopt { goal, .. } => {
            let goal = action::adopt(&mut store, &goal.unwrap_or_default(), &place, origin, now)?;
            let said = format!("goal adopted: {}", text::headline(&goal.objective, 80));
            changed(&store, goal, &said)
        }
        OnGoalVerb::Verify => run_verification(caller, &mut store, id),
    }
}

/// A goal stopped by the cap over all goals stays stopped until there is room again.
fn refuse_above_shared_cap(caller: &Caller<'_>, store: &Store, session_id: &str) -> Result<(), Failure> {
    let stopped =
        store.read().goal(session_id)?.is_some_and(|goal| goal.paused_reason == Some(goal::PausedReason::CostCap));
    let limits = &caller.paths.config.limits;
    if stopped && spend::shared(store.read(), limits, caller.now)? == SharedSpend::Reached {
        let hint = "wait for the next day or week, or raise [limits] in config.toml";
        return Err(Failure::new(code::LIMIT, "the cap over all goals is reached", hint));
    }
    Ok(())
}

/// Opens the store without creating one: a verb about a goal has nothing to find in a new store.
fn open_existing(caller: &Caller<'_>) -> Result<Store, Failure> {
    Store::open_existing(&caller.paths.store).map_err(|error| match error {
        StoreError::Missing(path) => Failure::new(
            code::NOT_FOUND,
            format!("there is no goal yet (no store at {})", path.display()),
            "start one with `steadfast goal start \"OBJECTIVE\"`; `steadfast doctor` looks for other stores",
        ),
        other => other.into(),
    })
}

/// The session a verb is about, with what its hooks told.
fn find_place(caller: &Caller<'_>, store: &Store, flag: Option<&str>) -> Result<Place, Failure> {
    if let Some(place) = caller.place.as_ref().filter(|_| flag.is_none()) {
        return Ok(place.clone());
    }
    let id = session::resolve(Some(store.read()), flag, &caller.directory)?;
    let host = process::session_of_shell().filter(|(_, own)| *own == id).map(|(host, _)| host).unwrap_or_default();
    Ok(match store.read().session(&id)? {
        Some(session) => Place::from(&session),
        None => Place {
            session_id: id,
            host,
            project_dir: Some(caller.directory.to_string_lossy().into_owned()),
            transcript: None,
        },
    })
}

/// An agent's shell may act on its own session only.
fn refuse_foreign_session(caller: &Caller<'_>, place: &Place) -> Result<(), Failure> {
    match process::session_of_shell() {
        Some((_, own)) if caller.origin.actor == Actor::Worker && own != place.session_id => {
            let hint = "run it in a terminal of your own";
            Err(Failure::new(code::WRONG_STATE, "an agent may not touch another session's goal", hint))
        }
        _ => Ok(()),
    }
}

fn status(caller: &Caller<'_>, store: &Store, session_id: &str) -> Result<Outcome, Failure> {
    if let Some(goal) = store.read().goal(session_id)? {
        let view = overview::goal_view(store.read(), &goal, caller.now)?;
        let done = Done { text: overview::status_text(&view), json: json!({"goal": view}), code: 0 };
        Ok(Outcome { done, goal: Some(goal) })
    } else {
        let native = native::of_session(store.read(), session_id)?;
        let mut text = format!("no goal for session {session_id}\nstart one: steadfast goal start \"OBJECTIVE\"");
        let mut json = json!({"goal": null});
        if let Some(objective) = native {
            let headline = text::headline(&objective, 80);
            text = format!("{text}\nnative goal: {headline}\ntake it over: steadfast goal adopt --native");
            json["native_goal"] = json!(objective);
        }
        Ok(Outcome { done: Done { text, json, code: code::NOT_FOUND }, goal: None })
    }
}

fn extension(arguments: &ExtendArgs) -> Result<Extension, Failure> {
    let add = Extension {
        turns: arguments.add_turns.as_deref().map(count).transpose()?,
        seconds: arguments.add_hours.as_deref().map(budget::parse_hours).transpose()?,
        tokens: arguments.add_tokens.as_deref().map(budget::parse_tokens).transpose()?,
        usd_micros: arguments.add_usd.as_deref().map(budget::parse_usd).transpose()?,
    };
    if add == Extension::default() {
        let hint = "--add-turns N, --add-hours H, --add-tokens N or --add-usd X; several at once are fine";
        return Err(Failure::new(code::USAGE, "nothing to extend", hint));
    }
    Ok(add)
}

/// Reads a positive whole number below the mark that stands for "unlimited".
fn count(text: &str) -> Result<i64, BudgetError> {
    let limit = goal::UNLIMITED_CONTINUATIONS;
    let number = text.parse::<i64>().ok().filter(|number| (1..limit).contains(number));
    number.ok_or_else(|| BudgetError::NotPositive(text.to_owned()))
}

fn run_verification(caller: &Caller<'_>, store: &mut Store, session_id: &str) -> Result<Outcome, Failure> {
    let Some(goal) = store.read().goal(session_id)? else {
        return Err(action::ActionError::NoGoal(session_id.to_owned()).into());
    };
    if goal.verify.is_empty() {
        let hint = "give commands when you start a goal: --verify \"cargo test\"";
        return Err(Failure::new(code::WRONG_STATE, "this goal has no verification commands", hint));
    }
    let runs = verify::verify_goal(store, &goal, &caller.paths.config.goal, caller.origin)?;
    let lines: Vec<String> = runs
        .iter()
        .map(|run| {
            format!(
                "passed in {:.1}s: {}",
                std::time::Duration::from_millis(run.duration_ms.unsigned_abs()).as_secs_f64(),
                run.command
            )
        })
        .collect();
    let evidence: Vec<_> = runs
        .iter()
        .map(|run| {
            json!({
                "command": run.command, "exit_code": run.exit_code, "duration_ms": run.duration_ms,
                "output_sha256": run.output_sha256, "output_tail": run.output_tail,
                "git_commit": run.git_commit, "git_dirty": run.git_dirty,
            })
        })
        .collect();
    let goal = store.read().goal(session_id)?.unwrap_or(goal);
    let view = overview::goal_view(store.read(), &goal, clock::now())?;
    let done = Done { text: lines.join("\n"), json: json!({"goal": view, "evidence": evidence}), code: 0 };
    Ok(Outcome { done, goal: Some(goal) })
}
