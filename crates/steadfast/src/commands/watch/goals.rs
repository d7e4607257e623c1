//! Goals: wakes those that are due, in their running client or without a terminal, and tells the user about those that
//! nothing moves.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fs_err::os::unix::fs::OpenOptionsExt as _;
use steadfast_app::action::{self, Place};
use steadfast_app::liveness;
use steadfast_app::wake::{self, Woken};
use steadfast_engine::old_runs;
use steadfast_engine::process::{CommandOutcome, LimitedCommand};
use steadfast_hosts::adapter;
use steadfast_hosts::headless::ResumeRequest;
use steadfast_hosts::wake::{WakeCommand, WakeRequest};
use steadfast_model::clock::Millis;
use steadfast_model::goal::change::Change;
use steadfast_model::goal::liveness::Stall;
use steadfast_model::goal::watch::{self, WatchStep};
use steadfast_model::goal::{Goal, GoalStatus};
use steadfast_model::prompt::Wording;
use steadfast_model::run::name;
use steadfast_model::{clock, text};
use steadfast_store::{Session, Store, StoreError};
use steadfast_system::{env_vars, paths};

use super::children::HeadlessAgent;
use super::handover;
use super::journal::{Journal, ORIGIN};
use super::report::ReportSubject;
use super::watching::Round;
use crate::error::CliError;
use crate::waiting::{self, Looked};
use crate::watch as starting;

/// A client that is reachable accepts a message at once.
const MESSAGE_LIMIT: Duration = Duration::from_secs(20);

/// Looks at every goal that is not over.
pub(super) fn look(round: &mut Round<'_>) -> Result<(), CliError> {
    if let Some(goal) = Journal::of(round.paths).recover(round.store, clock::now())? {
        round.report.line("recovered", ReportSubject::Goal(&goal.goal_id), "its wake-up was claimed and not delivered");
    }
    for (agent, how) in round.children.ended_agents() {
        agent_ended(round, &agent, &how)?;
    }
    let mut outcome = start_queued(round);
    for goal in round.store.read().live_goals()? {
        // The engine of a run moves the goal of that run.
        if name::is_of_goal(&goal.session_id) {
            continue;
        }
        if let Err(error) = look_at(round, goal) {
            // One goal in trouble does not hold up the others, unless all of them would wait for a locked store.
            if round.store.write(|_| Ok::<_, StoreError>(())).is_err() {
                return Err(error);
            }
            outcome = outcome.and(Err(error));
        }
    }
    outcome
}

/// Starts the next goal of every session whose goal is over and in which no turn runs.
fn start_queued(round: &mut Round<'_>) -> Result<(), CliError> {
    for id in round.store.read().sessions_with_next_goal()? {
        let Some(session) = round.store.read().session(&id)? else { continue };
        if session.activity.turn_since_ms.is_some() && session.is_alive() {
            continue;
        }
        if let Some(goal) = action::start_next(round.store, &Place::from(&session), ORIGIN, clock::now())? {
            let about = text::headline(&goal.objective, 80);
            round.report.line(
                "started",
                ReportSubject::Goal(&goal.goal_id),
                &format!("the next of the queue: {about}"),
            );
        }
    }
    Ok(())
}

fn look_at(round: &mut Round<'_>, goal: Goal) -> Result<(), CliError> {
    let Some(mut goal) = look_at_wait(round, goal)? else { return Ok(()) };
    let now = clock::now();
    handover::look_at(round, &goal, now)?;
    let db = round.store.read();
    let session = db.session(&goal.session_id)?;
    let facts = liveness::facts(db, &goal, round.paths, now)?;
    if round.children.has_agent_of(&goal.session_id) {
        round.outlook.waits = true;
        return Ok(());
    }
    let idle_since = idle_since(&goal, session.as_ref());
    let ended_unseen = session.as_ref().is_some_and(|session| liveness::turn_ended_unseen(session, now));
    // A turn that the user interrupted stays where it is.
    let is_active = liveness::by_now(db, &goal, now)?.status == GoalStatus::Active;
    if facts.client_runs && ended_unseen && is_active {
        round.store.write(|db| db.end_turn(&goal.session_id, false, now))?;
        goal = change_if_same(round.store, &goal, |goal| Some(watch::turn_lost(goal, now)))?.unwrap_or(goal);
    }
    if !facts.client_runs {
        let lost = change_if_same(round.store, &goal, |goal| watch::client_lost(goal, idle_since, now))?;
        goal = lost.unwrap_or(goal);
        if session.as_ref().is_some_and(|session| session.activity.turn_since_ms.is_some()) {
            // No hook reported the end of the turn.
            round.store.write(|db| db.end_turn(&goal.session_id, false, now))?;
        }
    }
    match watch::step(&goal, facts, idle_since, now) {
        WatchStep::WakeClient => wake_client(round, &goal, session.as_ref(), now)?,
        WatchStep::WakeHeadless => wake_headless(round, &goal, session.as_ref(), now)?,
        WatchStep::Tell(stall) => tell(round, &goal, stall, now)?,
        WatchStep::LookAt(at) => round.outlook.look_at(at),
        WatchStep::Moves => round.outlook.waits = true,
        WatchStep::Rests => {}
    }
    Ok(())
}

