//! Deletes what is older than `[retention]` says, a little at a time. Each task walks through its rows in small steps,
//! continues where the last step ended, and rests for a day when it is through. A process that dies in between loses
//! nothing: a step and its position are one transaction. Sums are kept in the transaction that deletes their details.

mod goals;
mod ledger;
mod notes;
mod replaced;
mod runs;
mod secrets;
mod sessions;

use rusqlite::{Transaction, TransactionBehavior, params};
use strum::{EnumIter, EnumString, IntoEnumIterator as _, IntoStaticStr};

use crate::{Db, Outage, Store, StoreError, explain};
use steadfast_model::clock::{DAY, HOUR, Millis};
use steadfast_system::config::RetentionConfig;

pub use ledger::{UsageDay, UsageKey};
pub use runs::ExpiredRun;

/// Rows that one step deletes.
const DELETED: usize = 200;
/// Rows that one step looks at.
const SEEN: usize = 400;
/// Sessions or goals that one step looks at: each takes several queries.
const WALKED: usize = 40;
/// The position of the task that never begins again.
const FOR_GOOD: &str = "done";
/// Between two steps of a task that is not through.
const SOON: Millis = 2_000;
/// Before a task that failed is tried again, so that the others have their turn.
const REST: Millis = HOUR;
/// Free pages that stay for the next rows, and those that one step gives back.
const PAGES_KEPT: u64 = 256;
const PAGES_RETURNED: usize = 64;
/// The caps of a week are counted from the details, and a clock may be wrong by days.
const LEAST_DAYS: u32 = 14;

/// What is kept for how long.
#[derive(Debug, Clone)]
pub struct Keep<'a> {
    pub details: &'a RetentionConfig,
    /// Days that session memory is kept; 0 keeps everything.
    pub memory_days: u32,
}

/// The tasks, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumIter, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
enum UpkeepTask {
    Memory,
    Ledger,
    Goals,
    Cursors,
    Sessions,
    Notes,
    Replaced,
    Secrets,
    Pages,
}

/// How far a step came.
#[derive(Debug, PartialEq, Eq)]
enum Reached {
    /// The task is through.
    End,
    /// The task is through and never begins again.
    ForGood,
    /// It continues here.
    At(String),
}

impl Store {
    /// Does one step of the task that waits longest, if one is due. Returns whether there may be more to do now. Does
    /// not wait for other processes: whatever they do is more urgent. A task that fails rests for a while, and the next
    /// call does a step of another one.
    pub fn upkeep(&mut self, keep: &Keep<'_>, now: Millis) -> Result<bool, StoreError> {
        if self.read().due_task(now)?.is_none() {
            return Ok(false);
        }
        let returns_pages = self.returns_pages()?;
        let mut begun = None;
        let done = self.write_if_free(|db| {
            // Another process may have done it meanwhile.
            let Some((task, position)) = db.due_task(now)? else { return Ok(false) };
            let (task, position) = begun.insert((task, position));
            let reached = match *task {
                UpkeepTask::Pages if !returns_pages => Reached::End,
                task => db.upkeep_step(task, position, keep, now)?,
            };
            db.put_reached(*task, reached, now)?;
            Ok(true)
        });
        if let (Err(error), Some((task, position))) = (&done, begun)
            && error.outage().is_none()
        {
            self.write_if_free(|db| db.put_upkeep(task.into(), &position, now + REST))?;
        }
        Ok(done?.unwrap_or(false))
    }

    /// Does one step, and at most this many while a task is not through, with other processes in between.
    pub fn upkeep_some(&mut self, keep: &Keep<'_>, most: usize, now: Millis) -> Result<(), StoreError> {
        let mut now = now;
        for _ in 0..most {
            if !self.upkeep(keep, now)? || !self.read().has_task_under_way()? {
                break;
            }
            now += SOON;
        }
        Ok(())
    }

    /// Does everything that is due, with other processes in between.
    pub fn upkeep_all(&mut self, keep: &Keep<'_>, now: Millis) -> Result<(), StoreError> {
        let mut now = now;
        while self.upkeep(keep, now)? {
            now += SOON;
        }
        Ok(())
    }

    /// Runs `work` in a write transaction unless another process writes; `None` then.
    fn write_if_free<T>(
        &mut self,
        work: impl FnOnce(Db<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let begun = self.waits.without(|| Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate));
        let tx = match begun.map_err(|error| explain(&self.path, error)) {
            Err(error) if error.outage() == Some(Outage::Busy) => return Ok(None),
            begun => begun?,
        };
        let done = work(Db(&tx, &self.added_message))?;
        tx.commit().map_err(|error| explain(&self.path, error))?;
        Ok(Some(done))
    }
}

