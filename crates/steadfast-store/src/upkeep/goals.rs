//! Goals that are over: first their events go, much later the goals themselves. Live goals lose nothing.

use rusqlite::params;

use super::{DELETED, Reached, WALKED};
use crate::goals::WHOLE_GOAL;
use crate::{Db, StoreError, limit};
use steadfast_model::clock::Millis;

/// Events that tell what became of a goal stay with it: its report is made of them. The others only count and trace.
const TRACES: &str = "status_before IS status_after AND event_type NOT IN ('goal_created', 'goal_replaced',
    'evaluator_verdict', 'goal_objective_updated', 'privileged_verb_refused', 'goal_extended', 'goal_adopted',
    'goal_reconciled', 'item_proven', 'sign_off_requested')";

/// The goals of sessions, then those that others replaced.
const TABLES: [&str; 2] = ["goals", "goal_history"];

struct OldGoal {
    rowid: i64,
    goal_id: String,
    updated_at_ms: Millis,
}

impl Db<'_> {
    pub(super) fn prune_goals(
        self,
        position: &str,
        events_before: Option<Millis>,
        goals_before: Option<Millis>,
    ) -> Result<Reached, StoreError> {
        let (table, after) = position.split_once(' ').unwrap_or((TABLES[0], "0"));
        let Some(number) = TABLES.iter().position(|known| *known == table) else { return Ok(Reached::End) };
        let sql = format!(
            "SELECT rowid, goal_id, updated_at_ms FROM (SELECT rowid, * FROM {table} WHERE rowid > ?1
               ORDER BY rowid LIMIT ?2) WHERE ?3 OR status IN ('complete', 'abandoned')"
        );
        // Every replaced goal is over, whatever it was when the next one began.
        let is_history = number > 0;
        let after: i64 = after.parse().unwrap_or(0);
        let old = self.all(&sql, params![after, limit(WALKED), is_history], |row| {
            Ok(OldGoal { rowid: row.get(0)?, goal_id: row.get(1)?, updated_at_ms: row.get(2)? })
        })?;
        let last =
            format!("SELECT max(rowid) FROM (SELECT rowid FROM {table} WHERE rowid > ?1 ORDER BY rowid LIMIT ?2)");
        let last: Option<i64> = self.first(&last, params![after, limit(WALKED)], |row| row.get(0))?.flatten();
        let mut left = DELETED;
        for goal in old {
            let is_older = |than: Option<Millis>| than.is_some_and(|than| goal.updated_at_ms < than);
            let deleted = if is_older(goals_before) {
                self.delete_some_of_goal(table, &goal, left)?
            } else if is_older(events_before) {
                self.delete_traces(&goal.goal_id, left)?
            } else {
                0
            };
            left = left.saturating_sub(deleted);
            if left == 0 {
                return Ok(Reached::At(format!("{table} {}", goal.rowid - 1)));
            }
        }
        Ok(match (last, TABLES.get(number + 1)) {
            (Some(last), _) => Reached::At(format!("{table} {last}")),
            (None, Some(next)) => Reached::At(format!("{next} 0")),
            (None, None) => Reached::End,
        })
    }

    fn delete_traces(self, goal_id: &str, most: usize) -> Result<usize, StoreError> {
        let sql = format!(
            "DELETE FROM goal_events WHERE id IN
               (SELECT id FROM goal_events WHERE goal_id = ?1 AND {TRACES} ORDER BY id LIMIT ?2)"
        );
        self.execute(&sql, params![goal_id, limit(most)])
    }

    /// Deletes a goal with all its parts, the goal last. Returns the number of rows.
    fn delete_some_of_goal(self, table: &str, goal: &OldGoal, most: usize) -> Result<usize, StoreError> {
        let (deleted, is_all) = self.delete_parts(&goal.goal_id, most)?;
        if !is_all {
            return Ok(deleted);
        }
        self.execute(&format!("DELETE FROM {table} WHERE rowid = ?1"), [goal.rowid])?;
        Ok(deleted + WHOLE_GOAL)
    }
}
