//! What can be wrong with the store, in words that a user can act on.

use std::path::{Path, PathBuf};

use rusqlite::{ErrorCode, ffi};
use steadfast_model::run::RunKind;
use steadfast_system::disk::DiskFault;

use crate::SCHEMA_VERSION;
use crate::disk;
use crate::outage::{self, Outage};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the store {0} does not exist")]
    Missing(PathBuf),
    #[error("the store {path} has schema version {found}, and this steadfast knows versions up to {SCHEMA_VERSION}")]
    FromTheFuture { path: PathBuf, found: i64 },
    #[error("the store {path} is not a usable database: {message}")]
    Corrupt { path: PathBuf, message: String },
    #[error("the search index of the store {0} is damaged")]
    SearchIndex(PathBuf),
    #[error("the store {0} is on a network file system, where SQLite's locking is not safe")]
    NetworkFileSystem(PathBuf),
    #[error("the store {path} cannot be opened: {message}")]
    CannotOpen { path: PathBuf, message: String },
    #[error("the store {0} is read-only")]
    ReadOnly(PathBuf),
    #[error("disk full: {0}")]
    Full(PathBuf),
    #[error("{fault}: {path}")]
    Disk { path: PathBuf, fault: DiskFault },
    #[error("the store {0} is locked by another process")]
    Busy(PathBuf),
    #[error("the store {0} is of an earlier version, and its migration is not done yet")]
    Migrating(PathBuf),
    #[error("another process changed it first")]
    Stale,
    #[error("a {kind} named {name} is running already")]
    RunIsLive { kind: RunKind, name: String },
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("the store {path} failed: {source}")]
    Sql { path: PathBuf, source: rusqlite::Error },
    #[error("the store failed: {0}")]
    Query(#[from] rusqlite::Error),
    #[error("a value in the store is not understood: {0}")]
    Value(String),
}

impl StoreError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing(_) => {
                "it is created by the first goal or session; `steadfast doctor` shows where it is looked for"
            }
            Self::FromTheFuture { .. } => "install the newer steadfast that wrote it",
            Self::Corrupt { .. } | Self::SearchIndex(_) => RECOVER,
            Self::NetworkFileSystem(_) => "set STEADFAST_HOME or STEADFAST_DB to a directory on a local disk",
            Self::ReadOnly(_) | Self::CannotOpen { .. } => "check that the file and its directory can be written",
            Self::Full(_) => DiskFault::Full.hint(),
            Self::Disk { fault, .. } => fault.hint(),
            Self::Busy(_) => "try again in a moment; `steadfast doctor` shows who may hold it",
            Self::Migrating(_) => "a command such as `steadfast goal status` completes it",
            Self::Stale => "run the command again",
            Self::RunIsLive { .. } => "choose another name, or end the one that is running",
            Self::Sql { source: error, .. } | Self::Query(error) if is_damage(error) => RECOVER,
            Self::Io(error) => DiskFault::of(error).map_or("run `steadfast doctor`", DiskFault::hint),
            Self::Sql { .. } | Self::Query(_) | Self::Value(_) => "run `steadfast doctor`",
        }
    }
}

const RECOVER: &str = "nothing was changed; `steadfast db recover` rebuilds it from a backup and what can be read, and \
                       with `--empty` it begins anew";

impl StoreError {
    /// Whether the file of the store is damaged.
    pub fn is_corrupt(&self) -> bool {
        match self {
            Self::Corrupt { .. } | Self::SearchIndex(_) => true,
            Self::Query(error) | Self::Sql { source: error, .. } => is_damage(error),
            _ => false,
        }
    }

    /// Whether only the values of one row cannot be read, perhaps because a newer program wrote them.
    pub fn is_of_row(&self) -> bool {
        match self {
            Self::Value(_) => true,
            Self::Query(error) | Self::Sql { source: error, .. } => {
                matches!(error, rusqlite::Error::FromSqlConversionFailure(..))
            }
            _ => false,
        }
    }

    /// Whether only the search index of session memory is damaged. Its table is whole.
    pub(crate) fn is_of_search_index(&self) -> bool {
        match self {
            Self::SearchIndex(_) => true,
            Self::Query(error) => error.sqlite_extended_error_code() == Some(ffi::SQLITE_CORRUPT_VTAB),
            _ => false,
        }
    }
}

/// What SQLite says about a statement that does not fit the schema. Ours fit the schema of every version.
fn schema_problem(error: &rusqlite::Error) -> Option<&str> {
    let message = match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message,
        rusqlite::Error::SqlInputError { msg, .. } => msg,
        _ => return None,
    };
    let is_it = ["no such column", "no such table", "has no column named"].iter().any(|words| message.contains(words));
    is_it.then_some(message)
}

/// Whether an error means that the file is damaged: SQLite says so, or a value is not what its column can hold.
fn is_damage(error: &rusqlite::Error) -> bool {
    const OF_FILE: [i32; 3] = [ffi::SQLITE_IOERR_SHORT_READ, ffi::SQLITE_IOERR_CORRUPTFS, ffi::SQLITE_IOERR_DATA];
    match error {
        rusqlite::Error::Utf8Error(..) | rusqlite::Error::InvalidColumnType(..) => true,
        error => error.sqlite_error().is_some_and(|error| {
            matches!(error.code, ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
                || OF_FILE.contains(&error.extended_code)
        }),
    }
}

/// Maps SQLite's codes to errors that a user can act on.
pub(crate) fn explain(path: &Path, error: rusqlite::Error) -> StoreError {
    let fault = match error.sqlite_error_code() {
        Some(ErrorCode::OutOfMemory) => Some(DiskFault::NoMemory),
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::ReadOnly) => disk::probe(path),
        _ => None,
    };
    // Whatever the reason was, it is gone or hits only this file.
    let of_index = error.sqlite_extended_error_code() == Some(ffi::SQLITE_IOERR_SHMSIZE);
    let fault = fault.or(of_index.then_some(DiskFault::LogIndex));
    let fault = match fault {
        None | Some(DiskFault::Device) if outage::is_of_sync(&error) => Some(DiskFault::Unsynced),
        fault => fault,
    };
    if let Some(fault) = fault {
        return StoreError::of_disk(path, fault);
    }
    let path = path.to_owned();
    match outage::of(&error) {
        Some(Outage::Busy) => return StoreError::Busy(path),
        Some(Outage::Full) => return StoreError::Full(path),
        None => {}
    }
    if error.sqlite_extended_error_code() == Some(ffi::SQLITE_CORRUPT_VTAB) {
        return StoreError::SearchIndex(path);
    }
    if let Some(message) = schema_problem(&error) {
        return StoreError::Corrupt { path, message: message.to_owned() };
    }
    if is_damage(&error) {
        return StoreError::Corrupt { path, message: error.to_string() };
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly(path),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            StoreError::CannotOpen { path, message: error.to_string() }
        }
        _ => StoreError::Sql { path, source: error },
    }
}
