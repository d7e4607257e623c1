//! Deletes what is older than the configuration says, a little at a time: one small step in some hook calls, many in
//! `steadfast watch`.

use steadfast_model::clock::Millis;
use steadfast_store::{Keep, Store, StoreError};
use steadfast_system::config::Config;

/// Does one step if one is due. Returns whether there may be more to do.
pub fn step(store: &mut Store, config: &Config, now: Millis) -> Result<bool, StoreError> {
    store.upkeep(&Keep { details: &config.retention, memory_days: config.memory.retention_days }, now)
}