/// Looks at what a waiting goal waits for. Returns the goal as it is then.
fn look_at_wait(round: &mut Round<'_>, goal: Goal) -> Result<Option<Goal>, StoreError> {
    if goal.wait.is_none() {
        return Ok(Some(goal));
    }
    if waiting::look(round.paths, round.store, &goal)? == Looked::Met {
        round.report.line("met", ReportSubject::Goal(&goal.goal_id), "what it waited for has come");
    }
    let goal = round.store.read().goal(&goal.session_id)?;
    if let Some(at) = goal.as_ref().and_then(|goal| goal.wait.as_ref()?.next_check()) {
        round.outlook.look_at(at);
    }
    Ok(goal)
}

/// When the session was last seen to do anything; a goal without a session was last seen itself.
fn idle_since(goal: &Goal, session: Option<&Session>) -> Millis {
    session.map_or(goal.updated_at_ms, liveness::last_seen)
}

fn tell(round: &mut Round<'_>, goal: &Goal, stall: Stall, now: Millis) -> Result<(), StoreError> {
    if change_if_same(round.store, goal, |goal| Some(watch::told(goal, stall, now)))?.is_some() {
        round.report.line("told", ReportSubject::Goal(&goal.goal_id), &format!("it stands still: {}", stall.reason()));
    }
    Ok(())
}

/// Sends a message to the running client.
fn wake_client(round: &mut Round<'_>, goal: &Goal, session: Option<&Session>, now: Millis) -> Result<(), CliError> {
    let program = Path::new(round.paths.config.agents.program(goal.host));
    let transcript = session.and_then(Session::transcript);
    let request = WakeRequest { program, session_id: &goal.session_id, transcript };
    let Some(command) = (adapter(goal.host).wake_command)(&request) else { return Ok(()) };
    with_claim(round, goal, now, |round, woken| {
        let goal = &woken.goal;
        let program = command.program.display();
        match send(&command) {
            Ok(sent) if sent.exit_code == Some(0) => {
                let product = goal.host.capabilities().product;
                let about = text::headline(&goal.objective, 80);
                round.report.line("woke", ReportSubject::Goal(&goal.goal_id), &format!("in {product}: {about}"));
                Ok(())
            }
            Ok(sent) => Err(format!("`{program}` failed: {}", text::headline(sent.output_tail.trim(), 200))),
            Err(error) => Err(format!("cannot run `{program}`: {error}")),
        }
    })
}

fn send(command: &WakeCommand) -> std::io::Result<CommandOutcome> {
    let mut limited = LimitedCommand::new(&command.program, Path::new("/"), MESSAGE_LIMIT);
    for (name, value) in &command.environment {
        limited = limited.env(name, value);
    }
    limited.args(&command.arguments).run()
}

/// Continues a closed session without a terminal; the hooks of the agent drive the goal.
fn wake_headless(round: &mut Round<'_>, goal: &Goal, session: Option<&Session>, now: Millis) -> Result<(), CliError> {
    let directory = [session.map(|session| session.cwd.clone()), goal.project_dir.clone()];
    let directory = directory.into_iter().flatten().map(PathBuf::from).find(|path| path.is_dir());
    let directory = directory.unwrap_or_else(|| PathBuf::from("/"));
    with_claim(round, goal, now, |round, woken| {
        let goal = &woken.goal;
        let child = start_agent(round, woken, &directory).map_err(|error| error.message)?;
        let product = goal.host.capabilities().product;
        let detail = format!("{product} continues it without a terminal (pid {})", child.id());
        round.report.line("continued", ReportSubject::Goal(&goal.goal_id), &detail);
        let woken_at = goal.woken_at_ms.unwrap_or(now);
        round.children.add_agent(child, HeadlessAgent { session_id: goal.session_id.clone(), woken_at });
        round.outlook.waits = true;
        Ok(())
    })
}

