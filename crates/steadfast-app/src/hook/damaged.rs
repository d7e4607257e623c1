//! Hooks while the store is damaged. Nothing can be driven or remembered until the user recovers it. The user hears of it
//! once in each session; a file in the log directory says which sessions were told, because the store cannot.

use std::io::Write as _;
use std::path::PathBuf;

use super::Call;
use steadfast_model::hook::{HookEvent, StartSource};
use steadfast_model::text;
use steadfast_system::paths::Paths;
use steadfast_system::{bounded, paths};

/// Far more sessions than hear of one damaged store.
const MOST_BYTES: u64 = 64 * 1024;

fn told_file(paths: &Paths) -> PathBuf {
    paths.log_file().with_file_name("damage-told")
}

/// Whether the user of a session has yet to hear of the damage, and can hear it now. The next call says no.
pub(super) fn is_news(call: &Call<'_>) -> bool {
    // These have no place for a message, or would repeat it too often.
    if let HookEvent::Seen
    | HookEvent::ToolAsked { .. }
    | HookEvent::Idle
    | HookEvent::OwnToolAsked
    | HookEvent::PermissionAsked
    | HookEvent::SessionEnd { .. }
    | HookEvent::Interrupt = call.input.event
    {
        return false;
    }
    let file = told_file(call.paths);
    let session = text::one_line(&text::printable(call.session_id()));
    let told = bounded::start_of(&file, MOST_BYTES).map(|part| part.bytes).unwrap_or_default();
    let told = String::from_utf8_lossy(&told);
    let was_told = told.lines().any(|line| line == session);
    // Who opens a session again looks at it anew.
    let is_opened = matches!(call.input.event, HookEvent::SessionStart(source) if source != StartSource::Compact);
    if was_told && !is_opened {
        return false;
    }
    if !was_told && (told.len() as u64) < MOST_BYTES {
        let written = file.parent().map_or(Ok(()), paths::create_private_dir);
        // Telling it twice is better than not at all.
        let _ = written.and_then(|()| writeln!(bounded::append(&file)?, "{session}"));
    }
    true
}

/// After a recovery, the next damage is news again.
pub fn forget_told_of_damage(paths: &Paths) {
    let _ = fs_err::remove_file(told_file(paths));
}
