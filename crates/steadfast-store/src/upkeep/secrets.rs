//! Secrets in rows that an earlier version or the claude-goal plugin wrote: newer rows are written without them.

use super::{FOR_GOOD, Reached, UpkeepTask};
use crate::secrets::{OldRows, TEXTS};
use crate::{Db, Store, StoreError};
use steadfast_model::clock::{self, Millis};

/// Rows and bytes of text that one step looks at: to look for secrets in so many bytes takes milliseconds.
const SEEN: (usize, usize) = (200, 64 * 1024);
/// Between the table and the row at which the walk continues.
const FROM: &str = " from ";
/// Steps that follow a migration at once, so that a small file is clean before the command that opened it prints a row.
const FIRST_STEPS: usize = 50;

impl Store {
    /// Redacts the first rows of a store that was just migrated. Upkeep does the rest.
    pub(crate) fn redact_first_rows(&self) -> Result<(), StoreError> {
        for _ in 0..FIRST_STEPS {
            let tx = self.begin()?;
            let is_through = Db(&tx, &self.added_message).redact_step(clock::now())?;
            tx.commit()?;
            if is_through {
                break;
            }
            self.stop_late_migration()?;
        }
        Ok(())
    }
}

impl Db<'_> {
    /// Does one step outside the order of upkeep. Returns whether it was the last.
    fn redact_step(self, now: Millis) -> Result<bool, StoreError> {
        let task: &str = UpkeepTask::Secrets.into();
        let sql = "SELECT position FROM upkeep WHERE task = ?1";
        let position: String = self.first(sql, [task], |row| row.get(0))?.unwrap_or_default();
        if position == FOR_GOOD {
            return Ok(true);
        }
        let reached = self.redact_some(&position)?;
        let is_through = reached == Reached::ForGood;
        self.put_reached(UpkeepTask::Secrets, reached, now)?;
        Ok(is_through)
    }

    /// Redacts some rows of one table after the other, once in the life of a store. The newest come first, because people
    /// see these first.
    pub(super) fn redact_some(self, position: &str) -> Result<Reached, StoreError> {
        let (table, from) = position.split_once(FROM).unwrap_or((TEXTS[0].0, ""));
        let mut texts = TEXTS.iter().skip_while(|(known, _)| *known != table);
        let Some((_, column)) = texts.next() else { return Ok(Reached::ForGood) };
        let from = from.parse().unwrap_or(i64::MAX);
        let rest = self.redact_rows(&OldRows { schema: "main", table, column, from, most: SEEN })?;
        Ok(match (rest, texts.next()) {
            (Some(row), _) => Reached::At(format!("{table}{FROM}{row}")),
            (None, Some((next, _))) => Reached::At(format!("{next}{FROM}")),
            (None, None) => Reached::ForGood,
        })
    }
}

#[cfg(test)]
mod tests;