/// Claims the wake-up and acts on it. If that fails, the wake-up is repeated later.
fn with_claim<'a>(
    round: &mut Round<'a>,
    goal: &Goal,
    now: Millis,
    act: impl FnOnce(&mut Round<'a>, &Woken) -> Result<(), String>,
) -> Result<(), CliError> {
    let Some(wake_at) = goal.wake_at_ms else { return Ok(()) };
    let journal = Journal::of(round.paths);
    journal.begin(&goal.session_id, now)?;
    if let Some(woken) = wake::claim(round.store, round.paths, &goal.session_id, wake_at, now)?
        && let Err(message) = act(round, &woken)
    {
        wake_failed(round, &woken.goal.session_id, now, &message)?;
    }
    journal.end();
    Ok(())
}

/// Repeats a wake-up later, unless a turn began after all.
fn wake_failed(round: &mut Round<'_>, session_id: &str, woken_at: Millis, message: &str) -> Result<(), StoreError> {
    let goal = round.store.read().goal(session_id)?;
    let Some(goal) = goal.filter(|goal| goal.woken_at_ms == Some(woken_at)) else { return Ok(()) };
    let change = |goal: &Goal| Some(watch::wake_failed(goal, message, clock::now()));
    if let Some(after) = change_if_same(round.store, &goal, change)? {
        let next = after.wake_at_ms.map(|at| format!("; again at {}", clock::to_local(at))).unwrap_or_default();
        round.report.line("failed", ReportSubject::Goal(&goal.goal_id), &format!("{message}{next}"));
        after.wake_at_ms.into_iter().for_each(|at| round.outlook.look_at(at));
    }
    Ok(())
}

/// An agent that ended before any of its hooks began a turn cannot drive the goal.
fn agent_ended(round: &mut Round<'_>, agent: &HeadlessAgent, how: &str) -> Result<(), StoreError> {
    wake_failed(round, &agent.session_id, agent.woken_at, &format!("the agent began no turn ({how})"))
}

fn start_agent(round: &Round<'_>, woken: &Woken, directory: &Path) -> Result<Child, CliError> {
    let goal = &woken.goal;
    let config = round.paths.config.agents.of(goal.host);
    let flags: Vec<String> = config.permission_flags.iter().flatten().chain(&config.flags).cloned().collect();
    let text = woken.text(Wording::Quoted, clock::now())?;
    let request = ResumeRequest {
        session_id: &goal.session_id,
        prompt: &text,
        directory,
        steadfast: &std::env::current_exe()?,
        flags: &flags,
    };
    let arguments = (adapter(goal.host).resume_arguments)(&request)?.unwrap_or_default();
    let logs = round.paths.home.join("log");
    paths::create_private_dir(&logs)?;
    let log = old_runs::headless_output(&round.paths.home, &goal.goal_id);
    // One that grows too large is emptied while the agent appends to it.
    let log = fs_err::OpenOptions::new().create(true).append(true).mode(0o600).open(log)?.into_parts().0;
    log.set_len(0)?;
    let mut command = Command::new(round.paths.config.agents.program(goal.host));
    starting::forget_agent(&mut command);
    command
        .args(arguments)
        .current_dir(directory)
        .env(env_vars::HOME, &round.paths.home)
        .env(env_vars::DB, &round.paths.store)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        // It works on when this process is stopped with Ctrl-C.
        .process_group(0);
    Ok(command.spawn()?)
}

/// Applies a change to a goal that is still as it was read.
pub(super) fn change_if_same(
    store: &mut Store,
    read: &Goal,
    change: impl FnOnce(&Goal) -> Option<Change>,
) -> Result<Option<Goal>, StoreError> {
    store.write(|db| {
        let Some(goal) = db.goal(&read.session_id)?.filter(|goal| goal.version == read.version) else {
            return Ok(None);
        };
        change(&goal).map(|change| db.save(&goal, change, ORIGIN)).transpose()
    })
}
