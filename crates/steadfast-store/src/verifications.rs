//! Evidence of verification commands that ran for a goal.

use rusqlite::{Row, params};
use serde_json::json;
use steadfast_model::clock::Millis;
use steadfast_model::goal::Goal;
use steadfast_model::goal::change::{Change, Span};
use steadfast_model::goal::environment::StartEnvironment;
use steadfast_model::goal::event::{Event, EventKind};
use steadfast_model::goal::proof::Evidence;
use steadfast_model::redact::redact;

use super::{Db, Origin, StoreError, column, limit};

impl Db<'_> {
    /// Keeps the environment of a goal's start for its checks.
    pub fn keep_environment(self, goal_id: &str, environment: &StartEnvironment) -> Result<(), StoreError> {
        let json = column::to_json(environment)?;
        self.execute(
            "INSERT OR REPLACE INTO goal_environments (goal_id, environment_json) VALUES (?1, ?2)",
            [goal_id, &json],
        )?;
        Ok(())
    }

    /// The environment of a goal's start; `None` for one that was started without a person's command.
    pub fn environment(self, goal_id: &str) -> Result<Option<StartEnvironment>, StoreError> {
        let sql = "SELECT environment_json FROM goal_environments WHERE goal_id = ?1";
        self.first(sql, [goal_id], |row| column::from_json(row, "environment_json"))
    }

    /// Stores evidence, without secrets, with its event, whether it passed or not; returns the goal afterwards.
    pub fn record_evidence(
        self,
        goal: &Goal,
        runs: &[Evidence],
        origin: Origin,
        now: Millis,
    ) -> Result<Goal, StoreError> {
        for run in runs {
            self.execute(
                "INSERT INTO verifications (goal_id, command, exit_code, timed_out, duration_ms, output_sha256,
                   output_tail, git_commit, git_dirty, created_at_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                params![
                    goal.goal_id,
                    redact(&run.command),
                    run.exit_code,
                    run.timed_out,
                    run.duration_ms,
                    run.output_sha256,
                    redact(&run.output_tail),
                    run.git_commit,
                    run.git_dirty,
                    run.created_at_ms
                ],
            )?;
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
        let after = Goal { updated_at_ms: now, ..goal.clone() };
        let event = Event::new(kind, json!({"results": results}));
        self.save(goal, Change { goal: after, events: vec![event], span: Span::Keep }, origin)
    }

    /// The newest evidence of each command of a goal, in the order they ran.
    pub fn newest_verifications(self, goal_id: &str) -> Result<Vec<Evidence>, StoreError> {
        let newest = "SELECT max(id) FROM verifications WHERE goal_id = ?1 GROUP BY command";
        self.all(&format!("SELECT * FROM verifications WHERE id IN ({newest}) ORDER BY id"), [goal_id], read)
    }

    /// Evidence of a goal, newest first.
    pub fn verifications(self, goal_id: &str, most: usize) -> Result<Vec<Evidence>, StoreError> {
        let sql = "SELECT * FROM verifications WHERE goal_id = ?1 ORDER BY id DESC LIMIT ?2";
        self.all(sql, params![goal_id, limit(most)], read)
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Evidence> {
    Ok(Evidence {
        command: row.get("command")?,
        exit_code: row.get("exit_code")?,
        timed_out: row.get("timed_out")?,
        duration_ms: row.get("duration_ms")?,
        output_sha256: row.get("output_sha256")?,
        output_tail: row.get("output_tail")?,
        git_commit: row.get("git_commit")?,
        git_dirty: row.get("git_dirty")?,
        created_at_ms: row.get("created_at_ms")?,
    })
}
