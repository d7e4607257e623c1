use std::os::unix::fs::PermissionsExt as _;

use steadfast_model::goal::budget::Budget;

use super::*;
use crate::testing::{SESSION, START, World};
use crate::tests::{file_with, read_write};

fn lock(store: &Path) -> BackupLock {
    BackupLock::take(store, Duration::ZERO).unwrap().unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

#[test]
fn weekly_backups_rotate_and_others_stay() {
    let mut world = World::new();
    let goal = world.add_goal(Budget::default(), START);
    let store = world.store.path().to_owned();
    let held = lock(&store);
    world.store.back_up(&held, &BackupKind::Manual, usize::MAX, START - 9 * DAY).unwrap();
    for week in 0..4 {
        world.store.back_up(&held, &BackupKind::Weekly, 2, START + week * EVERY).unwrap();
    }
    let expected = [
        "goals.db.2026-11-06T120000Z.manual.bak",
        "goals.db.2026-11-29T120000Z.weekly.bak",
        "goals.db.2026-12-06T120000Z.weekly.bak",
        "lock",
    ];
    assert_eq!(names(&backups_dir(&store)), expected);
    let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
    let kept = backups(&store);
    assert_eq!(mode(&backups_dir(&store)), 0o700);
    assert!(kept.iter().all(|backup| mode(&backup.path) == 0o600 && backup.bytes > 0));
    assert_eq!(kept[0].made_at_ms, START + 3 * EVERY);
    assert_eq!(newest_backup(&store).unwrap(), kept[0]);
    assert_eq!(Store::open_existing(&kept[0].path).unwrap().read().goal(SESSION).unwrap(), Some(goal));
}

#[test]
fn a_backup_is_due_when_the_store_changed_and_the_last_one_is_a_week_old() {
    let world = World::new();
    let store = world.store.path().to_owned();
    let now = steadfast_model::clock::now();
    assert!(backup_is_due(&store, now));
    assert!(!backup_is_due(&store.with_extension("none"), now));
    let held = lock(&store);
    let make = |at| world.store.back_up(&held, &BackupKind::Weekly, 1, at).unwrap();
    for (at, is_due) in [(-8 * DAY, true), (-6 * DAY, false), (0, false), (2 * DAY, false)] {
        make(now + at);
        assert_eq!(backup_is_due(&store, now), is_due, "{at}");
    }
    make(now - 8 * DAY);
    let age = u64::try_from(now - 9 * DAY).unwrap();
    let before = std::time::UNIX_EPOCH + Duration::from_millis(age);
    for name in ["goals.db", "goals.db-wal"] {
        let file = std::fs::File::options().append(true).open(store.with_file_name(name)).unwrap();
        file.set_modified(before).unwrap();
    }
    assert!(!backup_is_due(&store, now), "nothing was written since");
}

#[test]
fn a_damaged_store_gives_no_backup() {
    let mut world = World::new();
    world.add_goal(Budget::default(), START);
    let store = world.store.path().to_owned();
    // An index that misses a row.
    let db = read_write(&store);
    db.execute_batch("PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'idx_goals_status'").unwrap();
    db.execute_batch("UPDATE goals SET session_id = session_id || 'x'").unwrap();
    drop(db);
    let refused = Store::open_existing(&store).unwrap().back_up(&lock(&store), &BackupKind::Weekly, 1, START);
    assert!(matches!(&refused, Err(StoreError::Corrupt { path, .. }) if *path == store), "{refused:?}");
    assert_eq!(names(&backups_dir(&store)), ["lock"], "nothing is left");
}

#[test]
fn what_a_killed_backup_left_is_removed_by_the_next() {
    let world = World::new();
    let store = world.store.path().to_owned();
    drop(lock(&store));
    fs_err::write(backups_dir(&store).join(".steadfast-backupXYZ"), "half").unwrap();
    let held = lock(&store);
    assert_eq!(names(&backups_dir(&store)), ["lock"]);
    assert!(BackupLock::take(&store, Duration::from_millis(20)).unwrap().is_none(), "one at a time");
    drop(held);
}

/// A store of an earlier release, with a goal.
fn earlier_release() -> (tempfile::TempDir, PathBuf) {
    let (directory, path) = file_with(b"");
    let db = read_write(&path);
    migrate::build(&db, 6);
    migrate::add(&db, 3);
    db.execute_batch(
        "INSERT INTO goals (session_id, goal_id, objective, status, version, created_at_ms, updated_at_ms)
         VALUES ('s', 'g', 'x', 'active', 1, 1, 1)",
    )
    .unwrap();
    (directory, path)
}

#[test]
fn a_store_opens_in_the_second_in_which_a_migration_was_killed() {
    let (_directory, path) = earlier_release();
    drop(lock(&path));
    // The process that was killed had made its copy; the test may take a while to come to the next one.
    for seconds in 0..60 {
        let at = steadfast_model::clock::now() + 1_000 * seconds;
        let name = names::of(&path, &BackupKind::Before("6.3".into()), at);
        fs_err::copy(&path, backups_dir(&path).join(name)).unwrap();
    }
    Store::open(&path).unwrap();
}

#[test]
fn additions_to_the_schema_keep_a_copy_from_before() {
    let (_directory, path) = earlier_release();
    drop(Store::open_existing(&path).unwrap());
    let kept = backups(&path);
    assert_eq!(kept.iter().map(|backup| backup.kind.to_string()).collect::<Vec<_>>(), ["v6.3"]);
    let copy = connect_read_only(&kept[0].path).unwrap();
    assert_eq!(migrate::full_version(&copy).unwrap(), "6.3");
    assert_eq!(copy.query_row("SELECT goal_id FROM goals", [], |row| row.get::<_, String>(0)).unwrap(), "g");
    assert_eq!(newest_backup(&path), None, "a copy of an old schema does not put off the next backup");
    drop(Store::open_existing(&path).unwrap());
    assert_eq!(backups(&path), kept, "opening again makes no other");
}

#[test]
fn a_large_store_is_copied_before_additions_by_a_process_that_has_time() {
    let (_directory, path) = earlier_release();
    let db = read_write(&path);
    db.execute_batch("CREATE TABLE mine (x); INSERT INTO mine VALUES (zeroblob(66 << 20))").unwrap();
    drop(db);
    let of_hook = path.with_file_name("other").join("goals.db");
    fs_err::create_dir(of_hook.parent().unwrap()).unwrap();
    fs_err::copy(&path, &of_hook).unwrap();
    drop(Store::open_existing(&path).unwrap());
    assert_eq!(backups(&path).len(), 1);
    drop(Store::open_existing_within(&of_hook, Duration::from_mins(1)).unwrap());
    assert_eq!(backups(&of_hook), [], "the client of a hook would wait");
}

#[test]
fn concurrent_opens_make_one_copy_before_additions() {
    let (_directory, path) = earlier_release();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| Store::open_existing(&path).unwrap());
        }
    });
    assert_eq!(backups(&path).len(), 1);
}

