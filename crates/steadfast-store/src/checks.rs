//! Looks for faults in the file: all of it, or only its structure.

use crate::{Store, StoreError};

/// Tables with few rows, on which everything else depends.
const SMALL_TABLES: [&str; 3] = ["schema_version", "upkeep", "clock"];

impl Store {
    /// Asks SQLite for faults in the file; empty when there are none.
    pub fn integrity_faults(&self) -> Result<Vec<String>, StoreError> {
        self.faults_by("PRAGMA integrity_check(20)")
    }

    /// Looks at the structure of the file, whatever its size: the schema, the free list and the smallest tables.
    pub fn quick_faults(&self) -> Result<Vec<String>, StoreError> {
        let mut faults = Vec::new();
        for table in SMALL_TABLES {
            faults.extend(self.faults_by(&format!("PRAGMA integrity_check({table})"))?);
        }
        Ok(faults)
    }

    fn faults_by(&self, sql: &str) -> Result<Vec<String>, StoreError> {
        let mut statement = self.db.prepare(sql)?;
        let lines: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }
}
