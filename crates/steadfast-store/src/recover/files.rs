//! The files of a recovery. Everything is built in the directory `goals.db.recovery` beside the store. There, `ready.db`
//! is complete and checked. While the store has no file, that name is what a killed recovery is continued from.

use std::fs::{File, TryLockError};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use steadfast_model::clock::{self, Millis};
use steadfast_system::{bounded, paths};

use super::super::backup::{before_versions, sync_directory};
use super::super::{StoreError, backups, begun, beside};

/// The end of the names of a database and of what belongs to it: its log, the index of the log, and an old kind of log.
const ALL_FILES: [&str; 4] = ["", "-wal", "-shm", "-journal"];
const READY: &str = "ready.db";
/// Says under which name the damaged file is kept.
const ASIDE: &str = "aside";
/// The unit in which a disk fails.
const BLOCK: usize = 4_096;
/// The bytes of the smallest database that SQLite makes.
const SHORTEST: u64 = 512;

pub(super) struct Workshop {
    directory: PathBuf,
    /// Shows that a dry run works there.
    _lock: Option<File>,
}

/// The end of the name of a damaged file that was moved aside.
pub(super) fn aside(now: Millis) -> String {
    format!("corrupt-{}", clock::to_rfc3339(now).replace(':', ""))
}

fn workshop(store: &Path) -> PathBuf {
    beside(store, "recovery")
}

fn dry_run(store: &Path) -> PathBuf {
    beside(store, "recovery-dry-run")
}

/// Removes what a dry run left that was killed. Returns the directory, if there was one.
pub(crate) fn remove_dry_run(store: &Path) -> Option<PathBuf> {
    let directory = dry_run(store);
    let is_left = directory.is_dir() && !is_locked(&directory);
    (is_left && remove_directory(&directory).is_ok()).then_some(directory)
}

