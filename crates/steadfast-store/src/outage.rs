//! Times in which the store cannot be used: another process writes for long, or the disk has no room. Callers wait or
//! come back later; nothing is broken.

use rusqlite::ErrorCode;

use super::StoreError;

/// Why a store cannot be used for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    /// Another process writes.
    Busy,
    /// The disk has no room.
    Full,
}

impl StoreError {
    /// The outage behind an error. Nothing was changed, and the same call may succeed later.
    pub fn outage(&self) -> Option<Outage> {
        match self {
            Self::Busy(_) | Self::Migrating(_) => Some(Outage::Busy),
            Self::Query(error) | Self::Sql { source: error, .. } => of(error),
            Self::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => Some(Outage::Full),
            _ => self.disk_fault().filter(|fault| fault.is_lack_of_room()).map(|_| Outage::Full),
        }
    }
}

pub(super) fn of(error: &rusqlite::Error) -> Option<Outage> {
    let error = error.sqlite_error()?;
    match error.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Some(Outage::Busy),
        ErrorCode::DiskFull => Some(Outage::Full),
        // The index of the log cannot grow.
        _ if error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE => Some(Outage::Full),
        _ if OF_SYNC.contains(&error.extended_code) => Some(Outage::Full),
        _ => None,
    }
}

/// What was written did not reach the disk: it may be full, over quota or broken.
const OF_SYNC: [i32; 2] = [rusqlite::ffi::SQLITE_IOERR_FSYNC, rusqlite::ffi::SQLITE_IOERR_DIR_FSYNC];

pub(super) fn is_of_sync(error: &rusqlite::Error) -> bool {
    error.sqlite_extended_error_code().is_some_and(|code| OF_SYNC.contains(&code))
}
