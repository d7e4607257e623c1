//! What people say to a run. An attempt that starts takes all waiting notes for its iteration, in the transaction that
//! records it; later attempts of the same iteration find them again.

use rusqlite::{Row, params};

use crate::{Db, StoreError};
use steadfast_model::clock::Millis;
use steadfast_model::redact::redact;
use steadfast_model::run::AttemptId;

/// Something that a person said to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteRow {
    pub text: String,
    pub added_at_ms: Millis,
    /// The stage and iteration that took it; `None` while it waits.
    pub taken_by: Option<(u32, u32)>,
}

fn read(row: &Row<'_>) -> rusqlite::Result<NoteRow> {
    let (stage, iteration): (Option<u32>, Option<u32>) = (row.get("stage")?, row.get("iteration")?);
    let (text, added_at_ms) = (row.get("text")?, row.get("added_at_ms")?);
    Ok(NoteRow { text, added_at_ms, taken_by: stage.zip(iteration) })
}

impl Db<'_> {
    /// Adds a note for the next iteration that starts.
    pub fn add_note(self, run_id: &str, text: &str, now: Millis) -> Result<(), StoreError> {
        let sql = "INSERT INTO run_notes (run_id, text, added_at_ms) VALUES (?1, ?2, ?3)";
        self.execute(sql, params![run_id, redact(text), now])?;
        Ok(())
    }

    /// The notes of a run, in the order in which they were given.
    pub fn notes(self, run_id: &str) -> Result<Vec<NoteRow>, StoreError> {
        self.all("SELECT * FROM run_notes WHERE run_id = ?1 ORDER BY note_id", [run_id], read)
    }

    /// What an iteration is told, in order.
    pub fn notes_for(self, run_id: &str, id: AttemptId) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT text FROM run_notes WHERE run_id = ?1 AND stage = ?2 AND iteration = ?3 ORDER BY note_id";
        self.all(sql, params![run_id, id.stage, id.iteration], |row| row.get(0))
    }

    /// Removes the notes that no iteration took, and returns their number.
    pub fn drop_notes(self, run_id: &str) -> Result<usize, StoreError> {
        self.execute("DELETE FROM run_notes WHERE run_id = ?1 AND stage IS NULL", [run_id])
    }

    pub(super) fn take_notes(self, run_id: &str, id: AttemptId) -> Result<(), StoreError> {
        let sql = "UPDATE run_notes SET stage = ?2, iteration = ?3 WHERE run_id = ?1 AND stage IS NULL";
        self.execute(sql, params![run_id, id.stage, id.iteration])?;
        Ok(())
    }
}
