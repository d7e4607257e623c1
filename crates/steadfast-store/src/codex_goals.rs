//! Codex's own goals, in Codex's own database, which is only ever read.

use std::path::{Path, PathBuf};

use rusqlite::OptionalExtension as _;

use super::{StoreError, connect_read_only};
use steadfast_model::reading::NativeGoal;

/// The goal of a thread as Codex keeps it; `None` where there is no such database. Its name carries the number of
/// its schema, and the newest counts.
pub fn codex_goal(codex_home: &Path, thread_id: &str) -> Result<Option<NativeGoal>, StoreError> {
    let Some(path) = newest(codex_home) else {
        return Ok(None);
    };
    let db = connect_read_only(&path)?;
    let sql = "SELECT objective, status FROM thread_goals WHERE thread_id = ?1";
    let row: Option<(String, String)> =
        db.query_row(sql, [thread_id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(Some(match row {
        Some((objective, status)) if status == "active" => NativeGoal::Active(objective),
        _ => NativeGoal::Over,
    }))
}

fn newest(codex_home: &Path) -> Option<PathBuf> {
    let number = |path: &Path| -> Option<u32> {
        path.file_name()?.to_str()?.strip_prefix("goals_")?.strip_suffix(".sqlite")?.parse().ok()
    };
    // Older clients kept it in the directory itself, some in one of its own.
    let entries =
        [codex_home.to_owned(), codex_home.join("sqlite")].into_iter().filter_map(|dir| fs_err::read_dir(dir).ok());
    let paths = entries.flatten().filter_map(Result::ok).map(|entry| entry.path());
    paths.filter_map(|path| Some((number(&path)?, path))).max().map(|(_, path)| path)
}
