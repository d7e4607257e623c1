//! `resume`: going on with a run that was killed, failed, died with its engine, or came to a limit that is larger now.

use steadfast_core::clock;
use steadfast_core::run::RunStatus;
use steadfast_core::store::{RunRow, Store, StoreError};
use steadfast_engine::{dispatcher, goal_link};

use super::finding::{ENGINE_GONE, stored};
use super::starting::{How, launch};
use super::{Here, driving, ending, fence, limits, preflight};
use crate::cli::ResumeArgs;
use crate::commands;
use crate::failure::{Failure, code};
use crate::output::Done;

pub(super) fn resume(here: &Here, arguments: &ResumeArgs) -> Result<Done, Failure> {
    if commands::caller().is_agent() {
        // A kill that nobody carried out yet is one all the same.
        ending::obey_marks(here);
    }
    let (mut store, row) = here.find(&arguments.name)?;
    let raises = arguments.max.is_some() || arguments.limits.is_given();
    fence::refuse_agent(&mut store, &row, raises)?;
    let (kind, name) = (row.plan.kind, row.plan.name.clone());
    if here.is_driven(&row.run_id)? {
        let error = dispatcher::DriveError::Driven { name, pid: row.engine.map(|engine| engine.pid) };
        return Err(driving::refused(&row, error));
    }
    // Its engine may have another home, or another store has the name now.
    drop(driving::hold_name(&row)?);
    if row.plan.stages.iter().any(|stage| stage.prompt.is_empty()) {
        let message = format!("{kind} {name} was brought in from an older tool, and only its history is known");
        return Err(Failure::new(code::WRONG_STATE, message, format!("start a new one: `steadfast {kind} run …`")));
    }
    if let Some(session) = goal_link::session_of(&row)
        && store.read().goal(&session)?.is_none()
    {
        let message = format!("{kind} {name} cannot go on: its goal is gone");
        return Err(Failure::new(code::WRONG_STATE, message, "start a new one: `steadfast run \"OBJECTIVE\"`"));
    }
    // Its engine saved the end and died before it could show it: what is left to do is that, and to say how it ended.
    let is_only_shown = row.run.status == RunStatus::Completed && row.engine.is_some() && !raises;
    if !is_only_shown {
        preflight::check_rest(here, &row)?;
    }
    let row = change_limits(&mut store, row, arguments)?;
    if is_only_shown {
        drop(store);
        return launch(here, &row, if arguments.detach { How::Detached } else { How::Here });
    }
    if row.run.status == RunStatus::Running && arguments.max.is_none() {
        // The engine died, and whatever it was asked to do with it.
        store.write(|db| db.request_stop(&row.run_id, None))?;
    } else {
        if row.run.status == RunStatus::Running {
            store.write(|db| db.mark_orphan(&row, ENGINE_GONE, clock::now()))?;
        }
        let engine = driving::engine_of(&here.paths)?;
        dispatcher::reopen(&mut store, &engine, &row.run_id, arguments.max).map_err(|error| match error {
            dispatcher::DriveError::Store(StoreError::RunIsLive { .. }) => Failure::new(
                code::WRONG_STATE,
                format!("a newer {kind} named {name} is running"),
                format!("`steadfast {kind} attach {name}` watches it"),
            ),
            other => driving::refused(&row, other),
        })?;
    }
    let row = stored(&store, &row.run_id)?;
    drop(store);
    launch(here, &row, if arguments.detach { How::Detached } else { How::Here })
}

fn change_limits(store: &mut Store, row: RunRow, arguments: &ResumeArgs) -> Result<RunRow, Failure> {
    let mut plan = row.plan.clone();
    if !limits::change(&mut plan.limits, &arguments.limits)? {
        return Ok(row);
    }
    let now = clock::now();
    let version = store.write(|db| db.change_plan(&row.run_id, row.version, &plan, now))?;
    Ok(RunRow { plan, version, ..row })
}
