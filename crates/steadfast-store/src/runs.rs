//! Runs: plan and state in one row, iterations and attempts in rows of their own. A step is saved in the caller's
//! transaction over the version it was made from; the loser of a race gets `Stale` and writes nothing.

mod approvals;
mod history;
mod nesting;
mod notes;
mod row;
mod usage;

use rusqlite::params;

use super::column::{from_json, to_json, word};
use super::{Db, StoreError, limit};
use steadfast_model::clock::Millis;
use steadfast_model::outbox;
use steadfast_model::redact::redact;
use steadfast_model::run::{Plan, Record, Run, RunKind, RunStatus, StageStatus, Step, Stopping, machine};
use steadfast_system::process::ProcessId;

pub use approvals::ApprovalRow;
pub use history::{IterationReport, IterationRow};
pub use nesting::Nesting;
pub use notes::NoteRow;
pub use row::{RunLine, RunRow};
pub use usage::IterationUsage;

pub(crate) use row::read_line;
use row::{plan_json, read};

/// Which runs to list; `None` matches all.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunFilter<'a> {
    pub project_dir: Option<&'a str>,
    pub kind: Option<RunKind>,
    pub status: Option<RunStatus>,
}

/// The query for runs as lists show them.
pub(crate) fn lines_where(condition: &str) -> String {
    let asking: &str = StageStatus::AwaitingApproval.into();
    format!(
        "SELECT r.run_id, r.name, r.kind, r.title, r.project_dir, r.status, r.reason, r.stage,
           coalesce(s.iterations, 0) AS iterations, coalesce(s.max_iterations, 0) AS max_iterations,
           r.tokens, r.cost_micros, r.cost_unknown, r.tokens_unknown, r.engine_pid, r.engine_pid_started,
           r.stop_requested IS NOT NULL AS is_stop_requested, r.started_at_ms, r.updated_at_ms, r.completed_at_ms,
           EXISTS (SELECT 1 FROM run_stages a WHERE a.run_id = r.run_id AND a.status = '{asking}') AS is_asking
         FROM runs r LEFT JOIN run_stages s ON s.run_id = r.run_id AND s.stage = r.stage
         WHERE {condition} ORDER BY r.started_at_ms DESC, r.run_id DESC"
    )
}

