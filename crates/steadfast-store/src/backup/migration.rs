//! The copies from before a migration. `goals.db.v5.bak` is made before the first step and never replaced once a copy of a
//! large table has begun. If other programs worked on during the copy, `goals.db.v5-latest.bak` has the state from just
//! before the exchange; the next attempt replaces it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use steadfast_model::clock::Millis;

use super::{BackupKind, BackupLock, has_room_for_backup, sync_directory};
use crate::migrate::{self, large};
use crate::{SCHEMA_VERSION, Store, StoreError, beside, connect_read_only};

/// How many copies from before a change of the schema are kept for each version.
const KEPT_PER_VERSION: usize = 2;
/// A larger store is not copied by a process with a deadline: a client may be waiting.
const SMALL: u64 = 64 * 1024 * 1024;
/// How long a process without a deadline waits for another one that makes the backup before a migration.
const LOCK_PATIENCE: Duration = Duration::from_secs(30);

/// The backup from before the migration of a version.
fn first_backup(store: &Path, version: i64) -> PathBuf {
    beside(store, &format!("v{version}.bak"))
}

/// The backup from just before the end of that migration.
fn latest_backup(store: &Path, version: i64) -> PathBuf {
    beside(store, &format!("v{version}-latest.bak"))
}

/// Where the backups from before migrations may be, the latest first.
pub(crate) fn before_versions(store: &Path) -> impl Iterator<Item = PathBuf> {
    let of_version = |version| [latest_backup(store, version), first_backup(store, version)];
    (1..SCHEMA_VERSION).rev().flat_map(of_version).filter(|path| path.exists())
}

impl Store {
    /// Keeps a copy of the store before a migration. If another process began to migrate it meanwhile, that process made
    /// the copy, and this one must not replace it. A half-copied store whose backup is not beside it, because the file
    /// was moved, gets one too: its old table is complete. Without the lock there is no copy, and so no migration.
    pub(crate) fn keep_old_version(&self, version: i64) -> Result<(), StoreError> {
        let target = first_backup(&self.path, version);
        let is_wanted = |db: &Connection| {
            let has_version = migrate::version(db)? == version;
            Ok::<_, StoreError>(has_version && (!target.exists() || !large::is_begun(db)?))
        };
        if !is_wanted(&self.db)? {
            return Ok(());
        }
        let lock = self.lock_for_migration()?;
        // The process that held the lock before may have begun since.
        if is_wanted(&self.db)? {
            self.keep(&lock, &target, is_wanted)?;
        }
        Ok(())
    }

    /// Keeps the state of a store whose copied table is about to be exchanged, if other programs worked on since its
    /// backup. Not on a nearly full disk: the first backup is there, and upkeep has not emptied the replaced table.
    pub(crate) fn keep_latest_state(&self, version: i64) -> Result<(), StoreError> {
        let is_wanted = |db: &Connection| Ok::<_, StoreError>(migrate::version(db)? == version && large::is_begun(db)?);
        if !is_wanted(&self.db)? || !has_room_for_backup(&self.path) {
            return Ok(());
        }
        let (first, latest) = (first_backup(&self.path, version), latest_backup(&self.path, version));
        let work = Work::of(&self.db)?;
        let has_it =
            |backup: &Path| connect_read_only(backup).and_then(|db| Work::of(&db)).is_ok_and(|kept| kept == work);
        if has_it(&first) || has_it(&latest) {
            return Ok(());
        }
        let lock = self.lock_for_migration()?;
        self.keep(&lock, &latest, is_wanted)
    }

    /// A process with a deadline leaves a copy that takes longer than that to one without: it would begin anew each
    /// time, and a client would wait in vain.
    fn lock_for_migration(&self) -> Result<BackupLock, StoreError> {
        let end = self.end_of_migration();
        if end.is_some() && !self.is_small() {
            return Err(StoreError::Migrating(self.path.clone()));
        }
        let patience = end.map_or(LOCK_PATIENCE, |end| end.saturating_duration_since(Instant::now()));
        BackupLock::take(&self.path, patience)?.ok_or_else(|| StoreError::Migrating(self.path.clone()))
    }

    /// Puts a copy at `target` if it is one that is wanted: another process may have migrated the store meanwhile.
    fn keep(
        &self,
        lock: &BackupLock,
        target: &Path,
        is_wanted: impl FnOnce(&Connection) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        // Made where the lock's next holder removes what a killed process left.
        let copy = self.checked_copy(&lock.directory)?;
        if is_wanted(&connect_read_only(copy.path())?)? {
            copy.persist(target).map_err(|error| StoreError::of_file(target, &error.error))?;
            sync_directory(target)?;
        }
        Ok(())
    }

    /// Keeps a copy of the store before additions to its schema, unless the disk is nearly full or the store so large that
    /// a client would wait for the copy: a hook makes the additions all the same, so that goals stay driven; they change
    /// no row, and the weekly backup is there. Another process that holds the lock may be at the same work, so it is
    /// waited for, within limits. The process that began to copy a large table has made its backup before.
    pub(crate) fn keep_before_additions(&self, now: Millis) -> Result<Option<BackupLock>, StoreError> {
        let end = self.end_of_migration();
        if (end.is_some() && !self.is_small()) || !has_room_for_backup(&self.path) {
            return Ok(None);
        }
        let patience = end.map_or(LOCK_PATIENCE, |end| end.saturating_duration_since(Instant::now()));
        let lock = BackupLock::take(&self.path, patience)?;
        if let Some(lock) = &lock
            && !migrate::is_complete(&self.db)?
            && !large::is_begun(&self.db)?
        {
            let kind = BackupKind::Before(migrate::full_version(&self.db)?);
            self.back_up(lock, &kind, KEPT_PER_VERSION, now)?;
        }
        Ok(lock)
    }

    fn is_small(&self) -> bool {
        fs_err::metadata(&self.path).is_ok_and(|file| file.len() <= SMALL)
    }
}

/// What a program that works with an old version changes: it counts up the version of a goal or adds an event.
#[derive(PartialEq)]
struct Work([Vec<Option<i64>>; 2]);

impl Work {
    fn of(db: &Connection) -> Result<Self, StoreError> {
        let read = |sql: &str| {
            db.query_row(sql, [], |row| (0..3).map(|column| row.get(column)).collect::<rusqlite::Result<_>>())
        };
        Ok(Self([
            read("SELECT count(*), sum(version), max(updated_at_ms) FROM goals")?,
            read("SELECT count(*), min(id), max(id) FROM goal_events")?,
        ]))
    }
}
