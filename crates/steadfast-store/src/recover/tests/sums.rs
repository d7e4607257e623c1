//! What upkeep deleted and added to sums before the damage does not come back from the backup.

use steadfast_system::config::RetentionConfig;

use super::*;
use crate::upkeep::Keep;

const RESPONSES: i64 = 3_000;
const OLD: i64 = 1_000;
const NOW: Millis = START + 100 * DAY;

/// A thousand responses of a goal that is over and one of a live goal are old; the others are new.
fn world_with_responses() -> (World, PathBuf) {
    let mut world = World::new();
    let goal = world.add_goal(Budget::default(), START);
    let insert = "WITH n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
        INSERT INTO responses (host, response_id, session_id, goal_id, model, input_tokens, output_tokens,
          cache_creation_tokens, cache_creation_1h_tokens, cache_read_tokens, at_ms)
        SELECT 'claude', printf('msg-%06d', n), 's', iif(n = ?1, ?5, NULL), 'opus', 1, 0, 0, 0, 0,
          iif(n < ?2 OR n = ?1, ?3, ?4) + n FROM n";
    world.store.db.execute(insert, rusqlite::params![RESPONSES, OLD, START, NOW - DAY, goal.goal_id]).unwrap();
    let path = world.store.path().to_owned();
    let lock = BackupLock::take(&path, Duration::ZERO).unwrap().unwrap();
    world.store.back_up(&lock, &BackupKind::Weekly, 4, START).unwrap();
    (world, path)
}

fn counted(path: &Path) -> i64 {
    let totals = Store::open_existing(path).unwrap().read().usage_totals().unwrap();
    totals.iter().map(|total| total.responses).sum()
}

fn do_upkeep(world: &mut World) {
    let details = RetentionConfig { ledger_days: 20, ..RetentionConfig::default() };
    world.store.upkeep_all(&Keep { details: &details, memory_days: 30 }, NOW).unwrap();
    world.store.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}

#[test]
fn responses_that_are_in_sums_are_not_counted_again() {
    let (mut world, path) = world_with_responses();
    do_upkeep(&mut world);
    assert_eq!(world.count("SELECT sum(responses) FROM usage_days"), OLD);
    drop(world.store);
    assert_eq!(counted(&path), RESPONSES + 1);
    let leaves = pages(&path, "responses");
    destroy(&path, leaves[leaves.len() / 2]);
    let report = rebuilt(&path);
    assert!(table(&report, "responses").from_backup > 0);
    assert_eq!(counted(&path), RESPONSES + 1);
}

#[test]
fn without_whole_sums_the_backup_keeps_its_responses() {
    let (mut world, path) = world_with_responses();
    do_upkeep(&mut world);
    drop(world.store);
    destroy(&path, pages(&path, "responses")[1]);
    destroy(&path, pages(&path, "usage_days")[0]);
    rebuilt(&path);
    assert!(counted(&path) > RESPONSES);
}

#[test]
fn attempts_of_runs_that_are_in_sums_are_not_counted_again() {
    let (mut world, path) = world_with_responses();
    let attempts = "WITH n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 300)
        INSERT INTO run_attempts (run_id, stage, iteration, attempt, status, message, started_at_ms)
        SELECT iif(n < 200, 'gone', 'kept'), 1, n, 1, 'succeeded', printf('%0200d', n), 1 FROM n;
        INSERT INTO runs (run_id, name, kind, title, project_dir, status, stage, plan_json, state_json, started_at_ms,
          updated_at_ms)
        SELECT run, run, 'loop', '', '', 'completed', 1, '{}', '{}', 1, 1
        FROM (SELECT 'gone' AS run UNION ALL SELECT 'kept')";
    world.store.db.execute_batch(attempts).unwrap();
    let lock = BackupLock::take(&path, Duration::ZERO).unwrap().unwrap();
    world.store.back_up(&lock, &BackupKind::Weekly, 4, START + 1_000).unwrap();
    let before = counted(&path);
    drop(lock);
    let run = world.store.read().runs_over(NOW, "", 1).unwrap().remove(0);
    assert_eq!(run.run_id, "gone");
    while !world.store.write(|db| db.delete_some_of_run(&run)).unwrap() {}
    do_upkeep(&mut world);
    drop(world.store);
    assert_eq!(counted(&path), before);
    let leaves = pages(&path, "run_attempts");
    destroy(&path, *leaves.last().unwrap());
    let report = rebuilt(&path);
    assert!(table(&report, "run_attempts").gaps > 0);
    assert_eq!(counted(&path), before);
}
