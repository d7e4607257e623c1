//! What all goals and runs together spent, against the caps of the day and the week.

use steadfast_model::clock::Millis;
use steadfast_model::limit::{Cap, SharedSpend, Spend};

use crate::{Db, StoreError};

/// How near all goals and runs are to the caps.
pub fn shared(db: Db<'_>, caps: &[Cap], now: Millis) -> Result<SharedSpend, StoreError> {
    shared_with(db, caps, Spend::default(), now)
}

/// The same with what was spent just now and is not in the store yet. Without caps the time zone, which is slow to
/// find, is not needed.
pub fn shared_with(db: Db<'_>, caps: &[Cap], more: Spend, now: Millis) -> Result<SharedSpend, StoreError> {
    let mut nearest = SharedSpend::Free;
    for cap in caps {
        let spent = db.spent_since(cap.period.start(now))?;
        let spent = Spend { tokens: spent.tokens + more.tokens, cost_micros: spent.cost_micros + more.cost_micros };
        nearest = nearest.max(cap.nearness(spent));
    }
    Ok(nearest)
}
