//! Databases that the claude-goal plugin wrote, of each of its versions, with rows as they were found in use.

use super::*;
use crate::EventFilter;
use crate::testing::HOUR;
use steadfast_model::goal::budget::{BudgetProfile, BudgetSource};
use steadfast_model::goal::turn::{self, Decision, TurnEnd};
use steadfast_model::goal::{Goal, GoalStatus, PausedReason};
use steadfast_model::limit::{Axis, Limits};

const EVENT_COLUMNS: &str = "id, session_id, goal_id, hook_name, event_type, status_before, status_after, tokens_delta,
    version_before, version_after, decision, stop_hook_active, pid, payload_json, created_at_ms";
const GOAL_COLUMNS: &str = "session_id, goal_id, objective, status, paused_reason, tokens_used, time_used_seconds,
    resume_at_ms, last_accounted_byte_offset, last_accounted_uuid, accounting_uncertain, last_continuation_at_ms,
    budget_limit_reported, version, created_at_ms, updated_at_ms";

/// Builds a database of the plugin in a directory of its own.
fn plugin_database(version: usize) -> (TempDir, PathBuf) {
    let (directory, path) = file_with(b"");
    let db = read_write(&path);
    let _: String = db.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0)).unwrap();
    migrate::build(&db, version);
    for (session, status, reason) in [
        ("s-active", "active", "NULL"),
        ("s-user", "paused", "'user'"),
        ("s-cap", "paused", "'continuation_cap'"),
        ("s-error", "paused", "'accounting_error'"),
        ("s-limited", "budget_limited", "NULL"),
        ("s-done", "complete", "NULL"),
        ("s-gone", "abandoned", "NULL"),
    ] {
        let budget = if status == "budget_limited" { "900" } else { "NULL" };
        db.execute_batch(&format!(
            "INSERT INTO goals (session_id, goal_id, objective, status, paused_reason, token_budget, tokens_used,
               time_used_seconds, last_accounted_byte_offset, last_accounted_uuid, version, created_at_ms, updated_at_ms)
             VALUES ('{session}', 'g-{session}', 'a | pipe, a '' quote and 目标', '{status}', {reason}, {budget}, 1000,
               60, 4711, 'u-1', 12, {START}, {START} + 5000);
             INSERT INTO goal_events (session_id, goal_id, hook_name, event_type, status_before, tokens_delta, payload_json, created_at_ms)
             VALUES ('{session}', 'g-{session}', 'stop', 'continuation_injected', 'active', 10, '{{\"a\":1}}', {START} + 7),
                    ('{session}', 'g-{session}', NULL, 'tokens_accounted', NULL, 5, '{{\"agent_id\":\"a\"b\"}}', {START} + 8);
             INSERT INTO continuation_leases VALUES ('{session}', 'g-{session}', 4242, 'laptop', 1, 2);"
        ))
        .unwrap();
    }
    if version >= 2 {
        db.execute_batch(
            "UPDATE goals SET subagent_tokens = 77 WHERE session_id = 's-user';
             INSERT INTO subagent_token_cursors (session_id, goal_id, agent_id, transcript_path, tokens_used,
               last_accounted_byte_offset, updated_at_ms)
             VALUES ('s-user', 'g-s-user', 'agent-1', '/t/agent-1.jsonl', 77, 990, 3);",
        )
        .unwrap();
    }
    if version >= 3 {
        let blocked = "UPDATE goals SET status = 'blocked' WHERE session_id = 's-user'";
        db.execute(blocked, []).unwrap();
        db.execute("UPDATE goals SET paused_reason = NULL WHERE status = 'blocked'", []).unwrap();
    }
    (directory, path)
}

