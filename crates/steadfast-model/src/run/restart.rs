//! Whether `steadfast watch` starts the engine of a detached run again after it died. Pure.

use serde::{Deserialize, Serialize};

use crate::clock::Millis;

/// Restarts in a row without a committed iteration.
const MOST: u32 = 3;
/// The rest before the second and third restart; the first one comes at once.
const GAPS: [Millis; 2] = [30_000, 120_000];

/// The restarts of a run since it last made progress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restarts {
    /// Stage and iterations when it was last restarted.
    pub progress: (u32, u32),
    pub count: u32,
    pub last_ms: Millis,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restart {
    /// Save this, then restart.
    Now(Restarts),
    At(Millis),
    GiveUp,
}

/// Decides about a run whose engine is gone.
pub fn decide(before: &Restarts, progress: (u32, u32), now: Millis) -> Restart {
    let count = if before.progress == progress { before.count } else { 0 };
    if count >= MOST {
        return Restart::GiveUp;
    }
    let gap = usize::try_from(count).ok().and_then(|count| GAPS.get(count.checked_sub(1)?)).copied().unwrap_or(0);
    let at = before.last_ms + gap;
    // After a clock jump the last restart may be in the future.
    if count > 0 && now < at && now >= before.last_ms {
        return Restart::At(at);
    }
    Restart::Now(Restarts { progress, count: count + 1, last_ms: now })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_comes_back_three_times_and_again_after_progress() {
        let mut restarts = Restarts::default();
        let mut now = 1_000_000;
        let mut gaps = Vec::new();
        for _ in 0..MOST {
            let asked = now;
            if let Restart::At(at) = decide(&restarts, (1, 2), now) {
                now = at;
            }
            gaps.push(now - asked);
            let Restart::Now(next) = decide(&restarts, (1, 2), now) else { panic!("no restart at {now}") };
            restarts = next;
        }
        assert_eq!(gaps, [0, 30_000, 120_000]);
        assert_eq!(decide(&restarts, (1, 2), now + 1_000_000), Restart::GiveUp);
        let Restart::Now(next) = decide(&restarts, (1, 3), now) else { panic!("it made progress") };
        assert_eq!(next.count, 1);
    }
}
