//! What a hook does when a client starts, after its reply is printed: starts `steadfast watch` if runs are to start later,
//! starts the weekly backup, and removes one old run. What fails is tried again by the next start.

use steadfast_engine::old_runs;
use steadfast_model::clock;
use steadfast_model::hook::{HookEvent, HookInput, StartSource};
use steadfast_store::Store;
use steadfast_system::paths::Paths;
use steadfast_system::watch_lock;

use crate::{backups, watch};

pub(super) fn client_started(input: &HookInput, paths: &Paths) {
    if !matches!(input.event, HookEvent::SessionStart(StartSource::Startup | StartSource::Resume)) {
        return;
    }
    // Dropped without waiting: the client waits for the hook.
    drop(backups::ensure(paths));
    let looks_for_appointments = !watch_lock::is_held(&paths.home);
    let has_runs = paths.home.join("runs").is_dir() || paths.home.join("log").is_dir();
    if !looks_for_appointments && !has_runs {
        return;
    }
    // Ignore errors here; the handler reports them.
    let Ok(Some(mut store)) = Store::open_if_there(&paths.store) else { return };
    if looks_for_appointments && store.read().has_appointments().unwrap_or_default() {
        watch::ensure(paths);
    }
    // A folder takes more than a transaction.
    if has_runs {
        let _ = old_runs::step(&paths.home, &mut store, &paths.config.retention, clock::now());
    }
}
