//! The only file that opens SQLite. It refuses a database on a network file system, a corrupt one and one from the
//! future, sets the pragmas, and starts write transactions. The SQL of each aggregate is in the modules below.

mod appointments;
mod backup;
mod begun;
mod checks;
mod clock;
mod codex_goals;
mod column;
mod disk;
mod error;
mod goals;
mod import;
mod ledger;
mod line;
mod log_check;
mod memory;
mod migrate;
mod outage;
mod outbox;
mod purge;
mod queue;
mod quota;
mod reconnect;
mod recover;
mod runs;
mod schema;
mod secrets;
mod sessions;
pub mod spend;
mod stamp;
mod steps;
mod strays;
mod subagents;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod totals;
mod typed_commands;
mod upkeep;
mod verifications;
mod views;
mod wait;

use std::cell::Cell;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Params, Row, Transaction};

use steadfast_model::clock::steady::Tick;
use steadfast_model::text;
use steadfast_system::disk::DiskFault;
use steadfast_system::{bounded, paths};

pub use appointments::Appointment;
pub use backup::{
    Backup, BackupKind, BackupLock, backup_is_due, backups, backups_dir, has_room_for_backup, newest_backup,
};
pub use codex_goals::codex_goal;
use disk::refuse_network_file_system;
pub use error::StoreError;
use error::explain;
pub use goals::{EventFilter, EventRow, GoalRef, Origin};
pub use import::{ImportReport, goals_missing};
pub use ledger::{Cursor, Recorded, Source};
pub use log_check::log_damage;
pub use memory::{Forgotten, Hit, MemoryFilter, Scope, SessionActivity, SessionRef, Snapshot};
pub use migrate::limit_migrations;
pub use outage::Outage;
pub use purge::{Progress, PurgePart};
pub use queue::QueuedGoal;
pub use recover::{Damage, Rebuilt, RecoveredTable, Recovery, RecoveryOptions, damage, recover};
pub use runs::{
    ApprovalRow, IterationReport, IterationRow, IterationUsage, Nesting, NoteRow, RunFilter, RunLine, RunRow,
};
pub use sessions::{ClientActivity, ParentLink, Session, ToolCall};
pub use stamp::StoreStamp;
pub use strays::remove_stray_backups;
pub use totals::{GoalResponse, StatusCount, UsageTotal};
pub use typed_commands::{SentAgain, TextClaim, TypedText};
pub use upkeep::{ExpiredRun, Keep, UsageDay, UsageKey};
pub use views::{Charged, GoalModel};
use wait::{BUSY_TIMEOUT, Waits};

/// The schema this binary writes.
pub const SCHEMA_VERSION: i64 = 6;

// Older versions can corrupt a WAL database when a checkpoint races with a reset of the log.
const _: () = assert!(rusqlite::ffi::SQLITE_VERSION_NUMBER >= 3_051_003, "SQLite 3.51.3 or newer is required");

/// The version of SQLite in this binary.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

/// SQLite keeps the file of the log. After a large write, the next one that starts it anew cuts it to this size.
const LOG_LIMIT: u64 = 8 << 20;

/// An open store.
#[derive(Debug)]
pub struct Store {
    db: Connection,
    path: PathBuf,
    /// When it stops waiting for other processes; without one, each wait takes up to [`BUSY_TIMEOUT`].
    deadline: Option<Instant>,
    waits: Waits,
    added_message: Cell<bool>,
    /// The row of the clock, as last seen.
    tick: Option<Tick>,
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

    /// A fingerprint of the path of the store's file.
    pub fn file_id(self) -> String {
        text::fingerprint(self.0.path().unwrap_or_default())
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
        Self::open_until(path, None, true)
    }

    /// Opens the store, creating or migrating it as needed. All its waits for other processes together take at most
    /// `limit`.
    pub fn open_within(path: &Path, limit: Duration) -> Result<Self, StoreError> {
        create_if_missing(path)?;
        Self::open_existing_within(path, limit)
    }

    /// Opens a store that must exist already, migrating it as needed.
    pub fn open_existing(path: &Path) -> Result<Self, StoreError> {
        Self::open_until(path, None, true)
    }

    /// The same with a limit on all its waits for other processes together.
    pub fn open_existing_within(path: &Path, limit: Duration) -> Result<Self, StoreError> {
        Self::open_until(path, Some(Instant::now() + limit), true)
    }

