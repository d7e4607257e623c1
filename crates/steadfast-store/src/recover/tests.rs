use steadfast_model::clock::DAY;
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::{Goal, GoalStatus};
use steadfast_model::host::Host;
use steadfast_model::testing::new_goal;

use super::*;
use crate::testing::{SESSION, START, USER, World};
use crate::tests::read_write;
use crate::{BackupKind, backups_dir, beside};

mod cut;
mod schema;
mod search_index;
mod sums;

const GOALS: usize = 60;

/// A store of many pages, closed, with a backup that has half of its goals.
fn store_with_backup() -> (World, PathBuf) {
    let mut world = World::new();
    let path = world.store.path().to_owned();
    for number in 0..GOALS {
        if number == GOALS / 2 {
            let lock = BackupLock::take(&path, Duration::ZERO).unwrap().unwrap();
            world.store.back_up(&lock, &BackupKind::Weekly, 4, START).unwrap();
        }
        add_goal(&mut world, number);
    }
    world.store.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    (world, path)
}

fn add_goal(world: &mut World, number: usize) {
    let session = format!("session-{number:03}");
    let mut goal = Goal::start(new_goal(Budget::default()), &session, Host::Claude, None, START);
    // Two goals fill a page.
    goal.objective = "x".repeat(1_500);
    world.store.write(|db| db.start_goal(&goal, None, USER)).unwrap();
    world
        .store
        .db
        .execute(
            "INSERT INTO responses (host, response_id, session_id, goal_id, model, input_tokens, output_tokens,
               cache_creation_tokens, cache_creation_1h_tokens, cache_read_tokens, at_ms)
             VALUES ('claude', 'msg-' || ?1, ?2, ?3, 'opus', 7, 1, 0, 0, 0, 1)",
            rusqlite::params![format!("{number:03}"), session, goal.goal_id],
        )
        .unwrap();
}

/// The pages of a table, the root first.
fn pages(path: &Path, table: &str) -> Vec<u64> {
    let db = connect_read_only(path).unwrap();
    let mut statement = db.prepare("SELECT pageno FROM dbstat WHERE name = ?1 ORDER BY path").unwrap();
    statement
        .query_map([table], |row| row.get::<_, i64>(0))
        .unwrap()
        .map(|page| page.unwrap().cast_unsigned())
        .collect()
}

/// Overwrites a page.
fn destroy(path: &Path, page: u64) {
    use std::io::{Seek as _, SeekFrom, Write as _};
    let mut file = fs_err::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start((page - 1) * 4_096)).unwrap();
    file.write_all(&[0xA5; 4_096]).unwrap();
}

fn run(path: &Path) -> Result<Recovery, StoreError> {
    recover(path, RecoveryOptions::default(), |_| Ok(()), START + DAY)
}

fn rebuilt(path: &Path) -> Rebuilt {
    match run(path).unwrap() {
        Recovery::Rebuilt(rebuilt) => *rebuilt,
        other => panic!("{other:?}"),
    }
}

fn table<'a>(rebuilt: &'a Rebuilt, name: &str) -> &'a RecoveredTable {
    rebuilt.tables.iter().find(|table| table.name == name).unwrap()
}

fn sessions(path: &Path) -> Vec<String> {
    let store = Store::open_existing(path).unwrap();
    assert_eq!(store.integrity_faults().unwrap(), Vec::<String>::new());
    store.read().goals().unwrap().into_iter().map(|goal| goal.session_id).collect()
}

