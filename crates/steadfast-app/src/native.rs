//! The clients' own goal features. A goal of theirs that is active drives its session, so that ours must not; it
//! is shown, can be adopted, and is put back before the model where its client loses it.

use std::path::Path;
use steadfast_hosts::adapter;

use steadfast_model::host::Host;
use steadfast_model::reading::NativeGoal;
use steadfast_store::{Db, StoreError, codex_goal};

/// What the client itself keeps about its goal, if it can be looked up and is readable; never an error.
pub fn live(host: Host, session_id: &str, transcript: &Path) -> Option<NativeGoal> {
    codex_goal(&(adapter(host).native_goal_database)(transcript)?, session_id).ok()
}

/// The same as [`of_session`], with what the session's file says by now.
pub fn by_now(db: Db<'_>, host: Host, session_id: &str, transcript: &Path) -> Result<Option<String>, StoreError> {
    match (adapter(host).native_goal_in_transcript)(transcript) {
        Some(NativeGoal::Active(objective)) => Ok(Some(objective)),
        Some(NativeGoal::Over) => Ok(None),
        None => of_session(db, session_id),
    }
}

/// The objective of the client's own goal that is active in a session.
pub fn of_session(db: Db<'_>, session_id: &str) -> Result<Option<String>, StoreError> {
    let Some(session) = db.session(session_id)?.filter(|session| !session.transcript_path.is_empty()) else {
        return Ok(None);
    };
    let transcript = Path::new(&session.transcript_path);
    match live(session.host, session_id, transcript) {
        Some(NativeGoal::Active(objective)) => Ok(Some(objective)),
        Some(NativeGoal::Over) => Ok(None),
        None => Ok(db.cursor(transcript)?.and_then(|cursor| cursor.native_goal)),
    }
}