/// Everything of an old database that must survive.
fn remains(db: &Connection, version: i64) -> Vec<Vec<Vec<SqlValue>>> {
    let mut all = vec![
        rows(db, &format!("SELECT {GOAL_COLUMNS} FROM goals ORDER BY session_id")),
        rows(db, &format!("SELECT {EVENT_COLUMNS} FROM goal_events ORDER BY id")),
        rows(db, "SELECT * FROM continuation_leases ORDER BY session_id"),
    ];
    if version >= 2 {
        all.push(rows(db, "SELECT session_id, subagent_tokens FROM goals ORDER BY session_id"));
        all.push(rows(db, "SELECT * FROM subagent_token_cursors"));
    }
    all
}

#[test]
fn every_old_version_opens_without_losing_a_row_or_an_event() {
    for version in 1..=5 {
        let (_directory, path) = plugin_database(usize::try_from(version).unwrap());
        let before = remains(&read_write(&path), version);
        let store = Store::open_existing(&path).unwrap();
        assert_eq!(migrate::version(&store.db).unwrap(), SCHEMA_VERSION, "from {version}");
        assert_eq!(remains(&store.db, version), before, "from {version}");
        assert_eq!(store.integrity_faults().unwrap(), Vec::<String>::new());

        let goals = store.read().goals().unwrap();
        assert_eq!(goals.len(), 7, "every row is understood, from {version}");
        assert!(goals.iter().all(|goal| goal.objective == "a | pipe, a ' quote and 目标"));
        let events = store.read().events(EventFilter::All, 100).unwrap();
        assert_eq!(events[0].payload, serde_json::json!({"a": 1}));
        assert_eq!(events[1].payload, serde_json::json!({"text": "{\"agent_id\":\"a\"b\"}"}), "kept as it was");
    }
}

#[test]
fn the_database_before_the_migration_is_kept_beside_it() {
    for version in 1..=5 {
        let (_directory, path) = plugin_database(usize::try_from(version).unwrap());
        let before = remains(&read_write(&path), version);
        drop(Store::open_existing(&path).unwrap());
        let backup = beside(&path, &format!("v{version}.bak"));
        let kept = connect_read_only(&backup).unwrap();
        assert_eq!(migrate::version(&kept).unwrap(), version);
        assert_eq!(remains(&kept, version), before, "from {version}");
        drop(kept);
        let bytes = fs_err::read(&backup).unwrap();
        drop(Store::open_existing(&path).unwrap());
        assert!(fs_err::read(&backup).unwrap() == bytes, "opening again changes nothing");
    }
}

#[test]
fn concurrent_opens_migrate_an_old_database_once_and_keep_its_backup() {
    for _ in 0..5 {
        let (_directory, path) = plugin_database(4);
        let before = remains(&read_write(&path), 4);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| Store::open_existing(&path).unwrap());
            }
        });
        assert_eq!(remains(&read_write(&path), 4), before);
        let kept = connect_read_only(&beside(&path, "v4.bak")).unwrap();
        assert_eq!((migrate::version(&kept).unwrap(), remains(&kept, 4)), (4, before));
    }
}

#[test]
fn a_migration_that_fails_changes_nothing() {
    let (_directory, path) = plugin_database(4);
    let db = read_write(&path);
    db.execute_batch("CREATE TABLE goal_history (mine TEXT)").unwrap();
    let before = remains(&db, 4);
    assert!(Store::open_existing(&path).is_err());
    assert_eq!((migrate::version(&db).unwrap(), remains(&db, 4)), (4, before));
}

/// A goal of version 4 with a budget of 200,000 tokens, 10 turns and an hour, all of it used.
fn lifted(profile: Option<&str>, status: &str, tokens_used: i64) -> Goal {
    let (_directory, path) = file_with(b"");
    let db = read_write(&path);
    migrate::build(&db, 4);
    let (profile, source) = match profile {
        Some(name) => (format!("'{name}'"), "profile"),
        None => ("NULL".to_owned(), "tokens"),
    };
    let reason = if status == "paused" { "'continuation_cap'" } else { "NULL" };
    db.execute_batch(&format!(
        "INSERT INTO goals (session_id, goal_id, objective, status, paused_reason, token_budget, tokens_used,
           subagent_tokens, continuations_remaining, max_wall_clock_seconds, budget_limit_reported, budget_profile,
           budget_source, version, created_at_ms, updated_at_ms)
         VALUES ('s', 'g', 'x', '{status}', {reason}, 200000, {tokens_used}, 1, 10, 3600, 1, {profile}, '{source}', 3,
           {START}, {START})"
    ))
    .unwrap();
    drop(db);
    Store::open_existing(&path).unwrap().read().goal("s").unwrap().unwrap()
}

