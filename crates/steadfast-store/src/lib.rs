//! The only file that opens SQLite. It refuses a database on a network file system, a corrupt one and one from the
//! future, sets the pragmas, and starts write transactions. The SQL of each aggregate is in the modules below.

mod appointments;
mod clock;
mod codex_goals;
mod column;
mod disk;
mod error;
mod goals;
mod import;
mod ledger;
mod memory;
mod migrate;
mod outage;
mod outbox;
mod queue;
mod quota;
mod runs;
mod sessions;
pub mod spend;
mod stamp;
mod strays;
mod subagents;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod typed_commands;
mod verifications;

use std::cell::Cell;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Params, Row, TransactionBehavior};

use steadfast_system::disk::DiskFault;
use steadfast_system::{bounded, paths};

pub use appointments::Appointment;
pub use codex_goals::codex_goal;
use disk::refuse_network_file_system;
pub use error::StoreError;
use error::explain;
pub use goals::{EventFilter, EventRow, Origin};
pub use import::ImportReport;
pub use ledger::{Cursor, Recorded, Source};
pub use memory::{Forgotten, Hit, MemoryFilter, Scope, SessionActivity, Snapshot};
pub use outage::Outage;
pub use queue::QueuedGoal;
pub use runs::{
    ApprovalRow, IterationReport, IterationRow, IterationUsage, Nesting, NoteRow, RunFilter, RunLine, RunRow,
};
pub use sessions::{ClientActivity, ParentLink, Session, ToolCall};
pub use stamp::StoreStamp;
pub use strays::remove_stray_backups;
pub use typed_commands::{SentAgain, TextClaim, TypedText};

/// The schema this binary writes.
pub const SCHEMA_VERSION: i64 = 6;

// Older versions can corrupt a WAL database when a checkpoint races with a reset of the log.
const _: () = assert!(rusqlite::ffi::SQLITE_VERSION_NUMBER >= 3_051_003, "SQLite 3.51.3 or newer is required");

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// An open store.
#[derive(Debug)]
pub struct Store {
    db: Connection,
    path: PathBuf,
    /// When it stops waiting for other processes; without one, each wait takes up to [`BUSY_TIMEOUT`].
    deadline: Option<Instant>,
    added_message: Cell<bool>,
    /// Why it can only be read.
    blocked: Option<DiskFault>,
}

/// Reads and writes rows, inside a transaction or outside of one. The modules below add the methods.
#[derive(Debug, Clone, Copy)]
pub struct Db<'a>(&'a Connection, &'a Cell<bool>);

impl Db<'_> {
    /// Returns the number of rows that the statement changed.
    fn execute(self, sql: &str, values: impl Params) -> Result<usize, StoreError> {
        self.named(self.0.prepare_cached(sql).and_then(|mut statement| statement.execute(values)))
    }

    /// Names the store in an error.
    fn named<T>(self, done: rusqlite::Result<T>) -> Result<T, StoreError> {
        done.map_err(|error| explain(Path::new(self.0.path().unwrap_or_default()), error))
    }

    /// Returns the first row, if there is one.
    fn first<T>(
        self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        self.named(self.0.prepare_cached(sql).and_then(|mut statement| statement.query_row(values, read).optional()))
    }

    /// Returns all rows.
    fn all<T>(
        self,
        sql: &str,
        values: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.named(self.0.prepare_cached(sql).and_then(|mut statement| statement.query_map(values, read)?.collect()))
    }
}

/// The value of an SQL `LIMIT`.
fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

