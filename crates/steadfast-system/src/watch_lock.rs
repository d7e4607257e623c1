//! The lock of `steadfast watch`: one works for each home. It is an advisory lock on `HOME/watch.lock`. The kernel
//! releases it when its holder is gone, so `kill -9` leaves none behind. The file contains the holder's process id, for
//! people and for `watch --stop`.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err::os::unix::fs::OpenOptionsExt as _;

use crate::process::ProcessId;
use crate::{bounded, paths};

/// How long to wait for processes that only test the lock.
const PATIENCE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(10);

/// The lock, held until it is dropped.
#[derive(Debug)]
pub struct WatchLock {
    path: PathBuf,
    file: File,
}

fn path(home: &Path) -> PathBuf {
    home.join("watch.lock")
}

impl WatchLock {
    /// Takes the lock; `None` if another process holds it.
    pub fn try_take(home: &Path) -> io::Result<Option<Self>> {
        paths::create_private_dir(home)?;
        let path = path(home);
        let options =
            fs_err::OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).clone();
        let file = options.open(&path)?.into_parts().0;
        let deadline = Instant::now() + PATIENCE;
        while !is_done(&path, file.try_lock())? {
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(PAUSE);
        }
        let mut lock = Self { path, file };
        lock.write_holder()?;
        // The home may have been removed between opening and locking.
        Ok(lock.is_in_place().then_some(lock))
    }

    fn write_holder(&mut self) -> io::Result<()> {
        let own = ProcessId::own();
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        writeln!(self.file, "{} {}", own.pid, own.started)
    }

    /// Whether the locked file is still the one that other processes find.
    pub fn is_in_place(&self) -> bool {
        let found = fs_err::metadata(&self.path).map(|meta| (meta.dev(), meta.ino()));
        let held = self.file.metadata().map(|meta| (meta.dev(), meta.ino()));
        matches!((found, held), (Ok(found), Ok(held)) if found == held)
    }
}

/// Whether `steadfast watch` works for this home. Opens one file and creates none.
pub fn is_held(home: &Path) -> bool {
    let Ok(file) = bounded::open(&path(home)) else { return false };
    // A shared lock does not disturb other processes that test it.
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// The process that holds the lock.
pub fn holder(home: &Path) -> Option<ProcessId> {
    if !is_held(home) {
        return None;
    }
    let mut text = String::new();
    bounded::open(&path(home)).ok()?.take(100).read_to_string(&mut text).ok()?;
    let mut numbers = text.split_whitespace().map(str::parse);
    Some(ProcessId { pid: numbers.next()?.ok()?, started: numbers.next()?.ok()? })
}

fn is_done(path: &Path, locked: Result<(), TryLockError>) -> io::Result<bool> {
    match locked {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => {
            Err(io::Error::new(error.kind(), format!("cannot lock `{}`: {error}", path.display())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_holds_the_lock_and_testing_it_creates_nothing() {
        let world = tempfile::tempdir().unwrap();
        let home = world.path().join("home");
        assert!(!is_held(&home) && holder(&home).is_none() && !home.exists());
        let lock = WatchLock::try_take(&home).unwrap().unwrap();
        assert!(is_held(&home) && lock.is_in_place());
        assert_eq!(holder(&home), Some(ProcessId::own()));
        assert!(WatchLock::try_take(&home).unwrap().is_none());
        drop(lock);
        assert!(!is_held(&home) && holder(&home).is_none());
        assert!(WatchLock::try_take(&home).unwrap().is_some());
    }

    #[test]
    fn a_lock_whose_file_was_removed_protects_nothing() {
        let world = tempfile::tempdir().unwrap();
        let lock = WatchLock::try_take(world.path()).unwrap().unwrap();
        fs_err::remove_file(world.path().join("watch.lock")).unwrap();
        assert!(!lock.is_in_place());
        assert!(WatchLock::try_take(world.path()).unwrap().is_some());
        assert!(!lock.is_in_place());
    }
}
