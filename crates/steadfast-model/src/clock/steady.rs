//! The steady time: the wall clock as it would be if it never jumped. Within a boot it runs with the machine's own
//! counter, which no one can set; over boots it never goes back. [`tick`] is the whole rule.

use serde::{Deserialize, Serialize};

use super::{DAY, MINUTE, Millis, SECOND};

/// A wall clock that is ahead by at most this was put right, not set wrong.
const SLACK: Millis = 2 * MINUTE;
/// How old the last look may become before a writer repeats it.
pub const LOOK_EVERY: Millis = 10 * SECOND;
/// How much faster than real time old rows may age while a long absence is made up for: a day per hour.
const CATCH_UP: Millis = 24;
/// 2025: no store is older, so a wall clock that shows less was never set.
const NO_STORE_BEFORE: Millis = 1_735_689_600_000;

/// What the machine shows at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineClocks {
    pub wall_ms: Millis,
    /// Identifies the boot; empty on systems that do not show it.
    pub boot_id: String,
    /// Time since the boot, with the time in which the machine slept.
    pub boot_ms: Millis,
    /// How much of that the machine slept.
    pub suspended_ms: Millis,
}

/// One look at the clock, as the store keeps it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    pub boot_id: String,
    pub boot_ms: Millis,
    pub suspended_ms: Millis,
    /// The wall clock at this look.
    pub wall_ms: Millis,
    /// The steady time.
    pub now_ms: Millis,
    /// The time by which old rows are deleted.
    pub aged_ms: Millis,
}

impl Tick {
    fn is_in_boot_of(&self, seen: &MachineClocks) -> bool {
        !seen.boot_id.is_empty() && self.boot_id == seen.boot_id && self.boot_ms <= seen.boot_ms
    }

    /// How long the machine slept since this look.
    pub fn slept_until(&self, seen: &MachineClocks) -> Millis {
        if self.is_in_boot_of(seen) { (seen.suspended_ms - self.suspended_ms).max(0) } else { 0 }
    }

    /// How long the machine ran since this look, as far as its counter shows it.
    pub fn passed_until(&self, seen: &MachineClocks) -> Millis {
        if self.boot_id == seen.boot_id && self.boot_ms <= seen.boot_ms {
            seen.boot_ms - self.boot_ms
        } else {
            seen.boot_ms
        }
    }
}

/// The next look at the clock.
pub fn tick(last: Option<&Tick>, seen: &MachineClocks) -> Tick {
    let now_ms = last.map_or(seen.wall_ms, |last| steady(last, seen));
    // A clock that is ahead deletes nothing early, also if it is put right only later.
    let aged_ms = now_ms.min(seen.wall_ms);
    let aged_ms = last.map_or(aged_ms, |last| {
        let passed = last.passed_until(seen);
        let most = passed.max(passed.saturating_mul(CATCH_UP).min(DAY));
        aged_ms.min(last.aged_ms.saturating_add(most))
    });
    let MachineClocks { wall_ms, boot_id, boot_ms, suspended_ms } = seen.clone();
    Tick { boot_id, boot_ms, suspended_ms, wall_ms, now_ms, aged_ms }
}

fn steady(last: &Tick, seen: &MachineClocks) -> Millis {
    if last.is_in_boot_of(seen) {
        // Never less, not even a little: another process may have used that time already.
        let expected = last.now_ms.saturating_add(seen.boot_ms - last.boot_ms);
        let is_put_right = (expected..=expected.saturating_add(SLACK)).contains(&seen.wall_ms);
        return if is_put_right { seen.wall_ms } else { expected };
    }
    // A wall clock that stays ahead or behind shows how long the machine was off. The difference remains, so that
    // moments of the future keep their distance.
    let off = seen.wall_ms.saturating_sub(last.wall_ms);
    let stays_ahead = last.wall_ms > last.now_ms && seen.wall_ms >= last.wall_ms;
    let stays_behind = last.wall_ms >= NO_STORE_BEFORE && (last.wall_ms..last.now_ms - SLACK).contains(&seen.wall_ms);
    if stays_ahead || stays_behind {
        return last.now_ms.saturating_add(off.max(unseen(last, seen)));
    }
    if seen.wall_ms >= last.now_ms { seen.wall_ms } else { last.now_ms.saturating_add(unseen(last, seen)) }
}

/// How far before a boot writers may have used moments after the last look.
fn unseen(last: &Tick, seen: &MachineClocks) -> Millis {
    if seen.boot_id.is_empty() || last.boot_id == seen.boot_id {
        return 0;
    }
    // A container shows an id of its own, but the counter of its host: no boot, and this much time passed.
    let passed = seen.boot_ms - last.boot_ms;
    if passed < 0 { LOOK_EVERY } else { passed.min(LOOK_EVERY) }
}

#[cfg(test)]
mod tests;