impl Store {
    /// Opens the store, creating or migrating it as needed.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        create_if_missing(path)?;
        Self::open_until(path, None)
    }

    /// Opens the store, creating or migrating it as needed. All its waits for other processes together take at most
    /// `limit`.
    pub fn open_within(path: &Path, limit: Duration) -> Result<Self, StoreError> {
        create_if_missing(path)?;
        Self::open_existing_within(path, limit)
    }

    /// Opens a store that must exist already, migrating it as needed.
    pub fn open_existing(path: &Path) -> Result<Self, StoreError> {
        Self::open_until(path, None)
    }

    /// The same with a limit on all its waits for other processes together.
    pub fn open_existing_within(path: &Path, limit: Duration) -> Result<Self, StoreError> {
        Self::open_until(path, Some(Instant::now() + limit))
    }

    fn open_until(path: &Path, deadline: Option<Instant>) -> Result<Self, StoreError> {
        if !path.exists() {
            return Err(StoreError::Missing(path.to_owned()));
        }
        refuse_network_file_system(path)?;
        match Self::open_to_write(path, deadline) {
            Err(error) => {
                error.disk_fault().and_then(|fault| Self::open_to_read(path, fault)).map(Ok).unwrap_or(Err(error))
            }
            opened => opened,
        }
    }

    fn of(db: Connection, path: &Path, deadline: Option<Instant>) -> Self {
        Self { db, path: path.to_owned(), deadline, added_message: Cell::new(false), blocked: None }
    }

    fn open_to_write(path: &Path, deadline: Option<Instant>) -> Result<Self, StoreError> {
        let mut store = Self::of(connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?, path, deadline);
        // SQLite does not wait for the lock when it makes a new file a WAL database.
        let deadline = deadline.unwrap_or_else(|| Instant::now() + BUSY_TIMEOUT);
        loop {
            match store.prepare().map_err(|error| with_path(path, error)) {
                Err(StoreError::Busy(_)) if Instant::now() < deadline => std::thread::sleep(BUSY_PAUSE),
                Err(StoreError::Busy(_)) if disk::has_no_locks(path) => {
                    return Err(StoreError::of_disk(path, DiskFault::NoLocks));
                }
                other => return other.map(|()| store),
            }
        }
    }

    /// Opens a store; `None` if it does not exist.
    pub fn open_if_there(path: &Path) -> Result<Option<Self>, StoreError> {
        match Self::open_existing(path) {
            Err(StoreError::Missing(_)) => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn prepare(&mut self) -> Result<(), StoreError> {
        self.db.busy_timeout(self.time_left().unwrap_or(BUSY_TIMEOUT))?;
        // Keeps a query plan independent of the bound values, so that SQLite prepares a statement once.
        self.db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        let version = migrate::version(&self.db)?;
        if version > SCHEMA_VERSION {
            return Err(StoreError::FromTheFuture { path: self.path.clone(), found: version });
        }
        if self.db.is_readonly("main")? {
            return Err(StoreError::of_disk(&self.path, disk::probe(&self.path).unwrap_or(DiskFault::ReadOnly)));
        }
        let mode: String = self.db.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        if mode != "wal" {
            let _: String = self.db.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
        }
        self.db.pragma_update(None, "synchronous", "full")?;
        if (1..SCHEMA_VERSION).contains(&version) {
            self.keep_old_version(version)?;
        }
        if version < SCHEMA_VERSION || !migrate::is_complete(&self.db)? {
            migrate::run(&mut self.db)?;
        }
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Runs `work` in one write transaction; an error rolls everything back.
    pub fn write<T, E: From<StoreError>>(&mut self, work: impl FnOnce(Db<'_>) -> Result<T, E>) -> Result<T, E> {
        self.unblock()?;
        let path = self.path.clone();
        if let Some(left) = self.time_left() {
            self.db.busy_timeout(left).map_err(|error| E::from(explain(&path, error)))?;
        }
        let tx = self
            .db
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|error| E::from(explain(&path, error)))?;
        let done = work(Db(&tx, &self.added_message))?;
        tx.commit().map_err(|error| E::from(explain(&path, error)))?;
        Ok(done)
    }

    /// For reads outside a transaction.
    pub fn read(&self) -> Db<'_> {
        Db(&self.db, &self.added_message)
    }

    /// Copies the open store to a new file; an existing one is replaced only when the copy is complete.
    pub fn backup_to(&self, target: &Path) -> Result<(), StoreError> {
        let copy = self.copy_beside(target)?;
        copy.persist(target).map_err(|error| StoreError::Io(error.error))?;
        Ok(())
    }

    /// Keeps a copy of the store before a migration. If another process migrated it meanwhile, that process made the
    /// copy, and this one must not replace it.
    fn keep_old_version(&self, version: i64) -> Result<(), StoreError> {
        let target = beside(&self.path, &format!("v{version}.bak"));
        let copy = self.copy_beside(&target)?;
        if migrate::version(&connect_read_only(copy.path())?)? == version {
            copy.persist(target).map_err(|error| StoreError::Io(error.error))?;
        }
        Ok(())
    }

    fn copy_beside(&self, target: &Path) -> Result<tempfile::NamedTempFile, StoreError> {
        let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let copy = tempfile::Builder::new().prefix(strays::PREFIX).tempfile_in(directory)?;
        copy_database(&self.db, copy.path())?;
        copy.as_file().sync_all()?;
        Ok(copy)
    }

    /// Asks SQLite for faults in the file; empty when there are none.
    pub fn integrity_faults(&self) -> Result<Vec<String>, StoreError> {
        let mut statement = self.db.prepare("PRAGMA integrity_check(20)")?;
        let lines: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }

    pub fn journal_mode(&self) -> Result<String, StoreError> {
        Ok(self.db.pragma_query_value(None, "journal_mode", |row| row.get(0))?)
    }
}

/// Opens the database of another program without writing to it. A reader of a WAL database creates the files of the
/// log and leaves them behind. Without such files no process has it open, and SQLite can treat it as immutable.
fn connect_read_only(path: &Path) -> Result<Connection, StoreError> {
    // SQLite would wait for a writer of a pipe.
    if fs_err::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(StoreError::CannotOpen { path: path.to_owned(), message: "not a file".to_owned() });
    }
    // A log that could not be written is empty.
    let has_content = |end: &&str| fs_err::metadata(disk::with_end(path, end)).is_ok_and(|found| found.len() > 0);
    let in_use = ["-wal", "-journal"].iter().any(has_content);
    if in_use {
        return connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    }
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    connect(Path::new(&uri), flags).map_err(|error| match error {
        StoreError::CannotOpen { message, .. } => StoreError::CannotOpen { path: path.to_owned(), message },
        other => other,
    })
}

