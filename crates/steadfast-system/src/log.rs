//! The log of hooks: they fail open, so their errors go here. One line per entry, one old file kept.

use std::io::Write as _;
use std::path::Path;

use crate::{bounded, paths};
use steadfast_model::redact::redact;
use steadfast_model::{clock, text};

const MAX_BYTES: u64 = 256 * 1024;

/// Appends one line. Errors are ignored, because there is no place left to report them.
pub fn line(file: &Path, message: &str) {
    let _ = append(file, message);
}

fn append(file: &Path, message: &str) -> std::io::Result<()> {
    if let Some(directory) = file.parent() {
        paths::create_private_dir(directory)?;
    }
    if fs_err::metadata(file).is_ok_and(|meta| meta.len() > MAX_BYTES) {
        fs_err::rename(file, file.with_extension("log.old"))?;
    }
    let message = text::cut(&redact(&text::printable(message)).replace('\n', " | "), 2_000);
    writeln!(bounded::append(file)?, "{} {message}", clock::to_rfc3339(clock::now()))
}
