//! What is counted only for the caps and the quota of the plan.

use super::{FileReading, written_since};
use steadfast_model::clock::Millis;
use steadfast_model::host::Host;
use steadfast_model::reading::{Reading, Response};
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

/// Enters most responses of long readings in short transactions. The last response of each file and what else is in it
/// are left to [`record_session`] or [`super::record`], which also move the cursor: what a killed process has entered is
/// read again, and known. No goal may be charged with what is new: limits, prices and messages need all of it at once.
pub fn record_ahead(
    store: &mut Store,
    host: Host,
    session_id: &str,
    readings: &mut [FileReading],
    origin: Origin,
    now: Millis,
) -> Result<(), StoreError> {
    if readings.iter().map(|file| file.reading.responses.len()).sum::<usize>() <= MOST_AT_ONCE {
        return Ok(());
    }
    let goal = store.read().goal(session_id)?;
    for file in readings {
        let before = store.read().cursor(&file.path)?;
        let since = goal.as_ref().map(|goal| written_since(store.read(), goal, file, before.as_ref())).transpose()?;
        file.knows_history = file.reading.rewritten && store.read().knows_any(host, &file.reading.responses)?;
        let Some(last) = file.reading.responses.pop() else { continue };
        let responses = std::mem::replace(&mut file.reading.responses, vec![last]);
        let agent_type = file.agent_type.as_str();
        let source = Source { host, session_id, agent_id: &file.agent_id, agent_type, path: &file.path };
        let of_steps: Vec<&[Response]> = responses.chunks(OF_STEP).collect();
        store.write_in_steps(&of_steps, |db, some| {
            for (goal_id, charge) in db.record_responses(source, some, since.flatten(), now)? {
                if !file.agent_id.is_empty() {
                    db.put_subagent_tokens(source, &goal_id, charge.subagent_tokens, file.from.offset, now)?;
                }
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
