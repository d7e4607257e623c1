//! Files for targets that read files, and ways to take an input apart.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

thread_local! {
    /// One directory for all inputs of a thread: making one for each costs more than most targets do.
    static DIRECTORY: TempDir = new_directory();
}

/// A directory in memory where the system has one.
pub(crate) fn new_directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a directory")
}

/// Writes a file and returns its path. The next call with this name replaces it.
pub(crate) fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = DIRECTORY.with(|directory| directory.path().join(name));
    fs_err::create_dir_all(path.parent().expect("a parent")).expect("its directory");
    fs_err::write(&path, content).expect("the file");
    path
}

/// The first byte, or 0, and the rest.
pub(crate) fn split_first(data: &[u8]) -> (u8, &[u8]) {
    data.split_first().map_or((0, data), |(first, rest)| (*first, rest))
}

/// The parts of an input between lines with `===`; a part may be missing.
pub(crate) fn parts(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(data);
    std::iter::from_fn(move || {
        let bytes = rest?;
        let end = bytes.windows(SEPARATOR.len()).position(|window| window == SEPARATOR);
        let (part, after) = match end {
            Some(at) => (bytes.get(..at), bytes.get(at + SEPARATOR.len()..)),
            None => (Some(bytes), None),
        };
        rest = after;
        part
    })
}

const SEPARATOR: &[u8] = b"\n===\n";
