//! Starts the weekly backup of the store in a process of its own, and makes it there. Starts of sessions, goals and runs
//! and `steadfast watch` call this, so it costs a look into one directory when no backup is due, and never waits. The same
//! process migrates a store whose migration takes longer than a hook may.

use std::path::absolute;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use steadfast_model::clock;
use steadfast_store::{BackupKind, BackupLock, Store, StoreError, backup_is_due, has_room_for_backup};
use steadfast_system::paths::Paths;
use steadfast_system::{env_vars, log};

use crate::cli::BACKUP_MAKER;
use crate::watch;

/// Starts a backup if one is due, unless the user switched off backups or processes in the background.
pub(crate) fn ensure(paths: &Paths) -> Option<Child> {
    let is_wanted = paths.config.retention.backups > 0 && backup_is_due(&paths.store, clock::now());
    if is_wanted && has_room_for_backup(&paths.store) { start_logged(paths) } else { None }
}

/// Starts the process for a store that has to be migrated: it migrates what it opens.
pub(crate) fn start_migration(paths: &Paths) -> Option<Child> {
    start_logged(paths)
}

fn start_logged(paths: &Paths) -> Option<Child> {
    if env_vars::text(env_vars::NO_WATCH).is_some() {
        return None;
    }
    let logged =
        |error: &std::io::Error| log::line(&paths.log_file(), &format!("cannot start {BACKUP_MAKER}: {error}"));
    start(paths).inspect_err(logged).ok()
}

fn start(paths: &Paths) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(BACKUP_MAKER).args([absolute(&paths.home)?, absolute(&paths.store)?]).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    watch::forget_agent(&mut command);
    command.spawn()
}

/// Makes the backup, with the lowest priority. Another process may have made it meanwhile. Errors go to the log, which
/// `doctor` reads.
pub(crate) fn make(paths: &Paths) {
    let _ = rustix::process::nice(19);
    if let Err(error) = try_make(paths) {
        log::line(&paths.log_file(), &format!("{BACKUP_MAKER}: {error} ({})", error.hint()));
    }
}

fn try_make(paths: &Paths) -> Result<(), StoreError> {
    // A migration takes the lock, too.
    let store = Store::open_existing(&paths.store)?;
    let Some(lock) = BackupLock::take(&paths.store, Duration::ZERO)? else { return Ok(()) };
    let now = clock::now();
    let keep = usize::try_from(paths.config.retention.backups).unwrap_or(usize::MAX);
    if keep > 0 && backup_is_due(&paths.store, now) && has_room_for_backup(&paths.store) {
        store.back_up(&lock, &BackupKind::Weekly, keep, now)?;
    }
    Ok(())
}
