//! Which events are deleted when a session has too many: those that are neither new nor held by a floor, the least
//! important first, then the oldest. If one call added more than fits, its own rows follow, but never its last one.
//! Floors hold the newest events of the categories that matter most after a compaction.

use rusqlite::{OptionalExtension as _, params};

use super::{Db, StoreError};
use steadfast_model::memory::eviction::{DECISIONS_HELD, GOALS_HELD, PROMPTS_HELD, RULES_HELD, UNRESOLVED_ERRORS_HELD};
use steadfast_model::memory::{Category, EVENTS_KEPT};

pub(super) const COUNT: &str = "SELECT count(*) FROM session_events WHERE session_id = ?1";

pub(super) const NEWEST_OF_CATEGORY: &str =
    "SELECT id FROM session_events WHERE session_id = ?1 AND category = ?2 ORDER BY id DESC LIMIT 1 OFFSET ?3";

pub(super) const NEWEST_UNRESOLVED: &str = "SELECT id FROM session_events
     WHERE session_id = ?1 AND category = 'error' AND resolved = 0 ORDER BY id DESC LIMIT 1 OFFSET ?2";

/// The plus keeps SQLite from choosing another index than the one that has this order.
pub(super) const DROP: &str = "DELETE FROM session_events WHERE id IN (
     SELECT id FROM session_events
     WHERE session_id = ?1 AND +id < ?2
       AND NOT (category = 'prompt' AND id >= ?3) AND NOT (category = 'rule' AND id >= ?4)
       AND NOT (category = 'decision' AND id >= ?5) AND NOT (category = 'error' AND resolved = 0 AND id >= ?6)
       AND NOT (category = 'goal' AND id >= ?7)
     ORDER BY importance, id LIMIT ?8)";

/// The oldest id that each floor holds; 0 when it holds all there are.
struct Floors {
    prompts: i64,
    rules: i64,
    decisions: i64,
    errors: i64,
    goals: i64,
}

impl Db<'_> {
    /// Deletes what a session has too much of, after rows with these ids were added.
    pub(super) fn evict_events(self, session_id: &str, first: i64, last: i64) -> Result<(), StoreError> {
        let count: i64 = self.0.prepare_cached(COUNT)?.query_row([session_id], |row| row.get(0))?;
        let excess = count - i64::try_from(EVENTS_KEPT).unwrap_or(i64::MAX);
        if excess <= 0 {
            return Ok(());
        }
        let floors = self.floors(session_id)?;
        let dropped = self.drop_events(session_id, first, &floors, excess)?;
        if dropped < excess {
            self.drop_events(session_id, last, &floors, excess - dropped)?;
        }
        Ok(())
    }

    fn drop_events(self, session_id: &str, below: i64, floors: &Floors, most: i64) -> Result<i64, StoreError> {
        let Floors { prompts, rules, decisions, errors, goals } = floors;
        let values = params![session_id, below, prompts, rules, decisions, errors, goals, most];
        Ok(i64::try_from(self.execute(DROP, values)?).unwrap_or(i64::MAX))
    }

    fn floors(self, session_id: &str) -> Result<Floors, StoreError> {
        let mut newest = self.0.prepare_cached(NEWEST_OF_CATEGORY)?;
        let mut oldest_held = |category: Category, held: u32| {
            let values = params![session_id, <&str>::from(category), held - 1];
            newest.query_row(values, |row| row.get(0)).optional().map(Option::unwrap_or_default)
        };
        let values = params![session_id, UNRESOLVED_ERRORS_HELD - 1];
        let errors = self.0.prepare_cached(NEWEST_UNRESOLVED)?.query_row(values, |row| row.get(0)).optional()?;
        Ok(Floors {
            prompts: oldest_held(Category::Prompt, PROMPTS_HELD)?,
            rules: oldest_held(Category::Rule, RULES_HELD)?,
            decisions: oldest_held(Category::Decision, DECISIONS_HELD)?,
            errors: errors.unwrap_or_default(),
            goals: oldest_held(Category::Goal, GOALS_HELD)?,
        })
    }
}
