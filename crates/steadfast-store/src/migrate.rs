//! Brings a database of any earlier version up to ours. Versions 1 to 5 are those of the claude-goal plugin, which are
//! migrated in one transaction; a new file runs through them too, so that there is one way to every schema. Tables that are
//! too large for one short transaction are copied before it (`migrate/large`).

pub(super) mod large;
mod opening;

use rusqlite::{Connection, Transaction};

use super::{SCHEMA_VERSION, StoreError};
pub use opening::limit_migrations;

const MIGRATIONS: [&str; 6] = [
    include_str!("../migrations/0001.sql"),
    include_str!("../migrations/0002.sql"),
    include_str!("../migrations/0003.sql"),
    include_str!("../migrations/0004.sql"),
    include_str!("../migrations/0005.sql"),
    include_str!("../migrations/0006.sql"),
];

/// Changes of version 6 since it began. `user_version` counts those a file has. Older binaries of version 6 still work
/// with the result, so the version of the schema stays.
pub(super) const ADDITIONS: [&str; 9] = [
    include_str!("../migrations/0006_1_memory.sql"),
    include_str!("../migrations/0006_2_runs.sql"),
    include_str!("../migrations/0006_3_outbox.sql"),
    include_str!("../migrations/0006_4_liveness.sql"),
    include_str!("../migrations/0006_5_commands.sql"),
    include_str!("../migrations/0006_6_proof.sql"),
    include_str!("../migrations/0006_7_pipelines.sql"),
    include_str!("../migrations/0006_8_bounds.sql"),
    include_str!("../migrations/0006_9_imports.sql"),
];

/// Whether a file has all additions.
pub(super) fn is_complete(db: &Connection) -> Result<bool, StoreError> {
    Ok(additions(db)? >= ADDITIONS.len())
}

pub(super) fn additions(db: &Connection) -> Result<usize, StoreError> {
    let count: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// The version of the schema and how many additions it has, such as `6.9`.
pub(super) fn full_version(db: &Connection) -> Result<String, StoreError> {
    Ok(format!("{}.{}", version(db)?, additions(db)?))
}

/// The version of the schema; 0 for an empty file. A database with tables but no version is not ours to touch.
pub(super) fn version(db: &Connection) -> Result<i64, StoreError> {
    let tables: i64 = db.query_row(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
        [],
        |row| row.get(0),
    )?;
    if tables == 0 {
        return Ok(0);
    }
    if !db.table_exists(Some("main"), "schema_version")? {
        return Err(StoreError::Value("the file has tables but no schema_version: it is not a goal store".into()));
    }
    let found: Option<i64> = db.query_row("SELECT max(version) FROM schema_version", [], |row| row.get(0))?;
    // Its one row is never deleted.
    found.ok_or_else(|| {
        let path = db.path().map(Into::into).unwrap_or_default();
        StoreError::Corrupt { path, message: "its table schema_version is empty".to_owned() }
    })
}

/// Brings a file one step further, in one transaction. Returns whether it is complete. New files and those of the plugin
/// take all of the way in one step; each addition to version 6 is a step of its own, so that other processes can write
/// between the steps of a large file.
pub(super) fn step(tx: Transaction<'_>) -> Result<bool, StoreError> {
    // Another process may have migrated while we waited for the lock.
    let from = version(&tx)?;
    large::exchange(&tx, 0)?;
    for (migration, number) in MIGRATIONS.iter().zip(1..) {
        if number > from {
            tx.execute_batch(migration)?;
        }
    }
    let reached = version(&tx)?;
    if reached != SCHEMA_VERSION {
        return Err(StoreError::Value(format!("migration ended at version {reached}")));
    }
    let had = additions(&tx)?;
    let most = if from == SCHEMA_VERSION { 1 } else { ADDITIONS.len() };
    for (addition, count) in ADDITIONS.iter().zip(1..).skip(had).take(most) {
        large::exchange(&tx, count)?;
        tx.execute_batch(addition)?;
        tx.pragma_update(None, "user_version", i64::try_from(count).unwrap_or(i64::MAX))?;
    }
    let is_done = is_complete(&tx)?;
    tx.commit()?;
    Ok(is_done)
}

/// Makes the schema of version 6 with its first additions.
pub(super) fn make(db: &Connection, additions: usize) -> Result<(), StoreError> {
    for part in MIGRATIONS.iter().chain(ADDITIONS.iter().take(additions)) {
        db.execute_batch(part)?;
    }
    db.pragma_update(None, "user_version", i64::try_from(additions).unwrap_or(i64::MAX))?;
    Ok(())
}

/// Builds a database of an older version, as the plugin would have; for tests.
#[cfg(test)]
pub(super) fn build(db: &Connection, version: usize) {
    for migration in &MIGRATIONS[..version] {
        db.execute_batch(migration).unwrap();
    }
}

/// Adds the first additions to version 6, as an earlier release did; for tests.
#[cfg(test)]
pub(super) fn add(db: &Connection, count: usize) {
    add_from(db, 0, count);
}

/// Adds the additions behind the first `had` of them.
#[cfg(test)]
pub(super) fn add_from(db: &Connection, had: usize, count: usize) {
    for addition in &ADDITIONS[had..count] {
        db.execute_batch(addition).unwrap();
    }
    db.pragma_update(None, "user_version", i64::try_from(count).unwrap()).unwrap();
}
