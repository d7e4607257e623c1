//! Goals that users stated in prompts. One holds at a time; those before it stay as history. A fork keeps the goal that
//! held when it was made, until it has one of its own.

use rusqlite::{Row, params};

use super::{Db, StoreError, lossy, whole};
use steadfast_model::clock::Millis;
use steadfast_model::goal::Goal;
use steadfast_model::memory::stated::{LENGTH_KEPT, StatedChange, StatedGoal, StatedStatus};
use steadfast_model::text;

/// Goals of a session that are over and still listed.
const HISTORY_KEPT: u32 = 100;

const SELECT: &str = "SELECT id, session_id, objective, status, goal_id, set_at_ms, changed_at_ms FROM stated_goals";

fn read(row: &Row<'_>) -> rusqlite::Result<Option<StatedGoal>> {
    let Ok(status) = lossy(row, 3)?.parse() else {
        return Ok(None);
    };
    Ok(Some(StatedGoal {
        id: row.get(0)?,
        session_id: lossy(row, 1)?,
        objective: lossy(row, 2)?,
        status,
        goal_id: Some(lossy(row, 4)?).filter(|id| !id.is_empty()),
        set_at_ms: whole(row, 5)?,
        changed_at_ms: whole(row, 6)?,
    }))
}

impl Db<'_> {
    /// The stated goal that holds in a session: its own, or the one it was forked with.
    pub fn stated_goal(self, session_id: &str) -> Result<Option<StatedGoal>, StoreError> {
        if let Some(newest) = self.stated_at(session_id, Millis::MAX)? {
            return Ok(Some(newest).filter(|goal| goal.status.holds()));
        }
        for kin in self.lineage(session_id)?.into_iter().skip(1) {
            let Some(goal) = self.stated_at(&kin.session_id, kin.until)? else { continue };
            // A durable goal stays with its session, and so do the words that it was started with.
            if self.was_durable(&goal, kin.until)? {
                return Ok(None);
            }
            if goal.status.holds() {
                return Ok(Some(goal));
            }
            // What ended after the fork still holds in the fork.
            let held = goal.changed_at_ms > kin.until;
            return Ok(held.then_some(StatedGoal { status: StatedStatus::Active, ..goal }));
        }
        Ok(None)
    }

    /// Whether a stated goal was the text of a durable one at that moment, or had been before.
    fn was_durable(self, stated: &StatedGoal, until: Millis) -> Result<bool, StoreError> {
        let Some(goal_id) = &stated.goal_id else {
            return Ok(false);
        };
        let sql = "SELECT objective FROM goals WHERE goal_id = ?1 AND created_at_ms <= ?2
             UNION ALL SELECT objective FROM goal_history WHERE goal_id = ?1 AND created_at_ms <= ?2
             UNION ALL SELECT payload_json ->> iif(event_type = 'goal_created', 'objective', 'previous_objective')
               FROM goal_events WHERE goal_id = ?1 AND event_type IN ('goal_created', 'goal_objective_updated')
                 AND json_valid(payload_json)
                 AND (SELECT min(created_at_ms) FROM goal_events WHERE goal_id = ?1) <= ?2";
        let texts = self.all(sql, params![goal_id, until], |row| lossy(row, 0))?;
        Ok(texts.iter().any(|objective| stated.says(objective)))
    }

    /// The newest goal that was stated up to a moment, whatever became of it.
    fn stated_at(self, session_id: &str, until: Millis) -> Result<Option<StatedGoal>, StoreError> {
        let sql = format!("{SELECT} WHERE session_id = ?1 AND set_at_ms <= ?2 ORDER BY id DESC LIMIT 1");
        Ok(self.first(&sql, params![session_id, until], read)?.flatten())
    }

    /// All goals stated in a session, oldest first.
    pub fn stated_history(self, session_id: &str) -> Result<Vec<StatedGoal>, StoreError> {
        self.all_understood(&format!("{SELECT} WHERE session_id = ?1 ORDER BY id"), [session_id], read)
    }

    /// Does to the stated goal what [`steadfast_model::memory::stated::decide`] decided, in the caller's transaction.
    /// `goal_id` is the durable goal of the session, if one is live.
    pub fn apply_stated(
        self,
        session_id: &str,
        change: &StatedChange,
        goal_id: Option<&str>,
        now: Millis,
    ) -> Result<(), StoreError> {
        match change {
            StatedChange::Nothing => Ok(()),
            StatedChange::Set(objective) => {
                self.move_stated(session_id, StatedStatus::Replaced, now)?;
                self.add_stated(session_id, objective, StatedStatus::Active, goal_id, (now, now))?;
                self.prune_stated(session_id)
            }
            StatedChange::Move(status) => {
                let inherited = self.stated_goal(session_id)?.filter(|goal| goal.session_id != session_id);
                match inherited {
                    // The ancestor's record is not this session's to change.
                    Some(goal) => {
                        let times = (goal.set_at_ms, now);
                        self.add_stated(session_id, &goal.objective, *status, goal_id, times)
                    }
                    None => self.move_stated(session_id, *status, now),
                }
            }
        }
    }

    /// A durable goal began in a session: what was stated there before belongs to it.
    pub(crate) fn tie_stated(self, session_id: &str, goal_id: &str) -> Result<(), StoreError> {
        let sql = "UPDATE stated_goals SET goal_id = ?2
                   WHERE session_id = ?1 AND goal_id IS NULL AND status IN ('active', 'paused')";
        self.execute(sql, [session_id, goal_id])?;
        Ok(())
    }

    /// Moves what is stated in the session of a goal, its own or inherited, if it is that text.
    pub(crate) fn move_stated_if(self, goal: &Goal, objective: &str, status: StatedStatus) -> Result<(), StoreError> {
        if self.stated_goal(&goal.session_id)?.is_some_and(|stated| stated.says(objective)) {
            let change = StatedChange::Move(status);
            self.apply_stated(&goal.session_id, &change, Some(&goal.goal_id), goal.updated_at_ms)?;
        }
        Ok(())
    }

    /// A durable goal is over, and so is what was stated for it. What the user stated later and differently still holds.
    pub(crate) fn finish_stated(self, goal: &Goal, status: StatedStatus) -> Result<(), StoreError> {
        let sql = "UPDATE stated_goals SET status = ?2, changed_at_ms = ?3
                   WHERE goal_id = ?1 AND status IN ('active', 'paused') AND (set_at_ms <= ?4 OR objective = ?5)";
        let word: &str = status.into();
        self.execute(sql, params![goal.goal_id, word, goal.updated_at_ms, goal.created_at_ms, goal.objective])?;
        self.move_stated_if(goal, &goal.objective, status)
    }

    fn move_stated(self, session_id: &str, status: StatedStatus, now: Millis) -> Result<(), StoreError> {
        let sql = "UPDATE stated_goals SET status = ?2, changed_at_ms = ?3
                   WHERE session_id = ?1 AND status IN ('active', 'paused')";
        self.execute(sql, params![session_id, <&str>::from(status), now])?;
        Ok(())
    }

    /// Deletes goals that are over, the oldest first, when there are too many.
    pub(super) fn prune_stated(self, session_id: &str) -> Result<(), StoreError> {
        let sql = "DELETE FROM stated_goals
                   WHERE session_id = ?1 AND status NOT IN ('active', 'paused') AND id <= (
                     SELECT id FROM stated_goals WHERE session_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)";
        self.execute(sql, params![session_id, HISTORY_KEPT])?;
        Ok(())
    }

    pub(super) fn add_stated(
        self,
        session_id: &str,
        objective: &str,
        status: StatedStatus,
        goal_id: Option<&str>,
        (set_at, changed_at): (Millis, Millis),
    ) -> Result<(), StoreError> {
        let sql = "INSERT INTO stated_goals (session_id, objective, status, goal_id, set_at_ms, changed_at_ms)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let objective = text::cut(objective, LENGTH_KEPT);
        self.execute(sql, params![session_id, objective, <&str>::from(status), goal_id, set_at, changed_at])?;
        Ok(())
    }
}
