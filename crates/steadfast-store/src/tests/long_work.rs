//! Work on a whole store lets other processes write meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Adds events of a session to a store.
fn fill(db: &Connection, session: &str, events: u32) {
    db.execute(
        "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?2)
         INSERT INTO goal_events (session_id, goal_id, event_type, payload_json, created_at_ms)
           SELECT ?1, 'g', 'tokens_accounted', printf('%0200d', n), n FROM number",
        (session, events),
    )
    .unwrap();
}

/// Runs `work` while another connection writes without pause. Returns the number of writes before the end of `work`.
fn while_another_writes(path: &Path, work: impl FnOnce()) -> i64 {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut store = Store::open(path).unwrap();
            let mut writes = 0;
            while !is_over.load(Ordering::Relaxed) {
                let note = "INSERT INTO goal_events (session_id, goal_id, event_type, created_at_ms) VALUES ('w', 'w', 'w', ?1)";
                store.write(|db| db.execute(note, [writes])).unwrap();
                writes += 1;
            }
            writes
        });
        let started = "SELECT count(*) FROM goal_events WHERE session_id = 'w'";
        let store = Store::open(path).unwrap();
        while store.db.query_row(started, [], |row| row.get::<_, i64>(0)).unwrap() == 0 {
            std::thread::yield_now();
        }
        work();
        is_over.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    })
}

#[test]
fn a_backup_ends_although_other_processes_write() {
    let world = World::new();
    fill(&world.store.db, "s", 100_000);
    let copy = world.root.path().join("copy.db");
    while_another_writes(world.store.path(), || world.store.backup_to(&copy).unwrap());
    let copied = Store::open_existing(&copy).unwrap();
    assert_eq!(copied.integrity_faults().unwrap(), Vec::<String>::new());
    let events = rows(&copied.db, "SELECT count(*) FROM goal_events WHERE session_id = 's'");
    assert_eq!(events, [[SqlValue::Integer(100_000)]]);
}

#[test]
fn other_processes_write_during_an_import() {
    let other = World::new();
    fill(&other.store.db, "s", 20_000);
    let mut world = World::new();
    let path = world.store.path().to_owned();
    let mut imported = 0;
    while_another_writes(&path, || imported = world.store.import(other.store.path()).unwrap().events);
    assert_eq!(imported, 20_000);
    let between = "SELECT count(*) > 3 FROM goal_events WHERE session_id = 'w'
        AND id BETWEEN (SELECT min(id) FROM goal_events WHERE session_id = 's')
          AND (SELECT max(id) FROM goal_events WHERE session_id = 's')";
    assert_eq!(rows(&world.store.db, between), [[SqlValue::Integer(1)]]);
    assert_eq!(world.store.import(other.store.path()).unwrap().events, 0);
}

/// As after an import that was killed in the middle.
#[test]
fn an_import_adds_what_an_earlier_one_did_not_reach() {
    let other = World::new();
    fill(&other.store.db, "s", 5_000);
    let mut world = World::new();
    world.store.import(other.store.path()).unwrap();
    world.store.db.execute("DELETE FROM goal_events WHERE created_at_ms > 1700", []).unwrap();
    assert_eq!(world.store.import(other.store.path()).unwrap().events, 3_300);
}

#[test]
fn the_log_of_a_large_write_is_cut_when_it_is_used_again() {
    let mut world = World::new();
    let path = world.store.path().to_owned();
    let add = |db: Db<'_>, session, events| {
        fill(db.0, session, events);
        Ok::<(), StoreError>(())
    };
    let log = || fs_err::metadata(path.with_file_name("goals.db-wal")).unwrap().len();
    world.store.write(|db| add(db, "s", 200_000)).unwrap();
    assert!(log() > 2 * LOG_LIMIT, "{}", log());
    for session in ["a", "b"] {
        world.store.write(|db| add(db, session, 1)).unwrap();
    }
    assert!(log() <= LOG_LIMIT, "{}", log());
}
