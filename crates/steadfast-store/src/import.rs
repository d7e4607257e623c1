//! Imports the goals of another store, such as the claude-goal plugin's. The other file is only read: a copy of it is
//! migrated, and rows are taken from there. A second import changes nothing. Every goal that was imported is remembered,
//! so that one which is deleted here comes back only when the user asks for it. What waits behind a goal comes with it,
//! and what a live goal was charged for, so that it is not charged again.

mod goal;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use rusqlite::{Connection, Row, params};
use steadfast_model::clock::Millis;

use super::backup::directory_of;
use super::secrets::{OldRows, TEXTS};
use super::steps::Pace;
use super::{BUSY_TIMEOUT, Store, StoreError, connect_read_only, limit, migrate, strays, with_path};

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportReport {
    pub from_version: i64,
    pub goals: usize,
    /// Goals that were here already, or whose session has another goal here; those go to the history.
    pub already_here: usize,
    pub to_history: usize,
    /// Goals that were live here and ended in the other store since.
    pub ended: usize,
    pub events: usize,
}

/// The fewest and most goals and events of one transaction.
const GOALS: (usize, usize) = (10, 200);
const ROWS: (usize, usize) = (100, 4_000);
/// What is imported of a goal.
const PARTS: [&str; 5] = ["goals", "goal_history", "goal_events", "goal_spans", "subagent_token_cursors"];
/// Rows of the copy that are redacted at once.
const REDACTED_AT_ONCE: usize = 500;

impl Store {
    /// Imports all goals and events of the database at `path`, in several transactions. Killed in between, it is
    /// completed by the next import.
    pub fn import(&mut self, path: &Path) -> Result<ImportReport, StoreError> {
        self.import_goals(path, true)
    }

    /// The same without the goals that an earlier import brought and that were deleted here since. Until `end_import`,
    /// `goals_missing` counts all goals of that store, so that an import that was cut short is completed.
    pub fn import_new(&mut self, path: &Path) -> Result<ImportReport, StoreError> {
        self.write(|db| db.put_upkeep(&open_import(path), "", Millis::MAX))?;
        self.import_goals(path, false)
    }

    pub fn end_import(&mut self, path: &Path) -> Result<(), StoreError> {
        self.write(|db| db.execute("DELETE FROM upkeep WHERE task = ?1", [open_import(path)]).map(|_| ()))
    }

    fn import_goals(&mut self, path: &Path, deleted_too: bool) -> Result<ImportReport, StoreError> {
        if !path.exists() {
            return Err(StoreError::Missing(path.to_owned()));
        }
        // On a full disk the store may be open only to be read, and so would be the copy beside it.
        self.unblock()?;
        strays::remove_unlocked_copies(directory_of(&self.path));
        let file = strays::new_copy(directory_of(&self.path))?;
        let copy = file.path().to_owned();
        let from_version = copy_and_migrate(path, &copy)?;
        self.db.execute("ATTACH DATABASE ?1 AS other", [copy.to_string_lossy()])?;
        let prepared = self.prepare_copy(deleted_too).map_err(|error| {
            let error = with_path(&copy, error);
            // Only the copy was written to, whatever file the connection names.
            error.disk_fault().map_or(error, |fault| StoreError::of_disk(&copy, fault))
        });
        let store = self.path.clone();
        let imported = prepared.and_then(|()| self.take_all(from_version).map_err(|error| with_path(&store, error)));
        self.db.execute("DETACH DATABASE other", [])?;
        imported
    }

    fn prepare_copy(&self, deleted_too: bool) -> Result<(), StoreError> {
        for (table, column) in TEXTS {
            self.redact_copy(table, column)?;
        }
        // The copy has no index for these searches.
        self.db.execute_batch(
            "CREATE INDEX other.import_goals ON goals (goal_id);
             CREATE INDEX other.import_cursors ON subagent_token_cursors (goal_id);
             CREATE INDEX other.import_spans ON goal_spans (goal_id);",
        )?;
        if !deleted_too {
            self.drop_deleted_goals()?;
        }
        self.db.execute_batch(
            "CREATE TABLE other.import_responses AS SELECT * FROM other.responses
               WHERE goal_id IN (SELECT goal_id FROM other.goal_spans WHERE to_ms IS NULL
                 EXCEPT SELECT goal_id FROM main.goals EXCEPT SELECT goal_id FROM main.goal_history);",
        )?;
        Ok(())
    }

