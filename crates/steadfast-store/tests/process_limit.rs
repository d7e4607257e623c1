//! The limit on the migrations of a process. Alone in its file: it counts for all tests that run in the same process.

use std::time::Duration;

use rusqlite::Connection;
use steadfast_store::{Outage, Store, StoreError, limit_migrations};

#[test]
#[expect(clippy::disallowed_methods, reason = "it writes what the claude-goal plugin would have written")]
fn a_process_whose_time_is_over_leaves_the_migration_to_others() {
    let home = tempfile::TempDir::new().unwrap();
    let path = home.path().join("goals.db");
    let db = Connection::open(&path).unwrap();
    for part in [
        include_str!("../migrations/0001.sql"),
        include_str!("../migrations/0002.sql"),
        include_str!("../migrations/0003.sql"),
        include_str!("../migrations/0004.sql"),
        include_str!("../migrations/0005.sql"),
    ] {
        db.execute_batch(part).unwrap();
    }
    db.execute_batch(
        "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 60000)
         INSERT INTO goal_events (session_id, goal_id, event_type, created_at_ms) SELECT 's', 'g', 'e', n FROM number",
    )
    .unwrap();
    limit_migrations(Duration::ZERO);
    // Without a deadline of its own, and again after the time is over: each does one step.
    for _ in 0..3 {
        let late = Store::open_existing(&path);
        assert!(
            matches!(&late, Err(error @ StoreError::Migrating(_)) if error.outage() == Some(Outage::Busy)),
            "{late:?}"
        );
    }
    let version: i64 = db.query_row("SELECT max(version) FROM schema_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 5, "the plugin still can use it");
    let copied: i64 = db.query_row("SELECT count(*) FROM steadfast_copy_of_goal_events", [], |row| row.get(0)).unwrap();
    assert!(copied > 0, "the next process continues");
}
