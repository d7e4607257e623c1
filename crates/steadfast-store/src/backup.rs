//! Copies of the store. Automatic ones are in the directory `backups` beside it: one a week, and one before each change
//! of the schema. A copy is made from one read snapshot, so it does not keep other processes from writing. It is checked,
//! and only then gets its name.

mod migration;
mod names;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use rusqlite::backup::StepResult;
use rusqlite::{Connection, OpenFlags};
use steadfast_model::clock::{DAY, Millis};
use steadfast_system::paths;
use tempfile::NamedTempFile;

use super::checks::integrity_faults;
use super::strays;
use super::{Outage, Store, StoreError, connect, connect_read_only, disk, explain, migrate, outage, with_path};
pub(crate) use migration::before_versions;
pub use names::{Backup, BackupKind};

/// The beginning of the names of copies that are not complete.
pub(crate) const UNFINISHED: &str = ".steadfast-backup";
/// How old the newest backup may be.
const EVERY: Millis = 7 * DAY;
/// Pages that are copied before the time is looked at.
const PAGES: i32 = 4_096;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Held while backups of a store are made, or while it is recovered.
#[derive(Debug)]
pub struct BackupLock {
    _file: std::fs::File,
    directory: PathBuf,
}

impl BackupLock {
    /// Takes the lock, waiting up to `patience`; `None` if another process keeps it. Removes what a killed process left.
    pub fn take(store: &Path, patience: Duration) -> Result<Option<Self>, StoreError> {
        let directory = backups_dir(store);
        paths::create_private_dir(&directory)?;
        let path = directory.join("lock");
        let file = fs_err::OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?.into_parts().0;
        let deadline = Instant::now() + patience;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(std::fs::TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(LOCK_PAUSE),
                Err(std::fs::TryLockError::WouldBlock) => return Ok(None),
                Err(std::fs::TryLockError::Error(error)) => return Err(StoreError::of_file(&path, &error)),
            }
        }
        let lock = Self { _file: file, directory };
        lock.remove_unfinished();
        Ok(Some(lock))
    }

    /// Only the holder of the lock makes such files.
    fn remove_unfinished(&self) {
        for entry in fs_err::read_dir(&self.directory).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                let _ = fs_err::remove_file(entry.path());
            }
        }
    }
}

/// Where the automatic backups of a store are.
pub fn backups_dir(store: &Path) -> PathBuf {
    directory_of(store).join("backups")
}

pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The backups of a store, the newest first.
pub fn backups(store: &Path) -> Vec<Backup> {
    let entries = fs_err::read_dir(backups_dir(store)).into_iter().flatten().flatten();
    let mut found: Vec<Backup> = entries.filter_map(|entry| names::read(store, &entry.path())).collect();
    found.sort_by(|one, other| (other.made_at_ms, &other.path).cmp(&(one.made_at_ms, &one.path)));
    found
}

/// The newest backup of the store's present schema.
pub fn newest_backup(store: &Path) -> Option<Backup> {
    backups(store).into_iter().find(|backup| !matches!(backup.kind, BackupKind::Before(_)))
}

/// Whether the store changed after its last backup, and that was more than a week ago.
pub fn backup_is_due(store: &Path, now: Millis) -> bool {
    let Some(changed) = changed_at(store) else { return false };
    // A backup from the future was made with a wrong clock.
    newest_backup(store).is_none_or(|newest| {
        let age = now - newest.made_at_ms;
        changed > newest.made_at_ms && !(-DAY..EVERY).contains(&age)
    })
}

/// When a process last wrote to the store; `None` without a store.
fn changed_at(store: &Path) -> Option<Millis> {
    let time = |path: &Path| {
        let written = fs_err::metadata(path).ok().filter(|file| file.len() > 0)?.modified().ok()?;
        i64::try_from(written.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis()).ok()
    };
    let mut log = store.as_os_str().to_owned();
    log.push("-wal");
    time(store).map(|written| time(Path::new(&log)).map_or(written, |log| log.max(written)))
}

/// Whether the disk has room for a copy, with as much left afterwards.
pub fn has_room_for_backup(store: &Path) -> bool {
    let size = fs_err::metadata(store).map_or(0, |file| file.len());
    // Where the free space is not known, the copy itself shows it.
    rustix::fs::statvfs(directory_of(store)).map_or(true, |disk| disk.f_bavail * disk.f_frsize >= 2 * size)
}

impl Store {
    /// Copies the open store to a new file and checks the copy; nothing is overwritten.
    pub fn backup_to(&self, target: &Path) -> Result<(), StoreError> {
        strays::remove_unlocked_copies(directory_of(target));
        let copy = self.checked_copy(directory_of(target))?;
        put_in_place(copy, target)
    }

