//! Rebuilds a damaged store from its newest backup and from what can still be read. The new file is built and checked in
//! a directory beside the store. Only then is the damaged file moved aside, never deleted, and the new one gets its name.
//! A recovery that was killed is continued or begun again by the next.

mod files;
mod key;
mod merge;
mod salvage;
mod search_index;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use steadfast_model::clock::Millis;

use super::backup::{self, BackupLock, sync_directory};
use super::checks::integrity_faults;
use super::schema::{self, SCHEMA_FAULT};
use super::{SCHEMA_VERSION, Store, StoreError, backups, connect, connect_read_only, log_damage, migrate, with_path};
use files::Workshop;
pub(crate) use files::{remove_dry_run, was_there};
use search_index::SEARCH_INDEX;
pub(crate) use search_index::unfinished_index;

/// How long to wait for a backup that is being made.
const PATIENCE: Duration = Duration::from_secs(30);

/// What to recover from, and whether to change anything.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecoveryOptions<'a> {
    /// This backup instead of the newest one that passes the check.
    pub from: Option<&'a Path>,
    pub dry_run: bool,
    /// Nothing at all: the new store is empty.
    pub empty: bool,
}

/// What a recovery found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// The store passes the check.
    NotNeeded,
    /// A recovery that was killed had done all but its last steps.
    Continued {
        kept: PathBuf,
    },
    /// Only the search index of session memory was damaged; it is made again from its table.
    SearchIndex {
        kept: Option<PathBuf>,
    },
    Rebuilt(Box<Rebuilt>),
}

/// A new store and what it was made from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rebuilt {
    pub backup: Option<PathBuf>,
    /// Backups that failed the check, and why.
    pub refused_backups: Vec<(PathBuf, String)>,
    /// Where the damaged file is now; `None` if nothing was changed or there was none.
    pub kept: Option<PathBuf>,
    /// Why nothing could be read from the damaged file.
    pub unreadable: Option<String>,
    pub tables: Vec<RecoveredTable>,
}

/// The rows of one table in the new store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveredTable {
    pub name: String,
    pub from_backup: usize,
    /// Rows that the damaged file had.
    pub salvaged: usize,
    /// Rows that were read but are not valid.
    pub refused: usize,
    /// Places that cannot be read. How many rows were there is not known.
    pub gaps: usize,
}

impl RecoveredTable {
    /// Whether rows may be missing or older than they were.
    pub fn is_incomplete(&self) -> bool {
        self.refused > 0 || self.gaps > 0
    }
}

/// What is wrong with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// Only the search index, which is made again in place.
    SearchIndex,
    File,
}

/// Checks a store without changing it. A store that cannot be opened for another reason is an error.
pub fn damage(path: &Path) -> Result<Option<Damage>, StoreError> {
    // Before the file is opened: the last to close it writes the log into it, as far as it is read.
    if log_damage(path)?.is_some() {
        return Ok(Some(Damage::File));
    }
    let faults = faults(path)?;
    let is_of_index = |fault: &String| fault.contains(SEARCH_INDEX) && !fault.starts_with(SCHEMA_FAULT);
    let is_of_index = faults.iter().all(is_of_index);
    Ok((!faults.is_empty()).then_some(if is_of_index { Damage::SearchIndex } else { Damage::File }))
}

fn faults(path: &Path) -> Result<Vec<String>, StoreError> {
    let checked = check(path).and_then(|(version, faults)| match version {
        found if found > SCHEMA_VERSION => Err(StoreError::FromTheFuture { path: path.to_owned(), found }),
        _ => Ok(faults),
    });
    match checked {
        Err(StoreError::Corrupt { message, .. }) => Ok(vec![message]),
        other => other,
    }
}

/// The version of a store and its faults, by a connection that writes nothing.
fn check(path: &Path) -> Result<(i64, Vec<String>), StoreError> {
    if let Some(problem) = was_there(path) {
        return Err(problem);
    }
    if !path.exists() {
        return Err(StoreError::Missing(path.to_owned()));
    }
    let db = connect_read_only(path)?;
    let read = || {
        db.busy_timeout(super::BUSY_TIMEOUT)?;
        Ok::<_, StoreError>((migrate::version(&db)?, integrity_faults(&db)?))
    };
    read().map_err(|error| with_path(path, error))
}

