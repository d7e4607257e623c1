mod backups;
mod clashes;
mod meanwhile;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Transaction, TransactionBehavior};
use tempfile::TempDir;

use super::*;
use crate::migrate;
use crate::testing::START;
use crate::tests::{file_with, read_write, rows};
use crate::{BackupLock, Keep, backups, beside, connect_read_only, damage};
use steadfast_system::config::RetentionConfig;

const EVENTS: usize = LARGE + 10_000;
const COUNT: &str = "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?1)";
const OF_EVENTS: &str =
    "SELECT id, session_id, goal_id, event_type, payload_json, created_at_ms FROM goal_events ORDER BY id";

/// A large file of the plugin. The last events are deleted, and a view of the user is there.
fn plugin_file() -> (TempDir, PathBuf) {
    let (directory, path) = file_with(b"");
    let db = read_write(&path);
    let _: String = db.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0)).unwrap();
    migrate::build(&db, 5);
    let sql = "INSERT INTO goal_events (session_id, goal_id, event_type, payload_json, created_at_ms)
               SELECT 's' || n % 7, 'g' || n % 7, 'tokens_accounted', 'a reason in plain words of turn ' || n, ?2 + n FROM number";
    db.execute(&format!("{COUNT} {sql}"), (limit(EVENTS), START)).unwrap();
    db.execute("DELETE FROM goal_events WHERE id > ?1", [limit(EVENTS) - 100]).unwrap();
    db.execute_batch("CREATE VIEW mine AS SELECT count(*) AS events FROM goal_events").unwrap();
    (directory, path)
}

/// A large store of an earlier build of version 6.
fn earlier_store() -> (TempDir, PathBuf) {
    let (directory, path) = file_with(b"");
    let db = read_write(&path);
    let _: String = db.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0)).unwrap();
    migrate::build(&db, 6);
    migrate::add(&db, 3);
    let sql =
        "INSERT INTO responses SELECT 'claude', 'msg' || (n * 7919 % 1000003), 's' || n % 7, '', 'g' || n % 7, 'model',
                 n, 2, 3, 4, 5, 6, ?2 + n FROM number";
    db.execute(&format!("{COUNT} {sql}"), (limit(EVENTS), START)).unwrap();
    (directory, path)
}

fn has_table(db: &Connection, name: &str) -> bool {
    db.table_exists(Some("main"), name).unwrap()
}

/// A migrated store, and the same file without a migration. Another program made the same changes to both, `meanwhile`
/// of them while the table was being copied.
struct Pair {
    store: Store,
    twin: Connection,
    meanwhile: usize,
    _directory: TempDir,
}

/// Opens the store while another program makes one change after the other.
fn open_while(path: &Path, copy: &str, change: impl Fn(&Connection, i64) + Sync) -> Pair {
    let (directory, twin_path) = file_with(b"");
    let mut twin = read_write(&twin_path);
    rusqlite::backup::Backup::new(&read_write(path), &mut twin).unwrap().step(-1).unwrap();
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| Store::open_existing(path).unwrap());
        let db = read_write(path);
        db.busy_timeout(Duration::from_secs(20)).unwrap();
        let (mut calls, mut meanwhile) = (0, 0);
        while !opening.is_finished() {
            let tx = Transaction::new_unchecked(&db, TransactionBehavior::Immediate).unwrap();
            meanwhile += usize::from(has_table(&tx, copy));
            change(&tx, calls);
            change(&twin, calls);
            tx.commit().unwrap();
            calls += 1;
            std::thread::sleep(Duration::from_millis(1));
        }
        Pair { store: opening.join().unwrap(), twin, meanwhile, _directory: directory }
    })
}

fn assert_whole(store: &Store) {
    assert!(migrate::is_complete(&store.db).unwrap());
    assert_eq!(store.integrity_faults().unwrap(), Vec::<String>::new());
    let triggers =
        rows(&store.db, "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'steadfast_copy%'");
    assert_eq!(triggers, Vec::<Vec<_>>::new());
}

