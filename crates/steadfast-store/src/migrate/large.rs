//! Migrates large tables in short transactions. SQLite builds an index in one piece, under the write lock, which takes up
//! to a second for a million rows. So a large table that gets a new index is copied, a few rows at a time, to a table
//! beside it that has the index from the start. Triggers repeat in the copy what older programs change meanwhile. The
//! migration then only exchanges the names, and upkeep empties the old table.
//!
//! A process that is killed loses nothing: until the exchange the old table is complete, and the next process continues
//! the copy where it ended.

mod names;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params_from_iter};

use super::{additions, version};
use crate::steps::Pace;
use crate::{SCHEMA_VERSION, Store, StoreError, limit};

/// A smaller table gets its indexes in a few dozen milliseconds.
const LARGE: usize = 50_000;
/// The fewest and most rows of one transaction.
const ROWS: (usize, usize) = (500, 16_000);

/// A table that may be large when a migration gives it an index.
pub(crate) struct LargeTable {
    name: &'static str,
    /// The columns of its primary key.
    key: &'static [&'static str],
    /// The addition to version 6 that makes its new indexes; 0 is version 6 itself.
    addition: usize,
    /// Its indexes before the migration. The copy has some of their names after it.
    old_indexes: &'static [&'static str],
    /// An index that only migrated files have.
    new_index: &'static str,
    /// All its indexes after the migration: the name, and what follows the name of the table.
    indexes: &'static [(&'static str, &'static str)],
}

pub(crate) static LARGE_TABLES: [LargeTable; 2] = [
    LargeTable {
        name: "goal_events",
        key: &["id"],
        addition: 0,
        old_indexes: &["idx_goal_events_session"],
        new_index: "idx_goal_events_goal",
        indexes: &[
            ("idx_goal_events_session", "(session_id, created_at_ms)"),
            ("idx_goal_events_goal", "(goal_id, id)"),
        ],
    },
    LargeTable {
        name: "responses",
        key: &["host", "response_id"],
        addition: 6,
        old_indexes: &["idx_responses_goal", "idx_responses_spent"],
        new_index: "idx_responses_session",
        indexes: &[
            ("idx_responses_goal", "(goal_id) WHERE goal_id IS NOT NULL"),
            ("idx_responses_spend", "(at_ms, model, input_tokens, cache_creation_tokens, output_tokens, cost_micros)"),
            ("idx_responses_session", "(session_id, input_tokens, cache_creation_tokens, output_tokens, cost_micros)"),
        ],
    },
];

