//! Runs that agents started: what they count to, and what they spent.

use rusqlite::params;

use crate::column::{from_json, word};
use crate::{Db, Origin, StoreError};
use steadfast_model::clock::Millis;
use steadfast_model::goal::turn::Charge;
use steadfast_model::goal::{Actor, Goal};
use steadfast_model::limit::Spend;
use steadfast_model::run::{AttemptUsage, RunStatus, Stopping};

const ORIGIN: Origin = Origin { actor: Actor::Steadfast, place: "run" };

/// What a run counts to. A run of the user counts to nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Nesting {
    /// The goal of the session whose agent started it, or started the run above it.
    pub charged_goal_id: Option<String>,
    /// The run whose agent started it.
    pub parent_run_id: Option<String>,
    /// 1 below a session or a run of the user.
    pub level: u32,
}

impl Db<'_> {
    pub fn nesting(self, run_id: &str) -> Result<Nesting, StoreError> {
        let sql = "SELECT charged_goal_id, parent_run_id, nesting FROM runs WHERE run_id = ?1";
        let read = |row: &rusqlite::Row<'_>| {
            Ok(Nesting { charged_goal_id: row.get(0)?, parent_run_id: row.get(1)?, level: row.get(2)? })
        };
        Ok(self.first(sql, [run_id], read)?.unwrap_or_default())
    }

    pub fn set_nesting(self, run_id: &str, nesting: &Nesting) -> Result<(), StoreError> {
        let sql = "UPDATE runs SET charged_goal_id = ?2, parent_run_id = ?3, nesting = ?4 WHERE run_id = ?1";
        self.execute(sql, params![run_id, nesting.charged_goal_id, nesting.parent_run_id, nesting.level])?;
        Ok(())
    }

    /// The goal with exactly this id, if it has a row of its own.
    pub fn goal_with_id(self, goal_id: &str) -> Result<Option<Goal>, StoreError> {
        Ok(self.goals_by_id(goal_id)?.into_iter().find(|goal| goal.goal_id == goal_id))
    }

    /// Whether a run is running, and how it is about to end, without reading all of it: engines look often.
    pub fn run_end(self, run_id: &str) -> Result<Option<(RunStatus, Option<Stopping>)>, StoreError> {
        let sql = "SELECT status, coalesce(stop_requested, state_json ->> '$.stopping') AS stopping FROM runs
                   WHERE run_id = ?1";
        self.first(sql, [run_id], |row| Ok((word(row, "status")?, from_json(row, "stopping")?)))
    }

    /// What the runs below a run spent, by their attempts that have ended.
    pub fn spent_below(self, run_id: &str) -> Result<Spend, StoreError> {
        let sql = "WITH RECURSIVE below (run_id) AS (
                     SELECT run_id FROM runs WHERE parent_run_id = ?1
                     UNION SELECT runs.run_id FROM runs JOIN below ON runs.parent_run_id = below.run_id)
                   SELECT coalesce(sum(input_tokens + cache_creation_tokens + output_tokens), 0),
                     coalesce(sum(cost_micros), 0)
                   FROM run_attempts WHERE run_id IN below AND ended_at_ms IS NOT NULL";
        let read = |row: &rusqlite::Row<'_>| Ok(Spend { tokens: row.get(0)?, cost_micros: row.get(1)? });
        Ok(self.first(sql, [run_id], read)?.unwrap_or_default())
    }

    /// Charges the goal that a run counts to. Called once for each attempt, in the transaction that records its end.
    pub(super) fn charge_goal_of(self, run_id: &str, usage: &AttemptUsage, now: Millis) -> Result<(), StoreError> {
        let Some(goal_id) = self.nesting(run_id)?.charged_goal_id else { return Ok(()) };
        let tokens = usage.tokens.charged().max(0);
        let charge = Charge {
            subagent_tokens: tokens,
            cache_read_tokens: usage.tokens.cache_read.max(0),
            cost_micros: usage.cost_micros.max(0),
            unpriced_tokens: if usage.cost_micros > 0 { 0 } else { tokens },
            ..Charge::default()
        };
        self.charge_other_goal(&goal_id, charge, ORIGIN, now)
    }
}
