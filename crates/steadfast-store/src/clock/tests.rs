//! The row of the clock, in real files.

use steadfast_model::clock::steady::MachineClocks;
use steadfast_model::clock::{self as times, DAY, HOUR, MINUTE};
use steadfast_model::goal::Goal;
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::event::EventKind;
use steadfast_model::host::Host;
use tempfile::TempDir;

use super::*;
use crate::testing::{SESSION, USER, new_goal};

/// A store whose clock was last looked at as `change` says, as other processes find it.
fn store_with(change: impl FnOnce(&mut Tick)) -> (TempDir, Store) {
    let home = TempDir::new().unwrap();
    let path = home.path().join("goals.db");
    let mut store = Store::open(&path).unwrap();
    store.write(|_| Ok::<_, StoreError>(())).unwrap();
    let mut tick = store.read().last_tick().unwrap().unwrap();
    change(&mut tick);
    put(&store, &tick);
    drop(store);
    (home, Store::open(&path).unwrap())
}

fn put(store: &Store, tick: &Tick) {
    let sql = "UPDATE clock SET boot_id = ?1, boot_ms = ?2, suspended_ms = ?3, wall_ms = ?4, now_ms = ?5, aged_ms = ?6";
    let values = params![tick.boot_id, tick.boot_ms, tick.suspended_ms, tick.wall_ms, tick.now_ms, tick.aged_ms];
    store.db.execute(sql, values).unwrap();
}

fn running_goal(store: &mut Store, since: Millis) -> Goal {
    let goal = Goal::start(new_goal(Budget::default()), SESSION, Host::Claude, None, since);
    store.write(|db| db.start_goal(&goal, None, USER)).unwrap()
}

#[test]
fn the_row_is_written_now_and_then() {
    let (_home, mut store) = store_with(|_| {});
    let first = store.read().last_tick().unwrap();
    store.write(|_| Ok::<_, StoreError>(())).unwrap();
    assert_eq!(store.read().last_tick().unwrap(), first, "it is fresh");

    let (_home, mut store) = store_with(|tick| {
        tick.boot_ms -= MINUTE;
        tick.wall_ms -= MINUTE;
        tick.now_ms -= MINUTE;
    });
    let old = store.read().last_tick().unwrap().unwrap();
    store.write(|_| Ok::<_, StoreError>(())).unwrap();
    let new = store.read().last_tick().unwrap().unwrap();
    assert!(new.boot_ms >= old.boot_ms + MINUTE && new.now_ms >= old.now_ms + MINUTE, "{old:?} {new:?}");
}

#[test]
fn an_old_store_ages_from_its_last_sign_of_life() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("goals.db");
    drop(Store::open(&path).unwrap());
    let last_seen = times::wall() - 300 * DAY;
    let db = crate::tests::read_write(&path);
    db.execute_batch(&format!(
        "DROP TABLE clock; DROP TABLE upkeep; DROP TABLE usage_days; DROP TABLE wiped_pages; DROP TABLE ledger_pruned;
         DROP TABLE session_sums; DROP TABLE imported_goals; DROP INDEX idx_goals_goal; DROP INDEX idx_goals_created;
         DROP INDEX idx_goal_history_created; DROP INDEX idx_sessions_parent; DROP INDEX idx_sessions_client; PRAGMA user_version = 7;
         INSERT INTO sessions (session_id, host, started_at_ms, last_seen_ms) VALUES ('s', 'claude', 1, {last_seen})"
    ))
    .unwrap();
    drop(db);
    let mut store = Store::open(&path).unwrap();
    store.write(|_| Ok::<_, StoreError>(())).unwrap();
    let now = times::now();
    let aged = store.read().aged_now(now).unwrap();
    let up = clock::look().boot_ms;
    assert!(aged >= last_seen && aged <= last_seen + up.max(DAY), "{} days", (aged - last_seen) / DAY);
}

#[test]
fn sleep_is_no_active_time() {
    let (home, mut store) = store_with(|_| {});
    let now = times::now();
    let goal = running_goal(&mut store, now - 2 * HOUR);
    assert_eq!(goal.active_seconds(now), 7_200);
    // An hour of these two the machine slept, since the last look.
    let mut tick = store.read().last_tick().unwrap().unwrap();
    tick.boot_ms -= 2 * HOUR;
    tick.now_ms -= 2 * HOUR;
    tick.suspended_ms -= HOUR;
    put(&store, &tick);
    drop(store);
    let store = Store::open(&home.path().join("goals.db")).unwrap();
    let goal = store.read().goal(SESSION).unwrap().unwrap();
    assert!((3_600..3_660).contains(&goal.active_seconds(times::now())), "{}", goal.active_seconds(times::now()));
    let event = store.read().last_event(&goal.goal_id, EventKind::ClockAdjusted).unwrap().unwrap();
    assert!((event.payload["slept_ms"].as_i64().unwrap() - HOUR).abs() < SECOND, "{}", event.payload);
    // It is told once.
    let seen: MachineClocks = clock::look();
    assert!(store.read().last_tick().unwrap().unwrap().slept_until(&seen) < SECOND);
}
