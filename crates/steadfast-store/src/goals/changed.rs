//! Goals that are over since a moment, for exports that send each of them once.

use super::row::read;
use crate::{Db, StoreError};
use steadfast_model::clock::Millis;
use steadfast_model::goal::Goal;

impl Db<'_> {
    /// Goals that are over, replaced ones too, and changed since a moment, oldest first.
    pub fn goals_over_since(self, since: Millis) -> Result<Vec<Goal>, StoreError> {
        let mut over = Vec::new();
        for (table, condition) in [("goals", "status IN ('complete', 'abandoned')"), ("goal_history", "TRUE")] {
            let sql = format!("SELECT * FROM {table} WHERE updated_at_ms >= ?1 AND {condition}");
            over.extend(self.all(&sql, [since], read)?);
        }
        over.sort_by(|one: &Goal, other| (one.updated_at_ms, &one.goal_id).cmp(&(other.updated_at_ms, &other.goal_id)));
        Ok(over)
    }
}

#[cfg(test)]
mod tests {
    use steadfast_model::goal::budget::Budget;
    use steadfast_model::goal::change;

    use crate::testing::{START, World};

    #[test]
    fn live_goals_and_older_ones_are_left_out_and_replaced_ones_are_not() {
        let mut world = World::new();
        let over = |world: &World, since| -> Vec<String> {
            let goals = world.store.read().goals_over_since(since).unwrap();
            goals.into_iter().map(|goal| goal.goal_id).collect()
        };
        let first = world.add_goal(Budget::default(), START).goal_id;
        assert!(over(&world, 0).is_empty(), "it is live");
        world.apply(|goal| change::abandon(goal, START + 10));
        assert_eq!(over(&world, START + 10), std::slice::from_ref(&first));
        assert!(over(&world, START + 11).is_empty());
        world.add_goal(Budget::default(), START + 20);
        assert_eq!(over(&world, START + 10), [first], "it was replaced");
    }
}