#[test]
fn profiles_get_their_newer_limits() {
    for (profile, tokens, turns, seconds) in [
        ("quick", 2_000_000, 50, 7_200),
        ("standard", 10_000_000, 200, 28_800),
        ("deep", 100_000_000, 1_000, 86_400),
        ("overnight", 1_000_000_000, 5_000, 259_200),
    ] {
        let goal = lifted(Some(profile), "active", 5);
        let limits =
            Limits::default().with(Axis::Tokens, tokens).with(Axis::Turns, turns).with(Axis::Hours, seconds * 1_000);
        assert_eq!(goal.limits, limits, "{profile}");
        assert_eq!(goal.budget_profile, profile.parse::<BudgetProfile>().ok());
        assert_eq!((goal.status, goal.version, goal.budget_source), (GoalStatus::Active, 3, BudgetSource::Profile));
    }
    let own = lifted(None, "active", 5);
    assert_eq!(own.limits, Limits::default().with(Axis::Tokens, 200_000));
    let paused = lifted(Some("quick"), "paused", 5);
    assert_eq!((paused.status, paused.paused_reason), (GoalStatus::Paused, Some(PausedReason::ContinuationCap)));
    assert_eq!(lifted(None, "budget_limited", 200_000).status, GoalStatus::BudgetLimited);
}

/// Bug 15 of the plugin: a lifted goal's clock started at its last update, so that days of absence used up its
/// hours at once.
#[test]
fn a_goal_stopped_by_its_old_budget_is_active_with_its_clock_stopped() {
    let goal = lifted(Some("quick"), "budget_limited", 250_000);
    assert_eq!((goal.status, goal.resume_at_ms), (GoalStatus::Active, None));
    assert!(!goal.budget_limit_reported, "it will be reported when the new budget is spent");
    let days_later = START + 72 * HOUR;
    assert_eq!((goal.active_seconds(days_later), goal.reached_limit(days_later)), (0, None));
    let rules = testing::rules(3);
    let (_, decision) = turn::at_stop(&goal, &TurnEnd::default(), rules, days_later);
    assert_eq!(decision, Decision::Continue);
}

#[test]
fn migrated_active_goals_are_still_charged_for_their_session() {
    let (_directory, path) = plugin_database(5);
    let store = Store::open_existing(&path).unwrap();
    let open = |session: &str| store.read().has_open_span(&format!("g-{session}")).unwrap();
    let sessions = ["s-active", "s-limited", "s-user", "s-cap", "s-done", "s-gone"];
    assert_eq!(sessions.map(open), [true, true, false, false, false, false]);
}

