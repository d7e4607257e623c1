//! How a connection waits for other processes, except for the write lock, for which writers wait in line (`line.rs`): a
//! store that another process creates, recovers or closes. SQLite's own pauses grow to 100 ms, so that newcomers overtake;
//! these stay short, with a little chance in them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long one wait takes at most if the store has no deadline.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);
const CHANCE_MICROS: u32 = 2_000;

/// Whether a connection waits at all: not while its writer is in line.
#[derive(Debug, Clone, Default)]
pub(super) struct Waits(Arc<AtomicBool>);

impl Waits {
    /// Runs `work` without waiting for locks.
    pub(super) fn without<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.store(true, Ordering::Relaxed);
        let done = work();
        self.0.store(false, Ordering::Relaxed);
        done
    }

    /// SQLite calls this when it meets a lock, with the number of calls before; `false` gives up.
    pub(super) fn handler(&self, deadline: Option<Instant>) -> impl FnMut(i32) -> bool + Send + 'static {
        let is_off = Arc::clone(&self.0);
        let mut began = Instant::now();
        move |calls| {
            if calls == 0 {
                began = Instant::now();
            }
            let until = deadline.unwrap_or(began + BUSY_TIMEOUT);
            if is_off.load(Ordering::Relaxed) || Instant::now() >= until {
                return false;
            }
            pause(began);
            true
        }
    }
}

/// Sleeps a moment, by chance a little longer: many may wait since the same time.
pub(super) fn pause(since: Instant) {
    let chance = (since.elapsed().subsec_nanos() ^ std::process::id().wrapping_mul(0x9E37_79B9)) % CHANCE_MICROS;
    std::thread::sleep(PAUSE + Duration::from_micros(u64::from(chance)));
}
