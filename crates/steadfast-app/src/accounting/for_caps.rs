//! What is counted only for the caps and the quota of the plan.

use super::FileReading;
use steadfast_model::clock::Millis;
use steadfast_model::host::Host;
use steadfast_model::reading::Reading;
use steadfast_store::{Db, Origin, Source, Store, StoreError};

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

/// More responses than that are not entered in one transaction.
const MOST_AT_ONCE: usize = 1_000;
/// The responses of one step of many.
const OF_STEP: usize = 50;

/// Enters the responses of long readings in short transactions, and leaves what else is in them to
/// [`record_session`], which also moves the cursor: what a killed process has entered is read again, and known.
pub fn record_ahead(
    store: &mut Store,
    host: Host,
    session_id: &str,
    readings: &mut [FileReading],
    origin: Origin,
    now: Millis,
) -> Result<(), StoreError> {
    for file in readings.iter_mut().filter(|file| file.reading.responses.len() > MOST_AT_ONCE) {
        let responses = std::mem::take(&mut file.reading.responses);
        file.knows_history = file.reading.rewritten && store.read().knows_any(host, &responses)?;
        let of_steps: Vec<Reading> = responses
            .chunks(OF_STEP)
            .map(|some| {
                let mut step = Reading::default();
                step.responses = some.to_vec();
                step.position = file.from.clone();
                step
            })
            .collect();
        let agent_type = file.agent_type.as_str();
        let source = Source { host, session_id, agent_id: &file.agent_id, agent_type, path: &file.path };
        store.write_in_steps(&of_steps, |db, reading| {
            for (goal_id, charge) in db.record(source, reading, None, now)?.charges {
                db.charge_other_goal(&goal_id, charge, origin, now)?;
            }
            Ok::<_, StoreError>(())
        })?;
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