impl Db<'_> {
    /// The task that waits longest, if one is due, and where it continues. A moment far ahead was written by a clock
    /// that was wrong.
    fn due_task(self, now: Millis) -> Result<Option<(UpkeepTask, String)>, StoreError> {
        let sql = "SELECT task, position, due_at_ms FROM upkeep";
        let known: Vec<(String, String, Millis)> =
            self.all(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let waits = UpkeepTask::iter().map(|task| {
            let row = known.iter().find(|(name, ..)| name == <&str>::from(task));
            let (position, due) = row.map_or((String::new(), 0), |(_, position, due)| (position.clone(), *due));
            (task, position, if due > now + 2 * DAY { 0 } else { due })
        });
        // The positions of other tasks may be ids that look the same.
        let is_over = |task, position: &str| task == UpkeepTask::Secrets && position == FOR_GOOD;
        let first = waits.filter(|(task, position, _)| !is_over(*task, position)).min_by_key(|(.., due)| *due);
        Ok(first.filter(|(.., due)| *due <= now).map(|(task, position, _)| (task, position)))
    }

    /// Whether a task is not through. The table has walks of other crates, too.
    fn has_task_under_way(self) -> Result<bool, StoreError> {
        let sql = "SELECT task FROM upkeep WHERE position NOT IN ('', ?1)";
        let tasks: Vec<String> = self.all(sql, [FOR_GOOD], |row| row.get(0))?;
        Ok(tasks.iter().any(|task| task.parse::<UpkeepTask>().is_ok()))
    }

    fn put_reached(self, task: UpkeepTask, reached: Reached, now: Millis) -> Result<(), StoreError> {
        let (position, due) = match reached {
            Reached::End => (String::new(), now + DAY),
            Reached::ForGood => (FOR_GOOD.to_owned(), now + DAY),
            Reached::At(position) => (position, now + SOON),
        };
        self.put_upkeep(task.into(), &position, due)
    }

    pub(crate) fn put_upkeep(self, task: &str, position: &str, due: Millis) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO upkeep (task, position, due_at_ms) VALUES (?1, ?2, ?3)";
        self.execute(sql, params![task, position, due])?;
        Ok(())
    }

    /// Where a walk of another crate continues; `None` while it rests.
    pub fn walk_position(self, walk: &str, now: Millis) -> Result<Option<String>, StoreError> {
        let sql = "SELECT position FROM upkeep WHERE task = ?1 AND due_at_ms > ?2 AND due_at_ms <= ?2 + ?3";
        if self.first(sql, params![walk, now, 2 * DAY], |_| Ok(()))?.is_some() {
            return Ok(None);
        }
        let sql = "SELECT position FROM upkeep WHERE task = ?1";
        Ok(Some(self.first(sql, [walk], |row| row.get(0))?.unwrap_or_default()))
    }

    /// Notes where such a walk continues; without a position it is through and rests for a day.
    pub fn put_walk(self, walk: &str, position: Option<&str>, now: Millis) -> Result<(), StoreError> {
        self.put_upkeep(walk, position.unwrap_or_default(), if position.is_some() { now } else { now + DAY })
    }

    fn upkeep_step(
        self,
        task: UpkeepTask,
        position: &str,
        keep: &Keep<'_>,
        now: Millis,
    ) -> Result<Reached, StoreError> {
        let aged = self.aged_now(now)?;
        let details = keep.details;
        match task {
            UpkeepTask::Memory => self.forget_some(position, cut(aged, keep.memory_days, 1), aged),
            UpkeepTask::Ledger => self.prune_ledger(position, cut(aged, details.ledger_days, LEAST_DAYS)),
            UpkeepTask::Goals => {
                let events = cut(aged, details.goal_events_days, 1);
                self.prune_goals(position, events, cut(aged, details.goals_days, 1))
            }
            UpkeepTask::Cursors => self.prune_cursors(position, cut(aged, details.ledger_days, LEAST_DAYS)),
            UpkeepTask::Sessions => self.prune_sessions(position, cut(aged, details.ledger_days, LEAST_DAYS)),
            UpkeepTask::Notes => self.prune_notes(aged, cut(aged, details.runs_days, LEAST_DAYS)),
            UpkeepTask::Secrets => self.redact_some(position),
            UpkeepTask::Replaced => self.empty_replaced_tables_a_little(),
            UpkeepTask::Pages => self.return_some_pages(),
        }
    }

    /// Gives free pages back that deleted rows left.
    fn return_some_pages(self) -> Result<Reached, StoreError> {
        let free = || self.0.pragma_query_value(None, "freelist_count", |row| row.get::<_, i64>(0));
        let too_many = |free: i64| u64::try_from(free).is_ok_and(|free| free > PAGES_KEPT);
        if !too_many(free()?) {
            return Ok(Reached::End);
        }
        self.return_pages(PAGES_RETURNED)?;
        Ok(if too_many(free()?) { Reached::At(String::new()) } else { Reached::End })
    }
}

/// What happened before this moment may go; `None` keeps everything.
fn cut(aged: Millis, days: u32, least: u32) -> Option<Millis> {
    (days > 0).then(|| aged.saturating_sub(Millis::from(days.max(least)) * DAY))
}

#[cfg(test)]
mod tests;
