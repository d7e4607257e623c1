//! Runs that agents start. One needs a live goal that is not paused, or the run that its agent works for; it gets what is
//! left of their limits, and what it spends counts to them.

use steadfast_app::caller;
use steadfast_engine::{goal_link, nesting};
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::{Goal, GoalStatus, nested_run};
use steadfast_model::limit::{Limits, Used};
use steadfast_model::run::nesting::MOST_LEVELS;
use steadfast_model::run::{RunStatus, machine};
use steadfast_store::{Db, Nesting, RunRow, Store};

use super::RunContext;
use crate::commands::person;
use crate::error::{CliError, code};

/// What a run that an agent starts counts to, and what is left for it.
pub(super) struct Above {
    pub(super) nesting: Nesting,
    left: Limits,
}

impl Above {
    /// The limits of a run that asks for these and has used this much already.
    pub(super) fn limits(&self, asked: Limits, used: &Used) -> Limits {
        asked.smaller(self.left.beyond(used))
    }
}

/// Finds what a new or resumed run counts to; `None` for the user, whose runs count to nothing else. An agent without a
/// goal that moves is refused.
pub(super) fn above(context: &RunContext) -> Result<Option<Above>, CliError> {
    if !person::caller(&context.paths).is_agent() {
        return Ok(None);
    }
    let Some(store) = context.existing_store()? else { return Err(refused("its session has no goal")) };
    let found = match nesting::run_above() {
        Some(above) => below_run(context, &store, &above)?,
        None => below_session(context, store.read())?,
    };
    // Of a deadline, all is left until it has passed.
    if let Some(axis) = found.left.reached(&Used { now_ms: context.now, ..Used::default() }) {
        return Err(refused(&format!("nothing is left of the {}", axis.noun())));
    }
    Ok(Some(found))
}

fn below_session(context: &RunContext, db: Db<'_>) -> Result<Above, CliError> {
    let goal = match caller::own_sessions(db)?.first() {
        Some(own) => db.goal(own)?,
        None => None,
    };
    let goal = goal.filter(|goal| goal.status.is_live()).ok_or_else(|| refused("its session has no live goal"))?;
    require_active(&goal)?;
    let left = left_of(&goal, context.now);
    let nesting = Nesting { charged_goal_id: Some(goal.goal_id), parent_run_id: None, level: 1 };
    Ok(Above { nesting, left })
}

fn below_run(context: &RunContext, store: &Store, above: &nesting::RunAbove) -> Result<Above, CliError> {
    let db = store.read();
    let is_here = fs_err::canonicalize(&above.home).ok() == fs_err::canonicalize(&context.paths.home).ok();
    let row = if is_here { db.run(&above.run_id)? } else { None };
    let Some(row) = row else { return Err(refused("the run that it works for is not in this store")) };
    let is_ending = row.run.stopping.is_some() || row.stop_requested.is_some();
    if row.run.status != RunStatus::Running || is_ending {
        return Err(refused("the run that it works for is ending"));
    }
    let outer = db.nesting(&row.run_id)?;
    if outer.level >= MOST_LEVELS {
        return Err(refused(&format!("at most {MOST_LEVELS} runs may be inside each other")));
    }
    let mut left = row.plan.limits.limits.left(&machine::used(&row.run, context.now));
    let own = match goal_link::session_of(&row) {
        Some(session_id) => db.goal(&session_id)?,
        None => None,
    };
    let charged = match &outer.charged_goal_id {
        Some(goal_id) => Some(db.goal_with_id(goal_id)?.ok_or_else(|| refused("its goal no longer exists"))?),
        None => None,
    };
    for goal in own.iter().chain(&charged) {
        require_active(goal)?;
        left = left.smaller(left_of(goal, context.now));
    }
    let nesting = Nesting {
        charged_goal_id: outer.charged_goal_id,
        parent_run_id: Some(row.run_id),
        level: outer.level.saturating_add(1),
    };
    Ok(Above { nesting, left })
}

fn require_active(goal: &Goal) -> Result<(), CliError> {
    if goal.status == GoalStatus::Active { Ok(()) } else { Err(refused(&format!("its goal is {}", goal.state()))) }
}

fn left_of(goal: &Goal, now: Millis) -> Limits {
    goal.limits.left(&goal.used(now))
}

fn refused(why: &str) -> CliError {
    let message = format!("an agent may not start a run now: {why}");
    CliError::new(code::WRONG_STATE, message, "the user can start it in their own terminal")
}

/// Makes a run that is resumed count to what is above its caller. In the user's terminal, one whose goal has stopped
/// becomes the user's own: otherwise the goal would end it at once.
pub(super) fn settle_resumed(context: &RunContext, store: &mut Store, row: RunRow) -> Result<RunRow, CliError> {
    let now = clock::now();
    let Some(above) = above(context)? else {
        let nesting = store.read().nesting(&row.run_id)?;
        if nesting != Nesting::default() && !may_work(store.read(), &nesting)? {
            store.write(|db| db.set_nesting(&row.run_id, &Nesting::default()))?;
        }
        return Ok(row);
    };
    let mut plan = row.plan.clone();
    plan.limits.limits = above.limits(plan.limits.limits, &machine::used(&row.run, now));
    let version = store.write(|db| {
        db.set_nesting(&row.run_id, &above.nesting)?;
        db.change_plan(&row.run_id, row.version, &plan, now)
    })?;
    Ok(RunRow { plan, version, ..row })
}

fn may_work(db: Db<'_>, nesting: &Nesting) -> Result<bool, CliError> {
    let goal_works = match &nesting.charged_goal_id {
        Some(goal_id) => db.goal_with_id(goal_id)?.is_some_and(|goal| nested_run::may_work(&goal)),
        None => true,
    };
    let run_works = match &nesting.parent_run_id {
        Some(parent) => db.run_end(parent)?.is_some_and(|(status, _)| status == RunStatus::Running),
        None => true,
    };
    Ok(goal_works && run_works)
}
