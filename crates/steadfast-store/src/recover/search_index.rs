//! Makes a damaged search index again, in short transactions with pauses between them. Until it is complete, a row in
//! `upkeep` says so: an index without some rows looks sound.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use steadfast_model::clock::Millis;

use super::files;
use crate::backup::{self, sync_directory};
use crate::steps::Pace;
use crate::{Db, Store, StoreError, beside, limit, strays};

pub(super) const SEARCH_INDEX: &str = "session_events_fts";
/// The row in `upkeep`.
const UNFINISHED: &str = "search_index";
/// The fewest and most rows of one transaction.
const ROWS: (usize, usize) = (100, 8_000);
/// How often it is begun again because rows were deleted before their turn.
const TRIES: usize = 3;

/// How far an index is made.
pub(super) struct Reached {
    /// The last row that is in it, and the last one that was there when it was emptied. Triggers add all later ones.
    at: i64,
    last: i64,
    /// How many rows were there then, and how many of them were put into it.
    rows: usize,
    added: usize,
}

/// The fault of an index that is not complete.
pub(crate) fn unfinished_index(db: &Connection) -> Result<Option<String>, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM upkeep WHERE task = ?1)";
    let is_unfinished =
        db.table_exists(Some("main"), "upkeep")? && db.query_row(sql, [UNFINISHED], |row| row.get::<_, bool>(0))?;
    Ok(is_unfinished.then(|| format!("the search index {SEARCH_INDEX} is not complete")))
}

/// Keeps a copy of the store, and makes the index again. Other processes may use the store meanwhile.
pub(super) fn rebuild(path: &Path, now: Millis) -> Result<PathBuf, StoreError> {
    let mut store = Store::open_existing(path)?;
    let kept = beside(path, &files::aside(now));
    let copy = strays::new_copy(backup::directory_of(path))?;
    backup::copy_database(&store.db, copy.path())?;
    backup::sync_copy(&copy)?;
    copy.persist_noclobber(&kept).map_err(|error| StoreError::of_file(&kept, &error.error))?;
    sync_directory(&kept)?;
    make_in_steps(&mut store)?;
    match store.integrity_faults()?.first() {
        None => Ok(kept),
        Some(fault) => Err(StoreError::Corrupt { path: path.to_owned(), message: fault.clone() }),
    }
}

fn make_in_steps(store: &mut Store) -> Result<(), StoreError> {
    for _ in 0..TRIES {
        let mut pace = Pace::new(ROWS);
        let mut reached = pace.step(|most| store.write(|db| begin(db, most)))?;
        while reached.at < reached.last {
            pace.step(|most| store.write(|db| add_rows(db, &mut reached, most)))?;
        }
        if store.write(|db| finish(db, &reached))? {
            return Ok(());
        }
    }
    store.write(make_at_once)
}

/// Empties the index, and adds the first rows.
pub(super) fn begin(db: Db<'_>, most: usize) -> Result<Reached, StoreError> {
    db.execute("INSERT OR REPLACE INTO upkeep (task, position, due_at_ms) VALUES (?1, '', 0)", [UNFINISHED])?;
    db.execute(&format!("INSERT INTO {SEARCH_INDEX} ({SEARCH_INDEX}) VALUES ('delete-all')"), [])?;
    let (last, rows): (i64, i64) =
        db.named(db.0.query_row("SELECT coalesce(max(id), 0), count(*) FROM session_events", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        }))?;
    let mut reached = Reached { at: i64::MIN, last, rows: usize::try_from(rows).unwrap_or(0), added: 0 };
    add_rows(db, &mut reached, most)?;
    Ok(reached)
}

fn add_rows(db: Db<'_>, reached: &mut Reached, most: usize) -> Result<(), StoreError> {
    let range = "FROM session_events WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3";
    let values = params![reached.at, reached.last, limit(most)];
    let upto = format!("SELECT max(id) FROM (SELECT id {range})");
    let upto: Option<i64> = db.first(&upto, values, |row| row.get(0))?.flatten();
    let add = format!("INSERT INTO {SEARCH_INDEX} (rowid, text, subject) SELECT id, text, subject {range}");
    reached.added += db.execute(&add, values)?;
    reached.at = upto.unwrap_or(reached.last);
    Ok(())
}

/// Whether the index is complete. The deletion of a row that was not in it yet made its sums wrong.
fn finish(db: Db<'_>, reached: &Reached) -> Result<bool, StoreError> {
    let is_complete = reached.added == reached.rows;
    if is_complete {
        db.execute("DELETE FROM upkeep WHERE task = ?1", [UNFINISHED])?;
    }
    Ok(is_complete)
}

/// Makes the index in one transaction.
pub(super) fn make_at_once(db: Db<'_>) -> Result<(), StoreError> {
    db.execute(&format!("INSERT INTO {SEARCH_INDEX} ({SEARCH_INDEX}) VALUES ('rebuild')"), [])?;
    db.execute("DELETE FROM upkeep WHERE task = ?1", [UNFINISHED])?;
    Ok(())
}
