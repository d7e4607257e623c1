//! The store as a file: created private, never re-created, and a foreign file is never touched.

use std::collections::BTreeMap;
use std::process::Command;

use rusqlite::types::Value as SqlValue;
use tempfile::TempDir;

use super::*;
use crate::testing::{SESSION, START, World, goal};

mod import;
mod long_work;
mod old_versions;
mod rows;

/// All rows of a query, for comparisons.
pub(crate) fn rows(db: &Connection, sql: &str) -> Vec<Vec<SqlValue>> {
    let mut statement = db.prepare(sql).unwrap();
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| (0..columns).map(|column| row.get(column)).collect());
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

/// The files of a directory with their size and a fingerprint of their bytes.
fn files(directory: &Path) -> BTreeMap<String, (usize, String)> {
    fs_err::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fingerprint(&fs_err::read(&path).unwrap()))
        })
        .collect()
}

fn fingerprint(bytes: &[u8]) -> (usize, String) {
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    (bytes.len(), text::fingerprint(&text))
}

pub(crate) fn file_with(bytes: &[u8]) -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("goals.db");
    fs_err::write(&path, bytes).unwrap();
    (directory, path)
}

pub(crate) fn read_write(path: &Path) -> Connection {
    connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap()
}

#[test]
fn a_new_store_has_the_newest_schema_and_all_its_tables() {
    let world = World::new();
    assert_eq!(migrate::version(&world.store.db).unwrap(), SCHEMA_VERSION);
    assert_eq!(world.store.journal_mode().unwrap(), "wal");
    assert_eq!(world.store.integrity_faults().unwrap(), Vec::<String>::new());
    let synchronous: i64 = world.store.db.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
    assert_eq!(synchronous, 2, "full");
    let tables = rows(
        &world.store.db,
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
    );
    let names: Vec<&SqlValue> = tables.iter().map(|row| &row[0]).collect();
    for table in
        ["goal_events", "goal_history", "goals", "responses", "schema_version", "sessions", "subagent_token_cursors"]
    {
        assert!(names.contains(&&SqlValue::Text(table.into())), "{table}");
    }
    assert_eq!(rows(&world.store.db, "SELECT version FROM schema_version"), [[SqlValue::Integer(6)]]);
}

#[cfg(unix)]
#[test]
fn only_its_owner_can_read_the_store() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    world.store.db.execute("INSERT INTO tool_calls VALUES ('t', 's', '', '', 'n', 0)", []).unwrap();
    let mode = |name: &str| {
        let path = world.root.path().join("home").join(name);
        fs_err::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode(""), 0o700);
    for name in ["goals.db", "goals.db-wal", "goals.db-shm"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    let copy = world.root.path().join("copy.db");
    world.store.backup_to(&copy).unwrap();
    assert_eq!(fs_err::metadata(copy).unwrap().permissions().mode() & 0o777, 0o600);
}

/// Bug 25 of the plugin: an empty file made every hook fail until its server came.
#[test]
fn an_empty_file_becomes_a_store() {
    let (_directory, path) = file_with(b"");
    let store = Store::open_existing(&path).unwrap();
    assert_eq!(migrate::version(&store.db).unwrap(), SCHEMA_VERSION);
    assert_eq!(store.read().goals().unwrap(), []);
}

#[test]
fn a_store_that_must_exist_is_not_created() {
    let directory = TempDir::new().unwrap();
    let missing = directory.path().join("sub/goals.db");
    assert!(matches!(Store::open_existing(&missing), Err(StoreError::Missing(path)) if path == missing));
    assert!(Store::open_if_there(&missing).unwrap().is_none());
    assert_eq!(files(directory.path()), BTreeMap::new());
}

/// Bug 26 of the plugin: old hooks wrote into a newer database.
#[test]
fn a_store_from_the_future_is_refused_and_untouched() {
    let (directory, path) = file_with(b"");
    drop(Store::open(&path).unwrap());
    read_write(&path).execute("UPDATE schema_version SET version = 7", []).unwrap();
    let before = files(directory.path());
    let refused = Store::open(&path);
    assert!(matches!(&refused, Err(StoreError::FromTheFuture { found: 7, .. })), "{refused:?}");
    drop(refused);
    assert_eq!(files(directory.path()), before);
}

#[test]
fn a_file_that_is_no_database_is_refused_and_untouched() {
    let mut half = b"SQLite format 3\0".to_vec();
    half.extend([0xA5; 5_000]);
    for bytes in [b"{\"not\": \"a database\"}\n".repeat(300), half, b"short".to_vec()] {
        let (directory, path) = file_with(&bytes);
        for result in [Store::open(&path), Store::open_existing(&path)] {
            assert!(matches!(&result, Err(StoreError::Corrupt { .. })), "{result:?}");
        }
        assert_eq!(files(directory.path()), BTreeMap::from([("goals.db".to_owned(), fingerprint(&bytes))]));
    }
}

