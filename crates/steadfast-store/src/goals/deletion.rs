//! Deletes goals with everything only they have. A goal may have more events than one short transaction can delete.

use crate::steps::Pace;
use crate::{Db, Store, StoreError, limit};
use steadfast_model::goal::Goal;

/// Tables in which a goal may have any number of rows; all have an index on it.
const MANY_ROWS: [&str; 2] = ["goal_events", "verifications"];
/// Tables in which it has few rows. Some are searched row by row.
const FEW_ROWS: [&str; 3] = ["goal_spans", "subagent_token_cursors", "goal_environments"];
/// What a goal counts besides its many rows.
pub(crate) const WHOLE_GOAL: usize = 50;
/// The fewest and most rows of one transaction.
const ROWS: (usize, usize) = (WHOLE_GOAL, 4_000);

impl Store {
    /// Deletes goals, their queues and everything only they have, a few rows in each transaction. Other processes write
    /// in between, so each transaction asks `wanted` for the goal of an item again: `None` leaves what is left of it. The
    /// row of the goal goes last, so that a later call finds a goal that a killed process left. Returns those that are gone.
    pub fn delete_goals<'a, I>(
        &mut self,
        items: &'a [I],
        wanted: impl Fn(Db<'_>, &'a I) -> Result<Option<&'a Goal>, StoreError>,
    ) -> Result<Vec<&'a Goal>, StoreError> {
        let (mut pace, mut left, mut gone) = (Pace::new(ROWS), items, Vec::new());
        while !left.is_empty() {
            let (over, deleted) = pace.step(|most| self.write(|db| db.delete_some_goals(left, most, &wanted)))?;
            left = left.get(over..).unwrap_or_default();
            gone.extend(deleted);
        }
        Ok(gone)
    }
}

impl Db<'_> {
    /// Returns how many items are over, and the goals that are gone.
    fn delete_some_goals<'a, I>(
        self,
        items: &'a [I],
        most: usize,
        wanted: impl Fn(Self, &'a I) -> Result<Option<&'a Goal>, StoreError>,
    ) -> Result<(usize, Vec<&'a Goal>), StoreError> {
        let (mut room, mut gone) = (most, Vec::new());
        for (number, item) in items.iter().enumerate() {
            if room == 0 {
                return Ok((number, gone));
            }
            let Some(goal) = wanted(self, item)? else {
                room -= 1;
                continue;
            };
            let (deleted, is_all) = self.delete_parts(&goal.goal_id, room)?;
            if !is_all {
                return Ok((number, gone));
            }
            self.delete_goal(goal)?;
            room = room.saturating_sub(deleted + WHOLE_GOAL);
            gone.push(goal);
        }
        Ok((items.len(), gone))
    }

    /// Deletes up to `most` rows that only this goal has, the oldest first. Returns how many, and whether none is left.
    pub(crate) fn delete_parts(self, goal_id: &str, most: usize) -> Result<(usize, bool), StoreError> {
        let mut deleted = 0;
        for table in MANY_ROWS {
            let sql = format!(
                "DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE goal_id = ?1 ORDER BY id LIMIT ?2)"
            );
            deleted += self.execute(&sql, rusqlite::params![goal_id, limit(most.saturating_sub(deleted))])?;
            if deleted >= most {
                return Ok((deleted, false));
            }
        }
        for table in FEW_ROWS {
            deleted += self.execute(&format!("DELETE FROM {table} WHERE goal_id = ?1"), [goal_id])?;
        }
        Ok((deleted, true))
    }

    /// Removes the row of a goal and its queue. The caller makes sure that no client drives it.
    pub(crate) fn delete_goal(self, goal: &Goal) -> Result<(), StoreError> {
        self.delete_row(goal)?;
        self.delete_queue(&goal.session_id)
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::params;
    use steadfast_model::goal::budget::Budget;

    use super::*;
    use crate::testing::{SESSION, START, World};

    const EVENTS: i64 = 9_000;

    /// A goal with many events and a row in every table of goals.
    fn goal_with_parts(world: &mut World) -> Goal {
        let goal = world.add_goal(Budget::default(), START);
        let db = &world.store.db;
        let id = params![SESSION, goal.goal_id];
        let events = format!(
            "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {EVENTS})
             INSERT INTO goal_events (session_id, goal_id, event_type, created_at_ms) SELECT ?1, ?2, 'x', n FROM number"
        );
        db.execute(&events, id).unwrap();
        db.execute("INSERT INTO goal_environments VALUES (?1, '{}')", [&goal.goal_id]).unwrap();
        goal
    }

    fn left(world: &World) -> i64 {
        let tables = ["goals"].into_iter().chain(MANY_ROWS).chain(FEW_ROWS);
        tables.map(|table| world.count(&format!("SELECT count(*) FROM {table}"))).sum()
    }

    #[test]
    fn a_goal_is_deleted_with_everything_only_it_has() {
        let mut world = World::new();
        let goals = [goal_with_parts(&mut world)];
        assert!(left(&world) > EVENTS + 2);
        let gone = world.store.delete_goals(&goals, |_, goal| Ok(Some(goal))).unwrap();
        assert_eq!((gone, left(&world)), (vec![&goals[0]], 0));
    }

    #[test]
    fn the_row_of_a_goal_goes_last_and_no_step_is_large() {
        let mut world = World::new();
        let goals = [goal_with_parts(&mut world)];
        let (asked, before) = (std::cell::Cell::new(0), std::cell::Cell::new(left(&world)));
        // As if the process was killed after some steps.
        let stopped = world.store.delete_goals(&goals, |db, goal| {
            let count = "SELECT (SELECT count(*) FROM goal_events) + (SELECT count(*) FROM goals) * 10";
            let rows: i64 = db.0.query_row(count, [], |row| row.get(0))?;
            assert!(before.replace(rows) - rows <= 4_000);
            asked.set(asked.get() + 1);
            if asked.get() == 3 { Err(StoreError::Stale) } else { Ok(Some(goal)) }
        });
        assert!(matches!(stopped, Err(StoreError::Stale)));
        assert_eq!(world.goal(), goals[0]);
        let events = world.count("SELECT count(*) FROM goal_events");
        assert!(events > 0 && events < EVENTS, "{events}");
        // Its session came back.
        assert_eq!(world.store.delete_goals(&goals, |_, _| Ok(None)).unwrap(), Vec::<&Goal>::new());
        assert_eq!(world.goal(), goals[0]);
        world.store.delete_goals(&goals, |_, goal| Ok(Some(goal))).unwrap();
        assert_eq!(left(&world), 0);
    }
}
