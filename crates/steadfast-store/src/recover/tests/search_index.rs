//! A search index that is made again while other processes write.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

const ROWS: i64 = 30_000;

#[test]
fn a_damaged_search_index_is_made_again_in_place() {
    let mut world = World::new();
    world.add_goal(Budget::default(), START);
    let path = world.store.path().to_owned();
    let add = "INSERT INTO session_events (session_id, category, kind, importance, text, created_at_ms)
               VALUES ('s', 'error', 'x', 1, 'the needle in words', 1)";
    world.store.db.execute(add, []).unwrap();
    drop(world.store);
    let db = read_write(&path);
    db.execute_batch("UPDATE session_events_fts_data SET block = zeroblob(9) WHERE id > 10").unwrap();
    drop(db);
    let kept = match run(&path).unwrap() {
        Recovery::SearchIndex { kept } => kept.unwrap(),
        other => panic!("{other:?}"),
    };
    assert!(kept.exists());
    let store = Store::open_existing(&path).unwrap();
    assert_eq!(store.integrity_faults().unwrap(), Vec::<String>::new());
    let found = "SELECT count(*) FROM session_events_fts WHERE session_events_fts MATCH 'needle'";
    assert_eq!(store.db.query_row(found, [], |row| row.get::<_, i64>(0)).unwrap(), 1);
    assert_eq!(store.read().goal(SESSION).unwrap().unwrap().status, GoalStatus::Active);
}

/// A store with many remembered events and a damaged search index.
fn damaged_index() -> (World, PathBuf) {
    let world = World::new();
    let add = format!(
        "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {ROWS})
         INSERT INTO session_events (session_id, category, kind, importance, text, created_at_ms)
           SELECT 's' || (n % 50), 'error', 'x', 1, 'needle ' || n, n FROM number"
    );
    world.store.db.execute(&add, []).unwrap();
    world.store.db.execute("UPDATE session_events_fts_data SET block = zeroblob(9) WHERE id > 10", []).unwrap();
    let path = world.store.path().to_owned();
    (world, path)
}

/// Compares the index with the rows, as an open store sees them.
fn assert_complete(path: &Path) {
    let store = Store::open_existing(path).unwrap();
    assert_eq!(store.integrity_faults().unwrap(), Vec::<String>::new());
    let compare = "INSERT INTO session_events_fts (session_events_fts, rank) VALUES ('integrity-check', 1)";
    store.db.execute(compare, []).unwrap();
    let count = |sql: &str| store.db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let found = count("SELECT count(*) FROM session_events_fts WHERE session_events_fts MATCH 'needle'");
    assert_eq!(found, count("SELECT count(*) FROM session_events"));
    // With wrong sums, one of the last deletions would fail.
    store.db.execute("DELETE FROM session_events", []).unwrap();
}

/// Runs a recovery while another connection repeats a statement. Returns how often that was done between two steps.
fn recover_while(path: &Path, sql: &str) -> usize {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut store = Store::open_existing(path).unwrap();
            let mut between = 0;
            while !is_over.load(Ordering::Relaxed) {
                // It fails before the index is emptied, because the index is damaged.
                let is_between = store.write(|db| {
                    let sql_of_mark = "SELECT EXISTS (SELECT 1 FROM upkeep WHERE task = 'search_index')";
                    let is_between: bool = db.0.query_row(sql_of_mark, [], |row| row.get(0))?;
                    db.execute(sql, [])?;
                    Ok::<_, StoreError>(is_between)
                });
                between += usize::from(is_between.is_ok_and(|is_between| is_between));
                std::thread::sleep(Duration::from_millis(2));
            }
            between
        });
        let recovered = run(path);
        is_over.store(true, Ordering::Relaxed);
        assert!(matches!(recovered, Ok(Recovery::SearchIndex { kept: Some(_) })), "{recovered:?}");
        other.join().unwrap()
    })
}

#[test]
fn other_processes_remember_while_the_index_is_made() {
    let (world, path) = damaged_index();
    let add = "INSERT INTO session_events (session_id, category, kind, importance, text, created_at_ms)
               VALUES ('w', 'error', 'x', 1, 'a needle meanwhile', 1)";
    let between = recover_while(&path, add);
    assert!(between > 3, "{between}");
    drop(world.store);
    assert_complete(&path);
}

#[test]
fn rows_that_are_deleted_before_their_turn_leave_no_trace() {
    for delete in [
        // One is deleted early, then none: the second attempt succeeds.
        format!("DELETE FROM session_events WHERE id = {ROWS}"),
        // Some in every attempt.
        "DELETE FROM session_events WHERE id IN (SELECT id FROM session_events ORDER BY id DESC LIMIT 20)".to_owned(),
        "DELETE FROM session_events WHERE id IN (SELECT id FROM session_events ORDER BY id LIMIT 20)".to_owned(),
    ] {
        let (world, path) = damaged_index();
        recover_while(&path, &delete);
        drop(world.store);
        assert_complete(&path);
    }
}

#[test]
fn a_killed_rebuild_of_the_index_is_found_and_begun_again() {
    let (world, path) = damaged_index();
    let mut store = Store::open_existing(&path).unwrap();
    store.write(|db| super::super::search_index::begin(db, 100)).unwrap();
    assert_eq!(damage(&path).unwrap(), Some(Damage::SearchIndex));
    assert_eq!(store.quick_faults().unwrap().len(), 1);
    drop((store, world.store));
    assert!(matches!(run(&path).unwrap(), Recovery::SearchIndex { kept: Some(_) }));
    assert_eq!(damage(&path).unwrap(), None);
    assert_complete(&path);
}
