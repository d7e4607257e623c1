//! Lists of goals whose length does not depend on how many there are.

use rusqlite::params_from_iter;

use super::row::read;
use crate::{Db, StoreError, limit};
use steadfast_model::clock::Millis;
use steadfast_model::goal::Goal;

/// Where the row of a goal is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalRef {
    pub session_id: String,
    created_at_ms: Millis,
    is_replaced: bool,
    rowid: i64,
}

impl Db<'_> {
    /// The newest goals of a session or of all, replaced ones too, newest first.
    pub fn newest_goals(self, session_id: Option<&str>, most: usize) -> Result<Vec<GoalRef>, StoreError> {
        let condition = if session_id.is_some() { "session_id = ?1" } else { "1" };
        self.goals_where(condition, &session_id.map(str::to_owned).into_iter().collect::<Vec<_>>(), most)
    }

    /// The newest goals for which a condition holds, replaced ones too, newest first.
    pub(crate) fn goals_where(
        self,
        condition: &str,
        values: &[String],
        most: usize,
    ) -> Result<Vec<GoalRef>, StoreError> {
        let mut found = Vec::new();
        for (is_replaced, table) in [(false, "goals"), (true, "goal_history")] {
            let sql = format!(
                "SELECT session_id, created_at_ms, rowid FROM {table} WHERE {condition}
                 ORDER BY created_at_ms DESC LIMIT {}",
                limit(most)
            );
            found.extend(self.all(&sql, params_from_iter(values), |row| {
                Ok(GoalRef { session_id: row.get(0)?, created_at_ms: row.get(1)?, is_replaced, rowid: row.get(2)? })
            })?);
        }
        found.sort_by_key(|goal| std::cmp::Reverse(goal.created_at_ms));
        found.truncate(most);
        Ok(found)
    }

    /// How many goals a session has, or all have, replaced ones too.
    pub fn count_goals(self, session_id: Option<&str>) -> Result<usize, StoreError> {
        let mut count = 0;
        for table in ["goals", "goal_history"] {
            let condition = if session_id.is_some() { "session_id = ?1" } else { "?1 IS NULL" };
            let sql = format!("SELECT count(*) FROM {table} WHERE {condition}");
            count += self.0.prepare_cached(&sql)?.query_row([session_id], |row| row.get::<_, i64>(0))?;
        }
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Goals that are not over, oldest first.
    pub fn oldest_live_goals(self) -> Result<Vec<GoalRef>, StoreError> {
        let sql = "SELECT session_id, created_at_ms, rowid FROM goals
                   WHERE status IN ('active', 'paused', 'blocked', 'budget_limited') ORDER BY created_at_ms, goal_id DESC";
        self.all(sql, [], |row| {
            let (session_id, created_at_ms, rowid) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(GoalRef { session_id, created_at_ms, is_replaced: false, rowid })
        })
    }

    /// The goal of a row; `None` if it was deleted or replaced meanwhile.
    pub fn goal_at_row(self, at: &GoalRef) -> Result<Option<Goal>, StoreError> {
        let table = if at.is_replaced { "goal_history" } else { "goals" };
        self.first(&format!("SELECT * FROM {table} WHERE rowid = ?1"), [at.rowid], read)
    }
}
