//! Rows of other programs: which texts change, in which order, and what stays bound to them.

use steadfast_model::goal::event::EventKind;
use steadfast_model::text;
use steadfast_system::config::RetentionConfig;

use rusqlite::params;

use super::*;
use crate::testing::START;
use crate::tests::{file_with, read_write, rows};
use crate::upkeep::Keep;
use crate::{limit, migrate};

const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
const ALL: &str = "SELECT objective FROM goals UNION ALL SELECT objective FROM goal_history
                   UNION ALL SELECT payload_json FROM goal_events";

/// A file of the plugin with a secret in a goal and in its events.
fn plugin_file(events: i64) -> (tempfile::TempDir, std::path::PathBuf) {
    let (directory, path) = file_with(b"");
    let db = read_write(&path);
    migrate::build(&db, 5);
    db.execute_batch(&format!(
        "INSERT INTO goals (session_id, goal_id, objective, status, version, created_at_ms, updated_at_ms)
         VALUES ('s', 'g', 'push with {SECRET}', 'active', 4, {START}, {START}),
                ('clean', 'h', 'push', 'active', 4, {START}, {START});"
    ))
    .unwrap();
    let add = "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?1)
               INSERT INTO goal_events (session_id, goal_id, event_type, payload_json, created_at_ms)
               SELECT 's', 'g', 'goal_note', json_object('reason', 'used ' || ?2), ?3 FROM number";
    db.execute(add, params![events, SECRET, START]).unwrap();
    (directory, path)
}

fn secrets(store: &Store) -> usize {
    rows(&store.db, ALL).iter().filter(|row| format!("{row:?}").contains(SECRET)).count()
}

fn upkeep(store: &mut Store) {
    let details = RetentionConfig { goal_events_days: 0, goals_days: 0, ..RetentionConfig::default() };
    store.upkeep_all(&Keep { details: &details, memory_days: 0 }, START).unwrap();
}

#[test]
fn a_small_file_of_the_plugin_shows_no_secret_after_its_migration() {
    let (_directory, path) = plugin_file(3);
    let store = Store::open_existing(&path).unwrap();
    assert_eq!(secrets(&store), 0);
    let goals = store.read().goals().unwrap();
    let read = |id: &str| goals.iter().find(|goal| goal.goal_id == id).unwrap();
    assert_eq!((&*read("g").objective, read("g").version), ("push with [redacted]", 5));
    assert_eq!((&*read("h").objective, read("h").version), ("push", 4), "other rows stay as they are");
}

#[test]
fn upkeep_redacts_the_rest_of_a_file_once() {
    let many = limit(SEEN.0 * FIRST_STEPS);
    let (_directory, path) = plugin_file(many);
    let mut store = Store::open_existing(&path).unwrap();
    assert!(secrets(&store) > 0);
    let newest = rows(&store.db, "SELECT payload_json FROM goal_events ORDER BY id DESC LIMIT 1000");
    assert!(newest.iter().all(|row| !format!("{row:?}").contains(SECRET)), "what people see first is clean first");
    upkeep(&mut store);
    assert_eq!(secrets(&store), 0);
    // What is written later is redacted by its writer; a walk every day would be of no use.
    store.db.execute("UPDATE goal_events SET payload_json = ?1 WHERE id = 1", [SECRET]).unwrap();
    let later = START + 400 * clock::DAY;
    let keep = RetentionConfig { goal_events_days: 0, goals_days: 0, ..RetentionConfig::default() };
    store.upkeep_all(&Keep { details: &keep, memory_days: 0 }, later).unwrap();
    assert_eq!(secrets(&store), 1);
}

#[test]
fn a_store_of_an_earlier_build_is_redacted_by_upkeep() {
    let (_directory, path) = file_with(b"");
    let mut store = Store::open(&path).unwrap();
    store
        .db
        .execute_batch(&format!(
            "INSERT INTO goal_history (session_id, goal_id, objective, status, version, created_at_ms, updated_at_ms)
             VALUES ('s', 'g', 'push with {SECRET}', 'complete', 2, {START}, {START})"
        ))
        .unwrap();
    upkeep(&mut store);
    assert_eq!(secrets(&store), 0);
}

