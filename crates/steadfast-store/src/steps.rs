//! Long work in short transactions with pauses between them, so that other processes write in between.

use std::thread;
use std::time::{Duration, Instant};

use crate::{Db, Store, StoreError};

/// What one transaction may take: a hook that waits for it must not notice.
const STEP_TAKES: Duration = Duration::from_millis(25);
/// Between two steps others get the lock, even those that look for it only now and then.
const PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
const ITEMS: (usize, usize) = (1, 256);

/// How much one step takes on, so that it needs about [`STEP_TAKES`].
pub(crate) struct Pace {
    pub(crate) amount: usize,
    range: (usize, usize),
}

impl Pace {
    pub(crate) fn new(range: (usize, usize)) -> Self {
        Self { amount: range.0 * 4, range }
    }

    /// Runs one step, then leaves the store to others for as long.
    pub(crate) fn step<T, E>(&mut self, work: impl FnOnce(usize) -> Result<T, E>) -> Result<T, E> {
        let begun = Instant::now();
        let done = work(self.amount)?;
        let took = begun.elapsed();
        if took > STEP_TAKES {
            self.amount = (self.amount / 2).max(self.range.0);
        } else if took < STEP_TAKES / 3 {
            self.amount = (self.amount * 2).min(self.range.1);
        }
        thread::sleep(took.clamp(PAUSE, LONGEST_PAUSE));
        Ok(done)
    }
}

impl Store {
    /// Does `work` for each item, a few in each transaction. An error rolls back the step that it is in; the steps
    /// before it stay. Others write in between, so `work` looks again at what it changes.
    pub fn write_in_steps<I, E: From<StoreError>>(
        &mut self,
        items: &[I],
        mut work: impl FnMut(Db<'_>, &I) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut pace, mut left) = (Pace::new(ITEMS), items);
        while !left.is_empty() {
            left = pace.step(|most| {
                let (now, later) = left.split_at(most.min(left.len()));
                self.write(|db| now.iter().try_for_each(|item| work(db, item)))?;
                Ok::<_, E>(later)
            })?;
        }
        Ok(())
    }
}