impl Db<'_> {
    /// Adds a run that has not begun. One of the same kind and name in the project must not be running.
    pub fn create_run(
        self,
        run_id: &str,
        project_dir: &str,
        plan: &Plan,
        run: &Run,
        now: Millis,
    ) -> Result<RunRow, StoreError> {
        self.refuse_second_live(run_id, project_dir, plan.kind, &plan.name)?;
        let (kind, status) = (<&str>::from(plan.kind), <&str>::from(run.status));
        let (plan_json, state_json) = (plan_json(plan, None)?, to_json(run)?);
        self.execute(
            "INSERT INTO runs (run_id, name, kind, title, project_dir, status, stage, plan_json, state_json,
               started_at_ms, updated_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                run_id,
                plan.name,
                kind,
                plan.title,
                project_dir,
                status,
                run.stage,
                plan_json,
                state_json,
                run.started_at_ms,
                now
            ],
        )?;
        self.add_stages(run_id, plan)?;
        self.run(run_id)?.ok_or(StoreError::Stale)
    }

    fn add_stages(self, run_id: &str, plan: &Plan) -> Result<(), StoreError> {
        let mut insert = self.0.prepare_cached(
            "INSERT INTO run_stages (run_id, stage, name, status, max_iterations) VALUES (?1, ?2, ?3, 'pending', ?4)",
        )?;
        for (stage, number) in plan.stages.iter().zip(1_u32..) {
            insert.execute(params![run_id, number, stage.name, stage.runs])?;
        }
        Ok(())
    }

    /// Gives a run that was imported with its history only the plan that was missing. Its history is deleted: the stages
    /// of the plan may have other numbers.
    pub fn complete_plan(self, run_id: &str, version: i64, plan: &Plan, now: Millis) -> Result<i64, StoreError> {
        let version = self.change_plan(run_id, version, plan, now)?;
        for part in ["run_models", "run_attempts", "run_iterations", "run_stages"] {
            self.execute(&format!("DELETE FROM {part} WHERE run_id = ?1"), [run_id])?;
        }
        self.add_stages(run_id, plan)?;
        Ok(version)
    }

    fn refuse_second_live(self, run_id: &str, project_dir: &str, kind: RunKind, name: &str) -> Result<(), StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM runs
            WHERE project_dir = ?1 AND kind = ?2 AND name = ?3 AND status = 'running' AND run_id <> ?4)";
        let kind_word = <&str>::from(kind);
        let is_live =
            self.0.prepare_cached(sql)?.query_row(params![project_dir, kind_word, name, run_id], |row| row.get(0))?;
        if is_live { Err(StoreError::RunIsLive { kind, name: name.to_owned() }) } else { Ok(()) }
    }

    pub fn run(self, run_id: &str) -> Result<Option<RunRow>, StoreError> {
        self.first("SELECT * FROM runs WHERE run_id = ?1", [run_id], read)
    }

    /// The run that a name means: the newest one.
    pub fn newest_run(self, project_dir: &str, kind: RunKind, name: &str) -> Result<Option<RunRow>, StoreError> {
        let sql = "SELECT * FROM runs WHERE project_dir = ?1 AND kind = ?2 AND name = ?3
                   ORDER BY started_at_ms DESC, run_id DESC LIMIT 1";
        self.first(sql, [project_dir, kind.into(), name], read)
    }

    /// Runs for a list, newest first.
    pub fn runs(self, filter: RunFilter<'_>, most: usize) -> Result<Vec<RunLine>, StoreError> {
        let condition =
            "(?1 IS NULL OR r.project_dir = ?1) AND (?2 IS NULL OR r.kind = ?2) AND (?3 IS NULL OR r.status = ?3)";
        let sql = format!("{} LIMIT ?4", lines_where(condition));
        let (kind, status) = (filter.kind.map(<&str>::from), filter.status.map(<&str>::from));
        self.all(&sql, params![filter.project_dir, kind, status, limit(most)], read_line)
    }

    /// Writes a step over the version it was made from, with its records, and returns the new version.
    pub fn save_step(self, run_id: &str, version: i64, step: &Step, now: Millis) -> Result<i64, StoreError> {
        let run = &step.run;
        if step.records.contains(&Record::Reopened) {
            let sql = "SELECT project_dir, kind, name FROM runs WHERE run_id = ?1";
            let address = self.first(sql, [run_id], |row| Ok((row.get(0)?, word(row, 1)?, row.get(2)?)))?;
            let (project_dir, kind, name): (String, _, String) = address.ok_or(StoreError::Stale)?;
            self.refuse_second_live(run_id, &project_dir, kind, &name)?;
        }
        let (status, state_json) = (<&str>::from(run.status), to_json(run)?);
        let updated = self.execute(
            "UPDATE runs SET status = ?3, reason = ?4, stage = ?5, state_json = ?6, tokens = ?7, cost_micros = ?8,
               completed_at_ms = ?9, updated_at_ms = ?10, cost_unknown = ?11, tokens_unknown = ?12, version = version + 1
             WHERE run_id = ?1 AND version = ?2",
            params![
                run_id,
                version,
                status,
                run.reason,
                run.stage,
                state_json,
                run.tokens,
                run.cost_micros,
                run.completed_at_ms,
                now,
                run.cost_unknown,
                run.tokens_unknown
            ],
        )?;
        if updated != 1 {
            return Err(StoreError::Stale);
        }
        for record in &step.records {
            self.add_record(run_id, run, record, now)?;
            if matches!(record, Record::Finished { .. })
                && let Some(row) = self.run(run_id)?
                && let Some(message) = outbox::about_run(run_id, &row.plan, run, &row.project_dir, now)
            {
                self.add_message(&message)?;
            }
        }
        Ok(version + 1)
    }

    fn add_record(self, run_id: &str, run: &Run, record: &Record, now: Millis) -> Result<(), StoreError> {
        match record {
            Record::StageStarted { stage } | Record::StageEnded { stage, .. } => self.put_stage(run_id, run, *stage),
            Record::ApprovalAsked { stage } => {
                let row = self.run(run_id)?.ok_or(StoreError::Stale)?;
                self.ask_approval(&row, *stage, now)?;
                self.put_stage(run_id, run, *stage)
            }
            Record::AttemptStarted { id } => {
                self.add_attempt(run_id, *id, now)?;
                self.take_notes(run_id, *id)
            }
            Record::AttemptEnded { id, outcome } => {
                self.end_attempt(run_id, *id, outcome)?;
                self.charge_goal_of(run_id, outcome.usage(), now)
            }
            Record::Committed { id, success, facts } => {
                self.add_iteration(run_id, *id, success, facts, now)?;
                self.put_stage(run_id, run, id.stage)
            }
            Record::Reopened => {
                // Drop a stop request that came too late for the previous end.
                self.request_stop(run_id, None)?;
                self.put_stages(run_id, run)
            }
            Record::Finished { .. } => {
                self.request_stop(run_id, None)?;
                self.put_stages(run_id, run)
            }
        }
    }

    /// The end of a run and its reopening change several stages.
    fn put_stages(self, run_id: &str, run: &Run) -> Result<(), StoreError> {
        (1..).zip(&run.stages).try_for_each(|(number, _)| self.put_stage(run_id, run, number))
    }

    fn put_stage(self, run_id: &str, run: &Run, number: u32) -> Result<(), StoreError> {
        let Some(stage) = run.stage_state(number) else { return Ok(()) };
        let status: &str = stage.status.into();
        self.execute(
            "UPDATE run_stages SET status = ?3, reason = ?4, iterations = ?5,
               max_iterations = coalesce(?6, max_iterations), started_at_ms = ?7, completed_at_ms = ?8
             WHERE run_id = ?1 AND stage = ?2",
            params![
                run_id,
                number,
                status,
                stage.reason,
                stage.iterations,
                stage.max,
                stage.started_at_ms,
                stage.completed_at_ms
            ],
        )?;
        Ok(())
    }

    /// Replaces the plan of a run that continues with larger limits.
    pub fn change_plan(self, run_id: &str, version: i64, plan: &Plan, now: Millis) -> Result<i64, StoreError> {
        let sql = "UPDATE runs SET plan_json = ?3, updated_at_ms = ?4, version = version + 1
            WHERE run_id = ?1 AND version = ?2";
        let before = self.run(run_id)?;
        match self.execute(sql, params![run_id, version, plan_json(plan, before.as_ref())?, now])? {
            1 => Ok(version + 1),
            _ => Err(StoreError::Stale),
        }
    }

    /// Asks the engine of a run to end it, or withdraws the request. Returns whether the run exists.
    pub fn request_stop(self, run_id: &str, stopping: Option<&Stopping>) -> Result<bool, StoreError> {
        let clean =
            |stopping: &Stopping| Stopping { reason: redact(&stopping.reason).into_owned(), ..stopping.clone() };
        let text = stopping.map(|stopping| to_json(&clean(stopping))).transpose()?;
        let sql = "UPDATE runs SET stop_requested = ?2 WHERE run_id = ?1";
        Ok(self.execute(sql, params![run_id, text])? == 1)
    }

    /// The stop request, without reading the whole run: engines look often.
    pub fn stop_request(self, run_id: &str) -> Result<Option<Stopping>, StoreError> {
        let sql = "SELECT stop_requested FROM runs WHERE run_id = ?1";
        Ok(self.first(sql, [run_id], |row| from_json(row, "stop_requested"))?.flatten())
    }

    /// The secret of a run, which is `new` if it has none yet, and whether that is so.
    pub fn supervisor_key(self, run_id: &str, new: &str) -> Result<(String, bool), StoreError> {
        let sql = "UPDATE runs SET supervisor_key = ?2 WHERE run_id = ?1 AND supervisor_key IS NULL";
        let is_new = self.execute(sql, params![run_id, new])? == 1;
        let key = self.first("SELECT supervisor_key FROM runs WHERE run_id = ?1", [run_id], |row| row.get(0))?;
        Ok((key.ok_or(StoreError::Stale)?, is_new))
    }

    /// Records the engine that drives a run.
    pub fn set_engine(self, run_id: &str, engine: Option<ProcessId>) -> Result<bool, StoreError> {
        let sql = "UPDATE runs SET engine_pid = ?2, engine_pid_started = ?3 WHERE run_id = ?1";
        let (pid, started) = (engine.map(|engine| engine.pid), engine.map(|engine| engine.started));
        Ok(self.execute(sql, params![run_id, pid, started])? == 1)
    }

    /// Marks a run as orphaned; the caller makes sure that its engine is gone. A run that is over stays as it is.
    pub fn mark_orphan(self, row: &RunRow, now: Millis) -> Result<RunRow, StoreError> {
        let step = machine::orphaned(&row.plan, row.run.clone(), now);
        if !step.records.is_empty() {
            self.save_step(&row.run_id, row.version, &step, now)?;
            self.set_engine(&row.run_id, None)?;
        }
        self.run(&row.run_id)?.ok_or(StoreError::Stale)
    }
}

#[cfg(test)]
mod tests;
