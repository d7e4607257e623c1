//! Evidence of verification commands that ran for a goal.

use rusqlite::params;
use serde_json::json;
use steadfast_model::clock::Millis;
use steadfast_model::goal::Goal;
use steadfast_model::goal::change::{Change, Span};
use steadfast_model::goal::event::{Event, EventKind};
use steadfast_model::goal::proof::Evidence;

use super::{Db, Origin, StoreError};

impl Db<'_> {
    fn add_verification(self, goal_id: &str, run: &Evidence) -> Result<(), StoreError> {
        self.0.execute(
            "INSERT INTO verifications (goal_id, command, exit_code, timed_out, duration_ms, output_sha256, output_tail,
               git_commit, git_dirty, created_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                goal_id, run.command, run.exit_code, run.timed_out, run.duration_ms, run.output_sha256,
                run.output_tail, run.git_commit, run.git_dirty, run.created_at_ms
            ],
        )?;
        Ok(())
    }

    /// Stores evidence with its event, whether it passed or not; returns the goal afterwards.
    pub fn record_evidence(
        self,
        goal: &Goal,
        runs: &[Evidence],
        origin: Origin,
        now: Millis,
    ) -> Result<Goal, StoreError> {
        for run in runs {
            self.add_verification(&goal.goal_id, run)?;
        }
        let results: Vec<_> = runs
            .iter()
            .map(|run| json!({"command": run.command, "exit_code": run.exit_code, "timed_out": run.timed_out, "duration_ms": run.duration_ms}))
            .collect();
        let kind = if runs.iter().all(Evidence::passed) {
            EventKind::VerificationPassed
        } else {
            EventKind::VerificationFailed
        };
        let mut after = goal.clone();
        after.updated_at_ms = now;
        let change =
            Change { goal: after, events: vec![Event::new(kind, json!({"results": results}))], span: Span::Keep };
        self.save(goal, change, origin)
    }

    /// Evidence of a goal, newest first.
    pub fn verifications(self, goal_id: &str, most: usize) -> Result<Vec<Evidence>, StoreError> {
        let mut statement = self.0.prepare(
            "SELECT command, exit_code, timed_out, duration_ms, output_sha256, output_tail, git_commit, git_dirty,
               created_at_ms
             FROM verifications WHERE goal_id = ?1 ORDER BY id DESC LIMIT ?2",
        )?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![goal_id, most], |row| {
            Ok(Evidence {
                command: row.get(0)?,
                exit_code: row.get(1)?,
                timed_out: row.get(2)?,
                duration_ms: row.get(3)?,
                output_sha256: row.get(4)?,
                output_tail: row.get(5)?,
                git_commit: row.get(6)?,
                git_dirty: row.get(7)?,
                created_at_ms: row.get(8)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}
