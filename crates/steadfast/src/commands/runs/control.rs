//! `kill` and `resume`. `kill` asks the engine to end its run; if the engine died, this process ends the run instead.
//! `resume` continues a run that was killed, failed, lost its engine, or reached a limit that is raised now.

use std::time::{Duration, Instant};

use steadfast_app::action::{self, ActionError};
use steadfast_app::caller;
use steadfast_engine::files::RegistryEntry;
use steadfast_engine::publish::KILLED_IN_REGISTRY;
use steadfast_engine::run_folder::RunFolder;
use steadfast_engine::{dispatcher, files, goal_link, old_state};
use steadfast_model::clock;
use steadfast_model::goal::{Actor, change};
use steadfast_model::run::{Plan, Run, RunStatus, Stopping, machine};
use steadfast_store::{Origin, RunRow, Store, StoreError};
use steadfast_system::log;

use super::new_agent::NewAgent;
use super::starting::{How, launch};
use super::{RunContext, driving, nested, preflight, stored, trust, view};
use crate::cli::ResumeArgs;
use crate::commands::person;
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long to wait for the engine, beyond the time its agents have to end.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) fn kill(context: &RunContext, name: &str) -> CommandResult {
    let (mut store, row) = match context.find(name) {
        Ok(found) => found,
        Err(failure) if failure.code == code::NOT_FOUND => {
            let key = files::registry_key(context.kind, name);
            if !files::mark_killed(&context.project, &key, context.now)? {
                return Err(failure);
            }
            let entry = view::manual_entry(context, name);
            return entry.map_or_else(|| Ok(CommandOutput::default()), |entry| view::show_entry(context, entry));
        }
        Err(failure) => return Err(failure),
    };
    let (kind, name) = (row.plan.kind, row.plan.name.as_str());
    if row.run.status != RunStatus::Running {
        let reason = row.run.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let message = format!("{kind} {name} is over ({}{reason})", row.run.status);
        let hint = format!("`steadfast {kind} list` shows what is running");
        return Err(CliError::new(code::WRONG_STATE, message, hint));
    }
    let stopping = Stopping { status: RunStatus::Killed, reason: "killed".to_owned() };
    store.write(|db| db.request_stop(&row.run_id, Some(&stopping)))?;
    let deadline = Instant::now() + Duration::from_millis(context.paths.config.runs.grace_ms) + PATIENCE;
    loop {
        let now = store.read().run(&row.run_id)?;
        let is_over = now.is_none_or(|now| now.run.status != RunStatus::Running);
        if is_over && !context.is_driven(&row.run_id)? {
            break;
        }
        if !context.is_driven(&row.run_id)? {
            match driving::drive(&context.paths, &row) {
                Ok(_) => break,
                // Another engine has just locked it and sees the same request.
                Err(failure) if failure.code == code::WRONG_STATE => {}
                Err(failure) => return Err(failure),
            }
        }
        if Instant::now() > deadline {
            let pid = row.engine.map_or_else(|| "PID".to_owned(), |engine| engine.pid.to_string());
            let message = format!("the engine of {kind} {name} (pid {pid}) has not stopped yet");
            let hint = format!("wait, or `kill -9 {pid}` and then `steadfast {kind} kill {name}` again");
            return Err(CliError::new(code::USAGE, message, hint));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(CommandOutput { code: 0, ..driving::ended(context, &row.run_id)? })
}

/// Ends runs whose registry entries were marked killed while no engine was running. Errors are printed; the next call
/// tries again.
pub(super) fn apply_registry_kills(context: &RunContext) {
    // An unreadable registry is reported when it has to be written.
    for entry in files::registry(&context.project).unwrap_or_default() {
        let is_marked = entry.kind == Some(context.kind) && entry.status == RunStatus::Killed.to_string();
        if is_marked && let Err(failure) = end_if_orphaned(context, &entry) {
            output::note(&format!("cannot end {}: {}", entry.key, failure.message));
        }
    }
}

fn end_if_orphaned(context: &RunContext, entry: &RegistryEntry) -> Result<(), CliError> {
    let Some(run_id) = entry.run_id.as_deref() else { return Ok(()) };
    let Some(mut store) = context.existing_store()? else { return Ok(()) };
    let row = store.read().run(run_id)?;
    let is_ours = |row: &RunRow| {
        let engine = row.engine.map(|engine| engine.pid);
        row.run.status == RunStatus::Running
            && row.project_dir == context.project_dir()
            && entry.is_marked_killed(run_id, engine, row.run.started_at_ms)
    };
    let Some(row) = row.filter(is_ours) else { return Ok(()) };
    if context.is_live(&row)? {
        return Ok(());
    }
    let stopping = Stopping { status: RunStatus::Killed, reason: KILLED_IN_REGISTRY.to_owned() };
    store.write(|db| db.request_stop(run_id, Some(&stopping)))?;
    drop(store);
    driving::drive(&context.paths, &row)?;
    Ok(())
}

pub(super) fn resume(context: &RunContext, arguments: &ResumeArgs) -> CommandResult {
    if person::caller(&context.paths).is_agent() {
        // An agent must not resume a run that the user marked killed in the registry.
        apply_registry_kills(context);
    }
    let (mut store, row) = context.find(&arguments.name)?;
    let new_agent = NewAgent::of(context, arguments)?;
    let raises = arguments.max.is_some() || arguments.limits.is_given() || new_agent.is_some();
    let what = if new_agent.is_some() { "resume with another agent" } else { "resume with other limits" };
    refuse_agent(&mut store, &row, raises.then_some(what))?;
    let (kind, name) = (row.plan.kind, row.plan.name.clone());
    if context.is_driven(&row.run_id)? {
        let error = dispatcher::DriveError::Driven { name, pid: row.engine.map(|engine| engine.pid) };
        return Err(driving::refused(&row, error));
    }
    // Its engine may use another home, or a run in another store may hold the name.
    drop(driving::hold_name(&row)?);
    if row.plan.is_history_only() {
        let message = format!("{kind} {name} was imported from an older tool, with its history only");
        let hint = format!("`steadfast {kind} import` says what is missing; with it, the run can be resumed");
        return Err(CliError::new(code::WRONG_STATE, message, hint));
    }
    if let Some(session) = goal_link::session_of(&row)
        && store.read().goal(&session)?.is_none()
    {
        let message = format!("cannot resume {kind} {name}: its goal no longer exists");
        return Err(CliError::new(code::WRONG_STATE, message, "start a new one: `steadfast run \"OBJECTIVE\"`"));
    }
    let folder = RunFolder::at(&context.paths.home, &row.run_id);
    let plan = folder.unseal(&row).map_err(|gone| driving::refused(&row, gone.into()))?;
    let row = RunRow { plan, ..row };
    // Its engine saved the end and died before it published it. Only that is left to do.
    let is_unpublished_end = row.run.status == RunStatus::Completed && row.engine.is_some() && !raises;
    let (plan, changes) = new_agent.map_or_else(|| (row.plan.clone(), Vec::new()), |new| new.put_into(context, &row));
    let planned = RunRow { plan: with_limits(plan, &row.run, arguments)?, ..row.clone() };
    if !is_unpublished_end {
        preflight::check_rest(context, &planned)?;
        trust::require_again(context, &planned, arguments.trust)?;
    }
    folder.seal(&planned.plan)?;
    let row = save_plan(&mut store, &row, planned)?;
    for change in changes {
        log::line(&RunFolder::at(&context.paths.home, &row.run_id).engine_log(), &change);
        output::note(&change);
    }
    let row = if is_unpublished_end { row } else { nested::settle_resumed(context, &mut store, row)? };
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
    let renamed = old_state::make_room(&context.paths.home, &context.project, &row.run_id, &row.plan)?;
    if let Some(renamed) = renamed {
        output::note(&format!("note: the files of the older tool are in {} now", renamed.display()));
    }
    launch(context, &row, how)
}

fn with_limits(plan: Plan, run: &Run, arguments: &ResumeArgs) -> Result<Plan, CliError> {
    Ok(machine::with_limits(plan, run, arguments.limits.budget("", clock::now())?.limits))
}

fn save_plan(store: &mut Store, row: &RunRow, changed: RunRow) -> Result<RunRow, CliError> {
    if row.plan == changed.plan {
        return Ok(changed);
    }
    let version = store.write(|db| db.change_plan(&row.run_id, row.version, &changed.plan, clock::now()))?;
    Ok(RunRow { version, ..changed })
}

/// Refuses an agent that changes a run it resumes, or resumes one that was stopped on purpose. Any caller may resume a run
/// that crashed. The attempt is recorded in the history of the run's goal.
pub(super) fn refuse_agent(store: &mut Store, row: &RunRow, change: Option<&'static str>) -> Result<(), CliError> {
    let actor = Actor::Worker;
    if !caller::is_inside_agent(Some(store.read()))? {
        return Ok(());
    }
    let session = goal_link::session_of(row);
    let goal = match &session {
        Some(session) => store.read().goal(session)?,
        None => None,
    };
    let is_to_end = row.stop_requested.as_ref().is_some_and(|stop| stop.status == RunStatus::Killed);
    let is_killed = is_to_end || row.run.status == RunStatus::Killed;
    let is_stopped = is_killed || goal.is_some_and(|goal| !change::can_resume(&goal, actor));
    let verb = match (change, is_stopped) {
        (Some(change), _) => change,
        (None, true) => "resume",
        (None, false) => return Ok(()),
    };
    if let Some(session) = session {
        action::refuse_agent(store, &session, verb, Origin { actor, place: "cli" }, clock::now())?;
    }
    Err(ActionError::NotForAgents(verb).into())
}
