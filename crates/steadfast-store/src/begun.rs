//! The file `goals.db.begun` beside a store says that the store has begun. While it is there, a store whose file is
//! missing or empty does not begin anew, also without a backup.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt as _;

use crate::backup::UNFINISHED;
use crate::beside;

const TEXT: &str = "The store beside this file has begun, and does not begin anew if its file is lost.\n\
                    `steadfast db recover` recovers it; with `--empty` it begins anew.\n";

/// The note beside a store, if it is there.
pub(crate) fn noted(store: &Path) -> Option<PathBuf> {
    Some(note_of(store)).filter(|note| note.exists())
}

/// Notes that a store has begun. Costs one look if that is noted already.
pub(crate) fn note(store: &Path) {
    if is_copy(store) || noted(store).is_some() {
        return;
    }
    let options = || fs_err::OpenOptions::new().write(true).create_new(true).mode(0o600).open(note_of(store));
    // The next process that opens the store tries again.
    let _ = options().and_then(|mut file| file.write_all(TEXT.as_bytes()));
}

fn note_of(store: &Path) -> PathBuf {
    beside(store, "begun")
}

/// Backups need no note: none of them ever begins empty.
fn is_copy(store: &Path) -> bool {
    let name = store.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(UNFINISHED) || store.extension().is_some_and(|end| end == "bak")
}