/// Recovers the store at `path`. `finish` works on the new store before it gets its name. No other process may have the
/// store open.
pub fn recover(
    path: &Path,
    options: RecoveryOptions<'_>,
    finish: impl FnOnce(&mut Store) -> Result<(), StoreError>,
    now: Millis,
) -> Result<Recovery, StoreError> {
    let _lock = if options.dry_run {
        None
    } else {
        Some(BackupLock::take(path, PATIENCE)?.ok_or_else(|| StoreError::Busy(path.to_owned()))?)
    };
    if !options.dry_run {
        remove_dry_run(path);
    }
    if !options.dry_run
        && let Some(kept) = files::continue_interrupted(path)?
    {
        return Ok(Recovery::Continued { kept });
    }
    match damage(path)? {
        None => {
            // Left by a recovery that was killed after its last step.
            if !options.dry_run {
                files::clear(path)?;
            }
            return Ok(Recovery::NotNeeded);
        }
        Some(Damage::SearchIndex) if options.from.is_none() && !options.empty => {
            let kept = (!options.dry_run).then(|| search_index::rebuild(path, now)).transpose()?;
            return Ok(Recovery::SearchIndex { kept });
        }
        Some(_) => {}
    }
    let workshop = Workshop::set_up(path, options.dry_run)?;
    let rebuilt = rebuild(path, &workshop, options).and_then(|mut rebuilt| {
        let mut store = Store::open_existing(&workshop.new_store())?;
        finish(&mut store)?;
        close_for_good(store)?;
        if !options.dry_run {
            rebuilt.kept = Some(workshop.put_in_place(path, now)?).filter(|kept| kept.exists());
        }
        Ok(rebuilt)
    });
    // What is left of a failed one is of no use.
    workshop.clear()?;
    Ok(Recovery::Rebuilt(Box::new(rebuilt?)))
}

/// Builds the new store in the workshop.
fn rebuild(path: &Path, workshop: &Workshop, options: RecoveryOptions<'_>) -> Result<Rebuilt, StoreError> {
    let mut rebuilt = Rebuilt::default();
    let target = workshop.new_store();
    if options.empty {
        drop(Store::open(&target)?);
        return Ok(rebuilt);
    }
    rebuilt.backup = choose_backup(path, options.from, &mut rebuilt.refused_backups)?;
    if let Some(backup) = &rebuilt.backup {
        fs_err::copy(backup, &target)?;
    }
    let mut store = Store::open(&target)?;
    match open_damaged(&workshop.damaged()) {
        Ok(damaged) => {
            store.db.pragma_update(None, "foreign_keys", false)?;
            rebuilt.tables = store.write(|new| merge::merge(new.0, &damaged))?;
        }
        Err(error) if rebuilt.backup.is_some() => {
            rebuilt.unreadable = Some(error.to_string());
            rebuilt.tables = merge::only_backup(&store.db)?;
        }
        Err(error) => {
            let message = format!("there is no backup, and the file cannot be read: {error}");
            return Err(StoreError::Corrupt { path: path.to_owned(), message });
        }
    }
    store.write(search_index::make_at_once)?;
    match store.integrity_faults()?.first() {
        None => Ok(rebuilt),
        Some(fault) => Err(StoreError::Value(format!("the recovered store fails its check: {fault}"))),
    }
}

/// The newest backup that passes the check.
fn choose_backup(
    path: &Path,
    from: Option<&Path>,
    refused: &mut Vec<(PathBuf, String)>,
) -> Result<Option<PathBuf>, StoreError> {
    if let Some(from) = from {
        return check_backup(from).map(|()| Some(from.to_owned()));
    }
    let listed = backups(path).into_iter().map(|backup| backup.path);
    for candidate in listed.chain(backup::before_versions(path)) {
        match check_backup(&candidate) {
            Ok(()) => return Ok(Some(candidate)),
            Err(error) => refused.push((candidate, error.to_string())),
        }
    }
    Ok(None)
}

fn check_backup(path: &Path) -> Result<(), StoreError> {
    if !path.exists() {
        return Err(StoreError::Missing(path.to_owned()));
    }
    let damaged = |message: String| StoreError::Corrupt { path: path.to_owned(), message };
    let db = connect_read_only(path)?;
    let version = migrate::version(&db).map_err(|error| with_path(path, error))?;
    match integrity_faults(&db).map_err(|error| with_path(path, error))?.first() {
        Some(fault) => Err(damaged(fault.clone())),
        None if version == 0 => Err(damaged("it holds no goals".to_owned())),
        None if version > SCHEMA_VERSION => Err(StoreError::FromTheFuture { path: path.to_owned(), found: version }),
        None => Ok(()),
    }
}

/// Opens the copy of the damaged file, with its log and a schema that can be read.
fn open_damaged(path: &Path) -> Result<Connection, StoreError> {
    if !path.exists() {
        return Err(StoreError::Missing(path.to_owned()));
    }
    // What cannot be repaired is reported below, or as rows that are missing.
    let _ = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|db| schema::repair(&db));
    let db = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let is_ours = || {
        db.pragma_update(None, "cell_size_check", true)?;
        db.table_exists(Some("main"), "goals")
    };
    match is_ours() {
        Ok(true) => Ok(db),
        Ok(false) => Err(StoreError::Value("it has no goals".to_owned())),
        Err(error) => Err(with_path(path, error.into())),
    }
}

/// Writes the log into the file, so that one file is all there is.
fn close_for_good(store: Store) -> Result<(), StoreError> {
    let path = store.path.clone();
    store.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    store.db.close().map_err(|(_, error)| error)?;
    fs_err::File::open(&path)?.sync_all()?;
    sync_directory(&path)
}

#[cfg(test)]
mod tests;