/// A page that no count sees, in a store that is too large for a hook to check.
#[test]
fn the_copy_before_a_migration_is_checked_by_a_process_that_has_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("goals.db");
    fs_err::write(&path, "").unwrap();
    let db = read_write(&path);
    migrate::build(&db, 5);
    db.execute_batch("CREATE TABLE mine (x); INSERT INTO mine VALUES (zeroblob(66 << 20))").unwrap();
    let root: i64 =
        db.query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'mine'", [], |row| row.get(0)).unwrap();
    drop(db);
    let mut bytes = fs_err::read(&path).unwrap();
    let from = usize::try_from(root - 1).unwrap() * 4_096;
    bytes[from..from + 4_096].fill(0xA5);
    fs_err::write(&path, bytes).unwrap();

    let opened = Store::open_existing(&path);
    assert!(matches!(&opened, Err(StoreError::Corrupt { .. })), "{opened:?}");
    assert!(!path.with_file_name("goals.db.v5.bak").exists());
    assert_eq!(migrate::version(&connect_read_only(&path).unwrap()).unwrap(), 5);
    let hook = Store::open_existing_within(&path, Duration::from_mins(1));
    assert!(matches!(hook, Err(StoreError::Migrating(_))), "a hook leaves it to that process: {hook:?}");
    assert!(!path.with_file_name("goals.db.v5.bak").exists());
}
