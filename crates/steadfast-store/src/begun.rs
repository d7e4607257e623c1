//! The file `goals.db.begun` beside a store says that the store has begun. While it is there, a store whose file is
//! missing or empty does not begin anew, also without a backup.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt as _;

use crate::{beside, strays};

const TEXT: &str = "The store beside this file has begun, and does not begin anew if its file is lost.\n\
                    `steadfast db recover` recovers it; with `--empty` it begins anew.\n";

/// The note beside a store, if it is there.
pub(crate) fn noted(store: &Path) -> Option<PathBuf> {
    Some(note_of(store)).filter(|note| note.exists())
}

/// Notes that a store has begun. Costs one look if that is noted already.
pub(crate) fn note(store: &Path) {
    // Backups need no note: none of them ever begins empty.
    let is_backup = store.extension().is_some_and(|end| end == "bak");
    if is_backup || strays::is_copy(store) || noted(store).is_some() {
        return;
    }
    let options = || fs_err::OpenOptions::new().write(true).create_new(true).mode(0o600).open(note_of(store));
    // The next process that opens the store tries again.
    let _ = options().and_then(|mut file| file.write_all(TEXT.as_bytes()));
}

fn note_of(store: &Path) -> PathBuf {
    beside(store, "begun")
}
