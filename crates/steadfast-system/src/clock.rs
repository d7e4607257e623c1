//! The machine's clocks. The steady time of this process is anchored once, by the last look that the store has, and then
//! runs with the machine's own counter, so that a wall clock that jumps changes nothing while the process runs.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};
use steadfast_model::clock::steady::{MachineClocks, Tick, tick};
use steadfast_model::clock::{self, Clocks, HOUR, Millis};

/// Time since the boot, with the time in which the machine slept.
#[cfg(target_os = "linux")]
const BOOT: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const BOOT: ClockId = ClockId::Monotonic;
/// Identifies the boot. Elsewhere no file does.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

static ANCHOR: Mutex<Option<Tick>> = Mutex::new(None);

/// Reads the clocks of the machine from now on. A store that is opened sets the steady time.
pub fn begin() {
    clock::read_with(read);
}

/// Looks at all clocks.
pub fn look() -> MachineClocks {
    let boot_ms = milliseconds(clock_gettime(BOOT));
    let suspended_ms = boot_ms - milliseconds(clock_gettime(ClockId::Monotonic));
    let seen = MachineClocks { wall_ms: wall(), boot_id: boot_id().to_owned(), boot_ms, suspended_ms };
    if cfg!(debug_assertions) { faked::shift(seen) } else { seen }
}

/// The look after `last`. The first one in a process sets its steady time, later ones put it right.
pub fn look_after(last: Option<&Tick>) -> (MachineClocks, Tick) {
    let seen = look();
    let next = tick(last, &seen);
    let mut anchor = ANCHOR.lock().unwrap_or_else(PoisonError::into_inner);
    let is_later = |old: &Tick| {
        let later = next.now_ms - steady_at(old, seen.boot_ms);
        // Another store, for instance one that is imported, may have another time.
        (1..=HOUR).contains(&later)
    };
    if anchor.as_ref().is_none_or(is_later) {
        *anchor = Some(next.clone());
        begin();
    }
    (seen, next)
}

/// How this process stands to the wall clock, for a process that has no store. `None` before a store was open.
pub fn anchor() -> Option<Tick> {
    ANCHOR.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn read() -> Clocks {
    let (wall, boot_ms) = if cfg!(debug_assertions) {
        let seen = look();
        (seen.wall_ms, seen.boot_ms)
    } else {
        (wall(), milliseconds(clock_gettime(BOOT)))
    };
    let anchor = ANCHOR.lock().unwrap_or_else(PoisonError::into_inner);
    Clocks { wall, steady: anchor.as_ref().map_or(wall, |anchor| steady_at(anchor, boot_ms)) }
}

fn steady_at(anchor: &Tick, boot_ms: Millis) -> Millis {
    anchor.now_ms + (boot_ms - anchor.boot_ms).max(0)
}

fn wall() -> Millis {
    milliseconds(clock_gettime(ClockId::Realtime))
}

/// The wall clock with all its digits: two readings differ, also within a millisecond.
pub fn wall_precisely() -> SystemTime {
    let now = clock_gettime(ClockId::Realtime);
    let parts = u64::try_from(now.tv_sec).ok().zip(u32::try_from(now.tv_nsec).ok());
    parts.map_or(UNIX_EPOCH, |(seconds, nanos)| UNIX_EPOCH + Duration::new(seconds, nanos))
}

fn milliseconds(time: Timespec) -> Millis {
    time.tv_sec * 1_000 + Millis::from(time.tv_nsec) / 1_000_000
}

fn boot_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| fs_err::read_to_string(BOOT_ID).map(|id| id.trim().to_owned()).unwrap_or_default())
}

/// Clocks that a test sets, in builds for tests only: the file `test-clock` in the home has what to add to the wall
/// clock and to the time since the boot, how long the machine slept, and the number of the boot.
mod faked {
    use super::{MachineClocks, Millis};
    use crate::env_vars;

    pub(super) fn shift(seen: MachineClocks) -> MachineClocks {
        let file = env_vars::path(env_vars::HOME).map(|home| home.join("test-clock"));
        let Some(text) = file.and_then(|file| fs_err::read_to_string(file).ok()) else {
            return seen;
        };
        let mut words = text.split_whitespace();
        let mut number = || words.next().and_then(|word| word.parse::<Millis>().ok()).unwrap_or_default();
        let (wall, boot, suspended_ms) = (number(), number(), number());
        let boot_id = words.next().map_or(seen.boot_id, str::to_owned);
        MachineClocks { wall_ms: seen.wall_ms + wall, boot_id, boot_ms: seen.boot_ms + boot, suspended_ms }
    }
}
