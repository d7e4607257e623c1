//! Looks for faults in a database: all of it, or only its structure.

use rusqlite::Connection;

use crate::recover::unfinished_index;
use crate::schema::schema_faults;
use crate::{Store, StoreError, with_path};

/// Tables with few rows, on which everything else depends.
const SMALL_TABLES: [&str; 3] = ["schema_version", "upkeep", "clock"];

impl Store {
    /// Looks for faults in the schema and the file; empty when there are none.
    pub fn integrity_faults(&self) -> Result<Vec<String>, StoreError> {
        integrity_faults(&self.db).map_err(|error| with_path(&self.path, error))
    }

    /// Looks at the structure of the file, whatever its size: the schema, the free list and the smallest tables.
    pub fn quick_faults(&self) -> Result<Vec<String>, StoreError> {
        let mut faults = schema_faults(&self.db).map_err(|error| with_path(&self.path, error))?;
        for table in SMALL_TABLES {
            let found = faults_by(&self.db, &format!("PRAGMA integrity_check({table})"));
            faults.extend(found.map_err(|error| with_path(&self.path, error))?);
        }
        faults.extend(unfinished_index(&self.db).map_err(|error| with_path(&self.path, error))?);
        Ok(faults)
    }
}

/// Compares the schema and asks SQLite for faults in a database; empty when there are none.
pub(crate) fn integrity_faults(db: &Connection) -> Result<Vec<String>, StoreError> {
    let mut faults = schema_faults(db)?;
    faults.extend(faults_by(db, "PRAGMA integrity_check(20)")?);
    faults.extend(unfinished_index(db)?);
    Ok(faults)
}

fn faults_by(db: &Connection, sql: &str) -> Result<Vec<String>, StoreError> {
    let mut statement = db.prepare(sql)?;
    let lines: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}
