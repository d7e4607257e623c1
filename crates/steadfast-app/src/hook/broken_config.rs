//! Hooks while `config.toml` cannot be read. Neither limits nor what may be remembered is known, so nothing is driven or
//! remembered: a live goal pauses as `degraded`, and the user hears once what is wrong.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::outage;
use crate::action;
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::Actor;
use steadfast_model::hook::{HookEvent, HookInput, HookReply, StartSource};
use steadfast_store::{Db, Origin, Store, StoreError};
use steadfast_system::config::ConfigError;
use steadfast_system::log;
use steadfast_system::paths::Paths;

/// The most keys that one message names.
const MOST_KEYS: usize = 3;

/// Handles one hook call with a broken configuration; `paths` has the defaults.
pub fn broken_config(input: &HookInput, paths: &Paths, error: &ConfigError, wall: Millis) -> HookReply {
    // These need no pause in time, and most have no place for a message.
    if let HookEvent::Seen
    | HookEvent::Idle
    | HookEvent::OwnToolAsked
    | HookEvent::PermissionAsked
    | HookEvent::SessionEnd { .. } = input.event
    {
        return HookReply::default();
    }
    let is_command = matches!(input.event, HookEvent::Command { .. });
    let (is_paused, is_news) = pause(input, paths, error, wall).unwrap_or((false, is_first_seen(input)));
    if !is_paused && !is_news && !is_command {
        return HookReply::default();
    }
    log::line(&paths.log_file(), &format!("{} {}: {error}", input.event_name, input.session_id));
    let then = if is_paused {
        input.host.spell("The goal is paused; /goal-resume resumes it once the file is fixed.")
    } else {
        "Until then, no goal is driven and nothing is remembered.".to_owned()
    };
    let text = format!("{error} ({}). {then}", error.hint());
    if is_command {
        return HookReply { block: Some(format!("error: {text}")), ..HookReply::default() };
    }
    HookReply { message: Some(format!("steadfast: {text}")), ..HookReply::default() }
}

/// What to tell the user about keys of the configuration that mean nothing: at the start of a session, and at the first
/// prompt after the file changed.
pub fn unknown_keys(input: &HookInput, paths: &Paths) -> Option<String> {
    if paths.config.unknown.is_empty() || !is_first_seen(input) {
        return None;
    }
    let is_due = if let HookEvent::SessionStart(source) = input.event {
        source != StartSource::Compact
    } else {
        // A store that cannot be read is reported by the handler.
        let store = Store::open_if_there(&paths.store).ok()?;
        let session = store.and_then(|store| store.read().session(&input.session_id).ok()?);
        let told = session.map(|session| session.last_prompt_ms.unwrap_or(0).max(session.started_at_ms));
        told.is_none_or(|told| told <= changed_at(&paths.config_file()))
    };
    let lines: Vec<String> = paths.config.unknown.iter().take(MOST_KEYS).map(ToString::to_string).collect();
    is_due.then(|| format!("steadfast: {}", lines.join("; ")))
}

/// Whether the user looks at the session now and may not know of the error.
fn is_first_seen(input: &HookInput) -> bool {
    matches!(
        input.event,
        HookEvent::SessionStart(_)
            | HookEvent::Prompt { typed: true }
            | HookEvent::CommandPassed
            | HookEvent::Directive { .. }
    )
}

/// Pauses a live goal. Returns whether it did, and whether the user has yet to be told of the error.
fn pause(input: &HookInput, paths: &Paths, error: &ConfigError, wall: Millis) -> Result<(bool, bool), StoreError> {
    let mut store = Store::open_existing_within(&paths.store, outage::patience(&input.event))?;
    let now = clock::from_wall(wall);
    let origin = Origin { actor: Actor::Steadfast, place: super::place(&input.event) };
    let paused = action::degrade(&mut store, &input.session_id, &error.to_string(), origin, now)?;
    let is_start = matches!(input.event, HookEvent::SessionStart(_));
    let is_news = is_first_seen(input) && (is_start || is_news(store.read(), &input.session_id, &paths.config_file())?);
    let is_turn_over =
        matches!(input.event, HookEvent::Stop { .. } | HookEvent::StopFailure { .. } | HookEvent::Interrupt);
    if paused.is_some() || is_news || is_turn_over {
        store.write(|db| {
            if is_turn_over {
                db.end_turn(&input.session_id, false, now)?;
            }
            db.touch_session(&input.session_id, now).map(|_| ())
        })?;
    }
    Ok((paused.is_some(), is_news))
}

/// Whether the file changed since the session was last seen. While it is broken, a session is seen when it is told.
fn is_news(db: Db<'_>, session_id: &str, config: &Path) -> Result<bool, StoreError> {
    Ok(db.session(session_id)?.is_none_or(|session| session.last_seen_ms <= changed_at(config)))
}

/// When the file was last changed, or the link that leads nowhere. Other than the time of its content, this one also shows
/// a change of its rights.
fn changed_at(file: &Path) -> Millis {
    let found = fs_err::metadata(file).or_else(|_| fs_err::symlink_metadata(file));
    let changed = found.map_or(0, |file| file.ctime() * 1_000 + file.ctime_nsec() / 1_000_000);
    clock::from_wall(changed)
}
