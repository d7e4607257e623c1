//! Goals that wait for the live one of their session to end. Only their order counts: positions may have gaps.

use rusqlite::params;

use super::column::{from_json, to_json};
use super::{Db, StoreError};
use steadfast_model::clock::Millis;
use steadfast_model::goal::NewGoal;

/// One entry of a session's queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedGoal {
    pub id: i64,
    /// Its place in the queue, from 1.
    pub number: usize,
    pub goal: NewGoal,
    pub created_at_ms: Millis,
}

impl Db<'_> {
    /// The queue of a session; the next goal to start comes first.
    pub fn queue(self, session_id: &str) -> Result<Vec<QueuedGoal>, StoreError> {
        let sql = "SELECT * FROM goal_queue WHERE session_id = ?1 ORDER BY position, queue_id";
        let mut entries = self.all(sql, [session_id], |row| {
            Ok(QueuedGoal {
                id: row.get("queue_id")?,
                number: 0,
                goal: from_json(row, "goal_json")?,
                created_at_ms: row.get("created_at_ms")?,
            })
        })?;
        for (entry, number) in entries.iter_mut().zip(1..) {
            entry.number = number;
        }
        Ok(entries)
    }

    pub fn has_queue(self, session_id: &str) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM goal_queue WHERE session_id = ?1";
        Ok(self.first(sql, [session_id], |_| Ok(()))?.is_some())
    }

    /// How many goals wait behind this one; 0 for one that was replaced.
    pub fn queued_behind(self, goal_id: &str) -> Result<i64, StoreError> {
        let sql = "SELECT count(*) FROM goals JOIN goal_queue USING (session_id) WHERE goal_id = ?1";
        Ok(self.first(sql, [goal_id], |row| row.get(0))?.unwrap_or(0))
    }

    /// Sessions whose queue waits, although they have no live goal.
    pub fn sessions_with_next_goal(self) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT DISTINCT session_id FROM goal_queue q WHERE NOT EXISTS (SELECT 1 FROM goals g
                     WHERE g.session_id = q.session_id AND g.status NOT IN ('complete', 'abandoned'))
                   ORDER BY session_id";
        self.all(sql, [], |row| row.get(0))
    }

    /// Adds a goal at the end of a session's queue. Returns its id.
    pub fn enqueue(self, session_id: &str, goal: &NewGoal, now: Millis) -> Result<i64, StoreError> {
        self.execute(
            "INSERT INTO goal_queue (session_id, position, goal_json, created_at_ms)
             SELECT ?1, coalesce(max(position), 0) + 1, ?2, ?3 FROM goal_queue WHERE session_id = ?1",
            params![session_id, to_json(goal)?, now],
        )?;
        Ok(self.0.last_insert_rowid())
    }

    /// Removes an entry. A process that came too late gets `Stale`.
    pub fn drop_queued(self, id: i64) -> Result<(), StoreError> {
        match self.execute("DELETE FROM goal_queue WHERE queue_id = ?1", [id])? {
            1 => Ok(()),
            _ => Err(StoreError::Stale),
        }
    }

    /// Puts entries in this order.
    pub fn order_queue(self, entries: &[QueuedGoal]) -> Result<(), StoreError> {
        for (entry, position) in entries.iter().zip(1_i64..) {
            let sql = "UPDATE goal_queue SET position = ?2 WHERE queue_id = ?1";
            self.execute(sql, params![entry.id, position])?;
        }
        Ok(())
    }

    /// Moves the queue of a session behind that of another one.
    pub(crate) fn move_queue(self, from: &str, to: &str) -> Result<(), StoreError> {
        self.execute(
            "UPDATE goal_queue SET session_id = ?2, position = position
               + (SELECT coalesce(max(position), 0) FROM goal_queue WHERE session_id = ?2)
             WHERE session_id = ?1",
            [from, to],
        )?;
        Ok(())
    }

    pub(crate) fn delete_queue(self, session_id: &str) -> Result<(), StoreError> {
        self.execute("DELETE FROM goal_queue WHERE session_id = ?1", [session_id])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use steadfast_model::goal::budget::{Budget, BudgetProfile, BudgetSource};
    use steadfast_model::limit::Axis;
    use strum::IntoEnumIterator as _;

    use super::*;
    use crate::testing::{SESSION, START, USER, World};

    fn named(objective: &str) -> NewGoal {
        NewGoal { objective: objective.into(), ..NewGoal::default() }
    }

    fn objectives(world: &World, session: &str) -> Vec<String> {
        world.store.read().queue(session).unwrap().into_iter().map(|entry| entry.goal.objective).collect()
    }

    #[test]
    fn everything_that_was_asked_for_is_kept() {
        let mut world = World::new();
        let mut budget = Budget::of_profile(BudgetProfile::Deep, BudgetSource::Auto);
        for (axis, amount) in Axis::iter().zip(7..) {
            budget.limits.set(axis, Some(amount));
        }
        let verify = vec!["make test".to_owned(), "'; DROP TABLE goals; --".to_owned()];
        let new = NewGoal { objective: "Ship \u{1f680}\n\"now\"".into(), budget, verify, ..NewGoal::default() };
        let id = world.store.write(|db| db.enqueue(SESSION, &new, START)).unwrap();
        let queue = world.store.read().queue(SESSION).unwrap();
        assert_eq!(queue, [QueuedGoal { id, number: 1, goal: new, created_at_ms: START }]);
    }

    #[test]
    fn a_queue_moves_behind_that_of_another_session() {
        let mut world = World::new();
        world
            .store
            .write(|db| {
                for (session, objective) in [("a", "1"), ("b", "3"), ("a", "2"), ("b", "4")] {
                    db.enqueue(session, &named(objective), START)?;
                }
                db.move_queue("b", "a")
            })
            .unwrap();
        assert_eq!(
            (objectives(&world, "a"), objectives(&world, "b").len()),
            (vec!["1", "2", "3", "4"].into_iter().map(str::to_owned).collect(), 0)
        );
    }

    #[test]
    fn sessions_whose_next_goal_can_start_are_listed() {
        let mut world = World::new();
        let goal = world.add_goal(Budget::default(), START);
        world.store.write(|db| db.enqueue(SESSION, &named("next"), START)).unwrap();
        assert!(world.store.read().sessions_with_next_goal().unwrap().is_empty());
        assert_eq!(world.store.read().queued_behind(&goal.goal_id).unwrap(), 1);
        world.apply(|goal| steadfast_model::goal::change::abandon(goal, START));
        assert_eq!(world.store.read().sessions_with_next_goal().unwrap(), [SESSION]);
        let goal = world.goal();
        world.store.write(|db| db.archive_goal(&goal)).unwrap();
        assert_eq!(world.store.read().queued_behind(&goal.goal_id).unwrap(), 0);
        assert_eq!(world.store.read().sessions_with_next_goal().unwrap(), [SESSION]);
    }

    #[test]
    fn an_entry_is_taken_once() {
        let mut world = World::new();
        let id = world.store.write(|db| db.enqueue(SESSION, &named("next"), START)).unwrap();
        let goal = steadfast_model::testing::goal();
        world.store.write(|db| db.start_queued_goal(id, &goal, None, USER)).unwrap();
        let again = world.store.write(|db| db.start_queued_goal(id, &goal, None, USER));
        assert!(matches!(again, Err(StoreError::Stale)), "{again:?}");
    }
}
