//! How long the machine slept while the engine drove a run.

use steadfast_model::clock::{Millis, SECOND};
use steadfast_system::clock;

/// The counters behind it are read one after the other, so that less is no sleep.
const SHORTEST: Millis = SECOND;

/// The sleep that the run knows of, as a counter since the boot.
pub(super) struct Sleep(Millis);

impl Sleep {
    pub(super) fn until_now() -> Self {
        Self(clock::look().suspended_ms)
    }

    /// What came on top since the last call.
    pub(super) fn more(&mut self) -> Option<Millis> {
        let now = clock::look().suspended_ms;
        let more = now.saturating_sub(self.0);
        if more < SHORTEST {
            return None;
        }
        self.0 = now;
        Some(more)
    }
}