#[expect(clippy::disallowed_methods, reason = "the one place that opens databases")]
fn connect(path: &Path, access: OpenFlags) -> Result<Connection, StoreError> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags).map_err(|error| explain(path, error))
}

fn with_path(path: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Query(error) => explain(path, error),
        other => other,
    }
}

/// Copies an open database over the file at `target`.
fn copy_database(source: &Connection, target: &Path) -> Result<(), StoreError> {
    let mut destination = connect(target, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let backup = rusqlite::backup::Backup::new(source, &mut destination)?;
    Ok(backup.run_to_completion(1_000, Duration::ZERO, None)?)
}

/// `goals.db` and `v4.bak` give `goals.db.v4.bak`.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

/// SQLite gives its log and index files the mode of the database.
fn create_if_missing(path: &Path) -> Result<(), StoreError> {
    if path.exists() {
        return Ok(());
    }
    let cannot = |error: std::io::Error| match DiskFault::of(&error) {
        Some(fault) => StoreError::of_disk(path, fault),
        None => StoreError::CannotOpen { path: path.to_owned(), message: error.to_string() },
    };
    if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        paths::create_private_dir(directory).map_err(cannot)?;
        refuse_network_file_system(directory)?;
    }
    bounded::append(path).map(|_| ()).map_err(cannot)
}

#[cfg(test)]
pub(crate) mod tests;
