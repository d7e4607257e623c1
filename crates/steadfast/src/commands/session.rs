//! `steadfast session`: shows, searches, exports, imports and deletes session memory. Session text is foreign text, so control characters
//! are removed before it is printed.

mod list;
mod purge;
mod show;
mod transfer;

use std::path::{Path, PathBuf};

use steadfast_app::session::{self, Named, SessionError};
use steadfast_model::clock::Millis;
use steadfast_model::memory::Category;
use steadfast_model::text;
use steadfast_store::{Db, Session, SessionActivity, Store};
use steadfast_system::paths::Paths;

use crate::cli::session::{SessionVerb, WhichSession};
use crate::commands::own_paths;
use crate::commands::person::Sight;
use crate::error::{CliError, code};
use crate::output::CommandResult;
use list::Directories;

/// Sessions listed when a prefix matches several.
const LISTED_MAX: usize = 5;
/// Longer than the ids of any client.
const ID_MAX: usize = 1_000;

/// The store, directory and time of a `session` command.
struct SessionContext {
    paths: Paths,
    directory: PathBuf,
    now: Millis,
}

pub(crate) fn run(db: Option<&Path>, verb: &SessionVerb) -> CommandResult {
    let paths = match verb {
        SessionVerb::Purge(_) | SessionVerb::Import { .. } => own_paths::find(db)?,
        _ => own_paths::find_to_read(db)?,
    };
    let now = super::now(&paths);
    let context = SessionContext { paths, directory: std::env::current_dir()?, now };
    match verb {
        SessionVerb::List { all, limit } => list::list(&context, *all, *limit),
        SessionVerb::Show(which) => show::show(&context, which),
        SessionVerb::Events(events) => show::events(&context, events),
        SessionVerb::Snapshot { session, host, after } => {
            show::snapshot(&context, session, host.as_deref(), after.as_deref())
        }
        SessionVerb::Search(words) => list::search(&context, words),
        SessionVerb::Export(export) => transfer::export(&context, export),
        SessionVerb::Import { file } => transfer::import(&context, file),
        SessionVerb::Purge(purge) => purge::purge(&context, purge),
    }
}

impl SessionContext {
    /// The store, or `None` if it does not exist yet.
    fn store(&self) -> Result<Option<Store>, CliError> {
        Ok(Store::open_if_there(&self.paths.store)?)
    }

    /// The store, or an error that the session is unknown.
    fn store_of(&self, which: &WhichSession) -> Result<Store, CliError> {
        let hint = "run `steadfast setup`, then start a client here";
        self.store()?.ok_or_else(|| match &which.id {
            Some(id) => not_found(id),
            None => CliError::new(code::NOT_FOUND, "no session recorded yet", hint),
        })
    }

    /// The session with this id or prefix; without one, the agent's own or the only live one.
    fn session(&self, db: Db<'_>, which: &WhichSession) -> Result<String, CliError> {
        let id = self.find_session(db, which)?;
        Sight::of_memory(&self.paths, db)?.check_memory(&id)?;
        Ok(id)
    }

    fn find_session(&self, db: Db<'_>, which: &WhichSession) -> Result<String, CliError> {
        match &which.id {
            Some(id) => by_prefix(db, id),
            None => match session::resolve(Some(db), None, Named::Known, &self.directory) {
                Ok(id) => Ok(id),
                Err(SessionError::None(_) | SessionError::Closed(_)) => self.only_live_of_project(db),
                Err(error) => {
                    // These commands take the session as an argument, not as a flag.
                    let error = CliError::from(error);
                    Err(CliError { hint: error.hint.replace("--session ID", "give its ID"), ..error })
                }
            },
        }
    }

    /// The only live session that `session list` shows for this project, also from a subdirectory or worktree.
    fn only_live_of_project(&self, db: Db<'_>) -> Result<String, CliError> {
        let mut here = Directories::new(&self.directory);
        let is_live = |known: &SessionActivity| known.session.as_ref().is_some_and(Session::is_alive);
        let live = db.known_sessions()?.into_iter().filter(|known| is_live(known) && here.has(known));
        let live: Vec<String> = live.map(|known| known.session_id).collect();
        match live.as_slice() {
            [only] => Ok(only.clone()),
            [] => {
                let message = format!("no live session in the project of {}", self.directory.display());
                Err(CliError::new(code::NOT_FOUND, message, "give its ID; run `steadfast session list` to see them"))
            }
            several => {
                let message = format!("{} live sessions in this project: {}", several.len(), listed(several));
                Err(CliError::new(code::NOT_FOUND, message, "give the ID of one of them"))
            }
        }
    }
}

/// Finds a session by id or prefix. Any characters are allowed, so that every listed id can be found.
fn by_prefix(db: Db<'_>, id: &str) -> Result<String, CliError> {
    let found = if id.is_empty() || id.len() > ID_MAX { Vec::new() } else { db.sessions_by_id(id)? };
    match found.as_slice() {
        [] => Err(not_found(id)),
        [only] => Ok(only.clone()),
        several => {
            let message = format!("{} sessions begin with `{}`: {}", several.len(), shown(id), listed(several));
            Err(CliError::new(code::NOT_FOUND, message, "use a longer prefix"))
        }
    }
}

fn listed(ids: &[String]) -> String {
    let names: Vec<String> = ids.iter().take(LISTED_MAX).map(|id| shown(id)).collect();
    let more = ids.len().saturating_sub(LISTED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

fn not_found(id: &str) -> CliError {
    let message =
        if id.is_empty() { "the session id is empty".to_owned() } else { format!("unknown session `{}`", shown(id)) };
    CliError::new(code::NOT_FOUND, message, "run `steadfast session list --all`")
}

fn shown(id: &str) -> String {
    text::headline(id, 60)
}

fn category(name: Option<&str>) -> Option<Category> {
    name.and_then(|name| name.parse().ok())
}

/// The time since then, in its largest unit.
fn age(now: Millis, at: Millis) -> String {
    let seconds = (now - at).max(0) / 1000;
    match seconds {
        172_800.. => format!("{}d", seconds / 86_400),
        7_200.. => format!("{}h", seconds / 3_600),
        120.. => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

/// The last part of the project's path.
fn project_name(project: Option<&str>) -> String {
    let name = project.and_then(|project| Path::new(project).file_name()).map(|name| name.to_string_lossy());
    name.map_or_else(|| "-".to_owned(), |name| text::headline(&name, 24))
}
