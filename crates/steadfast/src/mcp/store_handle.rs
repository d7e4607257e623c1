//! The store as the server holds it: opened as soon as it exists, kept open from then on, and opened
//! anew after a failure or when the file was replaced under us.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use steadfast_core::action::ActionError;
use steadfast_core::paths::Paths;
use steadfast_core::store::{Store, StoreError};

/// Why a tool refused: one message, and what to do about it.
#[derive(Debug)]
pub(super) enum ToolError {
    Action(ActionError),
    Refused { message: String, hint: String },
}

impl ToolError {
    pub(super) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused { message: message.into(), hint: hint.into() }
    }

    fn is_missing_store(&self) -> bool {
        matches!(self, Self::Action(ActionError::Store(StoreError::Missing(_))))
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Action(error) => write!(formatter, "{error}\nhint: {}", error.hint()),
            Self::Refused { message, hint } => write!(formatter, "{message}\nhint: {hint}"),
        }
    }
}

impl<E: Into<ActionError>> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::Action(error.into())
    }
}

pub(super) struct StoreHandle {
    pub(super) paths: Paths,
    opened: Mutex<Option<Opened>>,
}

struct Opened {
    store: Store,
    file: FileId,
}

/// Device and inode.
type FileId = (u64, u64);

fn file_id(path: &Path) -> Option<FileId> {
    fs_err::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

impl StoreHandle {
    pub(super) fn new(paths: &Paths) -> Self {
        Self { paths: paths.clone(), opened: Mutex::new(None) }
    }

    /// Opens a store that exists, so that hooks of this session are not the last to close it: that one folds the
    /// log back, with two more flushes to the disk. A failure is told by the first call that needs the store.
    pub(super) fn hold(&self) {
        let _ = self.look_up(|_| Ok(Some(())));
    }

    /// Works with the store, which must exist.
    pub(super) fn store<T>(&self, work: impl FnOnce(&mut Store) -> Result<T, ToolError>) -> Result<T, ToolError> {
        self.with(Store::open_existing, work)
    }

    /// Works with the store, which is created if need be.
    pub(super) fn store_or_new<T>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        self.with(Store::open, work)
    }

    /// Looks something up; a store that does not exist holds nothing.
    pub(super) fn look_up<T>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<Option<T>, ToolError>,
    ) -> Result<Option<T>, ToolError> {
        match self.store(work) {
            Err(failure) if failure.is_missing_store() => Ok(None),
            other => other,
        }
    }

    fn with<T>(
        &self,
        open: fn(&Path) -> Result<Store, StoreError>,
        work: impl FnOnce(&mut Store) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        // A call that panicked left no half-done work behind: SQLite rolled its transaction back.
        let mut slot = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let path = &self.paths.store;
        // A store that was moved away or restored from a backup must not live on in our open file.
        let kept = slot.take().filter(|opened| file_id(path) == Some(opened.file));
        let mut opened = match kept {
            Some(opened) => opened,
            None => {
                Opened { store: open(path)?, file: file_id(path).ok_or_else(|| StoreError::Missing(path.clone()))? }
            }
        };
        let done = work(&mut opened.store);
        let store_failed =
            matches!(&done, Err(ToolError::Action(ActionError::Store(error))) if !matches!(error, StoreError::Stale));
        if !store_failed {
            *slot = Some(opened);
        }
        done
    }
}