fn is_locked(directory: &Path) -> bool {
    File::open(directory).is_ok_and(|directory| matches!(directory.try_lock(), Err(TryLockError::WouldBlock)))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Why a store must not begin empty, if its file is missing, empty or shorter than any database: there are signs of an
/// earlier one. Costs one look at the file if that is long enough. SQLite takes a file of one byte for a new one.
pub(crate) fn was_there(store: &Path) -> Option<StoreError> {
    let length = fs_err::metadata(store).ok().map(|file| if file.is_file() { file.len() } else { SHORTEST });
    let refused = |message: String| Some(StoreError::Corrupt { path: store.to_owned(), message });
    match length {
        Some(SHORTEST..) => return None,
        Some(length @ 1..) => return refused(format!("the file is cut short: {length} bytes")),
        _ => {}
    }
    let is_ready = workshop(store).join(READY).exists();
    let has_log = fs_err::metadata(with_suffix(store, "-wal")).is_ok_and(|log| log.len() > 0);
    let sign = if is_ready {
        "a recovery was interrupted".to_owned()
    } else if has_log {
        "its log is not empty".to_owned()
    } else {
        let backup = backups(store).into_iter().map(|backup| backup.path).chain(before_versions(store)).next();
        let backup = backup.map(|backup| format!("there is a backup, {}", backup.display()));
        backup.or_else(|| begun::noted(store).map(|note| format!("{} says that it had begun", note.display())))?
    };
    let what = if length.is_some() { "the file is empty" } else { "the file is missing" };
    refused(format!("{what}, but {sign}"))
}

impl Workshop {
    /// Copies the damaged files, so that they are only read. A dry run works elsewhere, because another process may
    /// continue what is beside the store.
    pub(super) fn set_up(store: &Path, is_dry_run: bool) -> Result<Self, StoreError> {
        let directory = if is_dry_run { dry_run(store) } else { workshop(store) };
        if is_dry_run && is_locked(&directory) {
            return Err(StoreError::Busy(directory));
        }
        remove_directory(&directory)?;
        paths::create_private_dir(&directory)?;
        let lock = File::open(&directory).ok().filter(|directory| directory.try_lock().is_ok());
        let workshop = Self { directory, _lock: lock };
        let damaged = workshop.damaged();
        copy_readable(store, &damaged)?;
        // SQLite makes the index of the log again; the one at hand may be damaged.
        for suffix in ["-wal", "-journal"] {
            copy_readable(&with_suffix(store, suffix), &with_suffix(&damaged, suffix))?;
        }
        Ok(workshop)
    }

    pub(super) fn damaged(&self) -> PathBuf {
        self.directory.join("damaged.db")
    }

    pub(super) fn new_store(&self) -> PathBuf {
        self.directory.join("goals.db")
    }

    /// Moves the damaged files aside and gives the new store its name. Returns where the damaged file is.
    pub(super) fn put_in_place(&self, store: &Path, now: Millis) -> Result<PathBuf, StoreError> {
        let kept = free_name(store, now);
        let name = kept.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let note = self.directory.join(ASIDE);
        fs_err::write(&note, name)?;
        fs_err::File::open(&note)?.sync_all()?;
        let ready = self.directory.join(READY);
        fs_err::rename(self.new_store(), &ready)?;
        sync_directory(&ready)?;
        finish(store, &kept, &ready)?;
        Ok(kept)
    }

    pub(super) fn clear(&self) -> Result<(), StoreError> {
        remove_directory(&self.directory)
    }
}

/// Removes what a recovery built.
pub(super) fn clear(store: &Path) -> Result<(), StoreError> {
    remove_directory(&workshop(store))
}

/// Two recoveries in one second must not share a name.
fn free_name(store: &Path, now: Millis) -> PathBuf {
    let first = beside(store, &aside(now));
    let others = (2..).map(|number| with_suffix(&first, &format!("-{number}")));
    let is_free = |name: &PathBuf| ALL_FILES.iter().all(|suffix| !with_suffix(name, suffix).exists());
    std::iter::once(first.clone()).chain(others).find(is_free).unwrap_or(first)
}

/// The last steps; each may have been done already. The log must be gone before the new file has its name: SQLite would
/// write it into the new file.
fn finish(store: &Path, kept: &Path, ready: &Path) -> Result<(), StoreError> {
    for suffix in ALL_FILES {
        move_if_there(&with_suffix(store, suffix), &with_suffix(kept, suffix))?;
    }
    sync_directory(store)?;
    fs_err::rename(ready, store)?;
    sync_directory(store)
}

/// Finishes a recovery that was killed after its last check. Returns where the damaged file is, if there was one.
pub(super) fn continue_interrupted(store: &Path) -> Result<Option<PathBuf>, StoreError> {
    let directory = workshop(store);
    let ready = directory.join(READY);
    // With both there, nothing was moved yet, and the store may have changed since.
    if !ready.exists() || fs_err::metadata(store).is_ok_and(|file| file.len() > 0) {
        return Ok(None);
    }
    let name = bounded::text(&directory.join(ASIDE), 1_000)?;
    let kept = store.with_file_name(Path::new(&name).file_name().unwrap_or_default());
    finish(store, &kept, &ready)?;
    remove_directory(&directory)?;
    Ok(Some(kept))
}

fn move_if_there(from: &Path, to: &Path) -> Result<(), StoreError> {
    // What was moved before must not be replaced by what came into being since.
    if from.exists() && !to.exists() {
        fs_err::rename(from, to)?;
    } else if from.exists() {
        fs_err::remove_file(from)?;
    }
    Ok(())
}

fn remove_directory(directory: &Path) -> Result<(), StoreError> {
    match fs_err::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Copies a file, with zeros where the disk cannot be read. One that is missing is left out.
fn copy_readable(from: &Path, to: &Path) -> Result<(), StoreError> {
    use std::io::{Seek as _, SeekFrom, Write as _};
    let Some(mut source) = bounded::open_if_exists(from)? else { return Ok(()) };
    if fs_err::copy(from, to).is_ok() {
        return Ok(());
    }
    let length = source.metadata()?.len();
    let mut target = fs_err::File::create(to)?;
    let mut at = 0;
    while at < length {
        let mut block = [0; BLOCK];
        source.seek(SeekFrom::Start(at))?;
        let size = source.read(&mut block).unwrap_or(BLOCK).max(1);
        target.write_all(block.get(..size).unwrap_or_default())?;
        at += size as u64;
    }
    Ok(target.flush()?)
}
