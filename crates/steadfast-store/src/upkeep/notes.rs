//! Small tables whose rows are only needed for a while.

use rusqlite::params;

use super::{DELETED, Reached};
use crate::{Db, StoreError, limit};
use steadfast_model::clock::{DAY, Millis};

/// Table, key, the column with the time, and for how many days a row is needed.
const NOTES: [(&str, &str, &str, Millis); 5] = [
    ("tool_calls", "tool_use_id", "created_at_ms", 1),
    ("typed_commands", "session_id, turn_id, text_hash", "created_at_ms", 1),
    ("subagents", "session_id, agent_id", "started_at_ms", 30),
    ("cap_notices", "cap, session_id, from_ms, most, reached", "told_at_ms", 60),
    ("outbox", "id", "taken_at_ms", 7),
];

impl Db<'_> {
    /// Deletes old notes, messages that were delivered, and appointments that are over since a moment.
    pub(super) fn prune_notes(self, aged: Millis, appointments_before: Option<Millis>) -> Result<Reached, StoreError> {
        let mut deleted = 0;
        for (table, key, time, days) in NOTES {
            let sql =
                format!("DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {time} < ?1 LIMIT ?2)");
            deleted += self.execute(&sql, params![aged - days * DAY, limit(DELETED)])?;
        }
        let sql = "DELETE FROM deliveries WHERE outbox_id NOT IN (SELECT id FROM outbox)";
        self.execute(sql, [])?;
        if let Some(before) = appointments_before {
            let sql = "DELETE FROM appointments WHERE appointment_id IN
                         (SELECT appointment_id FROM appointments WHERE next_at_ms IS NULL
                            AND max(made_at_ms, first_at_ms, coalesce(last_at_ms, 0)) < ?1 LIMIT ?2)";
            deleted += self.execute(sql, params![before, limit(DELETED)])?;
        }
        // A purge that was killed leaves its zeros.
        deleted += self.execute("DELETE FROM wiped_pages WHERE id = (SELECT min(id) FROM wiped_pages)", [])?;
        Ok(if deleted >= DELETED { Reached::At(String::new()) } else { Reached::End })
    }
}
