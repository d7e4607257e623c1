//! What all goals and runs together spend in a day and a week, and the caps a person set on that. Days and weeks are
//! those of the machine's own time zone; a week begins on Monday.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit};

use crate::clock::{DAY, Millis};
use crate::config::SharedLimits;
use crate::goal::limit::SharedSpend;
use crate::price;
use crate::store::{Db, StoreError};

/// Tokens and money that goals and runs were charged with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spend {
    pub tokens: i64,
    pub cost_micros: i64,
}

/// What all of them spent today.
pub fn today(db: Db<'_>, now: Millis) -> Result<Spend, StoreError> {
    db.spent_since(day_start(now, 0))
}

/// How near all of them are to the caps of the day and the week.
pub fn shared(db: Db<'_>, limits: &SharedLimits, now: Millis) -> Result<SharedSpend, StoreError> {
    shared_with(db, limits, Spend::default(), now)
}

/// The same with something that was spent just now and is not in the store yet.
pub fn shared_with(db: Db<'_>, limits: &SharedLimits, more: Spend, now: Millis) -> Result<SharedSpend, StoreError> {
    let day = near(db, limits.daily_tokens, limits.daily_usd, more, || day_start(now, 0))?;
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
    let micros = usd.map(price::micros);
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

/// Midnight, `days` before today.
fn day_start(now: Millis, days: i64) -> Millis {
    Timestamp::from_millisecond(now)
        .ok()
        .map(|moment| moment.to_zoned(TimeZone::system()))
        .and_then(|here| here.round(jiff::ZonedRound::new().smallest(Unit::Day).mode(jiff::RoundMode::Trunc)).ok())
        .and_then(|midnight| midnight.checked_sub(jiff::Span::new().days(days)).ok())
        // A clock outside of all calendars has no midnight; the last day is close enough.
        .map_or(now - DAY * (days + 1), |midnight| midnight.timestamp().as_millisecond())
}

fn week_start(now: Millis) -> Millis {
    let weekday = Timestamp::from_millisecond(now)
        .map_or(0, |moment| moment.to_zoned(TimeZone::system()).weekday().to_monday_zero_offset());
    day_start(now, i64::from(weekday))
}
