//! What is counted only for the caps and the quota of the plan.

use super::FileReading;
use steadfast_model::clock::Millis;
use steadfast_model::host::Host;
use steadfast_model::reading::Reading;
use steadfast_store::{Db, Origin, Source, StoreError};

/// Enters readings of a session without a goal in the ledger. A goal that an earlier session of this id pursued is
/// charged with what is of its time.
pub fn record_session(
    db: Db<'_>,
    host: Host,
    session_id: &str,
    readings: &[FileReading],
    origin: Origin,
    now: Millis,
) -> Result<(), StoreError> {
    for file in readings {
        let agent_type = file.agent_type.as_str();
        let source = Source { host, session_id, agent_id: &file.agent_id, agent_type, path: &file.path };
        put_quotas(db, host, &file.reading)?;
        for (goal_id, charge) in db.record(source, &file.reading, None, now)?.charges {
            db.charge_other_goal(&goal_id, charge, origin, now)?;
        }
    }
    Ok(())
}

/// Stores what a session file says about the user's plan.
pub(super) fn put_quotas(db: Db<'_>, host: Host, reading: &Reading) -> Result<(), StoreError> {
    for quota in db.news_of_quota(host, &reading.quotas)? {
        db.put_quota(host, &quota)?;
    }
    Ok(())
}
