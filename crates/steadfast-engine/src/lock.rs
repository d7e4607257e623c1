//! The locks of the engine. Each is an advisory lock on a file. The kernel releases it when the last process that has
//! the file open is gone, so `kill -9` leaves none behind, and a lock that is held proves that its holder lives.
//!
//! | lock | file | held by | it ensures |
//! | --- | --- | --- | --- |
//! | [`RunLock`] | `HOME/runs/ID/lock` | the engine of a run; a command that keeps engines away | one engine per run |
//! | `attempt.rs` | `HOME/runs/ID/ATTEMPT/lock` | the supervisor; briefly a process that inspects the attempt | one supervisor per attempt |
//! | `WorktreeLock` | `HOME/worktrees/ID/lock` | the engine around git calls; git itself, as its stdin | no two gits on the worktrees of a run |
//! | `files/address.rs` | `PROJECT/.claude/.steadfast-KIND-NAME.lock` | the engine of a run | one engine per run name, whatever its home and store |
//! | `files/exclude.rs` | the directory `info` of the repository | a process that changes `info/exclude` | one writer at a time |
//! | `files/document.rs` | `PROJECT/.claude/.steadfast.lock` | a process that changes the public files | one writer at a time |
//! | `trust/ledger.rs` | `HOME/trust.lock` | a process that changes what the user trusts | one writer at a time |
//!
//! An engine takes the lock of the name, then that of the run, and holds both until it ends. The others are held for
//! single operations, except that a supervisor holds its own until it ends. Within one engine, a mutex keeps its threads
//! from calling git at the same time.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use steadfast_system::paths;

use crate::run_folder::RunFolder;

/// What to do where files cannot be locked.
pub const LOCK_HINT: &str = "put `STEADFAST_HOME` and the project on local file systems";
/// How long an engine waits for processes that only test the lock, and for children of a killed engine, which have its
/// files open until they exec.
const RUN_PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);
const LOCK: &str = "lock";

/// Opens a lock file, creating it if it is missing. Its content means nothing.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let file = fs_err::OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(path)?;
    Ok(file.into_parts().0)
}

/// Takes the lock of an open file if it is free; returns whether it did. A file system without locks is an error:
/// treated as a held lock, it would never become free.
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(std::fs::TryLockError::WouldBlock) => Ok(false),
        Err(std::fs::TryLockError::Error(error)) => {
            Err(io::Error::new(ErrorKind::Unsupported, format!("files cannot be locked here: {error}")))
        }
    }
}

/// Opens a file and takes its lock; `None` if it is held.
pub(crate) fn try_take(path: &Path) -> io::Result<Option<File>> {
    let file = open(path)?;
    Ok(try_lock(&file)?.then_some(file))
}

/// Whether a path still leads to an open file. Git and people remove lock files that are held.
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let of = |metadata: &std::fs::Metadata| (metadata.dev(), metadata.ino());
    let there = std::fs::symlink_metadata(path).ok();
    Ok(there.as_ref().map(of) == Some(of(&file.metadata()?)))
}

/// Waits for the lock of an open file; false when the time is over or the caller gives up.
pub(crate) fn lock_within(file: &File, patience: Duration, gives_up: impl Fn() -> bool) -> io::Result<bool> {
    let deadline = Instant::now() + patience;
    while !try_lock(file)? {
        if gives_up() || Instant::now() >= deadline {
            return Ok(false);
        }
        std::thread::sleep(PAUSE);
    }
    Ok(true)
}

/// The lock of a run. While it is held, no other engine drives the run.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

impl RunLock {
    /// Takes the lock; `None` if an engine holds it.
    pub fn try_take(home: &Path, run_id: &str) -> io::Result<Option<Self>> {
        Ok(try_take(&Self::create_folder(home, run_id)?)?.map(|file| Self { _file: file }))
    }

    /// Takes the lock, and waits a moment for processes that only test it.
    pub(crate) fn take(home: &Path, run_id: &str) -> io::Result<Option<Self>> {
        let file = open(&Self::create_folder(home, run_id)?)?;
        Ok(lock_within(&file, RUN_PATIENCE, || false)?.then_some(Self { _file: file }))
    }

    /// Whether an engine drives the run now.
    pub fn is_held(home: &Path, run_id: &str) -> io::Result<bool> {
        let path = RunFolder::at(home, run_id).path().join(LOCK);
        if !path.exists() {
            return Ok(false);
        }
        Ok(try_take(&path)?.is_none())
    }

    fn create_folder(home: &Path, run_id: &str) -> io::Result<std::path::PathBuf> {
        let folder = RunFolder::at(home, run_id);
        paths::create_private_dir(folder.path())?;
        Ok(folder.path().join(LOCK))
    }
}

/// The lock of all worktrees of a run. Git inherits it as its stdin: when the engine is killed and git is not, the next
/// engine waits for git.
#[derive(Debug)]
pub(crate) struct WorktreeLock {
    file: File,
}

impl WorktreeLock {
    /// Waits for the lock; `None` when the time is over or the caller gives up.
    pub(crate) fn take(worktrees: &Path, patience: Duration, gives_up: impl Fn() -> bool) -> io::Result<Option<Self>> {
        paths::create_private_dir(worktrees)?;
        let file = open(&worktrees.join(LOCK))?;
        Ok(lock_within(&file, patience, gives_up)?.then_some(Self { file }))
    }

    /// A stdin that holds the lock for as long as the process that has it lives.
    pub(crate) fn as_stdin(&self) -> io::Result<Stdio> {
        Ok(Stdio::from(self.file.try_clone()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_free_held_or_unsupported() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let mine = open(&path).unwrap();
        assert!(try_lock(&mine).unwrap());
        assert!(!try_lock(&open(&path).unwrap()).unwrap());
        // A handle opened with O_PATH cannot be locked, like files on a file system without locks.
        let flags = rustix::fs::OFlags::PATH.bits().cast_signed();
        let bare = fs_err::OpenOptions::new().read(true).custom_flags(flags).open(&path).unwrap();
        let error = try_lock(bare.file()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().starts_with("files cannot be locked here: "), "{error}");
    }

    #[test]
    fn a_run_has_one_lock_and_testing_it_creates_nothing() {
        let home = tempfile::tempdir().unwrap();
        assert!(!RunLock::is_held(home.path(), "1").unwrap());
        assert_eq!(fs_err::read_dir(home.path()).unwrap().count(), 0);
        let lock = RunLock::try_take(home.path(), "1").unwrap().unwrap();
        assert!(RunLock::is_held(home.path(), "1").unwrap());
        assert!(RunLock::try_take(home.path(), "1").unwrap().is_none());
        drop(lock);
        assert!(RunLock::take(home.path(), "1").unwrap().is_some());
    }

    #[test]
    fn a_worktree_lock_is_waited_for_until_the_caller_gives_up() {
        let home = tempfile::tempdir().unwrap();
        let lock = WorktreeLock::take(home.path(), Duration::ZERO, || false).unwrap().unwrap();
        let stdin = lock.as_stdin().unwrap();
        drop(lock);
        assert!(WorktreeLock::take(home.path(), Duration::from_mins(1), || true).unwrap().is_none());
        drop(stdin);
        assert!(WorktreeLock::take(home.path(), Duration::ZERO, || false).unwrap().is_some());
    }
}
