//! Codex's own goals, in Codex's own database, which is only ever read.

use std::path::Path;

use rusqlite::OptionalExtension as _;

use super::{StoreError, connect_read_only};
use steadfast_model::reading::NativeGoal;

/// The goal of a thread in Codex's database.
pub fn codex_goal(database: &Path, thread_id: &str) -> Result<NativeGoal, StoreError> {
    let db = connect_read_only(database)?;
    let sql = "SELECT objective, status FROM thread_goals WHERE thread_id = ?1";
    let row: Option<(String, String)> =
        db.query_row(sql, [thread_id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(match row {
        Some((objective, status)) if status == "active" => NativeGoal::Active(objective),
        _ => NativeGoal::Over,
    })
}
