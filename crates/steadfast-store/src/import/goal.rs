//! One goal of the other store: taken, known already, or ended there meanwhile.

use std::collections::HashSet;

use super::ImportReport;
use crate::{Db, StoreError};

/// When a goal is over.
pub(super) const OVER: &str = "status IN ('complete', 'abandoned')";

/// Those of some goals that are here.
pub(super) fn known(db: Db<'_>, goal_ids: &[String]) -> Result<HashSet<String>, StoreError> {
    let sql = "SELECT goal_id FROM main.goals WHERE goal_id IN (SELECT value FROM json_each(?1))
        UNION SELECT goal_id FROM main.goal_history WHERE goal_id IN (SELECT value FROM json_each(?1))";
    Ok(db.all(sql, [serde_json::json!(goal_ids).to_string()], |row| row.get(0))?.into_iter().collect())
}

/// Goals that are live here, and were ended in the other store since they changed here last. One that the user moved to
/// another session here is none of them.
pub(super) fn ended(db: Db<'_>) -> Result<Vec<String>, StoreError> {
    let sql = format!(
        "SELECT ours.goal_id FROM main.goals AS ours JOIN ({}) AS theirs USING (goal_id, session_id)
         WHERE NOT ours.{OVER} AND theirs.{OVER} AND theirs.updated_at_ms > ours.updated_at_ms",
        both_tables("goal_id, session_id, status, updated_at_ms")
    );
    db.all(&sql, [], |row| row.get(0))
}

/// Ends a goal as the other store ended it. Its events come with all others.
pub(super) fn take_end(db: Db<'_>, goal_id: &str, columns: &[String]) -> Result<(), StoreError> {
    let later: Vec<&str> = columns.iter().map(String::as_str).filter(|name| *name != "version").collect();
    let later = later.join(", ");
    let theirs = both_tables(&format!("{later}, version"));
    let sql = format!(
        "UPDATE main.goals SET ({later}, version) =
           (SELECT {later}, max(theirs.version, goals.version) + 1 FROM ({theirs}) AS theirs WHERE goal_id = ?1)
         WHERE goal_id = ?1 AND NOT {OVER}"
    );
    db.execute(&sql, [goal_id])?;
    let close =
        "UPDATE main.goal_spans SET to_ms = max(from_ms, (SELECT updated_at_ms FROM main.goals WHERE goal_id = ?1))
        WHERE goal_id = ?1 AND to_ms IS NULL";
    db.execute(close, [goal_id])?;
    Ok(())
}

fn both_tables(columns: &str) -> String {
    format!("SELECT {columns} FROM other.goals UNION ALL SELECT {columns} FROM other.goal_history")
}

/// Takes one goal unless it is here, into the history if its session has another live one here.
pub(super) fn take(
    db: Db<'_>,
    goal_id: &str,
    is_known: bool,
    columns: &str,
    report: &mut ImportReport,
) -> Result<(), StoreError> {
    if is_known {
        let is_current = db.first("SELECT 1 FROM other.goals WHERE goal_id = ?1", [goal_id], |_| Ok(()))?.is_some();
        report.already_here += usize::from(is_current);
    } else {
        let take = |into: &str, from: &str, unless: &str| {
            let sql = format!(
                "INSERT OR IGNORE INTO main.{into} ({columns}) SELECT {columns} FROM other.{from} AS theirs
                 WHERE goal_id = ?1 {unless}"
            );
            db.execute(&sql, [goal_id])
        };
        make_room(db, goal_id, columns)?;
        let unless = "AND NOT EXISTS (SELECT 1 FROM main.goals AS ours WHERE ours.session_id = theirs.session_id)";
        if take("goals", "goals", unless)? > 0 {
            report.goals += 1;
            end_waiting(db, goal_id)?;
            db.execute(
                "INSERT OR IGNORE INTO main.goal_spans (goal_id, session_id, from_ms)
                   SELECT goal_id, session_id, from_ms FROM other.goal_spans WHERE goal_id = ?1 AND to_ms IS NULL",
                [goal_id],
            )?;
        } else {
            report.to_history += take("goal_history", "goals", "")? + take("goal_history", "goal_history", "")?;
        }
        take_queue(db, goal_id)?;
    }
    db.execute("INSERT OR IGNORE INTO main.imported_goals (goal_id) VALUES (?1)", [goal_id])?;
    db.execute(
        "INSERT OR IGNORE INTO main.subagent_token_cursors (session_id, goal_id, agent_id, transcript_path, tokens_used,
           last_accounted_byte_offset, last_accounted_uuid, accounting_uncertain, updated_at_ms)
         SELECT session_id, goal_id, agent_id, transcript_path, tokens_used, last_accounted_byte_offset,
           last_accounted_uuid, accounting_uncertain, updated_at_ms
         FROM other.subagent_token_cursors WHERE goal_id = ?1",
        [goal_id],
    )?;
    Ok(())
}

/// A goal of the session that is over makes room for a live one.
fn make_room(db: Db<'_>, goal_id: &str, columns: &str) -> Result<(), StoreError> {
    let over = format!(
        "FROM main.goals WHERE {OVER} AND session_id =
           (SELECT session_id FROM other.goals AS theirs WHERE goal_id = ?1 AND NOT theirs.{OVER})"
    );
    let kept = format!("INSERT OR IGNORE INTO main.goal_history ({columns}) SELECT {columns} {over}");
    if db.execute(&kept, [goal_id])? > 0 {
        db.execute(&format!("DELETE {over}"), [goal_id])?;
    }
    Ok(())
}

/// A goal that waits here, and has begun in the other store, waits no longer.
fn end_waiting(db: Db<'_>, goal_id: &str) -> Result<(), StoreError> {
    db.execute(
        "DELETE FROM main.goal_queue WHERE queue_id = (
           SELECT min(queue_id) FROM main.goal_queue AS ours JOIN main.goals AS begun USING (session_id)
           WHERE begun.goal_id = ?1 AND ours.created_at_ms < begun.created_at_ms
             AND json_extract(ours.goal_json, '$.objective') = begun.objective)",
        [goal_id],
    )?;
    Ok(())
}

/// Takes the goals that wait in the session of a goal, unless they wait here.
fn take_queue(db: Db<'_>, goal_id: &str) -> Result<(), StoreError> {
    db.execute(
        "INSERT INTO main.goal_queue (session_id, position, goal_json, created_at_ms)
         SELECT session_id, position + (SELECT coalesce(max(position), 0) FROM main.goal_queue AS ours
             WHERE ours.session_id = theirs.session_id), goal_json, created_at_ms
         FROM other.goal_queue AS theirs WHERE session_id = (SELECT session_id FROM other.goals WHERE goal_id = ?1)
           AND NOT EXISTS (SELECT 1 FROM main.goal_queue AS ours WHERE ours.session_id = theirs.session_id
             AND ours.created_at_ms = theirs.created_at_ms AND ours.goal_json = theirs.goal_json)
         ORDER BY position, queue_id",
        [goal_id],
    )?;
    Ok(())
}
