//! The copies from before the migration of a large file of the plugin.

use super::*;

const LATE: &str = "SELECT count(*) FROM goal_events WHERE event_type = 'late'";

/// The plugin works on during the copy.
fn work_on(path: &Path) {
    let sql = "INSERT INTO goal_events (session_id, goal_id, event_type, created_at_ms) VALUES ('n', 'n', 'late', 1)";
    read_write(path).execute(sql, []).unwrap();
}

fn read_backup(path: &Path, name: &str) -> Connection {
    connect_read_only(&beside(path, name)).unwrap()
}

#[test]
fn a_half_copied_file_without_its_backup_gets_one() {
    let (_directory, path) = plugin_file();
    let before = rows(&read_write(&path), OF_EVENTS);
    begin_to_copy(&path, &LARGE_TABLES[0].copy());
    // As if the file had been copied elsewhere.
    fs_err::remove_file(beside(&path, "v5.bak")).unwrap();
    assert_whole(&Store::open_existing(&path).unwrap());
    let kept = read_backup(&path, "v5.bak");
    assert_eq!(version(&kept).unwrap(), 5);
    assert!(rows(&kept, OF_EVENTS) == before);
    assert!(!beside(&path, "v5-latest.bak").exists(), "nothing changed since");
}

#[test]
fn what_the_plugin_did_during_the_copy_is_in_a_second_backup() {
    let (_directory, path) = plugin_file();
    begin_to_copy(&path, &LARGE_TABLES[0].copy());
    let first = fs_err::read(beside(&path, "v5.bak")).unwrap();
    work_on(&path);
    let before = rows(&read_write(&path), OF_EVENTS);
    assert_whole(&Store::open_existing(&path).unwrap());
    assert!(fs_err::read(beside(&path, "v5.bak")).unwrap() == first, "the first backup stays");

    let kept = read_backup(&path, "v5-latest.bak");
    assert_eq!((version(&kept).unwrap(), rows(&kept, LATE)), (5, vec![vec![1.into()]]));
    drop(kept);
    // It is a half-copied file, which opens like any other.
    let (_other, copy) = file_with(&fs_err::read(beside(&path, "v5-latest.bak")).unwrap());
    let store = Store::open_existing(&copy).unwrap();
    assert_whole(&store);
    assert!(rows(&store.db, OF_EVENTS) == before);
}

#[test]
fn a_recovery_prefers_the_later_of_the_two_backups() {
    let (_directory, path) = plugin_file();
    begin_to_copy(&path, &LARGE_TABLES[0].copy());
    work_on(&path);
    drop(Store::open_existing(&path).unwrap());
    for end in ["-wal", "-shm"] {
        let _ = fs_err::remove_file(path.with_file_name(format!("goals.db{end}")));
    }
    fs_err::write(&path, b"no database, but long enough to look at".repeat(50)).unwrap();
    let recovered = crate::recover(&path, crate::RecoveryOptions::default(), |_| Ok(()), START);
    assert!(recovered.is_ok(), "{recovered:?}");
    assert_eq!(rows(&Store::open_existing(&path).unwrap().db, LATE), [[1.into()]]);
}

#[test]
fn a_file_that_no_program_changed_has_one_backup() {
    let (_directory, path) = plugin_file();
    drop(Store::open_existing(&path).unwrap());
    assert!(beside(&path, "v5.bak").exists());
    assert!(!beside(&path, "v5-latest.bak").exists());
}
