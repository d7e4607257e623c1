//! Files that are there whole or not at all, also after a crash, and that only their owner can read.

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt as _;

/// What to do where files cannot be locked.
pub const LOCK_HINT: &str = "put `STEADFAST_HOME` and the project on local file systems";

/// Replaces a file: written beside it, brought to the disk, renamed.
pub(crate) fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    write_beside(path, content, true)?;
    sync_directory(path.parent().unwrap_or(Path::new(".")))
}

/// Replaces a file that only processes of this run of the machine need: after a power cut nobody asks for it.
pub(crate) fn hand_over(path: &Path, content: &[u8]) -> std::io::Result<()> {
    write_beside(path, content, false)
}

fn write_beside(path: &Path, content: &[u8], forced: bool) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = directory.join(name);
    let mut options = fs_err::OpenOptions::new();
    let mut file = options.create(true).truncate(true).write(true).mode(0o600).open(&beside)?;
    file.write_all(content)?;
    if forced {
        file.sync_all()?;
    }
    fs_err::rename(&beside, path)
}

/// Creates an empty file that says something by being there.
pub(crate) fn mark(path: &Path) -> std::io::Result<()> {
    let mut options = fs_err::OpenOptions::new();
    options.create(true).append(true).mode(0o600).open(path)?.sync_all()?;
    sync_directory(path.parent().unwrap_or(Path::new(".")))
}

/// Opens a file to add to it, creating it if need be.
pub(crate) fn open_to_append(path: &Path) -> std::io::Result<fs_err::File> {
    fs_err::OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// Opens a lock file, creating it if need be. What is in it means nothing.
pub(crate) fn open_lock(path: &Path) -> std::io::Result<std::fs::File> {
    let file = fs_err::OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(path)?;
    Ok(file.into_parts().0)
}

/// Takes the lock of a file if nobody has it; tells whether it did. A file system that knows no locks is an error: as
/// somebody else's lock it would never go away.
pub(crate) fn try_lock(file: &std::fs::File) -> std::io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(std::fs::TryLockError::WouldBlock) => Ok(false),
        Err(std::fs::TryLockError::Error(error)) => {
            Err(std::io::Error::new(ErrorKind::Unsupported, format!("files cannot be locked here: {error}")))
        }
    }
}

/// A rename is on the disk once its directory is.
fn sync_directory(directory: &Path) -> std::io::Result<()> {
    fs_err::File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_taken_held_by_somebody_or_not_to_be_had_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let mine = open_lock(&path).unwrap();
        assert!(try_lock(&mine).unwrap());
        assert!(!try_lock(&open_lock(&path).unwrap()).unwrap());
        // Such a handle is good for nothing but its path, as files are for locks where there are none.
        let flags = rustix::fs::OFlags::PATH.bits().cast_signed();
        let bare = fs_err::OpenOptions::new().read(true).custom_flags(flags).open(&path).unwrap();
        let error = try_lock(bare.file()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().starts_with("files cannot be locked here: "), "{error}");
    }
}
