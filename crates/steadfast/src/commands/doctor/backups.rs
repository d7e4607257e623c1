//! Whether the store has a recent backup.

use steadfast_hosts::doctor::{DoctorCheck, ok, warn};
use steadfast_model::clock::{self, DAY};
use steadfast_store::{backup_is_due, has_room_for_backup, newest_backup};
use steadfast_system::paths::Paths;

/// Weekly backups are made when a session starts, so some days may pass.
const OLD: i64 = 15 * DAY;

pub(super) fn check(paths: &Paths) -> Option<DoctorCheck> {
    if !paths.store.exists() {
        return None;
    }
    let now = clock::now();
    let newest = newest_backup(&paths.store);
    let last = newest.as_ref().map_or_else(
        || "no backup yet".to_owned(),
        |backup| format!("the newest is of {}", clock::to_local(backup.made_at_ms)),
    );
    let make = "run `steadfast db backup`";
    if !has_room_for_backup(&paths.store) {
        let free = "free twice the size of the store on its disk, then run `steadfast db backup`";
        return Some(warn("backups", format!("{last}; skipped, because the disk is nearly full"), free));
    }
    if paths.config.retention.backups == 0 {
        return Some(warn("backups", format!("{last}; switched off by [retention] backups = 0"), make));
    }
    let is_old = newest.as_ref().is_some_and(|backup| now - backup.made_at_ms > OLD);
    if is_old && backup_is_due(&paths.store, now) {
        return Some(warn("backups", format!("{last}, more than 15 days ago"), make));
    }
    Some(ok("backups", if newest.is_none() { format!("{last}; the next session start makes one") } else { last }))
}
