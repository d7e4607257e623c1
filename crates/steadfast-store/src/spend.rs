//! What all goals and runs together spend in a day and a week, and the caps a person set on that. Days and weeks are
//! those of the machine's own time zone; a week begins on Monday.

use crate::{Db, StoreError};
use steadfast_model::clock::{Millis, day_start, week_start};
use steadfast_model::goal::limit::{SharedSpend, Spend};
use steadfast_system::config::SharedLimits;

/// What all of them spent today.
pub fn today(db: Db<'_>, now: Millis) -> Result<Spend, StoreError> {
    db.spent_since(day_start(now))
}

/// How near all of them are to the caps of the day and the week.
pub fn shared(db: Db<'_>, limits: &SharedLimits, now: Millis) -> Result<SharedSpend, StoreError> {
    shared_with(db, limits, Spend::default(), now)
}

/// The same with something that was spent just now and is not in the store yet.
pub fn shared_with(db: Db<'_>, limits: &SharedLimits, more: Spend, now: Millis) -> Result<SharedSpend, StoreError> {
    let day = near(db, limits.daily_tokens, limits.daily_usd, more, || day_start(now))?;
    if day == SharedSpend::Reached {
        return Ok(day);
    }
    let week = near(db, limits.weekly_tokens, limits.weekly_usd, more, || week_start(now))?;
    Ok(if week == SharedSpend::Free { day } else { week })
}

/// How near the spending since `start` is to a cap. Most people set no caps, and finding the time zone is slow, so
/// `start` is asked only when it matters.
fn near(
    db: Db<'_>,
    tokens: Option<i64>,
    usd: Option<f64>,
    more: Spend,
    start: impl FnOnce() -> Millis,
) -> Result<SharedSpend, StoreError> {
    if tokens.is_none() && usd.is_none() {
        return Ok(SharedSpend::Free);
    }
    let spent = db.spent_since(start())?;
    #[expect(clippy::cast_possible_truncation, reason = "dollars times a million is far below 2^63")]
    let micros = usd.map(|dollars| (dollars * 1_000_000.0) as i64);
    let caps = [(spent.tokens + more.tokens, tokens), (spent.cost_micros + more.cost_micros, micros)];
    let any = |percent: i128| {
        caps.iter().any(|(used, most)| most.is_some_and(|most| i128::from(*used) * 100 >= i128::from(most) * percent))
    };
    Ok(match (any(100), any(80)) {
        (true, _) => SharedSpend::Reached,
        (false, true) => SharedSpend::Near,
        (false, false) => SharedSpend::Free,
    })
}
