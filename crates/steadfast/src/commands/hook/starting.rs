//! What a hook does when a client starts, after its reply is printed: starts `steadfast watch` if runs are to start later,
//! starts the weekly backup or a migration, and removes one old run. What fails is tried again by the next start.

use std::time::Duration;

use steadfast_model::clock;
use steadfast_model::hook::{HookEvent, HookInput, StartSource};
use steadfast_store::{Store, StoreError};
use steadfast_system::paths::Paths;
use steadfast_system::watch_lock;

use crate::{backups, upkeep, watch};

/// How long this waits for other processes in all: the client waits for the hook.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) fn client_started(input: &HookInput, paths: &Paths) {
    if !matches!(input.event, HookEvent::SessionStart(StartSource::Startup | StartSource::Resume)) {
        return;
    }
    // Dropped without waiting: the client waits for the hook.
    let is_started = backups::ensure(paths).is_some();
    let looks_for_appointments = !watch_lock::is_held(&paths.home);
    let has_runs = paths.home.join("runs").is_dir() || paths.home.join("log").is_dir();
    let mut store = match Store::open_migrated_within(&paths.store, PATIENCE) {
        Ok(store) => store,
        // More than fits into a hook.
        Err(StoreError::Migrating(_)) if !is_started => return drop(backups::start_migration(paths)),
        // The handler reports the others.
        Err(_) => return,
    };
    if looks_for_appointments && store.read().has_appointments().unwrap_or_default() {
        watch::ensure(paths);
    }
    // A folder takes more than a transaction.
    if has_runs {
        upkeep::remove_old_runs(&mut store, paths, clock::now());
    }
}
