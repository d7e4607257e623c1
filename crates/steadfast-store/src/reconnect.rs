//! Opens the connection of a store again. If the system fails to release a lock, the connection keeps it, and every process
//! finds the store busy for as long as this one lives. Closing the files releases all locks.

use std::path::Path;

use rusqlite::OpenFlags;

use super::{Store, StoreError, connect};

impl Store {
    /// Closes the connection, then opens it again. After an error the store has to be reconnected before it is used.
    pub fn reconnect(&mut self) -> Result<(), StoreError> {
        // Connections of one process share its locks, so the old one is closed first.
        self.db = connect(Path::new(":memory:"), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let fresh = Self::open_until(&self.path, self.deadline, true)?;
        fresh.added_message.set(self.added_message.get());
        *self = fresh;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::Store;

    #[test]
    fn a_store_that_was_reconnected_works_as_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("goals.db");
        let mut store = Store::open(&path).unwrap();
        store.added_message.set(true);
        store.reconnect().unwrap();
        assert!(store.added_message.get(), "its message still has to be delivered");
        assert_eq!(store.db.path().map(std::path::Path::new), Some(path.as_path()));
        store.write(|db| db.execute("DELETE FROM goals", [])).unwrap();
        fs_err::remove_file(&path).unwrap();
        store.reconnect().unwrap_err();
    }
}
