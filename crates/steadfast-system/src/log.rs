//! The log of what went wrong where nobody was looking: hooks must fail open, so their failures go here. One
//! line an entry, one old file kept, never more than a few hundred kilobytes.

use std::io::Write as _;
use std::path::Path;

use steadfast_model::{clock, text};

const MAX_BYTES: u64 = 256 * 1024;

/// Appends one line. A log that cannot be written is no reason to fail, so errors end here.
pub fn line(file: &Path, message: &str) {
    // There is nowhere left to report a failing log to.
    let _ = append(file, message);
}

fn append(file: &Path, message: &str) -> std::io::Result<()> {
    if let Some(directory) = file.parent() {
        crate::paths::create_private_dir(directory)?;
    }
    if fs_err::metadata(file).is_ok_and(|meta| meta.len() > MAX_BYTES) {
        fs_err::rename(file, file.with_extension("log.old"))?;
    }
    let mut options = fs_err::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use fs_err::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let message = text::cut(&text::printable(message).replace('\n', " | "), 2_000);
    writeln!(options.open(file)?, "{} {message}", clock::to_rfc3339(clock::now()))
}