#[test]
fn the_plugin_can_write_while_its_large_file_is_migrated() {
    let (_directory, path) = plugin_file();
    let pair = open_while(&path, "steadfast_copy_of_goal_events", |db, call| {
        let low = call * 13 + 1;
        let add = "INSERT INTO goal_events (session_id, goal_id, event_type, created_at_ms) VALUES ('n', 'n', 'n', ?1)";
        db.execute(add, [low]).unwrap();
        db.execute("UPDATE goal_events SET payload_json = 'changed' WHERE id = ?1 OR id = ?1 + 40000", [low]).unwrap();
        db.execute("DELETE FROM goal_events WHERE id = ?1 + 3 OR id = ?1 + 40001", [low]).unwrap();
    });
    assert!(pair.meanwhile > 3, "{} writes while the table was copied", pair.meanwhile);
    assert_whole(&pair.store);
    assert!(rows(&pair.store.db, OF_EVENTS) == rows(&pair.twin, OF_EVENTS), "a change got lost");
    let count = rows(&pair.twin, "SELECT count(*) FROM goal_events");
    assert_eq!(rows(&pair.store.db, "SELECT events FROM mine"), count, "views of the user stay");
    let next = "INSERT INTO goal_events (session_id, goal_id, event_type, created_at_ms) VALUES ('x', 'x', 'x', 1) RETURNING id";
    assert_eq!(rows(&pair.store.db, next), rows(&pair.twin, next), "no id is given twice");
}

#[test]
fn older_programs_can_write_while_a_large_ledger_is_migrated() {
    let (_directory, path) = earlier_store();
    let pair = open_while(&path, "steadfast_copy_of_responses", |db, call| {
        for (id, tokens) in [(call * 7919 % 1_000_003, 70_000), (call * 31, 80_000)] {
            let sql = "INSERT INTO responses (host, response_id, session_id, model, input_tokens, output_tokens,
                         cache_creation_tokens, cache_creation_1h_tokens, cache_read_tokens, at_ms)
                       VALUES ('claude', 'msg' || ?1, 's', 'model', ?2, 0, 0, 0, 0, 0)
                       ON CONFLICT DO UPDATE SET input_tokens = ?2";
            db.execute(sql, (id, tokens)).unwrap();
        }
    });
    assert!(pair.meanwhile > 3, "{} writes while the table was copied", pair.meanwhile);
    assert_whole(&pair.store);
    let all = "SELECT response_id, session_id, goal_id, input_tokens, at_ms FROM responses ORDER BY response_id";
    assert!(rows(&pair.store.db, all) == rows(&pair.twin, all), "a change got lost");
}

#[test]
fn a_migration_that_ran_out_of_time_is_continued() {
    let (_directory, path) = plugin_file();
    let before = rows(&read_write(&path), OF_EVENTS);
    begin_to_copy(&path, "steadfast_copy_of_goal_events");
    assert_eq!(version(&read_write(&path)).unwrap(), 5, "the plugin still can use it");

    let store = Store::open_existing(&path).unwrap();
    assert_whole(&store);
    assert!(rows(&store.db, OF_EVENTS) == before);
    let kept = connect_read_only(&beside(&path, "v5.bak")).unwrap();
    assert!(!has_table(&kept, "steadfast_copy_of_goal_events"), "the backup is from before the migration");
    assert!(rows(&kept, OF_EVENTS) == before);
}

/// Opens a store twice without time, as processes that are killed. Each makes one step: the empty copy, the first rows.
fn begin_to_copy(path: &Path, copy: &str) {
    for _ in 0..2 {
        let late = Store::open_existing_within(path, Duration::ZERO);
        assert!(matches!(late, Err(StoreError::Migrating(_))), "{late:?}");
    }
    assert_eq!(rows(&read_write(path), &format!("SELECT count(*) > 0 FROM {copy}")), [[1.into()]]);
}