    /// The same for callers that have no time for a migration: one that is needed is the error
    /// [`StoreError::Migrating`].
    pub fn open_migrated_within(path: &Path, limit: Duration) -> Result<Self, StoreError> {
        Self::open_until(path, Some(Instant::now() + limit), false)
    }

    fn open_until(path: &Path, deadline: Option<Instant>, may_migrate: bool) -> Result<Self, StoreError> {
        if let Some(problem) = recover::was_there(path) {
            return Err(problem);
        }
        if !path.exists() {
            return Err(StoreError::Missing(path.to_owned()));
        }
        refuse_network_file_system(path)?;
        match Self::open_to_write(path, deadline, may_migrate) {
            Err(error) => {
                error.disk_fault().and_then(|fault| Self::open_to_read(path, fault)).map(Ok).unwrap_or(Err(error))
            }
            opened => opened,
        }
    }

    fn of(db: Connection, path: &Path, deadline: Option<Instant>) -> Self {
        Self {
            db,
            path: path.to_owned(),
            deadline,
            waits: Waits::default(),
            added_message: Cell::new(false),
            tick: None,
            blocked: None,
        }
    }

    fn open_to_write(path: &Path, deadline: Option<Instant>, may_migrate: bool) -> Result<Self, StoreError> {
        let mut store = Self::of(connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?, path, deadline);
        // SQLite does not wait for the lock when it makes a new file a WAL database.
        let (began, deadline) = (Instant::now(), store.end_of_wait());
        loop {
            match store.prepare(may_migrate).map_err(|error| with_path(path, error)) {
                Err(StoreError::Busy(_)) if Instant::now() < deadline => wait::pause(began),
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

    fn prepare(&mut self, may_migrate: bool) -> Result<(), StoreError> {
        self.db.busy_handler(Some(self.waits.handler(self.deadline)))?;
        // Keeps a query plan independent of the bound values, so that SQLite prepares a statement once.
        self.db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        self.db.pragma_update(None, "cell_size_check", true)?;
        let version = migrate::version(&self.db)?;
        if version > SCHEMA_VERSION {
            return Err(StoreError::FromTheFuture { path: self.path.clone(), found: version });
        }
        if !may_migrate && !self.is_current(version)? {
            return Err(StoreError::Migrating(self.path.clone()));
        }
        if self.db.is_readonly("main")? {
            return Err(StoreError::of_disk(&self.path, disk::probe(&self.path).unwrap_or(DiskFault::ReadOnly)));
        }
        if version == 0 {
            // Only a file without pages takes this; it lets free pages be given back one by one.
            self.db.pragma_update(None, "auto_vacuum", "incremental")?;
        }
        self.set_secure_delete("FAST")?;
        let mode: String = self.db.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        if mode != "wal" {
            let _: String = self.db.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
        }
        self.db.pragma_update(None, "synchronous", "full")?;
        let _: i64 =
            self.db.pragma_update_and_check(None, "journal_size_limit", LOG_LIMIT.cast_signed(), |row| row.get(0))?;
        if !self.is_current(version)? {
            self.migrate(version)?;
        }
        begun::note(&self.path);
        self.read_clock()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// When a wait that begins now is over.
    pub(crate) fn end_of_wait(&self) -> Instant {
        self.deadline.unwrap_or_else(|| Instant::now() + BUSY_TIMEOUT)
    }

    /// Begins a write transaction when the writers that came before are done.
    fn begin(&self) -> Result<Transaction<'_>, StoreError> {
        let begun = self.waits.without(|| line::begin(&self.db, &self.path, self.end_of_wait()));
        begun.map_err(|error| explain(&self.path, error))
    }

    /// Runs `work` in one write transaction; an error rolls everything back.
    pub fn write<T, E: From<StoreError>>(&mut self, work: impl FnOnce(Db<'_>) -> Result<T, E>) -> Result<T, E> {
        self.unblock()?;
        let mut tick = self.tick.clone();
        let tx = self.begin()?;
        let db = Db(&tx, &self.added_message);
        db.keep_time(&mut tick)?;
        let done = work(db)?;
        tx.commit().map_err(|error| explain(&self.path, error))?;
        self.tick = tick;
        Ok(done)
    }

    /// For reads outside a transaction.
    pub fn read(&self) -> Db<'_> {
        Db(&self.db, &self.added_message)
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
    if let Some(problem) = recover::was_there(path) {
        return Err(problem);
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