/// Adds an event of another program to a store.
fn add_event(store: &Store, kind: &str, payload: impl rusqlite::ToSql) {
    let sql = "INSERT INTO goal_events (session_id, goal_id, event_type, payload_json, created_at_ms)
               VALUES ('s', 'g', ?1, ?2, ?3)";
    store.db.execute(sql, params![kind, payload, START]).unwrap();
}

fn payload(store: &Store, kind: &str) -> String {
    let sql = "SELECT payload_json FROM goal_events WHERE event_type = ?1";
    store.db.query_row(sql, [kind], |row| row.get(0)).unwrap()
}

#[test]
fn a_payload_that_is_not_text_is_skipped() {
    let (_directory, path) = file_with(b"");
    let mut store = Store::open(&path).unwrap();
    let damaged = [b"push with \xff ", SECRET.as_bytes()].concat();
    add_event(&store, "first", SECRET);
    add_event(&store, "blob", &damaged);
    store.db.execute("UPDATE goal_events SET payload_json = CAST(payload_json AS TEXT)", []).unwrap();
    add_event(&store, "blob", &damaged);
    add_event(&store, "null", rusqlite::types::Null);
    add_event(&store, "last", SECRET);
    upkeep(&mut store);
    assert_eq!([payload(&store, "first"), payload(&store, "last")], ["[redacted]", "[redacted]"]);
}

#[test]
fn only_objectives_have_a_greatest_length() {
    let (_directory, path) = file_with(b"");
    let mut store = Store::open(&path).unwrap();
    let long = "a word ".repeat(1_000);
    add_event(&store, "long", format!("{long}{SECRET}"));
    upkeep(&mut store);
    assert_eq!(payload(&store, "long"), format!("{long}[redacted]"));
}

#[test]
fn a_step_takes_on_little_text() {
    let (_directory, path) = file_with(b"");
    let mut store = Store::open(&path).unwrap();
    for _ in 0..30 {
        add_event(&store, "long", format!("{} {SECRET}", "a word ".repeat(1_600)));
    }
    let (mut left, mut most) = (secrets(&store), 0);
    while !store.write(|db| db.redact_step(START)).unwrap() {
        let now = secrets(&store);
        (left, most) = (now, most.max(left - now));
    }
    assert_eq!(left, 0);
    assert!(most <= 7, "{most} payloads of 11 kB in one step");
}

/// A file of the plugin whose objective has a secret, with a verdict on it and one on an earlier text.
fn judged_file() -> (tempfile::TempDir, std::path::PathBuf) {
    let (directory, path) = plugin_file(1);
    let db = read_write(&path);
    for (at, text) in [(1, "an earlier text".to_owned()), (2, format!("push with {SECRET}"))] {
        let payload = serde_json::json!({"verdict": "incomplete", "objective_hash": text::fingerprint(&text)});
        let sql = "INSERT INTO goal_events (session_id, goal_id, event_type, payload_json, created_at_ms)
                   VALUES ('s', 'g', 'evaluator_verdict', ?1, ?2), ('s', 'g', 'evaluator_verdict', '{broken', ?2)";
        db.execute(sql, params![payload.to_string(), at]).unwrap();
    }
    (directory, path)
}

/// The texts that the verdicts on the goal are bound to.
fn judged(store: &Store) -> Vec<String> {
    let events = store.read().events_of_kinds("g", &[EventKind::EvaluatorVerdict]).unwrap();
    let hash = |event: crate::EventRow| event.payload["objective_hash"].as_str().map(str::to_owned);
    events.into_iter().filter_map(hash).collect()
}

#[test]
fn a_verdict_stays_bound_to_an_objective_that_is_redacted() {
    let expected = ["an earlier text", "push with [redacted]"].map(text::fingerprint);
    let (_directory, path) = judged_file();
    let store = Store::open_existing(&path).unwrap();
    assert_eq!(store.read().goals().unwrap().iter().filter(|goal| goal.objective == "push with [redacted]").count(), 1);
    assert_eq!(judged(&store), expected);

    let (_other, theirs) = judged_file();
    let mut world = crate::testing::World::new();
    world.store.import(&theirs).unwrap();
    assert_eq!(judged(&world.store), expected, "imported");
}
