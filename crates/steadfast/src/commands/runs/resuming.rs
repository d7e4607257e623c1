//! `resume`: continues a run that was killed, failed, lost its engine, or reached a limit that is raised now.

use steadfast_app::action::{self, ActionError};
use steadfast_engine::{dispatcher, goal_link};
use steadfast_model::clock;
use steadfast_model::goal::change;
use steadfast_model::limit::Axis;
use steadfast_model::run::RunStatus;
use steadfast_store::{Origin, RunRow, Store, StoreError};

use super::finding::stored;
use super::starting::{How, launch};
use super::{RunContext, driving, ending, preflight};
use crate::cli::ResumeArgs;
use crate::commands;
use crate::error::{CliError, code};
use crate::output::CommandOutput;

pub(super) fn resume(context: &RunContext, arguments: &ResumeArgs) -> Result<CommandOutput, CliError> {
    if commands::caller().is_agent() {
        // An agent must not resume a run that the user marked killed in the registry.
        ending::apply_registry_kills(context);
    }
    let (mut store, row) = context.find(&arguments.name)?;
    let raises = arguments.max.is_some() || arguments.limits.is_given();
    refuse_agent(&mut store, &row, raises)?;
    let (kind, name) = (row.plan.kind, row.plan.name.clone());
    if context.is_driven(&row.run_id)? {
        let error = dispatcher::DriveError::Driven { name, pid: row.engine.map(|engine| engine.pid) };
        return Err(driving::refused(&row, error));
    }
    // Its engine may use another home, or a run in another store may hold the name.
    drop(driving::hold_name(&row)?);
    if row.plan.stages.iter().any(|stage| stage.prompt.is_empty()) {
        let message = format!("{kind} {name} was imported from an older tool, with its history only");
        return Err(CliError::new(code::WRONG_STATE, message, format!("start a new one: `steadfast {kind} run …`")));
    }
    if let Some(session) = goal_link::session_of(&row)
        && store.read().goal(&session)?.is_none()
    {
        let message = format!("cannot resume {kind} {name}: its goal no longer exists");
        return Err(CliError::new(code::WRONG_STATE, message, "start a new one: `steadfast run \"OBJECTIVE\"`"));
    }
    // Its engine saved the end and died before it published it. Only that is left to do.
    let is_unpublished_end = row.run.status == RunStatus::Completed && row.engine.is_some() && !raises;
    if !is_unpublished_end {
        preflight::check_rest(context, &row)?;
    }
    let row = change_limits(&mut store, row, arguments)?;
    let how = if arguments.detach { How::Detached } else { How::Foreground };
    if is_unpublished_end {
        drop(store);
        return launch(context, &row, how);
    }
    if row.run.status == RunStatus::Running && arguments.max.is_none() {
        // A stop request to the dead engine no longer counts.
        store.write(|db| db.request_stop(&row.run_id, None))?;
    } else {
        if row.run.status == RunStatus::Running {
            store.write(|db| db.mark_orphan(&row, clock::now()))?;
        }
        let engine = driving::engine_of(&context.paths)?;
        dispatcher::reopen(&mut store, &engine, &row.run_id, arguments.max).map_err(|error| match error {
            dispatcher::DriveError::Store(StoreError::RunIsLive { .. }) => CliError::new(
                code::WRONG_STATE,
                format!("a newer {kind} named {name} is running"),
                format!("`steadfast {kind} attach {name}` watches it"),
            ),
            other => driving::refused(&row, other),
        })?;
    }
    let row = stored(&store, &row.run_id)?;
    drop(store);
    launch(context, &row, how)
}

fn change_limits(store: &mut Store, row: RunRow, arguments: &ResumeArgs) -> Result<RunRow, CliError> {
    let mut wanted = arguments.limits.budget("", clock::now())?.limits;
    // The turns of a profile limit the iterations of each stage, not the run.
    wanted.set(Axis::Turns, None);
    let limits = wanted.or(row.plan.limits.limits);
    if limits == row.plan.limits.limits {
        return Ok(row);
    }
    let mut plan = row.plan.clone();
    plan.limits.limits = limits;
    let version = store.write(|db| db.change_plan(&row.run_id, row.version, &plan, clock::now()))?;
    Ok(RunRow { plan, version, ..row })
}

/// Refuses an agent that resumes a run with other limits, or one whose goal was stopped on purpose. Any caller may resume
/// a run that crashed. The attempt is recorded in the history of the run's goal.
pub(super) fn refuse_agent(store: &mut Store, row: &RunRow, with_limits: bool) -> Result<(), CliError> {
    let actor = commands::caller();
    if !actor.is_agent() {
        return Ok(());
    }
    let session = goal_link::session_of(row);
    let goal = match &session {
        Some(session) => store.read().goal(session)?,
        None => None,
    };
    let is_to_end = row.stop_requested.as_ref().is_some_and(|stop| stop.status == RunStatus::Killed);
    let is_stopped = goal.is_some_and(|goal| is_to_end || !change::can_resume(&goal, actor));
    let verb = match (with_limits, is_stopped) {
        (true, _) => "resume with other limits",
        (false, true) => "resume",
        (false, false) => return Ok(()),
    };
    if let Some(session) = session {
        action::refuse_agent(store, &session, verb, Origin { actor, place: "cli" }, clock::now())?;
    }
    Err(ActionError::NotForAgents(verb).into())
}
