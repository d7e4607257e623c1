//! Secrets in rows that an earlier version or the claude-goal plugin wrote: newer rows are written without them.

use rusqlite::params;

use super::{Reached, UpkeepTask};
use crate::secrets::{TEXTS, without_secrets};
use crate::{Db, Store, StoreError, limit};
use steadfast_model::clock::{self, Millis};

/// Rows that one step looks at.
const SEEN: usize = 200;
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
        let reached = self.redact_some(&position)?;
        let is_through = reached == Reached::ForGood;
        self.put_reached(UpkeepTask::Secrets, reached, now)?;
        Ok(is_through)
    }

    /// Redacts some rows of one table after the other, once in the life of a store.
    pub(super) fn redact_some(self, position: &str) -> Result<Reached, StoreError> {
        let (table, after) = position.split_once(' ').unwrap_or((TEXTS[0].0, "0"));
        let mut texts = TEXTS.iter().skip_while(|(known, _)| *known != table);
        let Some((_, column)) = texts.next() else { return Ok(Reached::ForGood) };
        let after: i64 = after.parse().unwrap_or(0);
        let sql = format!("SELECT rowid, {column} FROM {table} WHERE rowid > ?1 ORDER BY rowid LIMIT ?2");
        let rows: Vec<(i64, Option<String>)> =
            self.all(&sql, params![after, limit(SEEN)], |row| Ok((row.get(0)?, row.get(1)?)))?;
        // A process that has read a goal would write the secret back: with another version it gets `Stale`. No process
        // changes the row between the read and this, because both are in one write transaction.
        let version = if table == "goals" { ", version = version + 1" } else { "" };
        let update = format!("UPDATE {table} SET {column} = ?2{version} WHERE rowid = ?1");
        for (row, text) in &rows {
            if let Some(clean) = text.as_deref().and_then(without_secrets) {
                self.execute(&update, params![row, clean])?;
            }
        }
        Ok(match (rows.last(), texts.next()) {
            (Some((last, _)), _) => Reached::At(format!("{table} {last}")),
            (None, Some((next, _))) => Reached::At(format!("{next} 0")),
            (None, None) => Reached::ForGood,
        })
    }
}

#[cfg(test)]
mod tests {
    use steadfast_system::config::RetentionConfig;

    use super::*;
    use crate::migrate;
    use crate::testing::START;
    use crate::tests::{file_with, read_write, rows};
    use crate::upkeep::Keep;

    const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    const ALL: &str = "SELECT objective FROM goals UNION ALL SELECT objective FROM goal_history
                       UNION ALL SELECT payload_json FROM goal_events";

    /// A file of the plugin with a secret in a goal and in its events.
    fn plugin_file(events: i64) -> (tempfile::TempDir, std::path::PathBuf) {
        let (directory, path) = file_with(b"");
        let db = read_write(&path);
        migrate::build(&db, 5);
        db.execute_batch(&format!(
            "INSERT INTO goals (session_id, goal_id, objective, status, version, created_at_ms, updated_at_ms)
             VALUES ('s', 'g', 'push with {SECRET}', 'active', 4, {START}, {START}),
                    ('clean', 'h', 'push', 'active', 4, {START}, {START});"
        ))
        .unwrap();
        let add = "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?1)
                   INSERT INTO goal_events (session_id, goal_id, event_type, payload_json, created_at_ms)
                   SELECT 's', 'g', 'goal_note', json_object('reason', 'used ' || ?2), ?3 FROM number";
        db.execute(add, params![events, SECRET, START]).unwrap();
        (directory, path)
    }

    fn secrets(store: &Store) -> usize {
        rows(&store.db, ALL).iter().filter(|row| format!("{row:?}").contains(SECRET)).count()
    }

    fn upkeep(store: &mut Store) {
        let details = RetentionConfig { goal_events_days: 0, goals_days: 0, ..RetentionConfig::default() };
        store.upkeep_all(&Keep { details: &details, memory_days: 0 }, START).unwrap();
    }

    #[test]
    fn a_small_file_of_the_plugin_shows_no_secret_after_its_migration() {
        let (_directory, path) = plugin_file(3);
        let store = Store::open_existing(&path).unwrap();
        assert_eq!(secrets(&store), 0);
        let goals = store.read().goals().unwrap();
        let read = |id: &str| goals.iter().find(|goal| goal.goal_id == id).unwrap();
        assert_eq!((&*read("g").objective, read("g").version), ("push with [redacted]", 5));
        assert_eq!((&*read("h").objective, read("h").version), ("push", 4), "other rows stay as they are");
    }

    #[test]
    fn upkeep_redacts_the_rest_of_a_file_once() {
        let many = limit(SEEN * FIRST_STEPS);
        let (_directory, path) = plugin_file(many);
        let mut store = Store::open_existing(&path).unwrap();
        assert!(secrets(&store) > 0);
        upkeep(&mut store);
        assert_eq!(secrets(&store), 0);
        // What is written later is redacted by its writer; a walk every day would be of no use.
        store.db.execute("UPDATE goal_events SET payload_json = ?1 WHERE id = 1", [SECRET]).unwrap();
        let later = START + 400 * clock::DAY;
        let keep = RetentionConfig { goal_events_days: 0, goals_days: 0, ..RetentionConfig::default() };
        store.upkeep_all(&Keep { details: &keep, memory_days: 0 }, later).unwrap();
        assert_eq!(secrets(&store), 1);
    }

    #[test]
    fn a_store_of_an_earlier_build_is_redacted_by_upkeep() {
        let (_directory, path) = file_with(b"");
        let mut store = Store::open(&path).unwrap();
        store
            .db
            .execute_batch(&format!(
                "INSERT INTO goal_history (session_id, goal_id, objective, status, version, created_at_ms, updated_at_ms)
                 VALUES ('s', 'g', 'push with {SECRET}', 'complete', 2, {START}, {START})"
            ))
            .unwrap();
        upkeep(&mut store);
        assert_eq!(secrets(&store), 0);
    }
}
