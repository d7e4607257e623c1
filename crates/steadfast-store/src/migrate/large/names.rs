//! The names that a migration gives to what is beside a table, and what shows that it is ours: a user may have a table of
//! any name.

use rusqlite::Connection;

use super::{LARGE_TABLES, LargeTable};
use crate::StoreError;

const COPY: &str = "steadfast_copy_of_";
const REPLACED: &str = "steadfast_replaced_";

impl LargeTable {
    pub(super) fn copy(&self) -> String {
        format!("{COPY}{}", self.name)
    }

    /// The name of the old table after the exchange.
    pub(crate) fn replaced(&self) -> String {
        format!("{REPLACED}{}", self.name)
    }

    /// Whether a name is that of a copy or of a replaced table.
    pub(crate) fn is_beside(name: &str) -> bool {
        LARGE_TABLES.iter().any(|table| name == table.copy() || name == table.replaced())
    }

    /// The triggers that keep the copy equal.
    pub(super) fn triggers(&self) -> [String; 3] {
        ["added", "changed", "deleted"].map(|change| format!("{}_{change}", self.copy()))
    }

    /// The trigger of a replaced table. The exchange makes it, so a table without it is not ours to empty.
    pub(super) fn mark(&self) -> String {
        format!("{}_mark", self.replaced())
    }

    /// What an index is called while it is that of the copy.
    pub(super) fn index_of_copy(name: &str) -> String {
        format!("{COPY}{name}")
    }

    /// What an index is called once it is that of the replaced table.
    pub(super) fn index_of_replaced(name: &str) -> String {
        format!("{REPLACED}{name}")
    }

    /// Whether the table is being copied: the copy and its triggers are made in one transaction.
    pub(super) fn is_being_copied(&self, db: &Connection) -> Result<bool, StoreError> {
        let mut all_there = db.table_exists(Some("main"), self.copy().as_str())?;
        for trigger in self.triggers() {
            all_there = all_there && has_trigger(db, &trigger, self.name)?;
        }
        Ok(all_there)
    }

    /// Whether an exchange left the old table behind.
    pub(crate) fn is_replaced(&self, db: &Connection) -> Result<bool, StoreError> {
        has_trigger(db, &self.mark(), &self.replaced())
    }

    /// Whether the user has something with a name that a copy needs.
    pub(super) fn has_clash_with_copy(&self, db: &Connection) -> Result<bool, StoreError> {
        let indexes = self.indexes.iter().map(|(name, _)| Self::index_of_copy(name));
        has_any(db, indexes.chain(self.triggers()).chain([self.copy()]))
    }

    /// Whether the user has something with a name that an exchange needs.
    pub(super) fn has_clash_with_replaced(&self, db: &Connection) -> Result<bool, StoreError> {
        let indexes = self.old_indexes.iter().map(|name| Self::index_of_replaced(name));
        has_any(db, indexes.chain([self.mark(), self.replaced()]))
    }
}

fn has_trigger(db: &Connection, name: &str, table: &str) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND name = ?1 AND tbl_name = ?2";
    Ok(db.prepare(sql)?.exists([name, table])?)
}

fn has_any(db: &Connection, mut names: impl Iterator<Item = String>) -> Result<bool, StoreError> {
    let mut search = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE")?;
    names.try_fold(false, |found, name| Ok(found || search.exists([name])?))
}
