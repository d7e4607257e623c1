//! Tables that a migration put a copy in the place of.

use super::Reached;
use crate::migrate::large::LARGE_TABLES;
use crate::steps::Pace;
use crate::{Db, Store, StoreError, limit};

/// Rows that one step of upkeep deletes, and the fewest and most of a step that a command waits for.
const DELETED: usize = 500;
const ROWS: (usize, usize) = (500, 16_000);

impl Store {
    /// Deletes these tables now, with other processes in between: the user wants the space, or the text gone.
    pub fn drop_replaced_tables(&mut self) -> Result<(), StoreError> {
        let mut pace = Pace::new(ROWS);
        while self.read().has_replaced_tables()? {
            pace.step(|most| self.write(|db| db.empty_replaced_tables(most)))?;
        }
        Ok(())
    }
}

impl Db<'_> {
    fn has_replaced_tables(self) -> Result<bool, StoreError> {
        LARGE_TABLES.iter().try_fold(false, |found, table| Ok(found || table.is_replaced(self.0)?))
    }

    pub(super) fn empty_replaced_tables_a_little(self) -> Result<Reached, StoreError> {
        self.empty_replaced_tables(DELETED)
    }

    /// Deletes up to `most` rows of such a table, and the table itself once it is empty.
    fn empty_replaced_tables(self, most: usize) -> Result<Reached, StoreError> {
        for table in &LARGE_TABLES {
            let (old, key) = (table.replaced(), table.key());
            if !table.is_replaced(self.0)? {
                continue;
            }
            let sql = format!("DELETE FROM {old} WHERE ({key}) IN (SELECT {key} FROM {old} ORDER BY {key} LIMIT ?1)");
            if self.execute(&sql, [limit(most)])? < most {
                self.named(self.0.execute_batch(&format!("DROP TABLE {old}")))?;
            }
            return Ok(Reached::At(String::new()));
        }
        Ok(Reached::End)
    }
}
