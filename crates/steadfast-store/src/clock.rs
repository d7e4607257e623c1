//! The clock of the store: one row, from which each process learns how the steady time stands to the wall clock. It is
//! written now and then, in transactions that happen anyway.

use rusqlite::params;

use steadfast_model::clock::steady::{LOOK_EVERY, Tick, tick};
use steadfast_model::clock::{Millis, SECOND};
use steadfast_model::goal::{Actor, change};
use steadfast_system::clock;

use super::{Db, Origin, Store, StoreError};

/// Counters are read one after the other, so that less is no sleep.
const SHORTEST_SLEEP: Millis = SECOND;
/// The boot of a store whose test gives all times itself: its row stays as it is.
#[cfg(any(test, feature = "testing"))]
pub(crate) const OF_TEST: &str = "test";
const ORIGIN: Origin = Origin { actor: Actor::Steadfast, place: "clock" };

impl Store {
    /// Sets the time of this process. After a sleep it corrects the running clocks at once, so that readers see it too.
    pub(super) fn read_clock(&mut self) -> Result<(), StoreError> {
        self.tick = self.read().last_tick()?;
        let (seen, _) = clock::look_after(self.tick.as_ref());
        if self.tick.as_ref().is_some_and(|last| last.slept_until(&seen) >= SHORTEST_SLEEP) {
            // The next writer repeats what fails here.
            let _ = self.write(|_| Ok::<_, StoreError>(()));
        }
        Ok(())
    }
}

impl Db<'_> {
    /// The time by which old rows are deleted. It follows `now`, but does not leap ahead with a clock that was set wrong.
    pub fn aged_now(self, now: Millis) -> Result<Millis, StoreError> {
        let Some(last) = self.last_tick()? else { return Ok(now) };
        #[cfg(any(test, feature = "testing"))]
        if last.boot_id == OF_TEST {
            return Ok(last.aged_ms.min(now));
        }
        Ok(tick(Some(&last), &clock::look()).aged_ms.min(now))
    }

    /// The moment before which something is older than the user says. Everything is older than 0.
    pub fn moment_before(self, age: Millis, now: Millis) -> Result<Millis, StoreError> {
        if age == 0 { Ok(now) } else { Ok(self.aged_now(now)?.saturating_sub(age)) }
    }

    fn last_tick(self) -> Result<Option<Tick>, StoreError> {
        self.first("SELECT boot_id, boot_ms, suspended_ms, wall_ms, now_ms, aged_ms FROM clock", [], |row| {
            Ok(Tick {
                boot_id: row.get(0)?,
                boot_ms: row.get(1)?,
                suspended_ms: row.get(2)?,
                wall_ms: row.get(3)?,
                now_ms: row.get(4)?,
                aged_ms: row.get(5)?,
            })
        })
    }

    /// Writes the row if it is old, at the start of a write transaction. `known` is the row as this process last saw it.
    pub(super) fn keep_time(self, known: &mut Option<Tick>) -> Result<(), StoreError> {
        let seen = clock::look();
        // A jump is written at once: the next process must not think that the wall clock was right.
        let is_fresh = |tick: &Tick| {
            let passed = tick.passed_until(&seen);
            let jumped = seen.wall_ms - tick.wall_ms - passed;
            tick.boot_id == seen.boot_id && passed < LOOK_EVERY && jumped.abs() < SECOND
        };
        if known.as_ref().is_some_and(is_fresh) {
            return Ok(());
        }
        // Another process may have written it.
        *known = self.last_tick()?;
        if known.as_ref().is_some_and(is_fresh) {
            return Ok(());
        }
        #[cfg(any(test, feature = "testing"))]
        if known.as_ref().is_some_and(|tick| tick.boot_id == OF_TEST) {
            return Ok(());
        }
        let (seen, next) = clock::look_after(known.as_ref());
        let slept = known.as_ref().map_or(0, |last| last.slept_until(&seen));
        self.execute(
            "INSERT OR REPLACE INTO clock (id, boot_id, boot_ms, suspended_ms, wall_ms, now_ms, aged_ms)
             VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6)",
            params![next.boot_id, next.boot_ms, next.suspended_ms, next.wall_ms, next.now_ms, next.aged_ms],
        )?;
        if slept >= SHORTEST_SLEEP {
            for goal in self.goals_with_running_clock()? {
                self.save(&goal, change::slept(&goal, slept, next.now_ms), ORIGIN)?;
            }
        }
        *known = Some(next);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