#[test]
fn a_half_copied_store_of_version_6_is_sound_and_opens() {
    let (_directory, path) = earlier_store();
    let all = "SELECT response_id, session_id, goal_id, input_tokens, at_ms FROM responses ORDER BY response_id";
    let before = rows(&read_write(&path), all);
    begin_to_copy(&path, "steadfast_copy_of_responses");
    assert_eq!(damage(&path).unwrap(), None);
    let made = backups(&path);
    assert_eq!(made.len(), 1);
    let kept = connect_read_only(&made[0].path).unwrap();
    assert!(!has_table(&kept, "steadfast_copy_of_responses"), "the backup is from before the migration");

    let store = Store::open_existing(&path).unwrap();
    assert_whole(&store);
    assert!(rows(&store.db, all) == before);
    assert_eq!(backups(&path), made, "no backup of a half-copied store");
}

#[test]
fn the_backup_from_before_a_copy_is_never_replaced() {
    let (_directory, path) = plugin_file();
    // A process that looked before another one made the backup and began to copy.
    let slow = Store::of(read_write(&path), &path, None);
    begin_to_copy(&path, "steadfast_copy_of_goal_events");
    let kept = beside(&path, "v5.bak");
    let made = fs_err::read(&kept).unwrap();
    slow.keep_old_version(5).unwrap();
    assert!(fs_err::read(&kept).unwrap() == made);
}

#[test]
fn a_process_that_cannot_make_the_backup_does_not_migrate() {
    let (_directory, path) = plugin_file();
    let _lock = BackupLock::take(&path, Duration::ZERO).unwrap().unwrap();
    let late = Store::open_existing_within(&path, Duration::from_millis(50));
    assert!(matches!(late, Err(StoreError::Migrating(_))), "{late:?}");
    assert!(!beside(&path, "v5.bak").exists());
    assert!(!has_table(&read_write(&path), "steadfast_copy_of_goal_events"));
}

