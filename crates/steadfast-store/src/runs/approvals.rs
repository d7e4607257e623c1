//! Questions to a person before a stage starts, and the answers. An engine takes an answer before it acts on it; from
//! then on the answer stays. A stage that asks again, after it started or failed, begins with a new question.

use rusqlite::{Row, params};

use crate::{Db, StoreError};
use steadfast_model::clock::Millis;
use steadfast_model::outbox;
use steadfast_model::redact::redact;
use steadfast_model::run::StageStatus;

use super::RunRow;

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRow {
    /// From 1.
    pub stage: u32,
    pub question: String,
    pub asked_at_ms: Millis,
    /// `None` until a person answers.
    pub approved: Option<bool>,
    pub note: Option<String>,
    pub answered_at_ms: Option<Millis>,
    /// When an engine took the answer.
    pub taken_at_ms: Option<Millis>,
}

fn read(row: &Row<'_>) -> rusqlite::Result<ApprovalRow> {
    Ok(ApprovalRow {
        stage: row.get("stage")?,
        question: row.get("question")?,
        asked_at_ms: row.get("asked_at_ms")?,
        approved: row.get("approved")?,
        note: row.get("note")?,
        answered_at_ms: row.get("answered_at_ms")?,
        taken_at_ms: row.get("taken_at_ms")?,
    })
}

impl Db<'_> {
    /// The questions of a run, in the order of its stages.
    pub fn approvals(self, run_id: &str) -> Result<Vec<ApprovalRow>, StoreError> {
        self.all("SELECT * FROM run_approvals WHERE run_id = ?1 ORDER BY stage", [run_id], read)
    }

    /// Stores an answer, or replaces one that no engine has taken. Returns whether it was stored.
    pub fn answer_approval(
        self,
        run_id: &str,
        stage: u32,
        approved: bool,
        note: Option<&str>,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let sql = "UPDATE run_approvals SET approved = ?3, note = ?4, answered_at_ms = ?5
                   WHERE run_id = ?1 AND stage = ?2 AND taken_at_ms IS NULL";
        Ok(self.execute(sql, params![run_id, stage, approved, note.map(redact), now])? == 1)
    }

    /// Takes the answer of a question, if there is one; it cannot be changed any more. An engine that died after that
    /// finds it again.
    pub fn take_answer(
        self,
        run_id: &str,
        stage: u32,
        now: Millis,
    ) -> Result<Option<(bool, Option<String>)>, StoreError> {
        let sql = "UPDATE run_approvals SET taken_at_ms = coalesce(taken_at_ms, ?3)
                   WHERE run_id = ?1 AND stage = ?2 AND approved IS NOT NULL RETURNING approved, note";
        self.first(sql, params![run_id, stage, now], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// Records a question and writes the message about it. A stage that waits already keeps its question and the answer
    /// to it. Called before the stage's own row is updated.
    pub(super) fn ask_approval(self, row: &RunRow, stage: u32, now: Millis) -> Result<(), StoreError> {
        let sql = "SELECT status = ?3 FROM run_stages WHERE run_id = ?1 AND stage = ?2";
        let waiting: &str = StageStatus::AwaitingApproval.into();
        let is_asked = self.first(sql, params![row.run_id, stage, waiting], |row| row.get(0))?;
        let question = row.plan.stage(stage).and_then(|plan| plan.approve.as_deref()).unwrap_or_default();
        let sql = if is_asked == Some(true) {
            "INSERT OR IGNORE INTO run_approvals (run_id, stage, question, asked_at_ms) VALUES (?1, ?2, ?3, ?4)"
        } else {
            "INSERT OR REPLACE INTO run_approvals (run_id, stage, question, asked_at_ms) VALUES (?1, ?2, ?3, ?4)"
        };
        if self.execute(sql, params![row.run_id, stage, redact(question), now])? == 1 {
            self.add_message(&outbox::about_approval(&row.run_id, &row.plan, stage, &row.project_dir, now))?;
        }
        Ok(())
    }
}