#[test]
fn a_truncated_store_is_refused_and_untouched() {
    let (directory, path) = file_with(b"");
    drop(Store::open(&path).unwrap());
    let mut bytes = fs_err::read(&path).unwrap();
    // The pages after the header, where the tables are described.
    bytes[100..4_096].fill(0xA5);
    fs_err::write(&path, &bytes).unwrap();
    let refused = Store::open(&path);
    assert!(matches!(&refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
    drop(refused);
    assert!(fs_err::read(&path).unwrap() == bytes);
    assert!(!directory.path().join("goals.db.v6.bak").exists());
}

#[test]
fn a_foreign_database_is_refused_and_untouched() {
    let (directory, path) = file_with(b"");
    read_write(&path).execute_batch("CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('x');").unwrap();
    let before = files(directory.path());
    assert!(Store::open(&path).is_err());
    assert_eq!(files(directory.path()), before);
}

#[test]
fn paths_that_cannot_be_a_store_are_errors_with_a_hint() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("file");
    fs_err::write(&file, "x").unwrap();
    let long = directory.path().join("x".repeat(300));
    for (path, said) in [
        (directory.path().to_owned(), "is a directory, not a file: "),
        (file.join("goals.db"), "a part of the path is not a directory: "),
        (long, "file name too long: "),
    ] {
        let error = Store::open(&path).unwrap_err();
        assert_eq!(error.to_string(), format!("{said}{}", path.display()));
        assert!(!error.hint().contains("doctor"), "{}", error.hint());
    }
}

#[test]
fn an_unwritable_store_is_reported_as_read_only() {
    let (_directory, path) = file_with(b"");
    drop(Store::open(&path).unwrap());
    let mut store = Store::of(connect_read_only(&path).unwrap(), &path, None);
    let refused = store.prepare(true).map_err(|error| with_path(store.path(), error));
    assert!(matches!(refused, Err(StoreError::ReadOnly(at)) if at == path));
}

#[test]
fn a_lock_of_another_process_is_reported_as_busy() {
    let world = World::new();
    let path = world.store.path().to_owned();
    let other = read_write(&path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut store = Store::open(&path).unwrap();
    store.deadline = Some(Instant::now());
    let refused = store.write(|_| Ok::<(), StoreError>(()));
    assert!(matches!(refused, Err(StoreError::Busy(at)) if at == path));
}

#[test]
fn a_store_with_a_limit_waits_no_longer_for_all_its_writes_together() {
    let world = World::new();
    let path = world.store.path().to_owned();
    let other = read_write(&path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for open in [Store::open_within, Store::open_existing_within] {
        let mut store = open(&path, Duration::from_millis(50)).unwrap();
        for _ in 0..3 {
            let refused = store.write(|_| Ok::<(), StoreError>(())).unwrap_err();
            assert_eq!(refused.outage(), Some(Outage::Busy));
            assert!(store.end_of_wait() <= Instant::now());
        }
        other.execute_batch("COMMIT").unwrap();
        store.write(|_| Ok::<(), StoreError>(())).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
    }
    assert_eq!(Store::open(&path).unwrap().deadline, None);
}

#[test]
fn a_full_disk_is_an_outage_wherever_it_is_met() {
    let mut world = World::new();
    let path = world.store.path().to_owned();
    // SQLite treats a file that reached its maximum like a full disk.
    let pages: i64 = world.store.db.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    let _: i64 = world.store.db.pragma_update_and_check(None, "max_page_count", pages, |row| row.get(0)).unwrap();
    let fill = |db: Db<'_>| db.execute("CREATE TABLE big AS SELECT randomblob(100000)", []).map(|_| ());
    let error = world.store.write(fill).unwrap_err();
    assert_eq!(error.outage(), Some(Outage::Full), "{error:?}");
    let shm = |code| rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
    let of_index = explain(&path, shm(rusqlite::ffi::SQLITE_IOERR_SHMSIZE));
    assert_eq!(of_index.outage(), Some(Outage::Full));
    assert!(!of_index.to_string().contains("full"), "an index that cannot be written is no full disk: {of_index}");
    assert_eq!(explain(&path, shm(rusqlite::ffi::SQLITE_IOERR_READ)).outage(), None);
    let no_room = std::io::Error::from(std::io::ErrorKind::StorageFull);
    assert_eq!((StoreError::Io(no_room).outage(), StoreError::Stale.outage()), (Some(Outage::Full), None));
    let _: i64 = world.store.db.pragma_update_and_check(None, "max_page_count", 1 << 30, |row| row.get(0)).unwrap();
    world.store.write(fill).unwrap();
}

#[test]
fn an_error_inside_a_transaction_rolls_it_back() {
    let mut world = World::new();
    let failed = world.store.write(|db| {
        db.start_goal(&goal(), None, testing::USER)?;
        Err::<(), StoreError>(StoreError::Stale)
    });
    assert!(matches!(failed, Err(StoreError::Stale)));
    assert_eq!((world.store.read().goals().unwrap(), world.event_kinds()), (vec![], vec![]));
}

#[cfg(target_os = "linux")]
#[test]
fn network_file_systems_are_recognised() {
    let network = [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x0102_1997, 0x00C3_6400];
    // ext4, btrfs, xfs, tmpfs, overlayfs, zfs
    let local = [0xEF53, 0x9123_683E, 0x5846_5342, 0x0102_1994, 0x794C_7630, 0x2FC1_2FC1];
    assert_eq!(network.map(disk::is_network_file_system), [true; 6]);
    assert_eq!(local.map(disk::is_network_file_system), [false; 6]);
}

#[cfg(target_os = "linux")]
#[test]
fn file_systems_of_programs_are_refused_if_they_are_remote() {
    let mounts = "36 35 0:52 / /mnt/a\\040b rw,nosuid shared:1 master:2 - fuse.sshfs host:/srv rw,user_id=0
37 35 0:53 / /mnt/windows rw - fuseblk /dev/sdb1 rw
38 35 0:54 / /mnt/ntfs rw - fuse.ntfs-3g /dev/sdc1 rw
39 35 0:55 / /home/ann/.vault rw - fuse.gocryptfs /home/ann/vault rw
40 35 0:56 / /mnt/cloud rw shared:9 - fuse.rclone cloud: rw
";
    let found = (52..58).map(|minor| disk::is_remote_device(mounts, rustix::fs::makedev(0, minor)));
    assert_eq!(found.collect::<Vec<_>>(), [true, false, false, false, true, false]);
}

/// Runs the user's own sqlite3 program, which `./test` installs.
fn sqlite3(path: &Path, command: &str) -> String {
    let output = Command::new("sqlite3").arg(path).arg(command).output().expect("the program sqlite3 is needed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_documented_queries_run_as_printed() {
    let mut world = World::new();
    let goal = world.add_goal(steadfast_model::goal::budget::Budget::default(), START);
    let path = world.store.path().to_owned();
    let active = "SELECT id, status, tokens_used, subagent_tokens FROM goals WHERE status='active'";
    let printed = sqlite3(&path, active);
    assert_eq!(printed, format!("{}|active|0|0\n", goal.goal_id));

    let tail = "SELECT ts, kind, payload FROM goal_events ORDER BY id DESC LIMIT 20";
    let printed = sqlite3(&path, tail);
    let [ts, kind, payload]: [&str; 3] = printed.trim_end().splitn(3, '|').collect::<Vec<_>>().try_into().unwrap();
    assert_eq!((ts, kind), ("2026-11-15T12:00:00.000Z", "goal_created"));
    assert_eq!(serde_json::from_str::<serde_json::Value>(payload).unwrap(), world.last_event().payload);

    let copy = world.root.path().join("goals-backup.db");
    sqlite3(&path, &format!(".backup {}", copy.display()));
    let copied = Store::open_existing(&copy).unwrap();
    assert_eq!(copied.read().goal(SESSION).unwrap(), Some(goal));
}

#[test]
fn concurrent_first_opens_all_succeed() {
    for _ in 0..15 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("goals.db");
        let everybody: Vec<_> = (0..12)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || Store::open(&path).map(|_| ()).map_err(|error| error.to_string()))
            })
            .collect();
        for one in everybody {
            assert_eq!(one.join().unwrap(), Ok(()));
        }
    }
}

#[test]
fn a_store_that_cannot_be_written_is_read_all_the_same() {
    let (_directory, path) = file_with(b"");
    drop(Store::open(&path).unwrap());
    let store = Store::open_to_read(&path, DiskFault::Full).unwrap();
    assert_eq!(store.read().goal_counts().unwrap(), []);
    assert_eq!(store.blocked().unwrap().to_string(), format!("disk full: {}", path.display()));
    let mut store = store;
    store.write(|db| db.execute("DELETE FROM tool_calls", [])).unwrap();
    assert!(store.blocked().is_none(), "there is room again");
}

#[test]
fn a_page_that_cannot_be_read_is_not_taken_for_a_foreign_file() {
    let (_directory, path) = file_with(b"");
    drop(Store::open(&path).unwrap());
    let sql = "SELECT (rootpage - 1) * (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = ?1";
    let at: i64 = read_write(&path).query_row(sql, ["schema_version"], |row| row.get(0)).unwrap();
    let mut bytes = fs_err::read(&path).unwrap();
    bytes[usize::try_from(at).unwrap()..][..100].fill(0xff);
    fs_err::write(&path, bytes).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
}