/// A store of the release before the outbox: version 6 with two additions, whose tables repeated the lists of words.
#[test]
fn a_store_of_the_version_before_loses_no_row() {
    let (_directory, path) = file_with(b"");
    let db = read_write(&path);
    let _: String = db.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0)).unwrap();
    migrate::build(&db, 6);
    migrate::add(&db, 2);
    db.execute_batch(&format!(
        "INSERT INTO goals (session_id, goal_id, objective, status, paused_reason, token_budget, usd_budget_micros,
           continuations_used, continuations_remaining, max_wall_clock_seconds, deadline_ms, wind_down, warned_json,
           version, created_at_ms, updated_at_ms)
         VALUES ('s', 'g', 'ship it', 'paused', 'wall_clock_cap', 9, 8, 3, 4, 60, 7, 'usd', '[\"tokens\"]', 5, {START}, {START});
         INSERT INTO goal_history (session_id, goal_id, objective, status, version, created_at_ms, updated_at_ms)
         VALUES ('s', 'older', 'earlier', 'complete', 2, 1, 2);
         INSERT INTO runs (run_id, name, kind, title, project_dir, status, stage, plan_json, state_json, started_at_ms, updated_at_ms)
         VALUES ('r', 'auth', 'loop', 'work', '/p', 'running', 1, '{{}}', '{{}}', 1, 2);
         INSERT INTO run_stages (run_id, stage, name, status, max_iterations) VALUES ('r', 1, 'work', 'running', 3);
         INSERT INTO run_attempts (run_id, stage, iteration, attempt, status, started_at_ms) VALUES ('r', 1, 1, 1, 'starting', 1);"
    ))
    .unwrap();
    let all = |db: &Connection| {
        let goals = "SELECT goal_id, id, objective, status, paused_reason, wind_down, warned_json, version FROM";
        let (live, history) = (format!("{goals} goals"), format!("{goals} goal_history"));
        let run =
            "SELECT run_id, name, kind, title, project_dir, status, stage, plan_json, state_json, version FROM runs";
        let attempts = "SELECT run_id, stage, iteration, attempt, status, input_tokens, cost_micros, started_at_ms FROM
                        run_attempts";
        let runs = [run, "SELECT * FROM run_stages", attempts];
        let changed = "'idx_responses_spent', 'idx_responses_spend', 'idx_responses_session', 'idx_runs_parent',
             'idx_goals_goal', 'idx_goals_created', 'idx_goal_history_created', 'idx_sessions_parent', 'idx_sessions_client'";
        let indexes = &format!(
            "SELECT name FROM sqlite_schema WHERE type = 'index' AND name NOT IN ({changed})
             AND tbl_name NOT IN ('outbox', 'deliveries', 'goal_queue', 'run_models', 'run_notes', 'appointments') ORDER BY name"
        );
        [&*live, &*history, runs[0], runs[1], runs[2], indexes].map(|sql| rows(db, sql))
    };
    let before = all(&db);
    drop(db);

    let store = Store::open_existing(&path).unwrap();
    assert_eq!(all(&store.db), before);
    let limits = Limits::default().with(Axis::Tokens, 9).with(Axis::Usd, 8).with(Axis::Turns, 7);
    let goal = store.read().goal("s").unwrap().unwrap();
    assert_eq!(goal.limits, limits.with(Axis::Hours, 60_000).with(Axis::Deadline, 7));
    assert_eq!((goal.wind_down, goal.warned), (Some(Axis::Usd), vec![Axis::Tokens]));
    let columns = "name, kind, title, project_dir, status, stage, plan_json, state_json, started_at_ms, updated_at_ms";
    let second = &format!("INSERT INTO runs (run_id, {columns}) SELECT 'r2', {columns} FROM runs");
    assert!(store.db.execute(second, []).is_err(), "one live run of a name");
}

/// Otherwise other processes wait until all indexes of a large file are made.
#[test]
fn additions_to_a_store_are_committed_one_by_one() {
    let (_directory, path) = file_with(b"");
    let db = read_write(&path);
    migrate::build(&db, 6);
    migrate::add(&db, 5);
    drop(db);
    let db = read_write(&path);
    let mut seen = vec![migrate::additions(&db).unwrap()];
    while !migrate::step(db.unchecked_transaction().unwrap()).unwrap() {
        seen.push(migrate::additions(&read_write(&path)).unwrap());
    }
    assert_eq!(seen, (5..migrate::ADDITIONS.len()).collect::<Vec<_>>());
    assert!(migrate::is_complete(&db).unwrap());
    drop(db);
    assert_eq!(Store::open_existing(&path).unwrap().integrity_faults().unwrap(), Vec::<String>::new());
}
