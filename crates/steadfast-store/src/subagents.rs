//! Subagents that a hook saw begin.

use rusqlite::params;

use super::{Db, StoreError};
use steadfast_model::clock::{DAY, Millis};

impl Db<'_> {
    /// Notes that a subagent began. The first note stays, because nothing changes what a subagent is.
    pub fn note_subagent(
        self,
        session_id: &str,
        agent_id: &str,
        agent_type: &str,
        now: Millis,
    ) -> Result<(), StoreError> {
        const KEPT: Millis = 30 * DAY;
        self.execute("DELETE FROM subagents WHERE started_at_ms < ?1", [self.aged_now(now)? - KEPT])?;
        self.execute(
            "INSERT INTO subagents (session_id, agent_id, agent_type, started_at_ms) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (session_id, agent_id) DO NOTHING",
            params![session_id, agent_id, agent_type, now],
        )?;
        Ok(())
    }

    /// The kind of a subagent of a session; `None` if no hook saw it begin.
    pub fn subagent_type(self, session_id: &str, agent_id: &str) -> Result<Option<String>, StoreError> {
        let sql = "SELECT agent_type FROM subagents WHERE session_id = ?1 AND agent_id = ?2";
        self.first(sql, [session_id, agent_id], |row| row.get(0))
    }
}
