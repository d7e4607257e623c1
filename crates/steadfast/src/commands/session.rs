//! `steadfast session`: what is remembered of sessions, to look at, to search and to forget. Words of sessions are text
//! from outside; a terminal gets them without control characters.

mod list;
mod purge;
mod search;
mod show;

use std::path::{Path, PathBuf};

use steadfast_core::clock::{self, Millis};
use steadfast_core::memory::Category;
use steadfast_core::paths::Paths;
use steadfast_core::session::{self, SessionError};
use steadfast_core::store::{Db, Session, SessionActivity, Store};
use steadfast_core::text;

use crate::cli::session::{SessionArgs, SessionVerb, WhichSession};
use crate::error::{CliError, code};
use crate::output::CommandOutput;
use list::Directories;

/// Sessions named when a beginning fits several.
const NAMED_MOST: usize = 5;
/// No client has ids of this length.
const ID_LONGEST: usize = 1_000;

/// Where a verb looks, and when.
struct Asked {
    paths: Paths,
    directory: PathBuf,
    now: Millis,
}

pub(crate) fn run(db: Option<&Path>, arguments: &SessionArgs) -> Result<CommandOutput, CliError> {
    let asked = Asked { paths: Paths::find(db)?, directory: std::env::current_dir()?, now: clock::now() };
    match &arguments.verb {
        SessionVerb::List { all, limit } => list::list(&asked, *all, *limit),
        SessionVerb::Show(which) => show::show(&asked, which),
        SessionVerb::Events(events) => show::events(&asked, events),
        SessionVerb::Snapshot { session, host, after } => {
            show::snapshot(&asked, session, host.as_deref(), after.as_deref())
        }
        SessionVerb::Search(words) => search::search(&asked, words),
        SessionVerb::Purge(purge) => purge::purge(&asked, purge),
    }
}

impl Asked {
    /// The store, or `None` where nothing was ever stored.
    fn store(&self) -> Result<Option<Store>, CliError> {
        Ok(Store::open_if_there(&self.paths.store)?)
    }

    /// The store in which a session is looked for.
    fn store_of(&self, which: &WhichSession) -> Result<Store, CliError> {
        self.store()?.ok_or_else(|| match &which.id {
            Some(id) => not_found(id),
            None => CliError::new(
                code::NOT_FOUND,
                "no session is known yet",
                "`steadfast setup` lets agents tell of their sessions; then start one here",
            ),
        })
    }

    /// The session that is meant: by id or its beginning, else as everywhere.
    fn session(&self, db: Db<'_>, which: &WhichSession) -> Result<String, CliError> {
        match &which.id {
            Some(id) => by_beginning(db, id),
            None => match session::resolve(Some(db), None, &self.directory) {
                Ok(id) => Ok(id),
                Err(SessionError::None(_)) => self.only_live_of_project(db),
                Err(error) => {
                    // Here the session is the argument itself.
                    let failure = CliError::from(error);
                    Err(CliError { hint: failure.hint.replace("--session ID", "give its ID"), ..failure })
                }
            },
        }
    }

    /// From a subdirectory or a worktree: the one live session of what `session list` shows there.
    fn only_live_of_project(&self, db: Db<'_>) -> Result<String, CliError> {
        let mut here = Directories::new(&self.directory);
        let is_live = |known: &SessionActivity| known.session.as_ref().is_some_and(Session::is_alive);
        let live = db.known_sessions()?.into_iter().filter(|known| is_live(known) && here.has(known));
        let live: Vec<String> = live.map(|known| known.session_id).collect();
        match live.as_slice() {
            [only] => Ok(only.clone()),
            [] => {
                let message = format!("no live session in the project of {}", self.directory.display());
                Err(CliError::new(code::NOT_FOUND, message, "give its ID; `steadfast session list` shows them"))
            }
            several => {
                let message = format!("{} live sessions in this project: {}", several.len(), named(several));
                Err(CliError::new(code::NOT_FOUND, message, "give the ID of one of them"))
            }
        }
    }
}

/// An id is a key and nothing else, so that whatever the list shows is found, slashes and all.
fn by_beginning(db: Db<'_>, id: &str) -> Result<String, CliError> {
    let found = if id.is_empty() || id.len() > ID_LONGEST { Vec::new() } else { db.sessions_by_id(id)? };
    match found.as_slice() {
        [] => Err(not_found(id)),
        [only] => Ok(only.clone()),
        several => {
            let message = format!("{} sessions begin with `{}`: {}", several.len(), shown(id), named(several));
            Err(CliError::new(code::NOT_FOUND, message, "give more of the id"))
        }
    }
}

fn named(ids: &[String]) -> String {
    let names: Vec<String> = ids.iter().take(NAMED_MOST).map(|id| shown(id)).collect();
    let more = ids.len().saturating_sub(NAMED_MOST);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

fn not_found(id: &str) -> CliError {
    let message = if id.is_empty() {
        "an empty id names no session".to_owned()
    } else {
        format!("no session `{}` is known", shown(id))
    };
    CliError::new(code::NOT_FOUND, message, "`steadfast session list --all` shows those that are")
}

fn shown(id: &str) -> String {
    text::headline(id, 60)
}

fn category(name: Option<&str>) -> Option<Category> {
    name.and_then(|name| name.parse().ok())
}

/// How long ago something was, in the largest unit that says it.
fn age(now: Millis, at: Millis) -> String {
    let seconds = (now - at).max(0) / 1000;
    match seconds {
        172_800.. => format!("{}d", seconds / 86_400),
        7_200.. => format!("{}h", seconds / 3_600),
        120.. => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

/// The last part of a path: what people call their project.
fn project_name(project: Option<&str>) -> String {
    let name = project.and_then(|project| Path::new(project).file_name()).map(|name| name.to_string_lossy());
    name.map_or_else(|| "-".to_owned(), |name| text::headline(&name, 24))
}