impl LargeTable {
    /// The table of an old file that its migration gives an index.
    fn to_index(db: &Connection) -> Result<Option<&'static Self>, StoreError> {
        let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'index' AND name = ?1 AND tbl_name = ?2";
        let is_migrated =
            |table: &Self| Ok::<_, StoreError>(version(db)? == SCHEMA_VERSION && additions(db)? >= table.addition);
        for table in &LARGE_TABLES {
            // An index that the user removed is no reason for a copy that no migration would exchange.
            let is_there = db.table_exists(Some("main"), table.name)? && !is_migrated(table)?;
            if is_there && !db.prepare(sql)?.exists([table.new_index, table.name])? {
                return Ok(Some(table));
            }
        }
        Ok(None)
    }

    /// The key as a list of columns.
    pub(crate) fn key(&self) -> String {
        self.key.join(", ")
    }

    /// Whether other programs or the user added something to the table that an exchange would lose: an index, a trigger
    /// or a reference from another table.
    fn is_extended(&self, db: &Connection) -> Result<bool, StoreError> {
        let sql = "SELECT name FROM sqlite_schema
                   WHERE type IN ('index', 'trigger') AND sql IS NOT NULL AND tbl_name = ?1 COLLATE NOCASE
                   UNION ALL SELECT '' FROM sqlite_schema AS own, pragma_foreign_key_list(own.name) AS reference
                   WHERE own.type = 'table' AND reference.\"table\" = ?1 COLLATE NOCASE";
        let mut statement = db.prepare(sql)?;
        let names: Vec<String> = statement.query_map([self.name], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let is_ours = |name: &String| self.old_indexes.contains(&name.as_str()) || self.triggers().contains(name);
        Ok(!names.iter().all(is_ours))
    }

    /// The columns of the copy that have values of their own: SQLite computes the others.
    fn columns(&self, db: &Connection) -> Result<String, StoreError> {
        let mut statement =
            db.prepare("SELECT '\"' || replace(name, '\"', '\"\"') || '\"' FROM pragma_table_info(?1)")?;
        let names: Vec<String> = statement.query_map([self.copy()], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(names.join(", "))
    }

    fn is_large(&self, db: &Connection) -> Result<bool, StoreError> {
        let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT ?1)", self.name);
        let rows: i64 = db.query_row(&sql, [limit(LARGE)], |row| row.get(0))?;
        Ok(rows >= limit(LARGE))
    }

    fn can_be_copied(&self, db: &Connection) -> Result<bool, StoreError> {
        let has_clash = self.has_clash_with_copy(db)? || self.has_clash_with_replaced(db)?;
        Ok(!has_clash && self.is_large(db)? && !self.is_extended(db)?)
    }

    /// Makes the empty copy, and the triggers that keep its rows equal.
    fn begin_copy(&self, db: &Connection) -> Result<(), StoreError> {
        let (table, copy) = (self.name, self.copy());
        let sql = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        let definition: String = db.query_row(sql, [table], |row| row.get(0))?;
        let columns = definition.find('(').and_then(|at| definition.get(at..)).unwrap_or_default();
        db.execute_batch(&format!("CREATE TABLE {copy} {columns}"))?;
        for (name, what) in self.indexes {
            db.execute_batch(&format!("CREATE INDEX {} ON {copy} {what}", Self::index_of_copy(name)))?;
        }
        let (key, columns) = (self.key(), self.columns(db)?);
        let row = |name: &str| self.key.iter().map(|column| format!("{name}.{column}")).collect::<Vec<_>>().join(", ");
        let (new, old) = (row("new"), row("old"));
        let remove = |row: &str| format!("DELETE FROM {copy} WHERE ({key}) = ({row});");
        // A row behind the copied ones is copied later.
        let add = format!(
            "INSERT INTO {copy} ({columns}) SELECT {columns} FROM {table} WHERE ({key}) = ({new})
               AND EXISTS (SELECT 1 FROM {copy} WHERE ({key}) > ({new}));"
        );
        let [added, changed, deleted] = self.triggers();
        db.execute_batch(&format!(
            "CREATE TRIGGER {added} AFTER INSERT ON {table} BEGIN {remove_new} {add} END;
             CREATE TRIGGER {changed} AFTER UPDATE ON {table} BEGIN {remove_old} {remove_new} {add} END;
             CREATE TRIGGER {deleted} AFTER DELETE ON {table} BEGIN {remove_old} END;",
            remove_new = remove(&new),
            remove_old = remove(&old),
        ))?;
        Ok(())
    }

    /// Copies up to `most` of the rows behind the last copied one. Returns how many.
    fn copy_some(&self, db: &Connection, most: usize) -> Result<usize, StoreError> {
        let (table, copy, key, columns) = (self.name, self.copy(), self.key(), self.columns(db)?);
        let descending = format!("{} DESC", self.key.join(" DESC, "));
        let last = format!("SELECT {key} FROM {copy} ORDER BY {descending} LIMIT 1");
        let read = |row: &Row<'_>| (0..self.key.len()).map(|column| row.get(column)).collect();
        // As values: SQLite does not search the key of several columns for the row of a subquery.
        let mut values: Vec<Value> = db.query_row(&last, [], read).optional()?.unwrap_or_default();
        let behind = match values.len() {
            0 => String::new(),
            count => format!("WHERE ({key}) > ({})", vec!["?"; count].join(", ")),
        };
        values.push(limit(most).into());
        let sql =
            format!("INSERT INTO {copy} ({columns}) SELECT {columns} FROM {table} {behind} ORDER BY {key} LIMIT ?");
        Ok(db.execute(&sql, params_from_iter(values))?)
    }

    /// Whether the table can take its copy's place no more: something was added to it since the copy began, or the user
    /// made a table with the name that it would get.
    fn cannot_be_exchanged(&self, db: &Connection) -> Result<bool, StoreError> {
        let has_same_columns = all_columns(db, self.name)? == all_columns(db, &self.copy())?;
        Ok(!has_same_columns || self.is_extended(db)? || self.has_clash_with_replaced(db)?)
    }

    /// Puts the copy in the place of the table.
    fn exchange(&self, db: &Connection) -> Result<(), StoreError> {
        let (table, copy, old) = (self.name, self.copy(), self.replaced());
        let stays = self.cannot_be_exchanged(db)?;
        // What was added since the last step.
        while !stays && self.copy_some(db, ROWS.1)? > 0 {}
        for trigger in self.triggers() {
            db.execute_batch(&format!("DROP TRIGGER {trigger}"))?;
        }
        if stays {
            // The table gets its new indexes from the migration.
            return Ok(db.execute_batch(&format!("DROP TABLE {copy}"))?);
        }
        // Ids of deleted rows must not be given again.
        db.execute(
            "UPDATE sqlite_sequence SET seq = (SELECT seq FROM sqlite_sequence WHERE name = ?1) WHERE name = ?2",
            [table, &copy],
        )?;
        self.rename_indexes(db)?;
        // Views of the user keep the name that they use.
        db.pragma_update(None, "legacy_alter_table", true)?;
        let renamed = db.execute_batch(&format!(
            "ALTER TABLE {table} RENAME TO {old};
             ALTER TABLE {copy} RENAME TO {table};"
        ));
        db.pragma_update(None, "legacy_alter_table", false)?;
        renamed?;
        let reason = "a migration replaced this table";
        Ok(db.execute_batch(&format!(
            "CREATE TRIGGER {} BEFORE INSERT ON {old} BEGIN SELECT RAISE(ABORT, '{reason}'); END",
            self.mark()
        ))?)
    }

    /// Gives the indexes of the copy the names of the schema. SQLite has no statement that renames an index, and to make
    /// one anew takes as long as the copy avoids. Other connections read the definitions again when the tables are
    /// renamed.
    fn rename_indexes(&self, db: &Connection) -> Result<(), StoreError> {
        let of_table = self.old_indexes.iter().map(|name| ((*name).to_owned(), Self::index_of_replaced(name)));
        let of_copy = self.indexes.iter().map(|(name, _)| (Self::index_of_copy(name), (*name).to_owned()));
        let sql = "UPDATE sqlite_schema SET name = ?2, sql = replace(sql, ?1, ?2) WHERE type = 'index' AND name = ?1";
        db.pragma_update(None, "writable_schema", true)?;
        let renamed = of_table.chain(of_copy).try_for_each(|(from, to)| db.execute(sql, [from, to]).map(|_| ()));
        db.pragma_update(None, "writable_schema", "reset")?;
        Ok(renamed?)
    }
}