    fn take_all(&mut self, from_version: i64) -> Result<ImportReport, StoreError> {
        let mut report = ImportReport { from_version, ..ImportReport::default() };
        // Before the goals: from then on, hooks charge them.
        self.take_responses()?;
        let columns = columns_of(&self.db, "goals")?;
        let ended = goal::ended(self.read())?;
        self.write_in_steps(&ended, |db, id| goal::take_end(db, id, &columns))?;
        report.ended = ended.len();
        let columns = columns.join(", ");
        let all = "SELECT goal_id FROM other.goals UNION SELECT goal_id FROM other.goal_history
            UNION SELECT goal_id FROM other.subagent_token_cursors";
        let goals: Vec<String> = self.read().all(all, [], |row| row.get(0))?;
        let (mut pace, mut left) = (Pace::new(GOALS), goals.as_slice());
        while !left.is_empty() {
            left = pace.step(|most| {
                let (some, later) = left.split_at(most.min(left.len()));
                self.write(|db| {
                    let known = goal::known(db, some)?;
                    some.iter().try_for_each(|id| goal::take(db, id, known.contains(id), &columns, &mut report))
                })?;
                Ok::<_, StoreError>(later)
            })?;
        }
        // Two events of the other store may be equal.
        let known =
            self.read().first("SELECT max(id) FROM main.goal_events", [], |row| row.get::<_, Option<i64>>(0))?;
        let known = known.flatten().unwrap_or(0);
        let last = "SELECT max(id) FROM (SELECT id FROM other.goal_events WHERE id > ?1 ORDER BY id LIMIT ?2)";
        let (mut pace, mut after) = (Pace::new(ROWS), 0);
        while let Some(Some(upto)) = self.read().first(last, [after, limit(pace.amount)], |row| row.get(0))? {
            report.events += pace.step(|_| self.write(|db| db.execute(TAKE_EVENTS, [after, upto, known])))?;
            after = upto;
        }
        Ok(report)
    }

    /// What live goals that are new here were charged for. The session files are read from their beginning here.
    fn take_responses(&mut self) -> Result<(), StoreError> {
        let columns = columns_of(&self.db, "responses")?.join(", ");
        let take = format!(
            "INSERT OR IGNORE INTO main.responses ({columns}) SELECT {columns} FROM other.import_responses
             WHERE rowid > ?1 AND rowid <= ?2"
        );
        let last = "SELECT coalesce(max(rowid), 0) FROM other.import_responses";
        let last: i64 = self.read().first(last, [], |row| row.get(0))?.unwrap_or(0);
        let (mut pace, mut after) = (Pace::new(ROWS), 0);
        while after < last {
            let upto = after + limit(pace.amount);
            pace.step(|_| self.write(|db| db.execute(&take, [after, upto])))?;
            after = upto;
        }
        Ok(())
    }
}

/// The row of `upkeep` that says that an import from this store is not over. No task has such a name.
fn open_import(path: &Path) -> String {
    format!("import {}", path.display())
}

/// How many goals of the store at `path` are not in the one at `here`, which need not exist, and were never imported
/// there, or are live there and ended at `path` since; all of them while an import is not over. Both are only read. An
/// error is about `path`.
pub fn goals_missing(here: &Path, path: &Path) -> Result<usize, StoreError> {
    let theirs = goals_in(path)?;
    if !here.exists() || theirs.is_empty() {
        return Ok(theirs.len());
    }
    // A store here that cannot be read is reported by its own check, and nothing can be imported into it.
    let (Ok(ours), Ok(imported)) = (goals_in(here), rows_in(here, &["imported_goals"], "goal_id", |row| row.get(0)))
    else {
        return Ok(0);
    };
    let imported: HashSet<String> = imported.into_iter().collect();
    let open = rows_in(here, &["upkeep"], "task", |row| row.get::<_, String>(0));
    if open.is_ok_and(|tasks| tasks.contains(&open_import(path))) {
        return Ok(theirs.len());
    }
    let is_missing = |(id, theirs): &(&String, &GoalState)| match ours.get(*id) {
        Some(ours) => ours.is_ended_by(theirs),
        None => !imported.contains(*id),
    };
    Ok(theirs.iter().filter(is_missing).count())
}

/// What decides whether a goal has to be imported.
struct GoalState {
    session_id: String,
    is_over: bool,
    updated_at_ms: Millis,
}

impl GoalState {
    /// The rule of [`goal::ended`].
    fn is_ended_by(&self, other: &Self) -> bool {
        !self.is_over
            && other.is_over
            && other.session_id == self.session_id
            && other.updated_at_ms > self.updated_at_ms
    }
}

