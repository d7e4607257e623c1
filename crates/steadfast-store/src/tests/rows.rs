//! Goals and events as rows: words, races, history.

use strum::IntoEnumIterator as _;

use super::*;
use crate::testing::{HOOK, USER};
use steadfast_model::goal::budget::{Budget, BudgetProfile, BudgetSource};
use steadfast_model::goal::change::{self, Change, Span};
use steadfast_model::goal::proof::{Basis, Proof};
use steadfast_model::goal::{Actor, Goal, GoalStatus, PausedReason};
use steadfast_model::host::Host;
use steadfast_model::limit::{Axis, Limits};

/// A limit on every axis, also on one without a column.
fn all_limits() -> Limits {
    let limits = Limits::default().with(Axis::Tokens, 1).with(Axis::Usd, 2).with(Axis::Turns, 12 + 13);
    limits.with(Axis::Hours, 14_000).with(Axis::Deadline, 15).with(Axis::Shared, 16)
}

/// A goal with a value in every field.
fn full_goal() -> Goal {
    Goal {
        host: Host::Codex,
        project_dir: Some("/p/ä".into()),
        objective: "quotes ' \" and\nlines 目".into(),
        status: GoalStatus::Paused,
        paused_reason: Some(PausedReason::UsageLimit),
        limits: all_limits(),
        counted: Limits::default().with(Axis::Shared, 17),
        budget_profile: Some(BudgetProfile::Deep),
        budget_source: BudgetSource::Auto,
        tokens_used: 3,
        subagent_tokens: 4,
        cache_read_tokens: 5,
        cost_micros: 6,
        unpriced_tokens: 7,
        time_used_seconds: 8,
        resume_at_ms: Some(9),
        last_accounted_byte_offset: 10,
        last_accounted_uuid: Some("u".into()),
        accounting_uncertain: true,
        last_continuation_at_ms: Some(11),
        continuations_used: 12,
        budget_limit_reported: true,
        wind_down: Some(Axis::Usd),
        wind_down_batches: 16,
        warned: Axis::iter().collect(),
        worked_since_continuation: true,
        idle_continuations: 17,
        blocks_in_row: 18,
        last_message_hash: Some("h".into()),
        failures_in_row: 19,
        wake_at_ms: Some(20),
        verify: vec!["cargo test".into(), "echo \"it's\"".into()],
        version: 21,
        created_at_ms: 22,
        updated_at_ms: 23,
        ..goal()
    }
}

type Verb = fn(&Goal) -> Change;

fn insert(world: &mut World, goal: &Goal) -> Goal {
    world.store.write(|db| db.start_goal(goal, None, USER)).unwrap()
}

fn save(world: &mut World, before: &Goal, change: Change) -> Result<Goal, StoreError> {
    world.store.write(|db| db.save(before, change, HOOK))
}

#[test]
fn a_goal_comes_back_as_it_was_stored() {
    let mut world = World::new();
    let stored = insert(&mut world, &full_goal());
    assert_eq!(world.goal(), stored);
    assert_eq!(stored, Goal { goal_id: stored.goal_id.clone(), ..full_goal() });
}

#[test]
fn every_status_and_reason_is_one_word_in_rust_sql_and_json() {
    let mut world = World::new();
    let mut goal = insert(&mut world, &goal());
    for status in GoalStatus::iter() {
        for reason in PausedReason::iter().map(Some).chain([None]) {
            let after = Goal { status, paused_reason: reason, ..goal.clone() };
            let change = Change { goal: after, events: Vec::new(), span: Span::Keep };
            goal = save(&mut world, &goal, change).unwrap();
            assert_eq!(world.goal(), goal);
            let columns = rows(&world.store.db, "SELECT status, paused_reason FROM goals");
            let text = |reason: PausedReason| SqlValue::Text(reason.to_string());
            let expected = [SqlValue::Text(status.to_string()), reason.map_or(SqlValue::Null, text)];
            assert_eq!(columns, [expected]);
            assert_eq!(serde_json::to_value(status).unwrap(), serde_json::json!(status.to_string()));
            let json = serde_json::to_value(reason).unwrap();
            assert_eq!(json, serde_json::json!(reason.map(|reason| reason.to_string())));
        }
    }
    for limit in Axis::iter() {
        let set = "UPDATE goals SET wind_down = ?1";
        world.store.db.execute(set, [limit.to_string()]).unwrap();
    }
    let set = |column: &str| world.store.db.execute(&format!("UPDATE goals SET {column} = 'nonsense'"), []);
    for column in ["status", "budget_profile", "budget_source"] {
        assert!(set(column).is_err(), "{column}");
    }
    // Lists that grow are in Rust only: a new word rebuilds no table, and an unknown one is an error, never a guess.
    for column in ["paused_reason", "wind_down"] {
        assert_eq!(set(column).unwrap(), 1, "{column}");
        assert!(world.store.read().goal(SESSION).is_err(), "{column}");
        world.store.db.execute(&format!("UPDATE goals SET {column} = NULL"), []).unwrap();
    }
}

