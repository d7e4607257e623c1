//! Imports the goals of another store, such as the claude-goal plugin's. The other file is only read: a copy of it is
//! migrated, and rows are taken from there. A second import changes nothing.

use std::path::Path;

use rusqlite::{Connection, params};

use super::{BUSY_TIMEOUT, Store, StoreError, connect_read_only, create_if_missing, migrate, with_path};

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportReport {
    pub from_version: i64,
    pub goals: usize,
    /// Goals that were here already, or whose session has another goal here; those go to the history.
    pub already_here: usize,
    pub to_history: usize,
    pub events: usize,
}

impl Store {
    /// Imports all goals and events of the database at `path`.
    pub fn import(&mut self, path: &Path) -> Result<ImportReport, StoreError> {
        if !path.exists() {
            return Err(StoreError::Missing(path.to_owned()));
        }
        // The migration of the copy makes a backup beside it, in the same directory.
        let copy_dir = tempfile::tempdir()?;
        let copy = copy_dir.path().join("import.db");
        let from_version = copy_and_migrate(path, &copy)?;
        self.db.execute("ATTACH DATABASE ?1 AS other", [copy.to_string_lossy()])?;
        let imported = self.write(|db| take_rows(db.0, from_version));
        self.db.execute("DETACH DATABASE other", [])?;
        imported
    }
}

fn take_rows(tx: &Connection, from_version: i64) -> Result<ImportReport, StoreError> {
    let mut report = ImportReport { from_version, ..ImportReport::default() };
    let columns = goal_columns(tx)?;
    let known = "SELECT goal_id FROM main.goals UNION SELECT goal_id FROM main.goal_history";
    let count = |sql: &str| tx.query_row(sql, [], |row| row.get::<_, i64>(0)).map(|n| usize::try_from(n).unwrap_or(0));
    report.already_here = count(&format!("SELECT count(*) FROM other.goals WHERE goal_id IN ({known})"))?;
    // New goals are remembered first, since the next statements change what is known.
    tx.execute_batch(&format!(
        "CREATE TEMP TABLE fresh AS SELECT goal_id FROM other.goals WHERE goal_id NOT IN ({known})
               UNION SELECT goal_id FROM other.goal_history WHERE goal_id NOT IN ({known});"
    ))?;
    report.goals = tx.execute(
        &format!(
                "INSERT INTO main.goals ({columns}) SELECT {columns} FROM other.goals
                 WHERE goal_id IN (SELECT goal_id FROM fresh) AND session_id NOT IN (SELECT session_id FROM main.goals)"
            ),
        [],
    )?;
    for table in ["goals", "goal_history"] {
        report.to_history += tx.execute(
            &format!(
                "INSERT OR IGNORE INTO main.goal_history ({columns}) SELECT {columns} FROM other.{table}
                     WHERE goal_id IN (SELECT goal_id FROM fresh) AND goal_id NOT IN (SELECT goal_id FROM main.goals)"
            ),
            [],
        )?;
    }
    report.events = tx.execute(
            "INSERT INTO main.goal_events (session_id, goal_id, hook_name, event_type, status_before, status_after,
               tokens_delta, version_before, version_after, decision, stop_hook_active, pid, payload_json, created_at_ms)
             SELECT session_id, goal_id, hook_name, event_type, status_before, status_after, tokens_delta, version_before,
               version_after, decision, stop_hook_active, pid, payload_json, created_at_ms
             FROM other.goal_events AS theirs
             WHERE NOT EXISTS (SELECT 1 FROM main.goal_events AS ours WHERE ours.goal_id = theirs.goal_id
               AND ours.session_id = theirs.session_id AND ours.created_at_ms = theirs.created_at_ms
               AND ours.event_type = theirs.event_type AND ours.pid IS theirs.pid
               AND ours.version_after IS theirs.version_after AND ours.payload_json IS theirs.payload_json)
             ORDER BY theirs.id",
            [],
        )?;
    tx.execute(
            "INSERT OR IGNORE INTO main.subagent_token_cursors (session_id, goal_id, agent_id, transcript_path, tokens_used,
               last_accounted_byte_offset, last_accounted_uuid, accounting_uncertain, updated_at_ms)
             SELECT session_id, goal_id, agent_id, transcript_path, tokens_used, last_accounted_byte_offset,
               last_accounted_uuid, accounting_uncertain, updated_at_ms
             FROM other.subagent_token_cursors",
            [],
        )?;
    tx.execute_batch(
            "INSERT OR IGNORE INTO main.goal_spans (goal_id, session_id, from_ms)
               SELECT goal_id, session_id, from_ms FROM other.goal_spans
               WHERE to_ms IS NULL AND goal_id IN (SELECT goal_id FROM main.goals) AND goal_id IN (SELECT goal_id FROM fresh);
             DROP TABLE fresh;",
        )?;
    Ok(report)
}

/// Copies a database without writing to it, and migrates the copy. Returns the version it had.
fn copy_and_migrate(path: &Path, copy: &Path) -> Result<i64, StoreError> {
    let explained = |error| with_path(path, error);
    create_if_missing(copy)?;
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

/// The stored columns that both goal tables share.
fn goal_columns(db: &Connection) -> Result<String, StoreError> {
    let mut statement = db.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let names: Vec<String> = statement.query_map(params!["goals"], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(names.join(", "))
}
