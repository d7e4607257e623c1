//! The clients' own goal features. While one has an active goal, it drives the session and ours must not.

use std::path::Path;

use steadfast_hosts::adapter;
use steadfast_model::host::Host;
use steadfast_model::reading::NativeGoal;
use steadfast_model::redact::redact;
use steadfast_store::{Db, StoreError, codex_goal};

/// The goal in the client's own database; `None` if there is none or it cannot be read.
pub fn live(host: Host, session_id: &str, transcript: &Path) -> Option<NativeGoal> {
    codex_goal(&(adapter(host).native_goal_database)(transcript)?, session_id).ok()
}

/// The same as [`of_session`], but the newest lines of the session's file come first.
pub fn by_now(db: Db<'_>, host: Host, session_id: &str, transcript: &Path) -> Result<Option<String>, StoreError> {
    let newest = (adapter(host).native_goal_in_transcript)(transcript);
    active_objective(db, newest.or_else(|| live(host, session_id, transcript)), transcript)
}

/// The objective of the client's own goal that is active in a session.
pub fn of_session(db: Db<'_>, session_id: &str) -> Result<Option<String>, StoreError> {
    let session = db.session(session_id)?;
    let Some((host, transcript)) = session.as_ref().and_then(|session| Some((session.host, session.transcript()?)))
    else {
        return Ok(None);
    };
    active_objective(db, live(host, session_id, transcript), transcript)
}

/// The objective of a goal if it is active, without secrets; without one, the objective that was last read from the file.
fn active_objective(db: Db<'_>, goal: Option<NativeGoal>, transcript: &Path) -> Result<Option<String>, StoreError> {
    match goal {
        Some(NativeGoal::Active(objective)) => Ok(Some(redact(&objective).into_owned())),
        Some(NativeGoal::Over) => Ok(None),
        None => Ok(db.cursor(transcript)?.and_then(|cursor| cursor.native_goal)),
    }
}