fn goals_in(path: &Path) -> Result<HashMap<String, GoalState>, StoreError> {
    let columns = format!("goal_id, session_id, {}, updated_at_ms", goal::OVER);
    let rows = rows_in(path, &["goals", "goal_history"], &columns, |row| {
        let state = GoalState { session_id: row.get(1)?, is_over: row.get(2)?, updated_at_ms: row.get(3)? };
        Ok((row.get(0)?, state))
    })?;
    Ok(rows.into_iter().collect())
}

/// The rows of some tables of a store of any version; an empty file has none.
fn rows_in<T>(
    path: &Path,
    tables: &[&str],
    columns: &str,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, StoreError> {
    let explained = |error: rusqlite::Error| with_path(path, error.into());
    let db = connect_read_only(path)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    let is_table = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    let mut rows = Vec::new();
    for table in tables {
        if db.query_row(is_table, [table], |row| row.get::<_, i64>(0)).map_err(explained)? > 0 {
            let mut statement = db.prepare(&format!("SELECT {columns} FROM {table}")).map_err(explained)?;
            let found = statement.query_map([], &read).map_err(explained)?;
            for row in found {
                rows.push(row.map_err(explained)?);
            }
        }
    }
    Ok(rows)
}

impl Store {
    /// Removes secrets from a column of the copy that is imported. Only the copy is locked.
    fn redact_copy(&self, table: &str, column: &str) -> Result<(), StoreError> {
        let copy = self.db.unchecked_transaction()?;
        let mut from = Some(i64::MAX);
        while let Some(row) = from {
            let most = (REDACTED_AT_ONCE, usize::MAX);
            from = self.read().redact_rows(&OldRows { schema: "other", table, column, from: row, most })?;
        }
        Ok(copy.commit()?)
    }

    /// Removes the goals from the copy that were imported before and are no longer here. Only the copy is locked.
    fn drop_deleted_goals(&self) -> Result<(), StoreError> {
        for table in PARTS {
            let sql = format!(
                "DELETE FROM other.{table} WHERE goal_id IN (SELECT goal_id FROM main.imported_goals
                   EXCEPT SELECT goal_id FROM main.goals EXCEPT SELECT goal_id FROM main.goal_history)"
            );
            self.read().execute(&sql, [])?;
        }
        Ok(())
    }
}

/// Takes the events after the first id up to the second, except those that are here with an id up to the third.
const TAKE_EVENTS: &str =
    "INSERT INTO main.goal_events (session_id, goal_id, hook_name, event_type, status_before, status_after,
       tokens_delta, version_before, version_after, decision, stop_hook_active, pid, payload_json, created_at_ms)
     SELECT session_id, goal_id, hook_name, event_type, status_before, status_after, tokens_delta, version_before,
       version_after, decision, stop_hook_active, pid, payload_json, created_at_ms
     FROM other.goal_events AS theirs
     WHERE theirs.id > ?1 AND theirs.id <= ?2
       AND NOT EXISTS (SELECT 1 FROM main.goal_events AS ours WHERE ours.id <= ?3 AND ours.goal_id = theirs.goal_id
         AND ours.session_id = theirs.session_id AND ours.created_at_ms = theirs.created_at_ms
         AND ours.event_type = theirs.event_type AND ours.pid IS theirs.pid
         AND ours.version_after IS theirs.version_after AND ours.payload_json IS theirs.payload_json)
     ORDER BY theirs.id";

/// Copies a database without writing to it, and migrates the copy. Returns the version it had.
fn copy_and_migrate(path: &Path, copy: &Path) -> Result<i64, StoreError> {
    let explained = |error| with_path(path, error);
    let original = connect_read_only(path)?;
    original.busy_timeout(BUSY_TIMEOUT)?;
    super::backup::copy_database(&original, copy).map_err(explained)?;
    drop(original);
    let version = migrate::version(&connect_read_only(copy)?).map_err(explained)?;
    if version == 0 {
        return Err(StoreError::Corrupt { path: path.to_owned(), message: "it holds no goals".into() });
    }
    if version > super::SCHEMA_VERSION {
        return Err(StoreError::FromTheFuture { path: path.to_owned(), found: version });
    }
    drop(Store::open_existing(copy)?);
    Ok(version)
}

/// The stored columns of a table; those of both goal tables are the same.
fn columns_of(db: &Connection, table: &str) -> Result<Vec<String>, StoreError> {
    let mut statement = db.prepare("SELECT name FROM pragma_table_info(?1)")?;
    Ok(statement.query_map(params![table], |row| row.get(0))?.collect::<Result<_, _>>()?)
}
