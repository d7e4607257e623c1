//! Who a hook call, a tool call or a command comes from. The process decides, not its words: the client that is recorded
//! for the session, another client that the user opened, or an agent.

use steadfast_store::{Db, Session, StoreError};
use steadfast_system::process::{self, Ancestor, Caller, ProcessId};

/// Why a call does not count as the client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotTheClient {
    #[error("{0}")]
    Unproven(&'static str),
    #[error("an agent started its client")]
    InsideAgent,
    #[error("another client runs this session")]
    OtherClient,
}

/// Why a call was not checked, or not accepted.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error(transparent)]
    NotTheClient(#[from] NotTheClient),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Checks that a client may act for a session: it is the recorded one; or it is the user's, and the recorded one has
/// ended or was opened beside it. Without a client there is nothing to check: the system does not show processes.
pub fn check(db: Db<'_>, session_id: &str, client: Option<ProcessId>) -> Result<(), CheckError> {
    let Some(client) = client.filter(|_| cfg!(target_os = "linux")) else { return Ok(()) };
    let recorded = db.session(session_id)?.and_then(|session| session.client);
    if recorded == Some(client) {
        return Ok(());
    }
    if !Caller::is_users_client(client) || is_below_client(db, process::above(client))? {
        return Err(NotTheClient::InsideAgent.into());
    }
    match recorded.filter(|other| other.is_alive() == Some(true)) {
        Some(other) if !Caller::is_beside(client, other) => Err(NotTheClient::OtherClient.into()),
        _ => Ok(()),
    }
}

/// Whether this process runs in the shell of an agent, or of any recorded client.
pub fn is_inside_agent(db: Option<Db<'_>>) -> Result<bool, StoreError> {
    let is_below = || db.map_or(Ok(false), |db| is_below_client(db, process::ancestors()));
    Ok(process::is_inside_agent() || is_below()?)
}

fn is_below_client(db: Db<'_>, above: impl Iterator<Item = Ancestor>) -> Result<bool, StoreError> {
    let mut above: Vec<Ancestor> = above.collect();
    if !db.has_client_among(&above.iter().map(|ancestor| ancestor.id).collect::<Vec<_>>())? {
        return Ok(false);
    }
    above.retain(|ancestor| !ancestor.is_own_program());
    db.has_client_among(&above.iter().map(|ancestor| ancestor.id).collect::<Vec<_>>())
}

/// The sessions of the agent in whose shell this process runs, the newest first: those of the recorded client above it.
/// Where no client is recorded, the session that the environment names.
pub fn own_sessions(db: Db<'_>) -> Result<Vec<String>, StoreError> {
    for ancestor in process::ancestors() {
        let sessions = db.sessions_of_client(ancestor.id)?;
        if !sessions.is_empty() && !ancestor.is_own_program() {
            let mut own: Vec<String> = sessions.into_iter().map(|session| session.session_id).collect();
            // Of the sessions of a daemon, only the one whose shell this is.
            let shares_client = ancestor.host().is_some_and(|host| host.capabilities().shares_client);
            if let Some((_, id)) = process::session_of_shell().filter(|_| shares_client) {
                own.retain(|own| *own == id);
            }
            return Ok(own);
        }
    }
    Ok(process::session_of_shell().map(|(_, id)| id).into_iter().collect())
}

/// Whether a command about a session comes from a person: it has a terminal of its own, or comes from where the session's
/// client comes from. Asked only outside of agents; a session that no client runs needs no such proof.
pub fn is_person(session: &Session) -> bool {
    match session.client.filter(|client| client.is_alive() == Some(true)) {
        // The client of a run is its engine, which is no agent.
        Some(client) if process::is_own_program(client) => true,
        Some(client) => process::has_own_terminal() || process::shares_ancestor(client),
        None => true,
    }
}