/// Bug 23 of the plugin: the loser of a race still wrote its event.
#[test]
fn the_loser_of_a_race_changes_nothing_and_writes_no_event() {
    let mut world = World::new();
    let seen = insert(&mut world, &goal());
    let winner = change::complete(&seen, &Proof::from_agent(&seen, &Basis::default()).unwrap(), START + 5).unwrap();
    let completed = save(&mut world, &seen, winner).unwrap();
    let events = world.event_kinds();

    let mut rival = World { store: Store::open(world.store.path()).unwrap(), ..World::new() };
    let loser = change::pause(&seen, START + 6).unwrap();
    assert!(matches!(save(&mut rival, &seen, loser), Err(StoreError::Stale)));
    assert_eq!((world.goal(), world.event_kinds()), (completed.clone(), events));
    assert!(!world.store.read().has_open_span("nobody").unwrap());

    // Nor can a stale row be replaced or deleted.
    let stale = Goal { status: GoalStatus::Complete, ..seen.clone() };
    let replaced = world.store.write(|db| db.start_goal(&goal(), Some(&stale), USER));
    assert!(matches!(replaced, Err(StoreError::Stale)));
    let deleted = world.store.write(|db| db.delete_goal(&stale));
    assert!(matches!(deleted, Err(StoreError::Stale)));
    assert_eq!(world.goal(), completed);
}

#[test]
fn each_saved_change_increments_the_version_and_logs_both() {
    let mut world = World::new();
    let mut goal = insert(&mut world, &goal());
    let verbs: [Verb; 6] = [
        |goal| change::pause(goal, START + 1_000).unwrap(),
        |goal| change::resume(goal, START + 2_000).unwrap(),
        |goal| change::edit(goal, "Other".into(), START + 3_000).unwrap(),
        |goal| change::block(goal, "no key", START + 4_000).unwrap(),
        |goal| change::resume(goal, START + 5_000).unwrap(),
        |goal| change::complete(goal, &Proof::from_user(goal, Actor::User).unwrap(), START + 6_000).unwrap(),
    ];
    for verb in verbs {
        let after = save(&mut world, &goal, verb(&goal)).unwrap();
        assert_eq!(after.version, goal.version + 1);
        goal = after;
    }
    let log: Vec<_> = world
        .events()
        .into_iter()
        .map(|event| (event.kind, event.status_before, event.status_after, event.version_before, event.version_after))
        .collect();
    let line = |kind: &str, before: &str, after: &str, version: i64| {
        (kind.to_owned(), Some(before.to_owned()), Some(after.to_owned()), Some(version), Some(version + 1))
    };
    let expected = [
        ("goal_created".to_owned(), None, Some("active".to_owned()), None, Some(0)),
        line("goal_paused", "active", "paused", 0),
        line("goal_resumed", "paused", "active", 1),
        line("goal_objective_updated", "active", "active", 2),
        line("goal_blocked", "active", "blocked", 3),
        line("goal_resumed", "blocked", "active", 4),
        line("goal_completed_by_user", "active", "complete", 5),
    ];
    assert_eq!(log, expected);
    let actors: Vec<Option<String>> = world.events().into_iter().map(|event| event.actor).collect();
    assert_eq!(actors[..2], [Some("user".to_owned()), Some("steadfast".to_owned())]);
}

/// Bug 32 of the plugin: a replaced goal was gone.
#[test]
fn replaced_goals_are_kept_whole() {
    let mut world = World::new();
    let mut expected = Vec::new();
    for round in 0..3 {
        world.add_goal(Budget::default(), START + round * 10_000);
        let now = START + round * 10_000 + 5_000;
        let done = |goal: &Goal| change::complete(goal, &Proof::from_user(goal, Actor::User).unwrap(), now);
        expected.insert(0, world.apply(done));
    }
    let newest = expected.remove(0);
    assert_eq!(world.goal(), newest);
    assert_eq!(world.store.read().replaced_goals(Some(SESSION)).unwrap(), expected);
    assert_eq!(world.store.read().replaced_goals(Some("other")).unwrap(), []);
    let replaced = world.event_kinds().iter().filter(|kind| *kind == "goal_replaced").count();
    assert_eq!(replaced, 2);
    let all_kept = rows(&world.store.db, "SELECT count(DISTINCT goal_id) FROM goal_events");
    assert_eq!(all_kept, [[SqlValue::Integer(3)]]);
}
