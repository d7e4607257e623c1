//! The clock of the store.

use steadfast_model::clock::Millis;

use super::{Db, StoreError};

impl Db<'_> {
    /// The time by which old rows are deleted. It follows `now`, but does not leap ahead with a clock that was set wrong.
    pub fn aged_now(self, now: Millis) -> Result<Millis, StoreError> {
        let aged = self.first("SELECT aged_ms FROM clock", [], |row| row.get::<_, Millis>(0))?;
        Ok(aged.map_or(now, |aged| aged.min(now)))
    }
}
