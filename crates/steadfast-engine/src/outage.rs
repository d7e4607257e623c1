//! An engine outlives a store that is busy, and a disk that is full: it repeats what it wanted to save until it is saved,
//! or until it is asked to end. What failed changed nothing, so repeating it neither loses nor doubles a step.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use steadfast_store::{Outage, StoreError};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Signals that the engine received and has not acted on.
#[derive(Debug, Clone, Default)]
pub(crate) struct PendingSignals(Arc<AtomicU32>);

impl PendingSignals {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn take_one(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// Repeats `work` while the store is busy or full, until `is_ended`. `note` is called once, with a message for the user.
pub(crate) fn wait_for_store<T>(
    is_ended: impl Fn() -> bool,
    note: impl FnMut(&str),
    work: impl FnMut() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    repeat(StoreError::outage, is_ended, note, work)
}

/// The same for other files, while their disk is full.
pub(crate) fn wait_for_room<T>(
    is_ended: impl Fn() -> bool,
    note: impl FnMut(&str),
    work: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    let is_full = |error: &io::Error| (error.kind() == io::ErrorKind::StorageFull).then_some(Outage::Full);
    repeat(is_full, is_ended, note, work)
}

fn repeat<T, E>(
    outage_of: impl Fn(&E) -> Option<Outage>,
    is_ended: impl Fn() -> bool,
    mut note: impl FnMut(&str),
    mut work: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let mut pause = FIRST_PAUSE;
    let mut is_noted = false;
    loop {
        let result = work();
        let outage = result.as_ref().err().and_then(&outage_of).filter(|_| !is_ended());
        let Some(outage) = outage else { return result };
        if !std::mem::replace(&mut is_noted, true) {
            note(match outage {
                Outage::Busy => "the store is busy; the run continues when it is free",
                Outage::Full => "the disk is full; the run continues when there is room",
            });
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy() -> StoreError {
        StoreError::Busy("goals.db".into())
    }

    #[test]
    fn work_is_repeated_during_an_outage_and_noted_once() {
        let (mut calls, mut notes) = (0, Vec::new());
        let done = wait_for_store(
            || false,
            |note| notes.push(note.to_owned()),
            || {
                calls += 1;
                if calls < 4 { Err(busy()) } else { Ok(calls) }
            },
        );
        assert_eq!(done.unwrap(), 4);
        assert_eq!(notes, ["the store is busy; the run continues when it is free"]);
    }

    #[test]
    fn other_errors_and_signals_end_the_wait() {
        let signals = PendingSignals::default();
        let stale = wait_for_store(|| signals.any(), |_| {}, || Err::<(), _>(StoreError::Stale));
        assert!(matches!(stale, Err(StoreError::Stale)));
        signals.add();
        let ended = wait_for_store(|| signals.any(), |_| panic!("it does not wait"), || Err::<(), _>(busy()));
        assert!(matches!(ended, Err(StoreError::Busy(_))));
        signals.take_one();
        assert!(!signals.any());
    }

    #[test]
    fn a_full_disk_is_waited_for_and_other_errors_are_not() {
        let mut errors = vec![io::ErrorKind::NotFound, io::ErrorKind::StorageFull, io::ErrorKind::StorageFull];
        let mut notes = Vec::new();
        let failed =
            wait_for_room(|| false, |note| notes.push(note.to_owned()), || Err::<(), _>(errors.pop().unwrap().into()));
        assert_eq!((failed.unwrap_err().kind(), errors), (io::ErrorKind::NotFound, Vec::new()));
        assert_eq!(notes, ["the disk is full; the run continues when there is room"]);
    }
}
