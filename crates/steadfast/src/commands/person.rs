//! Who runs a command, a person or an agent in its shell, and what an agent may see.

use std::path::Path;

use steadfast_app::session::{self, Named};
use steadfast_app::{action, caller};
use steadfast_model::clock;
use steadfast_model::goal::Actor;
use steadfast_model::run::name;
use steadfast_store::{Db, Origin, Session, Store, StoreError};
use steadfast_system::config::Share;
use steadfast_system::paths::Paths;
use steadfast_system::{process, project};

use crate::cli::{GoalArgs, GoalVerb, QueueVerb};
use crate::error::{CliError, code};

const HINT: &str = "run the command in your own terminal";

/// Who runs this command: the user, or an agent in its shell.
pub(crate) fn caller(paths: &Paths) -> Actor {
    // A store that cannot be read has no clients; the command itself reports what is wrong with it.
    let store = Store::open_if_there(&paths.store).ok().flatten();
    let inside = caller::is_inside_agent(store.as_ref().map(Store::read));
    if inside.unwrap_or_else(|_| process::is_inside_agent()) { Actor::Worker } else { Actor::User }
}

/// Who changes what holds for a whole project. A process that has no terminal and does not come from where the clients of
/// the project's sessions come from may be one that an agent left in the background.
pub(crate) fn caller_in_project(paths: &Paths, directory: &Path) -> Result<Actor, CliError> {
    let actor = caller(paths);
    let Some(store) = Store::open_if_there(&paths.store)?.filter(|_| !actor.is_agent()) else { return Ok(actor) };
    let own = project::key(directory);
    let is_here = |session: &Session| session.project().is_some_and(|other| project::key(Path::new(other)) == own);
    let known = store.read().known_sessions()?;
    let mut here = known.into_iter().filter_map(|known| known.session).filter(is_here);
    Ok(if here.all(|session| caller::is_person(&session)) { actor } else { Actor::Worker })
}

/// Who runs a verb. A process that has no terminal and does not come from where the session's client comes from may be
/// one that an agent left in the background, so it may change nothing. The attempt is logged.
pub(crate) fn caller_of_verb(paths: &Paths, arguments: &GoalArgs, directory: &Path) -> Result<Actor, CliError> {
    let actor = caller(paths);
    if actor.is_agent() || only_reads(&arguments.verb) {
        return Ok(actor);
    }
    let Ok(Some(mut store)) = Store::open_if_there(&paths.store) else { return Ok(actor) };
    // The command itself reports that there is no such session.
    let Ok(id) =
        session::resolve(Some(store.read()), arguments.session.as_deref(), named_by(&arguments.verb), directory)
    else {
        return Ok(actor);
    };
    if store.read().session(&id)?.is_none_or(|session| caller::is_person(&session)) {
        return Ok(actor);
    }
    let origin = Origin { actor: Actor::Worker, place: "cli" };
    action::refuse_agent(&mut store, &id, name_of(&arguments.verb), origin, clock::now())?;
    Ok(Actor::Worker)
}

/// What `--session` of a verb may name: a goal can be in a session that no hook has reported.
pub(crate) fn named_by(verb: &GoalVerb) -> Named {
    if matches!(verb, GoalVerb::Start(_) | GoalVerb::Adopt { .. }) { Named::New } else { Named::Known }
}

fn name_of(verb: &GoalVerb) -> &'static str {
    match verb {
        GoalVerb::Start(_) => "start",
        GoalVerb::Status { .. } => "status",
        GoalVerb::Report { .. } => "report",
        GoalVerb::Queue { .. } => "queue",
        GoalVerb::Pause { .. } => "pause",
        GoalVerb::Resume { .. } => "resume",
        GoalVerb::Abandon => "abandon",
        GoalVerb::Edit { .. } => "edit",
        GoalVerb::Block { .. } => "block",
        GoalVerb::Complete => "complete",
        GoalVerb::Extend(_) => "extend",
        GoalVerb::Wait(_) => "wait",
        GoalVerb::Reconcile { .. } => "reconcile",
        GoalVerb::Adopt { .. } => "adopt",
        GoalVerb::Verify => "verify",
        GoalVerb::History(_) => "history",
        GoalVerb::Cleanup(_) => "cleanup",
    }
}

pub(crate) fn only_reads(verb: &GoalVerb) -> bool {
    match verb {
        GoalVerb::Status { .. } | GoalVerb::Report { .. } | GoalVerb::History(_) | GoalVerb::Verify => true,
        GoalVerb::Cleanup(cleanup) => !cleanup.delete,
        GoalVerb::Queue { verb } => matches!(verb, None | Some(QueueVerb::List)),
        _ => false,
    }
}

/// What a command may see: everything for a person; for an agent its own sessions and those they were forked from.
pub(crate) enum Sight {
    All,
    Sessions(Vec<String>),
}

impl Sight {
    pub(crate) fn is_everything(&self) -> bool {
        matches!(self, Self::All)
    }

    pub(crate) fn of(actor: Actor, db: Db<'_>) -> Result<Self, StoreError> {
        if !actor.is_agent() {
            return Ok(Self::All);
        }
        let mut ids = caller::own_sessions(db)?;
        for own in ids.clone() {
            ids.extend(db.ancestors_of(&own)?);
        }
        Ok(Self::Sessions(ids))
    }

    /// The same for memory, which `[memory] share = "project"` opens to all sessions of the project.
    pub(crate) fn of_memory(paths: &Paths, db: Db<'_>) -> Result<Self, StoreError> {
        let sight = Self::of(caller(paths), db)?;
        let Self::Sessions(mut ids) = sight else { return Ok(sight) };
        if paths.config.memory.share == Share::Project {
            let key = |session: &Session| session.project().map(|project| project::key(Path::new(project)));
            let own = ids.first().map(|own| db.session(own)).transpose()?.flatten().and_then(|own| key(&own));
            let known = db.known_sessions()?.into_iter().filter_map(|known| known.session);
            let of_project = known.filter(|session| own.is_some() && key(session) == own);
            ids.extend(of_project.map(|session| session.session_id));
        }
        Ok(Self::Sessions(ids))
    }

    pub(crate) fn has(&self, session_id: &str) -> bool {
        match self {
            Self::All => true,
            Self::Sessions(ids) => ids.iter().any(|id| id == session_id),
        }
    }

    /// The session whose memory a search covers if none is named; `None` covers everything.
    pub(crate) fn own(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::Sessions(ids) => Some(ids.first().map_or("", String::as_str)),
        }
    }

    pub(crate) fn check_memory(&self, session_id: &str) -> Result<(), CliError> {
        if self.has(session_id) {
            return Ok(());
        }
        Err(CliError::new(code::WRONG_STATE, "an agent may not read another session's memory", HINT))
    }
}

/// An agent may act on the goals of its own sessions only. The agent of a run has none, and sees the goals of runs.
pub(crate) fn refuse_foreign_session(actor: Actor, db: Db<'_>, session_id: &str) -> Result<(), CliError> {
    if !actor.is_agent() {
        return Ok(());
    }
    let own = caller::own_sessions(db)?;
    if own.iter().any(|own| own == session_id) || process::is_inside_run() && name::is_of_goal(session_id) {
        return Ok(());
    }
    Err(CliError::new(code::WRONG_STATE, "an agent may not touch another session's goal", HINT))
}