#[test]
fn a_backup_that_takes_too_long_leaves_nothing_behind() {
    let (_directory, path) = plugin_file();
    // More than one step of the copy.
    read_write(&path).execute_batch("CREATE TABLE large AS SELECT zeroblob(20000000)").unwrap();
    let late = Store::open_existing_within(&path, Duration::ZERO);
    assert!(matches!(late, Err(StoreError::Migrating(_))), "{late:?}");
    let names = |directory: &Path| -> Vec<String> {
        let entries = fs_err::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(names(&crate::backups_dir(&path)), ["lock"]);
    assert!(!beside(&path, "v5.bak").exists());
    assert!(!has_table(&read_write(&path), "steadfast_copy_of_goal_events"), "no migration without a backup");
    assert_whole(&Store::open_existing(&path).unwrap());
    assert!(beside(&path, "v5.bak").exists());
}

#[test]
fn a_caller_without_time_for_a_migration_changes_nothing() {
    let (_directory, path) = plugin_file();
    read_write(&path).execute("DELETE FROM goal_events", []).unwrap();
    let old = Store::open_migrated_within(&path, Duration::from_secs(1));
    assert!(matches!(old, Err(StoreError::Migrating(_))), "{old:?}");
    assert_eq!(version(&read_write(&path)).unwrap(), 5);
    drop(Store::open_existing(&path).unwrap());
    Store::open_migrated_within(&path, Duration::from_secs(1)).unwrap();
}

#[test]
fn a_caller_with_a_deadline_leaves_the_backup_of_a_large_file_to_another_process() {
    let (_directory, path) = plugin_file();
    read_write(&path).execute_batch("CREATE TABLE large AS SELECT zeroblob(70000000)").unwrap();
    let late = Store::open_existing_within(&path, Duration::from_hours(1));
    assert!(matches!(late, Err(StoreError::Migrating(_))), "{late:?}");
    assert!(!beside(&path, "v5.bak").exists());
    assert_whole(&Store::open_existing(&path).unwrap());
    assert!(beside(&path, "v5.bak").exists());
}

#[test]
fn an_index_that_the_user_removed_begins_no_copy() {
    let (_directory, path) = earlier_store();
    let db = read_write(&path);
    migrate::add_from(&db, 3, 7);
    db.execute_batch("DROP INDEX idx_responses_session").unwrap();
    let store = Store::open_existing(&path).unwrap();
    assert_whole(&store);
    assert!(!has_table(&store.db, "steadfast_copy_of_responses"), "nothing would ever exchange it");
}

/// Each addition is a transaction of its own, so a process can be killed between any two of them.
#[test]
fn a_store_is_sound_after_each_addition_to_a_copied_table() {
    let (_directory, path) = earlier_store();
    begin_to_copy(&path, "steadfast_copy_of_responses");
    let db = read_write(&path);
    loop {
        let is_done = migrate::step(db.unchecked_transaction().unwrap()).unwrap();
        assert_eq!(damage(&path).unwrap(), None, "{}", migrate::full_version(&db).unwrap());
        if is_done {
            break;
        }
    }
    assert_eq!(rows(&db, "SELECT count(*) FROM responses"), [[limit(EVENTS).into()]]);
}

#[test]
fn upkeep_removes_the_old_table_after_a_migration() {
    let (_directory, path) = plugin_file();
    let mut store = Store::open_existing(&path).unwrap();
    let before = rows(&store.db, OF_EVENTS);
    assert!(has_table(&store.db, "steadfast_replaced_goal_events"));
    let details = RetentionConfig { goal_events_days: 0, ..RetentionConfig::default() };
    store.upkeep_all(&Keep { details: &details, memory_days: 0 }, START).unwrap();
    assert!(!has_table(&store.db, "steadfast_replaced_goal_events"));
    assert!(rows(&store.db, OF_EVENTS) == before);
    drop(store);
    assert_whole(&Store::open_existing(&path).unwrap());
}

#[test]
fn a_small_file_is_migrated_without_a_copy() {
    let (_directory, path) = plugin_file();
    read_write(&path).execute("DELETE FROM goal_events WHERE id > 100", []).unwrap();
    let store = Store::open_existing(&path).unwrap();
    assert_whole(&store);
    assert!(!has_table(&store.db, "steadfast_replaced_goal_events"));
}

#[test]
fn indexes_and_triggers_of_the_user_survive_a_migration() {
    for before_the_copy in [true, false] {
        let (_directory, path) = plugin_file();
        if !before_the_copy {
            begin_to_copy(&path, "steadfast_copy_of_goal_events");
        }
        read_write(&path)
            .execute_batch(
                "CREATE INDEX of_user ON goal_events (event_type);
                 CREATE TABLE seen (id INTEGER);
                 CREATE TRIGGER by_user AFTER INSERT ON goal_events BEGIN INSERT INTO seen VALUES (new.id); END;",
            )
            .unwrap();
        let before = rows(&read_write(&path), OF_EVENTS);
        let store = Store::open_existing(&path).unwrap();
        assert_whole(&store);
        assert!(
            !has_table(&store.db, "steadfast_replaced_goal_events")
                && !has_table(&store.db, "steadfast_copy_of_goal_events")
        );
        assert!(rows(&store.db, OF_EVENTS) == before);
        let of_user =
            "SELECT count(*) FROM sqlite_schema WHERE name IN ('of_user', 'by_user') AND tbl_name = 'goal_events'";
        assert_eq!(rows(&store.db, of_user), [[2.into()]], "{before_the_copy}");
    }
}

#[test]
fn computed_columns_of_the_user_survive_a_copy() {
    let (_directory, path) = plugin_file();
    let db = read_write(&path);
    db.execute_batch("ALTER TABLE goal_events ADD COLUMN \"my day\" AS (created_at_ms / 86400000)").unwrap();
    db.execute_batch("ALTER TABLE goal_events ADD COLUMN \"my note\" TEXT DEFAULT 'none'").unwrap();
    let of_user = "SELECT id, \"my day\", \"my note\" FROM goal_events ORDER BY id LIMIT 9";
    let before = rows(&db, of_user);
    drop(db);
    let store = Store::open_existing(&path).unwrap();
    assert!(has_table(&store.db, "steadfast_replaced_goal_events"), "it was copied");
    assert_eq!(rows(&store.db, of_user), before);
}

#[test]
fn a_purge_deletes_the_old_table_at_once() {
    let (_directory, path) = plugin_file();
    let mut store = Store::open_existing(&path).unwrap();
    store.purge(&[], &mut |_, _, _| {}).unwrap();
    assert!(!has_table(&store.db, "steadfast_replaced_goal_events"));
}
