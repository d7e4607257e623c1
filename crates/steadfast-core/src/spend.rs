//! What all goals together spend in a day and a week, and the caps a person set on that. Days and weeks are
//! those of the machine's own time zone; a week begins on Monday.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit};

use crate::clock::Millis;
use crate::config::SharedLimits;
use crate::goal::limit::SharedSpend;
use crate::store::{Db, StoreError};

/// Tokens and money that goals were charged with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spend {
    pub tokens: i64,
    pub cost_micros: i64,
}

/// What all goals spent today.
pub fn today(db: Db<'_>, now: Millis) -> Result<Spend, StoreError> {
    db.spent_since(day_start(now, 0))
}

/// How near all goals are to the caps of the day and the week. Without caps nothing is read.
pub fn shared(db: Db<'_>, limits: &SharedLimits, now: Millis) -> Result<SharedSpend, StoreError> {
    let mut worst = SharedSpend::Free;
    let caps: [(_, _, fn(Millis) -> Millis); 2] = [
        (limits.daily_tokens, limits.daily_usd, |now| day_start(now, 0)),
        (limits.weekly_tokens, limits.weekly_usd, week_start),
    ];
    for (tokens, usd, start) in caps {
        // Most people set no caps, and finding the time zone is slow.
        if tokens.is_none() && usd.is_none() {
            continue;
        }
        let spent = db.spent_since(start(now))?;
        #[expect(clippy::cast_possible_truncation, reason = "dollars times a million is far below 2^63")]
        let micros = usd.map(|dollars| (dollars * 1_000_000.0) as i64);
        for (used, most) in [(spent.tokens, tokens), (spent.cost_micros, micros)] {
            match most {
                Some(most) if used >= most => return Ok(SharedSpend::Reached),
                Some(most) if i128::from(used) * 100 >= i128::from(most) * 80 => worst = SharedSpend::Near,
                _ => {}
            }
        }
    }
    Ok(worst)
}

/// Midnight, `days` before today.
fn day_start(now: Millis, days: i64) -> Millis {
    const DAY: Millis = 86_400_000;
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
