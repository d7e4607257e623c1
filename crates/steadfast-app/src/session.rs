//! Which session a command is about: the flag (an id, or the beginning of one that `session list` prints), then the session
//! that the host names, then the one live session of this directory. Never a guess.

use std::path::{Path, PathBuf};

use steadfast_model::text;
use steadfast_store::{Db, Session, StoreError};
use steadfast_system::process;

/// Sessions listed when a beginning matches several.
const LISTED_MAX: usize = 5;
/// As many characters of an id as `session list` prints at least. Where a new session may be named, a shorter one is
/// taken as it is.
pub const SHORTEST_PREFIX: usize = 8;

/// What the flag may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// A session that is known, by its id or any beginning of it that no other has.
    Known,
    /// The same, and an id that nothing is known of.
    Any,
    /// Also one that no hook has reported yet, whose name may be the beginning of another.
    New,
}

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("unknown session `{0}`")]
    Unknown(String),
    #[error("no live session in {0}")]
    None(String),
    #[error("no live session in this directory; goals of closed ones:\n{0}")]
    Closed(String),
    #[error("several live sessions in this directory:\n{0}")]
    Several(String),
    #[error("several sessions begin with `{0}`:\n{1}")]
    Ambiguous(String, String),
    #[error("`{0}` is not a session id")]
    Malformed(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SessionError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "`steadfast session list --all` prints the ids",
            Self::None(_) => "start the client here, or name the session: --session ID",
            Self::Several(_) => "name one of them: --session ID",
            Self::Ambiguous(..) => "use a longer beginning: --session ID",
            Self::Closed(_) => "name one of them: --session ID; `goal status --session ID` says how it continues",
            Self::Malformed(_) => "ids are 1 to 200 characters without control characters or slashes",
            Self::Store(error) => error.hint(),
        }
    }
}

/// Finds the session for a command.
pub fn resolve(db: Option<Db<'_>>, flag: Option<&str>, named: Named, directory: &Path) -> Result<String, SessionError> {
    if let Some(id) = flag {
        let id = checked(id)?;
        return db.map_or_else(|| Ok(id.clone()), |db| completed(db, &id, named));
    }
    if let Some((_, id)) = process::session_of_shell() {
        return checked(&id);
    }
    let mut live = match db {
        Some(db) => live_sessions_in(db, directory)?,
        None => Vec::new(),
    };
    match live.len() {
        0 => {
            let closed = db.map(|db| closed_with_goal(db, directory)).transpose()?.unwrap_or_default();
            if closed.is_empty() {
                return Err(SessionError::None(directory.display().to_string()));
            }
            let lines: Vec<String> = closed.iter().map(|session| describe(db, session)).collect();
            Err(SessionError::Closed(lines.join("\n")))
        }
        1 => Ok(live.remove(0).session_id),
        _ => {
            let lines: Vec<String> = live.iter().map(|session| describe(db, session)).collect();
            Err(SessionError::Several(lines.join("\n")))
        }
    }
}

/// An id is only ever a key, never a path; one that looks like a path is a mistake or an attack.
pub fn checked(id: &str) -> Result<String, SessionError> {
    let fine = !id.is_empty() && id.len() <= 200 && !id.chars().any(|c| c.is_control() || c == '/' || c == '\\');
    if fine { Ok(id.to_owned()) } else { Err(SessionError::Malformed(text::cut(&text::printable(id), 60))) }
}

/// The id of the one known session that begins like this. Where an id may be that of a new session, names that a script
/// gave its sessions, such as `night-1` and `night-10`, are taken as they are.
fn completed(db: Db<'_>, id: &str, named: Named) -> Result<String, SessionError> {
    let may_be_new = named == Named::New;
    if may_be_new && id.len() < SHORTEST_PREFIX {
        return Ok(id.to_owned());
    }
    let mut found = db.sessions_by_id(id)?;
    if may_be_new {
        found.retain(|known| known == id || is_of_client(known));
    }
    match found.len() {
        0 if named != Named::Known => Ok(id.to_owned()),
        0 => Err(SessionError::Unknown(text::headline(id, 60))),
        1 => Ok(found.remove(0)),
        _ => {
            let lines: Vec<String> =
                found.iter().take(LISTED_MAX).map(|id| format!("  {}", text::headline(id, 60))).collect();
            Err(SessionError::Ambiguous(id.to_owned(), lines.join("\n")))
        }
    }
}

/// Whether an id is one that clients make: a UUID, as far as it matters here.
fn is_of_client(id: &str) -> bool {
    id.split_once('-').is_some_and(|(first, _)| first.len() == 8 && first.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn live_sessions_in(db: Db<'_>, directory: &Path) -> Result<Vec<Session>, StoreError> {
    let here = real(directory);
    let sessions = db.open_sessions()?;
    Ok(sessions.into_iter().filter(|session| is_in(session, &here) && session.is_alive()).collect())
}

/// Sessions of this directory that no client runs, and that have a live goal.
fn closed_with_goal(db: Db<'_>, directory: &Path) -> Result<Vec<Session>, StoreError> {
    let here = real(directory);
    let mut found = Vec::new();
    for goal in db.live_goals()? {
        found.extend(db.session(&goal.session_id)?.filter(|session| is_in(session, &here)));
    }
    Ok(found)
}

fn is_in(session: &Session, here: &Path) -> bool {
    [&session.project_dir, &session.cwd].iter().any(|path| !path.is_empty() && real(Path::new(path)) == here)
}

fn real(path: &Path) -> PathBuf {
    fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn describe(db: Option<Db<'_>>, session: &Session) -> String {
    let goal = db.and_then(|db| db.goal(&session.session_id).ok().flatten());
    let about = goal.map_or_else(
        || "no goal".to_owned(),
        |goal| format!("{}: {}", goal.status, text::headline(&goal.objective, 60)),
    );
    format!("  {}  {}  {about}", session.session_id, session.host)
}
