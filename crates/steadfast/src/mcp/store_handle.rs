//! The server's handle on the store: opens it as soon as it exists, keeps it open, and reopens it after an error or when
//! the file was replaced.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use steadfast_app::action::ActionError;
use steadfast_app::caller::NotTheClient;
use steadfast_app::tool_args::ArgumentError;
use steadfast_model::goal::change::Refusal;
use steadfast_store::{Store, StoreError};
use steadfast_system::paths::Paths;
use steadfast_system::process::{Caller, Need, ProcessId};

use crate::outbox::{self, Audience};

/// Why a tool refused a call, with a hint for the model.
#[derive(Debug)]
pub(super) enum ToolError {
    Action(ActionError),
    Refused { message: String, hint: String },
}

impl ToolError {
    pub(super) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused { message: message.into(), hint: hint.into() }
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

impl From<ActionError> for ToolError {
    fn from(error: ActionError) -> Self {
        Self::Action(error)
    }
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        Self::Action(error.into())
    }
}

impl From<Refusal> for ToolError {
    fn from(error: Refusal) -> Self {
        Self::Action(error.into())
    }
}

impl From<ArgumentError> for ToolError {
    fn from(error: ArgumentError) -> Self {
        Self::new(error.to_string(), error.hint())
    }
}

pub(super) struct StoreHandle {
    /// As this server found them when it started.
    first_paths: Paths,
    db_flag: Option<PathBuf>,
    opened: Mutex<Option<Opened>>,
    client: OnceLock<Result<Option<ProcessId>, NotTheClient>>,
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
    pub(super) fn new(paths: &Paths, db_flag: Option<&Path>) -> Self {
        Self {
            first_paths: paths.clone(),
            db_flag: db_flag.map(Path::to_owned),
            opened: Mutex::new(None),
            client: OnceLock::new(),
        }
    }

    /// The paths now: `setup` may have moved the hooks to another store while this server runs.
    pub(super) fn paths(&self) -> Paths {
        Paths::find(self.db_flag.as_deref()).unwrap_or_else(|_| self.first_paths.clone())
    }

    /// The client that started this server; `None` on systems that do not show it.
    pub(super) fn client(&self) -> Result<Option<ProcessId>, NotTheClient> {
        *self.client.get_or_init(|| {
            let client = Caller::look().map(|caller| caller.proven_client(Need::Connection));
            client.transpose().map_err(NotTheClient::Unproven)
        })
    }

    /// Opens an existing store, so that hooks of this session are not the last to close it: the last close checkpoints
    /// the WAL, which costs two more flushes. Errors are reported by the first call that needs the store.
    pub(super) fn open_early(&self) {
        let _ = self.look_up(|_| Ok(Some(())));
    }

    /// Runs `work` with the store, which must exist.
    pub(super) fn store<T>(&self, work: impl FnOnce(&mut Store) -> Result<T, ToolError>) -> Result<T, ToolError> {
        self.with(Store::open_existing, work)
    }

    /// Like `store`, but returns `None` if the store does not exist.
    pub(super) fn look_up<T>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<Option<T>, ToolError>,
    ) -> Result<Option<T>, ToolError> {
        match self.store(work) {
            Err(ToolError::Action(ActionError::Store(StoreError::Missing(_)))) => Ok(None),
            other => other,
        }
    }

    /// Runs `work` with the store, opened by `open` if necessary.
    pub(super) fn with<T>(
        &self,
        open: fn(&Path) -> Result<Store, StoreError>,
        work: impl FnOnce(&mut Store) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        // A call that panicked left nothing half done: SQLite rolled its transaction back.
        let mut slot = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let paths = self.paths();
        let path = &paths.store;
        // Do not keep using a file that was moved away, restored from a backup, or is the store no longer.
        let kept = slot.take().filter(|opened| file_id(path) == Some(opened.file));
        let mut opened = match kept {
            Some(opened) => opened,
            None => {
                Opened { store: open(path)?, file: file_id(path).ok_or_else(|| StoreError::Missing(path.clone()))? }
            }
        };
        let result = work(&mut opened.store);
        if opened.store.added_message() {
            outbox::send(&paths, &mut opened.store, Audience::Away);
        }
        let store_failed =
            matches!(&result, Err(ToolError::Action(ActionError::Store(error))) if !matches!(error, StoreError::Stale));
        if !store_failed {
            *slot = Some(opened);
        }
        result
    }
}