/// The definitions of all columns of a table, also of those that SQLite computes.
fn all_columns(db: &Connection, table: &str) -> Result<Vec<String>, StoreError> {
    let sql =
        "SELECT concat_ws(' ', name, type, \"notnull\", quote(dflt_value), pk, hidden) FROM pragma_table_xinfo(?1)";
    let mut statement = db.prepare(sql)?;
    Ok(statement.query_map([table], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

/// Puts a finished copy in the place of its table, in the transaction of the addition that makes its indexes: the schema
/// is that of its version before and after.
pub(super) fn exchange(db: &Connection, addition: usize) -> Result<(), StoreError> {
    match being_copied(db)? {
        Some(table) if table.addition == addition => table.exchange(db),
        _ => Ok(()),
    }
}

/// The table that an earlier process began to copy.
fn being_copied(db: &Connection) -> Result<Option<&'static LargeTable>, StoreError> {
    let table = LargeTable::to_index(db)?;
    Ok(if table.map_or(Ok(false), |table| table.is_being_copied(db))? { table } else { None })
}

/// Whether an earlier process began to copy a table of this file.
pub(crate) fn is_begun(db: &Connection) -> Result<bool, StoreError> {
    Ok(being_copied(db)?.is_some())
}

impl Store {
    /// Copies the large table that the rest of the migration gives an index, with other processes in between. A call
    /// with a deadline gives up there, and the next one continues.
    pub(crate) fn copy_large_table(&self) -> Result<(), StoreError> {
        let Some(table) = LargeTable::to_index(&self.db)? else { return Ok(()) };
        if !table.is_being_copied(&self.db)? && !table.can_be_copied(&self.db)? {
            return Ok(());
        }
        let mut pace = Pace::new(ROWS);
        loop {
            let is_copied = pace.step(|most| {
                let tx = self.begin()?;
                // Another process may have migrated it meanwhile.
                let is_copied = if LargeTable::to_index(&tx)?.is_none_or(|next| next.name != table.name) {
                    true
                } else if table.is_being_copied(&tx)? {
                    table.cannot_be_exchanged(&tx)? || table.copy_some(&tx, most)? < most
                } else if !table.can_be_copied(&tx)? {
                    true
                } else {
                    table.begin_copy(&tx)?;
                    false
                };
                tx.commit()?;
                Ok::<_, StoreError>(is_copied)
            })?;
            if is_copied {
                return Ok(());
            }
            self.stop_late_migration()?;
        }
    }
}

#[cfg(test)]
mod tests;