fn names_beside(path: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(path.parent().unwrap()).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_sound_store_is_left_alone() {
    let (world, path) = store_with_backup();
    drop(world.store);
    let before = fs_err::read(&path).unwrap();
    assert_eq!(run(&path).unwrap(), Recovery::NotNeeded);
    assert!(fs_err::read(&path).unwrap() == before);
}

#[test]
fn rows_on_damaged_pages_come_from_the_backup_and_the_others_from_the_file() {
    let (world, path) = store_with_backup();
    drop(world.store);
    let leaves = pages(&path, "goals");
    assert!(leaves.len() > 5, "{leaves:?}");
    // Pages in the middle of what the backup has, and one of what it does not have.
    destroy(&path, leaves[2]);
    destroy(&path, *leaves.last().unwrap());
    assert_eq!(damage(&path).unwrap(), Some(Damage::File));
    let damaged = fs_err::read(&path).unwrap();
    let report = rebuilt(&path);
    let kept = report.kept.clone().unwrap();
    assert_eq!(kept.file_name().unwrap(), "goals.db.corrupt-2026-11-16T120000Z");
    assert!(fs_err::read(kept).unwrap() == damaged, "the damaged file is kept as it was");
    let goals = table(&report, "goals");
    assert!(goals.gaps > 0 && goals.from_backup > 0 && goals.salvaged > GOALS / 2, "{goals:?}");
    let found = sessions(&path);
    assert_eq!(found.len(), goals.from_backup + goals.salvaged);
    for number in 0..GOALS / 2 {
        assert!(found.contains(&format!("session-{number:03}")), "all goals of the backup are there: {found:?}");
    }
    assert!(found.len() > GOALS * 3 / 4, "{}", found.len());
    let responses = table(&report, "responses");
    assert_eq!((responses.salvaged, responses.from_backup, responses.gaps), (GOALS, 0, 0), "a whole table is taken");
    let goals = Store::open_existing(&path).unwrap().read().goals().unwrap();
    assert!(goals.iter().all(|goal| goal.tokens_used == 8 || goal.tokens_used == 0));
    assert_eq!(run(&path).unwrap(), Recovery::NotNeeded);
    assert_eq!(names_beside(&path), ["backups", "goals.db", "goals.db.begun", "goals.db.corrupt-2026-11-16T120000Z"]);
}

#[test]
fn a_table_by_text_keys_is_read_behind_a_damaged_page() {
    let (world, path) = store_with_backup();
    world
        .store
        .db
        .execute_batch(
            "WITH n (n) AS (SELECT 100 UNION ALL SELECT n + 1 FROM n WHERE n < 999)
             INSERT INTO responses (host, response_id, session_id, model, input_tokens, output_tokens,
               cache_creation_tokens, cache_creation_1h_tokens, cache_read_tokens, at_ms)
             SELECT CASE WHEN n % 2 THEN 'claude' ELSE 'codex' END, 'msg-' || n, 's', 'opus', n, 1, 0, 0, 0, 1 FROM n;
             PRAGMA wal_checkpoint(TRUNCATE)",
        )
        .unwrap();
    drop(world.store);
    fs_err::remove_dir_all(backups_dir(&path)).unwrap();
    let leaves = pages(&path, "responses");
    assert!(leaves.len() > 8, "{leaves:?}");
    destroy(&path, leaves[3]);
    destroy(&path, leaves[7]);
    let report = rebuilt(&path);
    let responses = table(&report, "responses");
    let of_page = (GOALS + 900) / (leaves.len() - 2);
    assert!(responses.gaps > 0 && responses.salvaged + 4 * of_page > GOALS + 900, "{responses:?} of {leaves:?}");
    assert_eq!((report.backup, sessions(&path).len()), (None, GOALS));
}

#[test]
fn a_damaged_schema_leaves_the_backup() {
    for bytes in [0..100, 100..4_096] {
        let (world, path) = store_with_backup();
        drop(world.store);
        let mut damaged = fs_err::read(&path).unwrap();
        damaged[bytes].fill(0xA5);
        fs_err::write(&path, damaged).unwrap();
        let report = rebuilt(&path);
        assert!(report.unreadable.is_some() && report.backup.is_some());
        assert_eq!(sessions(&path).len(), GOALS / 2);
    }
}

#[test]
fn without_a_backup_and_a_schema_nothing_is_changed() {
    let (world, path) = store_with_backup();
    drop(world.store);
    fs_err::remove_dir_all(backups_dir(&path)).unwrap();
    destroy(&path, 1);
    let refused = run(&path);
    assert!(
        matches!(&refused, Err(StoreError::Corrupt { message, .. }) if message.contains("no backup")),
        "{refused:?}"
    );
    assert_eq!(names_beside(&path), ["backups", "goals.db", "goals.db.begun"]);
}

#[test]
fn a_damaged_backup_is_passed_over() {
    let (world, path) = store_with_backup();
    let lock = BackupLock::take(&path, Duration::ZERO).unwrap().unwrap();
    let newer = world.store.back_up(&lock, &BackupKind::Weekly, 4, START + DAY).unwrap().path;
    drop((lock, world.store));
    destroy(&newer, pages(&newer, "goals")[1]);
    destroy(&path, 1);
    let report = rebuilt(&path);
    assert_eq!(report.refused_backups.len(), 1);
    assert_eq!(report.refused_backups[0].0, newer);
    assert_eq!(sessions(&path).len(), GOALS / 2);
    destroy(&path, 1);
    let options = RecoveryOptions { from: Some(&newer), ..RecoveryOptions::default() };
    let refused = recover(&path, options, |_| Ok(()), START);
    assert!(matches!(&refused, Err(StoreError::Corrupt { path, .. }) if *path == newer), "{refused:?}");
}

#[test]
fn an_empty_file_with_signs_of_a_store_is_refused_and_recovered() {
    let (world, path) = store_with_backup();
    drop(world.store);
    for is_missing in [false, true] {
        fs_err::write(&path, "").unwrap();
        if is_missing {
            fs_err::remove_file(&path).unwrap();
        }
        for opened in [Store::open(&path), Store::open_existing(&path)] {
            assert!(matches!(&opened, Err(StoreError::Corrupt { .. })), "{opened:?}");
            assert!(opened.unwrap_err().hint().contains("steadfast db recover"));
        }
        assert!(Store::open_if_there(&path).is_err());
        assert_eq!(table(&rebuilt(&path), "goals").from_backup, GOALS / 2);
        assert_eq!(sessions(&path).len(), GOALS / 2);
    }
    fs_err::write(&path, "").unwrap();
    fs_err::remove_dir_all(backups_dir(&path)).unwrap();
    fs_err::write(beside(&path, "x").with_file_name("goals.db-wal"), "log").unwrap();
    assert!(matches!(Store::open(&path), Err(StoreError::Corrupt { .. })));
    fs_err::remove_file(path.with_file_name("goals.db-wal")).unwrap();
    fs_err::remove_file(beside(&path, "begun")).unwrap();
    assert!(Store::open(&path).is_ok(), "nothing shows an earlier store");
}

#[test]
fn a_store_without_a_backup_never_begins_empty_by_itself() {
    let (world, path) = store_with_backup();
    drop(world.store);
    fs_err::remove_dir_all(backups_dir(&path)).unwrap();
    // A store of an earlier release has no such file until it is opened.
    fs_err::remove_file(beside(&path, "begun")).unwrap();
    drop(Store::open_existing_within(&path, Duration::from_secs(1)).unwrap());
    for is_missing in [false, true] {
        fs_err::write(&path, "").unwrap();
        if is_missing {
            fs_err::remove_file(&path).unwrap();
        }
        for opened in [Store::open(&path), Store::open_existing(&path)] {
            assert!(matches!(&opened, Err(StoreError::Corrupt { .. })), "{opened:?}");
            assert!(opened.unwrap_err().hint().contains("`--empty`"));
        }
        assert!(run(&path).unwrap_err().to_string().contains("no backup"));
    }
    let options = RecoveryOptions { empty: true, ..RecoveryOptions::default() };
    recover(&path, options, |_| Ok(()), START + DAY).unwrap();
    assert_eq!(sessions(&path), [] as [String; 0]);
}

#[test]
fn a_damaged_store_that_begins_anew_is_kept() {
    let (world, path) = store_with_backup();
    drop(world.store);
    destroy(&path, 1);
    let damaged = fs_err::read(&path).unwrap();
    let options = RecoveryOptions { empty: true, ..RecoveryOptions::default() };
    let Recovery::Rebuilt(report) = recover(&path, options, |_| Ok(()), START + DAY).unwrap() else { panic!() };
    assert_eq!(sessions(&path), [] as [String; 0]);
    assert!(fs_err::read(report.kept.unwrap()).unwrap() == damaged);
}

#[test]
fn a_dry_run_changes_nothing() {
    let (world, path) = store_with_backup();
    drop(world.store);
    destroy(&path, pages(&path, "goals")[1]);
    let before = (fs_err::read(&path).unwrap(), names_beside(&path));
    let options = RecoveryOptions { dry_run: true, ..RecoveryOptions::default() };
    let Recovery::Rebuilt(report) = recover(&path, options, |_| Ok(()), START).unwrap() else { panic!() };
    assert!(report.kept.is_none() && table(&report, "goals").gaps > 0);
    assert!(fs_err::read(&path).unwrap() == before.0);
    assert_eq!(names_beside(&path), before.1);
}

#[test]
fn what_a_killed_dry_run_left_is_removed_and_one_at_work_is_not() {
    let (world, path) = store_with_backup();
    drop(world.store);
    destroy(&path, pages(&path, "goals")[1]);
    let dry_run = beside(&path, "recovery-dry-run");
    let other = Workshop::set_up(&path, true).unwrap();
    let options = RecoveryOptions { dry_run: true, ..RecoveryOptions::default() };
    assert!(matches!(recover(&path, options, |_| Ok(()), START), Err(StoreError::Busy(_))));
    assert_eq!(crate::remove_stray_backups(&path), [] as [PathBuf; 0]);
    drop(other);
    assert_eq!(crate::remove_stray_backups(&path), [dry_run.as_path()]);
    drop(Workshop::set_up(&path, true).unwrap());
    rebuilt(&path);
    assert!(!dry_run.exists());
}

#[test]
fn the_log_of_a_damaged_store_is_read_too() {
    let (mut world, path) = store_with_backup();
    add_goal(&mut world, GOALS);
    // A killed process leaves its log.
    let log = path.with_file_name("goals.db-wal");
    let saved = (fs_err::read(&path).unwrap(), fs_err::read(&log).unwrap());
    drop(world.store);
    fs_err::write(&path, saved.0).unwrap();
    fs_err::write(&log, saved.1).unwrap();
    destroy(&path, pages_with_log(&path, "session_events")[0]);
    let found = rebuilt(&path);
    assert_eq!(sessions(&path).len(), GOALS + 1);
    let kept = found.kept.unwrap();
    let kept_log = kept.with_file_name(format!("{}-wal", kept.file_name().unwrap().to_str().unwrap()));
    assert!(kept_log.exists(), "the log is kept with the file");
}

fn pages_with_log(path: &Path, table: &str) -> Vec<u64> {
    let copy = path.with_file_name("copy");
    fs_err::copy(path, &copy).unwrap();
    let found = pages(&copy, table);
    fs_err::remove_file(copy).unwrap();
    found
}

#[test]
fn a_recovery_that_was_killed_is_continued_or_begun_again() {
    // What is where when it is killed: before and after each of its last steps.
    for step in 0..5 {
        let (world, path) = store_with_backup();
        drop(world.store);
        destroy(&path, pages(&path, "goals")[1]);
        fs_err::write(path.with_file_name("goals.db-wal"), "").unwrap();
        let damaged = fs_err::read(&path).unwrap();
        let workshop = Workshop::set_up(&path, false).unwrap();
        rebuild(&path, &workshop, RecoveryOptions::default()).unwrap();
        let kept = path.with_file_name("goals.db.corrupt-before");
        if step > 0 {
            fs_err::write(workshop.new_store().with_file_name("aside"), "goals.db.corrupt-before").unwrap();
            fs_err::rename(workshop.new_store(), workshop.new_store().with_file_name("ready.db")).unwrap();
        }
        if step > 1 {
            fs_err::rename(&path, &kept).unwrap();
            assert!(Store::open(&path).is_err(), "no process begins an empty store meanwhile");
        }
        if step > 2 {
            fs_err::rename(path.with_file_name("goals.db-wal"), path.with_file_name("goals.db.corrupt-before-wal"))
                .unwrap();
        }
        if step > 3 {
            fs_err::rename(workshop.new_store().with_file_name("ready.db"), &path).unwrap();
        }
        let kept = match run(&path).unwrap() {
            Recovery::NotNeeded => kept,
            Recovery::Continued { kept } => kept,
            Recovery::Rebuilt(rebuilt) => rebuilt.kept.unwrap(),
            other @ Recovery::SearchIndex { .. } => panic!("{other:?}"),
        };
        assert!(fs_err::read(kept).unwrap() == damaged, "{step}");
        assert!(sessions(&path).len() > GOALS * 3 / 4, "{step}");
        assert!(names_beside(&path).iter().all(|name| !name.contains("recovery")), "{step}");
    }
}
