//! Writers wait in line. SQLite lets every writer poll for the write lock, so that newcomers overtake and some starve.
//! Here a writer that finds the store busy draws a ticket: a file in the directory `goals.db-line`, whose name is a
//! number and whose lock shows that the writer lives. Only the writer with the lowest number tries for the write lock.
//! The last one to leave removes the directory, so that one look at it shows an idle store that nobody waits.
//!
//! A dead writer's ticket is removed by those behind it. A living one that does not try although the store is free (it
//! was stopped) is passed over, and continues at its place when it runs again.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::outage::{self, Outage};

/// The pause of the first in line. Those behind it wait one more for each writer ahead, up to the longest.
const PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// The pause where no ticket can be drawn: the disk is full, say.
const PAUSE_WITHOUT_TICKET: Duration = Duration::from_millis(5);
/// A first in line that was seen this long may be stopped: the next one tries for the lock, too.
const STUCK_AFTER: Duration = Duration::from_millis(100);
/// How long the first in line has to take a store that was found free, before it is passed over: it may only be waiting
/// for a core.
const GRACE: Duration = Duration::from_millis(20);
/// Others may draw the same number at the same time.
const DRAWS: usize = 16;

/// Begins a write transaction when all earlier writers are done, at the latest at the deadline. The connection must not
/// wait for locks by itself.
pub(super) fn begin<'a>(db: &'a Connection, store: &Path, deadline: Instant) -> rusqlite::Result<Transaction<'a>> {
    let directory = directory(store);
    if !directory.exists() || Instant::now() >= deadline {
        match try_begin(db) {
            Err(error) if is_busy(&error) && Instant::now() < deadline => {}
            begun => return begun,
        }
    }
    let mut waiter = Waiter { ticket: Ticket::draw(&directory).ok(), directory, first: None, idle: None };
    loop {
        let ahead = waiter.look();
        let is_stuck = waiter.is_stuck(ahead);
        if ahead == 0 || is_stuck || Instant::now() >= deadline {
            match try_begin(db) {
                Err(error) if is_busy(&error) && Instant::now() < deadline => {
                    (waiter.first, waiter.idle) = (None, None);
                }
                Ok(begun) if is_stuck && Instant::now() < deadline && !waiter.has_had_grace() => {
                    drop(begun);
                    std::thread::sleep(GRACE.min(deadline.saturating_duration_since(Instant::now())));
                    continue;
                }
                begun => {
                    if is_stuck && begun.is_ok() {
                        waiter.pass();
                    }
                    return begun;
                }
            }
        }
        std::thread::sleep(waiter.pause(ahead).min(deadline.saturating_duration_since(Instant::now())));
    }
}

/// The directory of the tickets.
pub(super) fn directory(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push("-line");
    PathBuf::from(name)
}

fn try_begin(db: &Connection) -> rusqlite::Result<Transaction<'_>> {
    Transaction::new_unchecked(db, TransactionBehavior::Immediate)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    outage::of(error) == Some(Outage::Busy)
}

/// A writer in line. It leaves when it is dropped.
struct Waiter {
    directory: PathBuf,
    /// Without one it waits beside the line.
    ticket: Option<Ticket>,
    /// The first in line, and since when it is seen there.
    first: Option<(u64, Instant)>,
    /// The first in line that was seen to leave a free store unused.
    idle: Option<u64>,
}

impl Waiter {
    /// How many are ahead. Removes dead tickets there, and returns to the line after it was passed over.
    fn look(&mut self) -> usize {
        loop {
            let Some(ticket) = &self.ticket else { return 0 };
            let own = ticket.number;
            if !ticket.is_in_line() {
                let returned = Ticket::take(&self.directory, own).or_else(|_| Ticket::draw(&self.directory));
                self.ticket = returned.ok();
                continue;
            }
            let Ok(numbers) = numbers(&self.directory) else {
                self.ticket = None;
                return 0;
            };
            let ahead = numbers.iter().filter(|number| **number < own).count();
            let Some(first) = numbers.first().copied().filter(|_| ahead > 0) else {
                self.first = None;
                return 0;
            };
            if !remove_if_dead(&self.directory.join(first.to_string())) {
                if self.first.is_none_or(|(seen, _)| seen != first) {
                    self.first = Some((first, Instant::now()));
                }
                return ahead;
            }
        }
    }

    /// Whether the first in line has been there so long that it may be stopped. Those further back wait longer, so that
    /// one after the other finds out.
    fn is_stuck(&self, ahead: usize) -> bool {
        let patience = STUCK_AFTER.saturating_mul(u32::try_from(ahead).unwrap_or(u32::MAX));
        ahead > 0 && self.first.is_some_and(|(_, since)| since.elapsed() >= patience)
    }

    /// Whether the store was found free behind the same first in line before.
    fn has_had_grace(&mut self) -> bool {
        let first = self.first.map(|(number, _)| number);
        std::mem::replace(&mut self.idle, first) == first
    }

    /// Removes the tickets ahead: the store was free, and their writers did not try.
    fn pass(&self) {
        let Some(own) = &self.ticket else { return };
        for number in numbers(&self.directory).unwrap_or_default() {
            if number < own.number {
                let _ = fs_err::remove_file(self.directory.join(number.to_string()));
            }
        }
    }

    fn pause(&self, ahead: usize) -> Duration {
        if self.ticket.is_none() {
            return PAUSE_WITHOUT_TICKET;
        }
        PAUSE.saturating_mul(u32::try_from(ahead + 1).unwrap_or(u32::MAX)).min(LONGEST_PAUSE)
    }
}

/// A place in line: a locked file.
struct Ticket {
    number: u64,
    path: PathBuf,
    file: File,
}

impl Ticket {
    /// Takes the number after the last one.
    fn draw(directory: &Path) -> io::Result<Self> {
        for _ in 0..DRAWS {
            let last = match numbers(directory) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    create(directory)?;
                    None
                }
                found => found?.last().copied(),
            };
            match Self::take(directory, last.unwrap_or(0).saturating_add(1)) {
                Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {}
                taken => return taken,
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    fn take(directory: &Path, number: u64) -> io::Result<Self> {
        let path = directory.join(number.to_string());
        let file = fs_err::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?.into_parts().0;
        let ticket = Self { number, path, file };
        // Before it was locked, another writer may have taken it for a dead one.
        match ticket.file.try_lock() {
            Ok(()) if ticket.is_in_line() => Ok(ticket),
            Err(TryLockError::Error(error)) => Err(error),
            Ok(()) | Err(TryLockError::WouldBlock) => Err(ErrorKind::NotFound.into()),
        }
    }

    /// Whether no other writer has removed its file.
    fn is_in_line(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.nlink() > 0)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.is_in_line() {
            let _ = fs_err::remove_file(&self.path);
        }
        if let Some(directory) = self.path.parent() {
            // Fails while others wait.
            let _ = fs_err::remove_dir(directory);
        }
    }
}

fn create(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The numbers of all tickets, the lowest first.
fn numbers(directory: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs_err::read_dir(directory)? {
        numbers.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Removes the ticket of a dead writer, and returns whether it is gone.
fn remove_if_dead(path: &Path) -> bool {
    match File::open(path) {
        Ok(file) => file.try_lock().is_ok() && fs_err::remove_file(path).is_ok(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests;