    /// Makes a backup of a kind, and removes the oldest of that kind beyond `keep`. The caller holds the lock.
    pub fn back_up(
        &self,
        _lock: &BackupLock,
        kind: &BackupKind,
        keep: usize,
        now: Millis,
    ) -> Result<Backup, StoreError> {
        let directory = backups_dir(&self.path);
        let path = directory.join(names::of(&self.path, kind, now));
        match put_in_place(self.checked_copy(&directory)?, &path) {
            // A process that was killed before it changed the schema made the same copy within this second.
            Err(StoreError::Io(error)) if error.kind() == ErrorKind::AlreadyExists && *kind != BackupKind::Manual => {}
            made => made?,
        }
        let same_kind = backups(&self.path).into_iter().filter(|backup| backup.kind == *kind);
        for old in same_kind.filter(|backup| backup.path != path).skip(keep.saturating_sub(1)) {
            fs_err::remove_file(&old.path)?;
        }
        names::read(&self.path, &path).ok_or_else(|| StoreError::Missing(path))
    }

    /// A copy of the store as it is at one moment.
    fn checked_copy(&self, directory: &Path) -> Result<NamedTempFile, StoreError> {
        let copy = strays::new_copy(directory)?;
        let snapshot = self.db.unchecked_transaction()?;
        let expected = Contents::of(&snapshot)?;
        // The snapshot stays the same between the steps, so other writers do not make the copy begin anew.
        copy_in_steps(&snapshot, copy.path(), PAGES, || self.stop_late_migration())?;
        drop(snapshot);
        let damaged = |message: String| StoreError::Corrupt { path: self.path.clone(), message };
        let checked = connect_read_only(copy.path())?;
        if let Some(fault) = integrity_faults(&checked)?.first() {
            return Err(damaged(format!("a copy of it fails the check: {fault}")));
        }
        if Contents::of(&checked).map_err(|error| with_path(&self.path, error))? != expected {
            return Err(damaged("a copy of it has other rows".to_owned()));
        }
        sync_copy(&copy)?;
        Ok(copy)
    }
}

/// What a copy must have in common with its original.
#[derive(Debug, PartialEq, Eq)]
struct Contents {
    version: String,
    rows: Vec<Option<i64>>,
}

impl Contents {
    fn of(db: &Connection) -> Result<Self, StoreError> {
        let rows = ["goals", "responses", "runs"].iter().map(|table| {
            let is_there = db.table_exists(Some("main"), table)?;
            let count = || db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0));
            is_there.then(count).transpose()
        });
        Ok(Self { version: migrate::full_version(db)?, rows: rows.collect::<rusqlite::Result<_>>()? })
    }
}

/// Copies an open database over the file at `target`, in one step: a step reads one snapshot, which blocks no writer of a
/// WAL database. Between two steps other processes write, and the copy would begin anew, for ever on a busy store.
pub(crate) fn copy_database(source: &Connection, target: &Path) -> Result<(), StoreError> {
    copy_in_steps(source, target, -1, || Ok(()))
}

/// Copies some pages at a time. `source` must be in a read transaction if a step does not copy all.
fn copy_in_steps(
    source: &Connection,
    target: &Path,
    pages: i32,
    mut between: impl FnMut() -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut destination = connect(target, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let copy = rusqlite::backup::Backup::new(source, &mut destination)?;
    let explained = |error| explain_copy(source.path().map_or(target, Path::new), target, error);
    loop {
        match copy.step(pages).map_err(explained)? {
            StepResult::Done => return Ok(()),
            StepResult::More => between()?,
            // The connection waited for the lock.
            _ => return Err(StoreError::Busy(source.path().map_or_else(|| target.to_owned(), PathBuf::from))),
        }
    }
}

/// SQLite does not say which of the two files it could not use.
fn explain_copy(source: &Path, target: &Path, error: rusqlite::Error) -> StoreError {
    let is_of_target = outage::of(&error) == Some(Outage::Full) || disk::probe(target).is_some();
    explain(if is_of_target { target } else { source }, error)
}

/// Gives a complete copy its name; the name survives a power cut.
fn put_in_place(copy: NamedTempFile, target: &Path) -> Result<(), StoreError> {
    copy.persist_noclobber(target).map_err(|error| StoreError::of_file(target, &error.error))?;
    sync_directory(target)
}

/// Writes a copy to the disk.
pub(crate) fn sync_copy(copy: &NamedTempFile) -> Result<(), StoreError> {
    copy.as_file().sync_all().map_err(|error| StoreError::of_file(copy.path(), &error))
}

pub(crate) fn sync_directory(file: &Path) -> Result<(), StoreError> {
    Ok(fs_err::File::open(directory_of(file))?.sync_all()?)
}

#[cfg(test)]
mod tests;
