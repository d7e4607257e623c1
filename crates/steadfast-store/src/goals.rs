//! Goals and their history. Every update matches the version it read and adds one. The loser of a race gets `Stale`
//! and writes nothing.

mod changed;
mod deletion;
mod events;
mod listing;
mod row;

use rusqlite::types::Value as SqlValue;
use rusqlite::{params, params_from_iter};

use super::column::word;
use super::{Db, StoreError};
use steadfast_model::clock::Millis;
use steadfast_model::goal::change::{Change, Span};
use steadfast_model::goal::event::{Event, EventKind};
use steadfast_model::goal::turn::{self, Charge};
use steadfast_model::goal::{Actor, Goal, GoalStatus, UNLIMITED_SECONDS};
use steadfast_model::limit::Axis;
use steadfast_model::memory::stated::StatedStatus;
use steadfast_model::outbox;

pub(crate) use deletion::WHOLE_GOAL;
pub(crate) use events::read_event;
pub use events::{EventFilter, EventRow};
pub use listing::GoalRef;
use row::{columns, read};

/// Who changes a goal, and where.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    pub actor: Actor,
    /// The hook or command, as the event log names it.
    pub place: &'static str,
}

impl Db<'_> {
    /// The goal of a session, live or over.
    pub fn goal(self, session_id: &str) -> Result<Option<Goal>, StoreError> {
        self.first("SELECT * FROM goals WHERE session_id = ?1", [session_id], read)
    }

    /// Goals whose id is, or begins with, `id`.
    pub fn goals_by_id(self, id: &str) -> Result<Vec<Goal>, StoreError> {
        self.all("SELECT * FROM goals WHERE substr(goal_id, 1, length(?1)) = ?1", [id], read)
    }

    /// Goals whose turn runs.
    pub(crate) fn goals_with_running_clock(self) -> Result<Vec<Goal>, StoreError> {
        self.all("SELECT * FROM goals WHERE resume_at_ms IS NOT NULL", [], read)
    }

    /// All goals with a row of their own, newest first.
    pub fn goals(self) -> Result<Vec<Goal>, StoreError> {
        self.all("SELECT * FROM goals ORDER BY created_at_ms DESC, goal_id", [], read)
    }

    /// Goals that are not over, those that are due first.
    pub fn live_goals(self) -> Result<Vec<Goal>, StoreError> {
        // The words that are named lead to their rows by the index.
        let sql = "SELECT * FROM goals WHERE status IN ('active', 'paused', 'blocked', 'budget_limited')
                   ORDER BY wake_at_ms IS NULL, wake_at_ms, goal_id";
        self.all(sql, [], read)
    }

    /// Replaced goals, newest first; of one session or of all.
    pub fn replaced_goals(self, session_id: Option<&str>) -> Result<Vec<Goal>, StoreError> {
        let sql = "SELECT * FROM goal_history WHERE ?1 IS NULL OR session_id = ?1
                   ORDER BY created_at_ms DESC, goal_id";
        self.all(sql, [session_id], read)
    }

    /// Replaced goals whose id is, or begins with, `id`.
    pub fn replaced_by_id(self, id: &str) -> Result<Vec<Goal>, StoreError> {
        self.all("SELECT * FROM goal_history WHERE substr(goal_id, 1, length(?1)) = ?1", [id], read)
    }

    fn insert_goal(self, table: &str, goal: &Goal) -> Result<(), StoreError> {
        let (names, values): (Vec<&str>, Vec<SqlValue>) = columns(goal)?.into_iter().unzip();
        let places = vec!["?"; names.len()].join(", ");
        let sql = format!("INSERT INTO {table} ({}) VALUES ({places})", names.join(", "));
        self.execute(&sql, params_from_iter(values))?;
        Ok(())
    }

    /// Inserts a goal for a session that has no row, or whose goal is over; the old row moves to the history.
    pub fn start_goal(self, goal: &Goal, replaced: Option<&Goal>, origin: Origin) -> Result<Goal, StoreError> {
        self.begin_goal(goal, replaced, None, origin)
    }

    /// The same for the goal of a queue entry, which leaves the queue.
    pub fn start_queued_goal(
        self,
        queue_id: i64,
        goal: &Goal,
        replaced: Option<&Goal>,
        origin: Origin,
    ) -> Result<Goal, StoreError> {
        self.drop_queued(queue_id)?;
        self.begin_goal(goal, replaced, Some(queue_id), origin)
    }

    fn begin_goal(
        self,
        goal: &Goal,
        replaced: Option<&Goal>,
        queue_id: Option<i64>,
        origin: Origin,
    ) -> Result<Goal, StoreError> {
        let mut goal = goal.clone();
        let mut events = Vec::new();
        if let Some(old) = replaced {
            self.archive_goal(old)?;
            // A process that still holds the old row must not match the new one.
            goal.version = old.version + 1;
            let payload = serde_json::json!({"prev_goal_id": old.goal_id, "prev_status": old.status, "prev_objective": old.objective});
            events.push(Event::new(EventKind::GoalReplaced, payload));
        }
        self.insert_goal("goals", &goal)?;
        self.move_span(&goal, Span::Open, goal.created_at_ms)?;
        let seconds = goal.limits.get(Axis::Hours).map_or(UNLIMITED_SECONDS, |ms| ms / 1_000);
        let mut payload = serde_json::json!({
            "objective": goal.objective, "token_budget": goal.limits.get(Axis::Tokens), "budget_profile": goal.budget_profile,
            "usd_budget_micros": goal.limits.get(Axis::Usd), "max_turns": goal.continuations_remaining(),
            "max_wall_clock_seconds": seconds, "deadline_ms": goal.limits.get(Axis::Deadline), "verify": goal.verify,
            "items": goal.items.iter().map(|item| &item.text).collect::<Vec<_>>(), "judge": goal.judge, "sign_off": goal.sign_off,
        });
        if let Some(id) = queue_id {
            payload["from"] = serde_json::json!("queue");
            payload["queue_id"] = serde_json::json!(id);
        }
        events.push(Event::new(EventKind::GoalCreated, payload));
        for event in &events {
            self.add_event(None, &goal, event, origin, goal.created_at_ms)?;
        }
        self.tie_stated(&goal.session_id, &goal.goal_id)?;
        Ok(goal)
    }

    /// Moves the row of a finished goal to the history.
    pub fn archive_goal(self, goal: &Goal) -> Result<(), StoreError> {
        self.insert_goal("goal_history", goal)?;
        self.delete_row(goal)
    }

    fn delete_row(self, goal: &Goal) -> Result<(), StoreError> {
        let sql = "DELETE FROM goals WHERE session_id = ?1 AND version = ?2";
        match self.0.execute(sql, params![goal.session_id, goal.version])? {
            1 => Ok(()),
            _ => Err(StoreError::Stale),
        }
    }

    /// Writes a change over the row it was made from, with its events. The loser of a race gets `Stale`.
    pub fn save(self, before: &Goal, change: Change, origin: Origin) -> Result<Goal, StoreError> {
        let mut goal = change.goal;
        goal.version = before.version + 1;
        let (names, mut values): (Vec<&str>, Vec<SqlValue>) = columns(&goal)?.into_iter().unzip();
        values.push(before.session_id.clone().into());
        values.push(before.version.into());
        let sql = format!("UPDATE goals SET {} = ? WHERE session_id = ? AND version = ?", names.join(" = ?, "));
        if self.execute(&sql, params_from_iter(values))? != 1 {
            return Err(StoreError::Stale);
        }
        if goal.session_id != before.session_id {
            self.move_queue(&before.session_id, &goal.session_id)?;
        }
        self.move_span(&goal, change.span, goal.updated_at_ms)?;
        for event in &change.events {
            self.add_event(Some(before), &goal, event, origin, goal.updated_at_ms)?;
        }
        if let Some(message) = outbox::about_goal(before, &goal, &change.events, origin.actor) {
            self.add_message(&message)?;
        }
        if goal.objective != before.objective {
            self.move_stated_if(&goal, &before.objective, StatedStatus::Replaced)?;
        }
        match goal.status {
            GoalStatus::Complete if before.status.is_live() => self.finish_stated(&goal, StatedStatus::Done)?,
            GoalStatus::Abandoned if before.status.is_live() => self.finish_stated(&goal, StatedStatus::Cleared)?,
            _ => {}
        }
        Ok(goal)
    }

    /// Charges late lines of a transcript to a goal that moved to another session or into history.
    pub fn charge_other_goal(
        self,
        goal_id: &str,
        charge: Charge,
        origin: Origin,
        now: Millis,
    ) -> Result<(), StoreError> {
        if let Some(goal) = self.goals_by_id(goal_id)?.into_iter().find(|goal| goal.goal_id == goal_id) {
            if let Some(change) = turn::charge(&goal, charge, now) {
                self.save(&goal, change, origin)?;
            }
            return Ok(());
        }
        self.0.execute(
            "UPDATE goal_history SET tokens_used = max(0, tokens_used + ?2), subagent_tokens = max(0, subagent_tokens + ?3),
               cache_read_tokens = max(0, cache_read_tokens + ?4), cost_micros = max(0, cost_micros + ?5),
               unpriced_tokens = max(0, unpriced_tokens + ?6), evaluator_tokens = max(0, evaluator_tokens + ?7)
             WHERE goal_id = ?1",
            params![
                goal_id, charge.worker_tokens, charge.subagent_tokens, charge.cache_read_tokens, charge.cost_micros,
                charge.unpriced_tokens, charge.evaluator_tokens
            ],
        )?;
        Ok(())
    }

    /// How many goals are in each status.
    pub fn goal_counts(self) -> Result<Vec<(GoalStatus, i64)>, StoreError> {
        let sql = "SELECT status, count(*) FROM goals GROUP BY status ORDER BY status";
        self.all(sql, [], |row| Ok((word(row, "status")?, row.get(1)?)))
    }
}
